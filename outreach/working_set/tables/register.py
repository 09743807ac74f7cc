"""The unsubscribe register."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from outreach.models.base import Channel
from outreach.models.unsubscribe import HELD, Unsubscribe
from outreach.working_set.kinds import UNSUBSCRIBES
from outreach.working_set.tables.base import Table, json_list


class Register(Table):
    """The unsubscribe register; (workspace, phone) is unique."""

    def get(self, workspace_id: str, phone: str) -> Unsubscribe | None:
        """Return the entry of a number."""
        return self._rows.get(UNSUBSCRIBES, (workspace_id, phone))

    def prefetch(self, workspace_and_phone: Iterable[tuple[str, str]]) -> None:
        """Read the entries of many numbers in one go, for `get`."""
        self._rows.prefetch(UNSUBSCRIBES, workspace_and_phone)

    def put(self, entry: Unsubscribe) -> None:
        """Insert or replace a number's entry; this counts as a stop."""
        self._rows.count_stop()
        self._rows.put(UNSUBSCRIBES, UNSUBSCRIBES.key_of(entry), entry)

    def delete(self, workspace_id: str, phone: str) -> bool:
        """Remove a number; return whether it was there."""
        return self._rows.delete(UNSUBSCRIBES, (workspace_id, phone))

    def list(self, workspace_id: str, *, after: str = "", limit: int = 1000) -> Sequence[Unsubscribe]:
        """Return entries by number from `after` on, at most `limit`."""
        return self._list(UNSUBSCRIBES, "register.list", workspace_id=workspace_id, after=after, limit=limit)

    def held(self, workspace_id: str | None, *, limit: int) -> Sequence[Unsubscribe]:
        """Return numbers under review, of one workspace or all, by (created_at, workspace, number), descending."""
        return self._list(UNSUBSCRIBES, "register.held", workspace_id=workspace_id, limit=limit)

    def stopped(self, workspace_id: str, channel: Channel, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers (at most 5,000) that must not be contacted on this channel."""
        if len(phones) == 1:
            # One number is asked for repeatedly, so that its entry or absence is cached.
            [phone] = phones
            entry = self.get(workspace_id, phone)
            return frozenset(phones) if entry is not None and entry.stops(channel) else frozenset()
        if not phones:
            return frozenset()
        rows = self._rows.query(
            "register.stopped", UNSUBSCRIBES, workspace_id=workspace_id, channel=channel, phones=json_list(phones)
        )
        return frozenset(row[0] for row in rows)

    def restrictions(
        self, workspace_id: str, channel: Channel, phones: Collection[str]
    ) -> Mapping[str, Literal["stopped", "held"]]:
        """Return the restrictions of numbers (at most 5,000): stopped, or held for review."""
        self.prefetch((workspace_id, phone) for phone in phones)
        entries = (self.get(workspace_id, phone) for phone in phones)
        found = [entry for entry in entries if entry is not None and (entry.stops(channel) or entry.scope == HELD)]
        return {entry.phone: "held" if entry.scope == HELD else "stopped" for entry in found}
