"""From where people acted: the addresses of the sessions that they had then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

import attrs

from outreach import NotFound, Outreach
from outreach.models import AuditEntry, Session

_MOST_SESSIONS: Final = 200
_NOTED: Final = timedelta(minutes=2)
"""The use of a session is noted once a minute."""

_USER: Final = "user"


@attrs.define
class Origins:
    """The addresses from which users were signed in, as far as their sessions are kept: for three months.

    Args:
        engine: The engine.
    """

    engine: Outreach
    _sessions: dict[str, Sequence[Session]] = attrs.field(factory=dict, init=False)

    async def read(self, entries: Iterable[AuditEntry]) -> None:
        """Read the sessions of those who made some entries, at once."""
        wanted = {entry.actor for entry in entries if _is_user(entry.actor)} - self._sessions.keys()
        found = await asyncio.gather(*(self._of(actor) for actor in wanted))
        self._sessions.update(zip(wanted, found, strict=True))

    def of(self, entry: AuditEntry) -> str:
        """Return the address from which the person of an entry was signed in then, or several; empty if not known."""
        places = {one.address for one in self._sessions.get(entry.actor, ()) if one.address and _lasted(one, entry)}
        return " or ".join(sorted(places))

    async def _of(self, actor: str) -> Sequence[Session]:
        try:
            return (await self.engine.sessions.list(actor.partition(":")[2], limit=_MOST_SESSIONS)).items
        except NotFound:
            return ()


def _is_user(actor: str) -> bool:
    return actor.partition(":")[0] == _USER


def _lasted(session: Session, entry: AuditEntry) -> bool:
    """Return whether a session was used after an entry was made, and had begun before."""
    if session.second_factor == "awaited" or (session.ended_at is not None and entry.at > session.ended_at):
        return False
    return session.created_at <= entry.at <= session.seen_at + _NOTED
