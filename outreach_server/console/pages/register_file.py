"""The register as a file."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncGenerator
from typing import Final

import anyio
from starlette.responses import Response

from outreach.http import EXPORT_CONTENT_TYPES
from outreach.server_support import escape_formula
from outreach_server.console.context import Visit
from outreach_server.console.pages.downloads import Guard
from outreach_server.download import DownloadResponse

COLUMNS: Final = ("phone", "scope", "source", "evidence", "created_at")
_PART_CHARACTERS: Final = 64 * 1024


async def show(visit: Visit) -> Response:
    """Send the register, once the password was given lately."""
    if (asked := await _guard(visit).stops(visit)) is not None:
        return asked
    return DownloadResponse(
        _rows(visit),
        name="opt-outs.csv",
        content_type=EXPORT_CONTENT_TYPES["csv"],
        only_headers=visit.request.method == "HEAD",
    )


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


async def _rows(visit: Visit) -> AsyncGenerator[bytes]:
    """Yield a CSV file in the order of the numbers; the audit trail then notes how many rows went out."""
    out, count = io.StringIO(newline=""), 0
    writer = csv.writer(out)
    out.write("\ufeff")
    writer.writerow(COLUMNS)
    try:
        async for one in visit.engine.unsubscribes.iter_all(visit.place.id):
            cells = (one.phone, one.scope, one.source, one.evidence or "", one.created_at.isoformat())
            writer.writerow([escape_formula(cell) for cell in cells])
            count += 1
            if out.tell() >= _PART_CHARACTERS:
                yield _taken(out)
        yield _taken(out)
    finally:
        # Also where the browser has gone: what it has by then is out.
        with anyio.CancelScope(shield=True):
            await visit.engine.audit.record(
                visit.place.id,
                actor=visit.actor,
                action="unsubscribes.export",
                subject=visit.place.id,
                detail=f"csv, rows: {count}",
            )


def _taken(out: io.StringIO) -> bytes:
    taken = out.getvalue().encode()
    out.seek(0)
    out.truncate()
    return taken
