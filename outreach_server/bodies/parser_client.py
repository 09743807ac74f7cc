"""Reads a body with contacts: here, in a thread, or in a helper process (`parser_process`)."""

from __future__ import annotations

import json
import marshal
import os
import pickle
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import repeat
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final, TypeAlias

import anyio
import attrs
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from outreach import NewCallCampaign, NewSmsCampaign, OutreachError
from outreach.models import LeaveOut, PreparedRecipient
from outreach_server.bodies.body import Body
from outreach_server.bodies.parser_process import LENGTH, FirstFrame
from outreach_server.bodies.reading import Head, ParsedBody, ParseOptions, read_contacts
from outreach_server.context import Server

_MAX_INLINE: Final = 32 * 1024
"""The largest body to read on the event loop, in a millisecond or two."""

_LOG_FILE: Final = "helper.log"
_MAX_TOLD: Final = 2000

_SILENT_SECONDS: Final = 600.0
"""How long a helper may write nothing: reading the largest body takes a small part of it, and one that hangs
would keep its turn for ever."""

Chunks: TypeAlias = AsyncIterator[list[PreparedRecipient]]
"""The contacts of a campaign, prepared in chunks; can be iterated once."""


class ParserProcessFailed(RuntimeError):
    """The helper process ended, or stood still, before it had read the whole body."""

    _words_are_for_operators = True
    """What it said at its end is a traceback without words: see `parser_process`."""


def default_command() -> Sequence[str] | None:
    """Return the command of a helper, to which two arguments are added; None for an executable that bundles Python."""
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    # Without the working directory, where a file such as json.py would take the place of a module.
    return sys.executable, "-P", "-m", "outreach_server.bodies.parser_process"


@asynccontextmanager
async def parsed_campaign(
    server: Server, body: Body, reading: ParseOptions, *, workspace_id: str
) -> AsyncIterator[tuple[NewSmsCampaign | NewCallCampaign, Chunks]]:
    """Provide the campaign of a body, and its contacts.

    Raises:
        InvalidRequest: The body breaks a rule; the details name each place.
        SmsCampaignsDisabled: The workspace does not have SMS campaigns enabled.
    """
    async with _parsed(server, body, reading, workspace_id=workspace_id) as (campaign, chunks):
        assert isinstance(campaign, NewSmsCampaign | NewCallCampaign)  # noqa: S101 - no audience
        yield campaign, chunks


@asynccontextmanager
async def parsed_audience(
    server: Server, body: Body, reading: ParseOptions, *, workspace_id: str
) -> AsyncIterator[tuple[LeaveOut | None, Chunks]]:
    """Provide whom a body of contacts leaves out, and the contacts.

    Raises:
        InvalidRequest: The body breaks a rule; the details name each place.
    """
    async with _parsed(server, body, reading, workspace_id=workspace_id) as (leave_out, chunks):
        assert leave_out is None or isinstance(leave_out, LeaveOut)  # noqa: S101 - never a campaign
        yield leave_out, chunks


@asynccontextmanager
async def _parsed(
    server: Server, body: Body, reading: ParseOptions, *, workspace_id: str
) -> AsyncIterator[tuple[Head, Chunks]]:
    if body.file is not None and server.helper is not None:
        async with (
            server.helpers.turn(workspace_id),
            parse_in_subprocess(server.helper, body.file, reading) as parsed,
        ):
            yield parsed
        return
    raw = await to_thread.run_sync(body.file.read_bytes) if body.file is not None else body.raw
    if len(raw) <= _MAX_INLINE:
        read = read_contacts(raw, reading)
    else:
        read = await to_thread.run_sync(_read_all, raw, reading, limiter=server.readers)
    yield read.head, _each(read.chunks)


def _read_all(raw: bytes, reading: ParseOptions) -> ParsedBody:
    """Read a body with all of its contacts."""
    read = read_contacts(raw, reading)
    return ParsedBody(head=read.head, chunks=iter(list(read.chunks)))


async def _each(chunks: Iterator[list[PreparedRecipient]]) -> Chunks:
    for chunk in chunks:
        yield chunk


@asynccontextmanager
async def parse_in_subprocess(
    command: Sequence[str], body: Path, reading: ParseOptions
) -> AsyncIterator[tuple[Head, Chunks]]:
    """Read a body's file in a helper process, which ends with the context at the latest.

    Yields:
        All of the body but its contacts, and these in chunks.

    Raises:
        OutreachError: The error of reading the body.
        ParserProcessFailed: The process died.
    """
    async with helper_frames(command, body, json.dumps(attrs.asdict(reading))) as frames:
        outcome: FirstFrame = pickle.loads(await anext(frames))  # noqa: S301 - written by our own process
        if isinstance(outcome, OutreachError):
            raise outcome
        yield outcome, _contacts(frames)


@asynccontextmanager
async def helper_frames(command: Sequence[str], file: Path, options: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """Start a helper process that reads a file, and provide what it writes; it ends with the context at the latest.

    Raises:
        ParserProcessFailed: The process died.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    log = file.with_name(_LOG_FILE)
    with log.open("xb") as errors:
        arguments = [*command, str(file), options]
        process = await anyio.open_process(arguments, stdin=DEVNULL, stdout=PIPE, stderr=errors, env=environment)
    async with process:
        try:
            yield _frames(process, log)
        finally:
            with suppress(ProcessLookupError):
                process.kill()


async def _contacts(frames: AsyncIterator[bytes]) -> Chunks:
    async for frame in frames:
        rows = marshal.loads(frame)  # noqa: S302 - written by our own process
        # Like `_make`, without its check of each length.
        yield list(map(tuple.__new__, repeat(PreparedRecipient), rows))


async def _frames(process: Process, log: Path) -> AsyncIterator[bytes]:
    """Yield a helper's frames."""
    assert process.stdout is not None  # noqa: S101 - asked for
    stream = BufferedByteReceiveStream(process.stdout)
    try:
        while length := LENGTH.unpack(await _receive(stream, LENGTH.size))[0]:
            yield await _receive(stream, length)
    except TimeoutError:
        raise ParserProcessFailed(f"It wrote nothing for {_SILENT_SECONDS:.0f} s.") from None
    except anyio.IncompleteRead:
        status = await process.wait()
        told = await to_thread.run_sync(log.read_bytes)
        raise ParserProcessFailed(f"exit status {status}: {told[-_MAX_TOLD:].decode(errors='replace')}") from None


async def _receive(stream: BufferedByteReceiveStream, size: int) -> bytes:
    """Return the next bytes; raise `TimeoutError` if they do not come."""
    with anyio.fail_after(_SILENT_SECONDS):
        return await stream.receive_exactly(size)
