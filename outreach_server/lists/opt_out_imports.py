"""An uploaded list of opt-outs: read, and put on the register."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import IO, Any, Final

from outreach import Workspace
from outreach.models import UnsubscribeImport, UnsubscribeScope
from outreach.server_support import person_key
from outreach_server.context import Server
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.loading import document_of_list, rejects_file
from outreach_server.lists.opening import OpenedList, opened_list
from outreach_server.lists.requests import ListRequest

_IN_MEMORY: Final = 1_000_000


@asynccontextmanager
async def opened_opt_outs(
    server: Server, workspace: Workspace, upload_id: str, wanted: ListRequest, *, rejects: str | None = None
) -> AsyncIterator[OpenedList]:
    """Open an upload as a list of opt-outs; see `opened_list`."""
    upload = await server.engine.uploads.get(workspace.id, upload_id)
    own = {person_key(number.phone) async for number in server.engine.numbers.iter_all(workspace.id)}
    region = wanted.options.get("region") or workspace.default_region
    options = wanted.reading(name=upload.file_name, region=region, rejects=rejects)
    async with opened_list(server, workspace.id, upload_id, options, own=own) as opened:
        yield opened


async def check_opt_outs(server: Server, workspace: Workspace, upload_id: str, wanted: ListRequest) -> dict[str, Any]:
    """Read a list of opt-outs to its end, and return what was made of it.

    Raises:
        NotFound: The workspace has no such upload.
        Conflict: It is not complete.
        UnreadableList: It is no list, or nothing says which column is the phone number.
    """
    async with opened_opt_outs(server, workspace, upload_id, wanted) as opened:
        await opened.read_to_its_end()
        return document_of_list(opened)


def rejected_opt_outs(
    server: Server, workspace: Workspace, upload_id: str, wanted: ListRequest, *, actor: str
) -> AsyncGenerator[bytes]:
    """Return a CSV file of the rows that hold no number to unsubscribe; see `rejects_file`."""
    return rejects_file(
        server,
        workspace,
        upload_id,
        lambda rejects: opened_opt_outs(server, workspace, upload_id, wanted, rejects=rejects),
        actor=actor,
    )


async def import_opt_outs(
    server: Server, workspace: Workspace, upload_id: str, wanted: ListRequest, *, scope: UnsubscribeScope, actor: str
) -> UnsubscribeImport:
    """Put the numbers of a list on the register, once for an upload, which is deleted.

    Raises:
        NotFound: The workspace has no such upload, or its numbers were imported.
        Conflict: It is not complete.
        UnreadableList: It is no list, or no row holds a number; nothing was added.
    """
    uploads, total = server.engine.uploads, 0
    name = (await uploads.get(workspace.id, upload_id)).file_name
    # Written after the whole file was read, so that a file that breaks off changes nothing.
    with tempfile.SpooledTemporaryFile(
        max_size=_IN_MEMORY,
        mode="w+",
        encoding="utf-8",
        dir=None if server.spool_root is None else str(server.spool_root),
    ) as found:
        async with opened_opt_outs(server, workspace, upload_id, wanted) as opened:
            async for row, phone in opened.numbers():
                found.write(f"{row} {phone}\n")
                total += 1
        if not total:
            raise UnreadableList(f"No row of {name} is a phone number to unsubscribe; nothing was added.")
        # Of two requests at once, one finds it.
        await uploads.remove(workspace.id, upload_id, actor=actor)
        found.seek(0)
        return await server.engine.unsubscribes.import_numbers(
            workspace.id, _rows(found), scope=scope, file_name=name, actor=actor
        )


async def _rows(spool: IO[str]) -> AsyncIterator[tuple[int, str]]:
    for line in spool:
        row, phone = line.split()
        yield int(row), phone
