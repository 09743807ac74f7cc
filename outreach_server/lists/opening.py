"""Opens an uploaded list: copied out of the database, and read in a helper process, or in a thread if it is small."""

from __future__ import annotations

import json
import marshal
import pickle
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import orjson
from anyio import to_thread

from outreach import OutreachError
from outreach_server.bodies.body import Chunks, helper_frames
from outreach_server.bodies.spool import spool_directory
from outreach_server.context import Server
from outreach_server.lists.errors import UnreadableList, in_body_names
from outreach_server.lists.reading import Frame, ListOptions, contacts_of, read_list
from outreach_server.lists.tables import ZIP

_FILE: Final = "list"
_OWN: Final = "own"
_MAX_IN_THREAD: Final = 256 * 1024
"""The largest text file that a thread reads, in the tenth of a second or two."""


class OpenedList:
    """An uploaded list while it is read.

    Args:
        columns: The names of its columns.
        frames: What is read behind them.

    Attributes:
        document: What was made of it; None before its last contact was read.
    """

    def __init__(self, columns: list[str], frames: AsyncIterator[Frame]) -> None:
        self.columns = columns
        self.document: dict[str, Any] | None = None
        self._frames = frames

    async def chunks(self) -> Chunks:
        """Yield the contacts; can be iterated once."""
        async for frame in self._parts():
            yield contacts_of(frame)

    async def numbers(self) -> AsyncIterator[tuple[int, str]]:
        """Yield the numbers of a list of opt-outs with their rows; can be iterated once."""
        async for frame in self._parts():
            for row, phone in frame.content:
                yield row, phone

    async def read_to_its_end(self) -> None:
        """Read it for its document alone."""
        async for _ in self._parts():
            pass

    async def _parts(self) -> AsyncIterator[Frame]:
        try:
            async for frame in self._frames:
                if frame.kind == "document":
                    self.document = _in_body_names(orjson.loads(frame.content))
                else:
                    yield frame
        except UnreadableList as error:
            raise _in_words_of_a_body(error) from None


@asynccontextmanager
async def opened_list(
    server: Server, workspace_id: str, upload_id: str, options: ListOptions, *, own: Iterable[str] | None = None
) -> AsyncIterator[OpenedList]:
    """Open an upload as a list of contacts; the helper ends, and the copy is deleted, with the context.

    Args:
        server: What reads it.
        workspace_id: The workspace.
        upload_id: The upload.
        options: How to read it.
        own: The workspace's own numbers, as `person_key` writes them, for a list of opt-outs; None for contacts.

    Raises:
        NotFound: The workspace has no such upload.
        Conflict: It is not complete.
        UnreadableList: It is no list, or nothing says which column is the phone number.
    """
    async with AsyncExitStack() as stack:
        # Before the copy: each one takes room on the disk.
        await stack.enter_async_context(server.helpers.turn(workspace_id))
        directory = await stack.enter_async_context(spool_directory(server.spool_root))
        file = directory / _FILE
        async with await anyio.open_file(file, "xb") as copy:
            async for content in server.engine.uploads.iter_content(workspace_id, upload_id):
                await copy.write(content)
        if own is not None:
            options = attrs.evolve(options, own=str(directory / _OWN))
            await anyio.Path(directory / _OWN).write_text("\n".join(own), "utf-8")
        try:
            frames = await stack.enter_async_context(_frames(server, file, options))
            first = await anext(frames)
        except UnreadableList as error:
            raise _in_words_of_a_body(error) from None
        yield OpenedList(first.content, frames)


@asynccontextmanager
async def _frames(server: Server, file: Path, options: ListOptions) -> AsyncIterator[AsyncIterator[Frame]]:
    if server.helper is None or await to_thread.run_sync(_is_small, file):
        read = await to_thread.run_sync(lambda: list(read_list(file, options)), limiter=server.readers)
        yield _each(read)
        return
    arguments = json.dumps({"list": attrs.asdict(options)})
    async with helper_frames(server.helper, file, arguments) as frames:
        yield _unpacked(frames)


def _is_small(file: Path) -> bool:
    """Return whether a thread reads a file soon; a workbook, which is packed, may be much larger than it looks."""
    if file.stat().st_size > _MAX_IN_THREAD:
        return False
    with file.open("rb") as opened:
        return not opened.read(len(ZIP)).startswith(ZIP)


async def _each(frames: list[Frame]) -> AsyncIterator[Frame]:
    for frame in frames:
        yield frame


async def _unpacked(frames: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    async for frame in frames:
        kind, content = marshal.loads(frame)  # noqa: S302 - written by our own process
        if kind == "error":
            error: OutreachError = pickle.loads(content)  # noqa: S301 - written by our own process
            raise error
        yield Frame(kind, content)


def _in_words_of_a_body(error: UnreadableList) -> UnreadableList:
    return UnreadableList(in_body_names(error.message))


def _in_body_names(document: dict[str, Any]) -> dict[str, Any]:
    """Return what was made of a list with its hints in the words of a body; cells stay as they are."""
    hints = {name: [in_body_names(hint) for hint in document[name]] for name in ("notes", "number_warnings")}
    return {**document, **hints}
