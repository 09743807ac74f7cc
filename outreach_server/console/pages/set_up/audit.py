"""The audit trail of a workspace, and of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.set_up.inputs import Input
from outreach_server.console.pages.set_up.nouns import Cell, Listed, Noun, at
from outreach_server.console.pages.set_up.origins import Origins
from outreach_server.console.people import names_of

_PAGE_SIZE: Final = 50
_FILTERS: Final = {
    "actor": "Who, such as user:ID or api",
    "action": "What, such as key.revoke",
    "subject": "Identifier of what",
}


def filters_of(visit: Visit) -> dict[str, Any]:
    """Return the filters that the address of a page has; none outside of a workspace."""
    query = visit.request.query_params
    found = {} if visit.workspace is None else {name: query.get(name, "").strip() for name in _FILTERS}
    return {name: value for name, value in found.items() if value}


class AuditNoun(Noun):
    """The audit trail of a workspace."""

    name, title, one, right = "audit", "Audit", "entry", Right.OWN
    shape = "rows"
    columns = ("What", "Who", "From", "When", "Of what", "More")
    file = "audit-file"
    empty = "No entry matches these filters. Every change appears here, with the person or program that made it."

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the entries, newest first."""
        page = await visit.engine.audit.list(visit.place.id, after=after, limit=_PAGE_SIZE, **filters_of(visit))
        return Listed(items=page.items, next=page.next)

    def called(self, one: Any) -> str:
        """Return what was done."""
        return str(one.action)

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return the entries."""
        origins = Origins(visit.engine)
        names, _ = await asyncio.gather(names_of(visit.engine, [one.actor for one in items]), origins.read(items))
        return [(names[one.actor], origins.of(one), at(visit, one.at), one.subject, one.detail or "") for one in items]

    async def filters(self, visit: Visit) -> Sequence[Input]:
        """Return who, what and of what."""
        filters = filters_of(visit)
        return [Input(name=name, label=label, value=filters.get(name, "")) for name, label in _FILTERS.items()]


class WholeAuditNoun(AuditNoun):
    """The audit trail of the server, in all workspaces and in none."""

    name, right, file = "system-audit", Right.OPERATE, "system-audit-file"
    place = "system"

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the entries, newest first."""
        page = await visit.engine.audit.list(after=after, limit=_PAGE_SIZE)
        return Listed(items=page.items, next=page.next)

    async def filters(self, visit: Visit) -> Sequence[Input]:
        """Return none: the filters are of one workspace."""
        return ()
