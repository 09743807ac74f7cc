"""The audit trail of a workspace, and of the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.set_up.inputs import Input
from outreach_server.console.pages.set_up.nouns import Cell, Listed, Noun, at
from outreach_server.console.people import names_of

_PAGE_SIZE = 50
_FILTERS = {
    "actor": "Who, such as user:ID or api",
    "action": "What, such as key.revoke",
    "subject": "Identifier of what",
}


class AuditNoun(Noun):
    """Who did what in a workspace."""

    name, title, one, right = "audit", "Audit", "entry", Right.OWN
    shape = "rows"
    columns = ("What", "Who", "When", "Of what", "More")
    empty = "No entry matches these filters. Every change appears here, with the person or program that made it."

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the entries, newest first."""
        filters: dict[str, Any] = {one.name: one.value or None for one in await self.filters(visit)}
        page = await visit.engine.audit.list(visit.place.id, after=after, limit=_PAGE_SIZE, **filters)
        return Listed(items=page.items, next=page.next)

    def called(self, one: Any) -> str:
        """Return what was done."""
        return str(one.action)

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return the entries."""
        names = await names_of(visit.engine, [one.actor for one in items])
        return [(names[one.actor], at(visit, one.at), one.subject, one.detail or "") for one in items]

    async def filters(self, visit: Visit) -> Sequence[Input]:
        """Return who, what and of what."""
        asked = visit.request.query_params
        return [Input(name=name, label=label, value=asked.get(name, "").strip()) for name, label in _FILTERS.items()]


class WholeAuditNoun(AuditNoun):
    """Who did what on the server, in all workspaces and in none."""

    name, right = "system-audit", Right.OPERATE
    place = "system"

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the entries, newest first."""
        page = await visit.engine.audit.list(after=after, limit=_PAGE_SIZE)
        return Listed(items=page.items, next=page.next)

    async def filters(self, visit: Visit) -> Sequence[Input]:
        """Return none: the filters are of one workspace."""
        return ()
