"""The audit trail as a file: of a workspace by the filters of its page, or of the whole server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from starlette.responses import Response

from outreach_server.console.context import Visit
from outreach_server.console.pages.downloads import Guard, csv_response
from outreach_server.console.pages.set_up.audit import filters_of
from outreach_server.console.pages.set_up.origins import Origins
from outreach_server.console.people import names_of

COLUMNS: Final = ("at", "workspace_id", "actor", "name", "address", "action", "subject", "detail")


async def show(visit: Visit) -> Response:
    """Send the entries, once the password was given lately."""
    if (proof_page := await _guard(visit).stops(visit)) is not None:
        return proof_page
    return csv_response(visit, "audit.csv", COLUMNS, _rows(visit), action="audit.export")


async def act(visit: Visit) -> Response:
    """Check the password, and go on to the file."""
    return await _guard(visit).answer(visit)


def _guard(visit: Visit) -> Guard:
    page = "audit" if visit.workspace is not None else "system-audit"
    filters = filters_of(visit)
    return Guard(
        url=visit.url(f"{page}-file", filters),
        action=f"export-{page}",
        why="The file has who did what, when and from where, with names and network addresses.",
        back="Audit",
        back_url=visit.url(page, filters),
        current="settings",
    )


async def _rows(visit: Visit) -> AsyncIterator[Sequence[str]]:
    """Yield the entries, newest first."""
    workspace = None if visit.workspace is None else visit.workspace.id
    origins = Origins(visit.engine)
    names: dict[str, str] = {}
    async for one in visit.engine.audit.iter_all(workspace, **filters_of(visit)):
        if one.actor not in names:
            names.update(await names_of(visit.engine, [one.actor]))
        await origins.read([one])
        at, name = one.at.isoformat(), names[one.actor]
        yield at, one.workspace_id or "", one.actor, name, origins.of(one), one.action, one.subject, one.detail or ""
