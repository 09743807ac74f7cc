"""Files with personal data: the password is asked for before, and the audit trail notes what went out."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Final

import anyio
import attrs
from starlette.responses import Response

from outreach.http import EXPORT_CONTENT_TYPES
from outreach.server_support import escape_formula
from outreach_server.console.context import Visit
from outreach_server.console.identities.proof import PROOF_FIELD, needs_proof, problem_of_proof
from outreach_server.download import DownloadResponse

_PART_CHARACTERS: Final = 64 * 1024


@attrs.frozen(kw_only=True)
class Guard:
    """The password page before a file.

    Attributes:
        url: The address of the file, to which the form of the password is sent.
        action: The action of `FORM_ACTIONS` that the file is.
        why: The content of the file.
        back: The name of the page that leads to it, and
        back_url: its address.
        current: The entry of the menu that it belongs to.
    """

    url: str
    action: str
    why: str
    back: str
    back_url: str
    current: str

    async def stops(self, visit: Visit) -> Response | None:
        """Return the page that asks for the password, where it is needed before the file.

        Raises:
            HTTPException: The host of the console has to ask for the password, not the console.
        """
        if not needs_proof(visit):
            return None
        if not visit.console.has_login:
            await problem_of_proof(visit)
        return self._page(visit, 200, {})

    async def answer(self, visit: Visit) -> Response:
        """Check the password that a form has, and lead on to the file.

        Raises:
            HTTPException: The form is for something else, the person may not do it, or the host has to ask.
        """
        visit.chosen(self.action)
        if wrong := await problem_of_proof(visit):
            return self._page(visit, 422, {PROOF_FIELD: wrong})
        return visit.lead(self.url)

    def _page(self, visit: Visit, status: int, problems: Mapping[str, str]) -> Response:
        return visit.page(
            "proof",
            title="Your password",
            current=self.current,
            status=status,
            problems=problems,
            page_url=self.url,
            back=self.back,
            back_url=self.back_url,
            why=self.why,
            action=self.action,
            label="Go on to the file",
        )


def csv_response(
    visit: Visit, name: str, columns: Sequence[str], rows: AsyncIterator[Sequence[str]], *, action: str
) -> Response:
    """Return rows as a CSV file, sent while they are read; the audit trail then notes how many went out.

    Args:
        visit: The request.
        name: The name of the file.
        columns: The heads of its columns.
        rows: The cells of each row.
        action: Its name in the audit trail.
    """
    return DownloadResponse(
        _parts(visit, columns, rows, action),
        name=name,
        content_type=EXPORT_CONTENT_TYPES["csv"],
        only_headers=visit.request.method == "HEAD",
    )


async def _parts(
    visit: Visit, columns: Sequence[str], rows: AsyncIterator[Sequence[str]], action: str
) -> AsyncGenerator[bytes]:
    out, count = io.StringIO(newline=""), 0
    writer = csv.writer(out)
    out.write("\ufeff")
    writer.writerow(columns)
    try:
        async for cells in rows:
            writer.writerow([escape_formula(cell) for cell in cells])
            count += 1
            if out.tell() >= _PART_CHARACTERS:
                yield _taken(out)
        yield _taken(out)
    finally:
        place = None if visit.workspace is None else visit.workspace.id
        # Also where the browser has gone: it has the rows up to then.
        with anyio.CancelScope(shield=True):
            await visit.engine.audit.record(
                place, actor=visit.actor, action=action, subject=place or "server", detail=f"csv, rows: {count}"
            )


def _taken(out: io.StringIO) -> bytes:
    taken = out.getvalue().encode()
    out.seek(0)
    out.truncate()
    return taken
