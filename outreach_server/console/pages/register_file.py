"""The register as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from starlette.responses import Response

from outreach_server.console.context import Visit
from outreach_server.console.pages.downloads import Guard, csv_response

COLUMNS: Final = ("phone", "scope", "source", "evidence", "created_at")


async def show(visit: Visit) -> Response:
    """Send the register, once the password was given lately."""
    if (proof_page := await _guard(visit).stops(visit)) is not None:
        return proof_page
    return csv_response(visit, "opt-outs.csv", COLUMNS, _rows(visit), action="unsubscribes.export")


async def act(visit: Visit) -> Response:
    """Check the password, and go on to the file."""
    return await _guard(visit).answer(visit)


def _guard(visit: Visit) -> Guard:
    return Guard(
        url=visit.url("register-file"),
        action="export-register",
        why="The file has the numbers of all people who have opted out, and what they wrote.",
        back="Opt-outs",
        back_url=visit.url("register"),
        current="register",
    )


async def _rows(visit: Visit) -> AsyncIterator[Sequence[str]]:
    """Yield the entries in the order of the numbers."""
    async for one in visit.engine.unsubscribes.iter_all(visit.place.id):
        yield one.phone, one.scope, one.source, one.evidence or "", one.created_at.isoformat()
