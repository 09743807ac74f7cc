"""Request bodies: bounded before they are read, and large ones on disk instead of in memory.

A body with contacts is read here, in a thread, or in a helper process (`parser_process`).
"""

from __future__ import annotations

import hashlib
import json
import marshal
import os
import pickle
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import repeat
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, Final, TypeAlias, TypeVar

import anyio
import attrs
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from starlette.requests import Request

from outreach import InvalidRequest, NewCallCampaign, NewSmsCampaign, OutreachError, Workspace
from outreach.http import MAX_IDEMPOTENCY_DAYS, parse_json
from outreach.models import LeaveOut, PreparedRecipient
from outreach_server.bodies.parser_process import LENGTH, FirstFrame
from outreach_server.bodies.reading import Head, ParsedBody, ParseOptions, read_contacts
from outreach_server.bodies.spool import spool_directory
from outreach_server.context import Server, request_state_of, server_of
from outreach_server.fair_semaphore import FairSemaphore

T = TypeVar("T")

MAX_SMALL_BYTES: Final = 1024 * 1024
"""The largest body of operations without contacts."""

MAX_WITHOUT_TURN: Final = 256 * 1024
"""Larger bodies wait for a turn."""

MAX_IN_MEMORY: Final = 2 * 1024 * 1024
"""Larger bodies of contacts go to disk, and to a helper process."""

_MAX_INLINE: Final = 64 * 1024
"""The largest body to parse on the event loop, in a millisecond or two."""

_FILE: Final = "body.json"

_IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_IDEMPOTENCY_DAYS: Final = "Idempotency-Days"
_DAYS: Final = re.compile(r"[0-9]{1,2}")
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")

_IDLE_SECONDS: Final = 30.0
"""A body that stops arriving for this long is given up."""

_BASE_SECONDS: Final = 15.0
_MIN_BYTES_PER_SECOND: Final = 64 * 1024
"""The minimum time for a body; more is allowed in proportion to what has arrived, at half a megabit per second, so
that a slow sender holds a turn and a connection only for these seconds."""

_DRAIN_SECONDS: Final = 5.0
_DRAIN_BYTES: Final = 64 * 1024 * 1024
_WRITE_BYTES: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class Body:
    """A received body, and the key under which it was sent.

    Attributes:
        key: The header `Idempotency-Key` of a POST, which makes it safe to retry (docs/interface.md#safe-retry).
        key_days: The header `Idempotency-Days`: days for which the key is kept; None for the server's default.
        digest: SHA-256 of what counts as the request under this key, in hexadecimal.
        raw: All of it; empty if it is in a file.
        file: The file of a large one, in its own directory.
    """

    key: str | None
    digest: str
    raw: bytes
    file: Path | None = None
    key_days: int | None = None


async def read_small_body(request: Request) -> Body:
    """Return the body of an operation without contacts.

    Raises:
        InvalidRequest: The key is malformed, or the body is too large, too slow or not JSON by its content type.
    """
    key, days = _idempotency_key(request), _idempotency_days(request)
    _check_headers(request)
    raw = bytearray()
    async for chunk in _chunks(request, min(server_of(request).max_body_bytes, MAX_SMALL_BYTES)):
        raw += chunk
    return _in_memory(raw, key, days)


async def read_model(body: Body, read: Callable[[Any], T]) -> T:
    """Return the model of a small body; a larger one is parsed in a thread.

    Raises:
        InvalidRequest: The body breaks a rule; the details name each place.
    """
    raw = body.raw
    if len(raw) <= _MAX_INLINE:
        return read(parse_json(raw))
    return await to_thread.run_sync(lambda: read(parse_json(raw)))


@asynccontextmanager
async def receive_content(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Receive bytes of any kind from a workspace; many hold its turn until the end of the context.

    Raises:
        InvalidRequest: They are more than the limit, or too slow.
    """
    turns, owner = server_of(request).large_bodies, request_state_of(request).workspace_id or ""
    async with _receive(request, limit, turns, owner) as content:
        yield content


@asynccontextmanager
async def receive_callback_body(request: Request, limit: int, *, account_id: str) -> AsyncIterator[bytes]:
    """Receive a body of any kind; a large one holds its turn until the end of the context.

    Raises:
        InvalidRequest: It is larger than the limit, or too slow.
    """
    async with _receive(request, limit, server_of(request).large_callbacks, account_id) as content:
        yield content


@asynccontextmanager
async def _receive(request: Request, limit: int, turns: FairSemaphore, owner: str) -> AsyncIterator[bytes]:
    chunks = _chunks(request, limit)
    raw = bytearray()
    async with AsyncExitStack() as stack:
        if not await _read_all(request, chunks, raw, MAX_WITHOUT_TURN, limit):
            await stack.enter_async_context(turns.turn(owner))
            async for chunk in chunks:
                raw += chunk
        content = bytes(raw)
        raw.clear()
        yield content


@asynccontextmanager
async def receive_body(request: Request) -> AsyncIterator[Body]:
    """Receive a body that may have many contacts; its file is deleted at the end of the context.

    Raises:
        InvalidRequest: The key is malformed, or the body is too large, too slow or not JSON by its content type.
    """
    key, days = _idempotency_key(request), _idempotency_days(request)
    _check_headers(request)
    server = server_of(request)
    limit = server.max_body_bytes
    chunks = _chunks(request, limit)
    raw = bytearray()
    async with AsyncExitStack() as stack:
        if await _read_all(request, chunks, raw, MAX_WITHOUT_TURN, limit):
            yield _in_memory(raw, key, days)
            return
        # Nothing more is read from the socket until this body's turn.
        await stack.enter_async_context(server.large_bodies.turn(request_state_of(request).workspace_id or ""))
        if await _read_all(request, chunks, raw, MAX_IN_MEMORY, limit):
            yield _in_memory(raw, key, days)
            return
        directory = await stack.enter_async_context(spool_directory(server.spool_root))
        yield attrs.evolve(await _spool(chunks, raw, directory, key), key_days=days)


def refuse_unread(request: Request, message: str) -> InvalidRequest:
    """Return the error for a body that is not read to its end; the response closes the connection."""
    request_state_of(request).closes = True
    return InvalidRequest.at("", message)


def _in_memory(raw: bytearray, key: str | None, key_days: int | None) -> Body:
    return Body(key=key, key_days=key_days, digest=hashlib.sha256(raw).hexdigest(), raw=bytes(raw))


async def _read_all(request: Request, chunks: AsyncIterator[bytes], raw: bytearray, most: int, limit: int) -> bool:
    """Read a body up to a number of bytes, and return whether that was all of it.

    Nothing is read of a body with a larger Content-Length; one over the limit is refused here.
    """
    if most < (_announced(request) or 0) <= limit:
        return False
    async for chunk in chunks:
        raw += chunk
        if len(raw) > most:
            return False
    return True


async def _spool(chunks: AsyncIterator[bytes], begun: bytearray, directory: Path, key: str | None) -> Body:
    """Write the received part and the rest to disk."""
    digest = hashlib.sha256()
    pending = begun
    async with await anyio.open_file(directory / _FILE, "xb") as file:
        async for chunk in chunks:
            pending += chunk
            if len(pending) >= _WRITE_BYTES:
                digest.update(pending)
                await file.write(pending)
                pending = bytearray()
        digest.update(pending)
        await file.write(pending)
    return Body(key=key, digest=digest.hexdigest(), raw=b"", file=directory / _FILE)


async def _chunks(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield a body as it arrives; raise InvalidRequest if it is larger than the limit or too slow."""
    announced = _announced(request)
    too_large = f"The body is larger than {limit} bytes."
    stream = aiter(request.stream())
    if announced is not None and announced > limit:
        await _drain(request, stream)
        raise refuse_unread(request, too_large)
    received, waited = 0, 0.0
    while True:
        # Only the time spent waiting for this client counts.
        left = _BASE_SECONDS + received / _MIN_BYTES_PER_SECOND - waited
        began = anyio.current_time()
        try:
            with anyio.fail_after(min(left, _IDLE_SECONDS)):
                chunk = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if left > _IDLE_SECONDS:
                raise refuse_unread(request, f"The body stopped arriving for {_IDLE_SECONDS:.0f} s.") from None
            slow = f"The body arrived too slowly: {received} bytes of it in {waited + left:.0f} s."
            raise refuse_unread(request, slow) from None
        waited += anyio.current_time() - began
        received += len(chunk)
        if received > limit:
            await _drain(request, stream)
            raise refuse_unread(request, too_large)
        if chunk:
            yield chunk


async def _drain(request: Request, stream: AsyncIterator[bytes]) -> None:
    """Discard what a client still sends, for a while: most read a response only after sending everything."""
    if "expect" in request.headers:
        return
    dropped = 0
    with anyio.move_on_after(_DRAIN_SECONDS):
        async for chunk in stream:
            dropped += len(chunk)
            if dropped > _DRAIN_BYTES:
                return


def _announced(request: Request) -> int | None:
    text = request.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(2**63)) else None


def _idempotency_key(request: Request) -> str | None:
    """Return the key of a POST; None without one, and for other methods, which take none."""
    given = request.headers.getlist(_IDEMPOTENCY_KEY)
    if request.method != "POST" or not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise InvalidRequest.at(_IDEMPOTENCY_KEY, "must be 1 to 255 visible ASCII characters, given once")
    return given[0]


def _idempotency_days(request: Request) -> int | None:
    """Return for how many days the key of a POST is kept; None without the header, and for other methods."""
    given = request.headers.getlist(_IDEMPOTENCY_DAYS)
    if request.method != "POST" or not given:
        return None
    days = int(given[0]) if _DAYS.fullmatch(given[0]) else 0
    if len(given) > 1 or not 1 <= days <= MAX_IDEMPOTENCY_DAYS:
        raise InvalidRequest.at(
            _IDEMPOTENCY_DAYS, f"must be a whole number of days from 1 to {MAX_IDEMPOTENCY_DAYS}, given once"
        )
    if _IDEMPOTENCY_KEY not in request.headers:
        raise InvalidRequest.at(_IDEMPOTENCY_DAYS, f"must come with the header {_IDEMPOTENCY_KEY}")
    return days


def _check_headers(request: Request) -> None:
    """Check that the content type of a body is JSON in UTF-8, or absent."""
    if _announced(request) == 0:
        # Such as `curl -d ""` sends it to an operation that takes no body.
        return
    kind, _, parameters = request.headers.get("Content-Type", "application/json").partition(";")
    if kind.strip().lower() != "application/json":
        raise InvalidRequest.at("Content-Type", "must be application/json")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in {"utf-8", "utf8"}:
            raise InvalidRequest.at("Content-Type", "must have no charset other than utf-8")
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise InvalidRequest.at("Content-Encoding", "must be absent: compressed bodies are not supported")


_MAX_CONTACTS_INLINE: Final = 32 * 1024
"""The largest body to read on the event loop, in a millisecond or two."""

_LOG_FILE: Final = "helper.log"
_OPTIONS_FILE: Final = "options.json"
_MAX_OUTPUT: Final = 2000

_SILENT_SECONDS: Final = 600.0
"""How long a helper may write nothing: reading the largest body takes a small part of it, and one that hangs
would keep its turn for ever."""

Chunks: TypeAlias = AsyncIterator[list[PreparedRecipient]]
"""The contacts of a campaign, prepared in chunks; can be iterated once."""


class ParserProcessFailed(RuntimeError):
    """The helper process ended, or stood still, before it had read the whole body."""

    _words_are_for_operators = True
    """The last output of the process is a traceback without words: see `parser_process`."""


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
    server: Server, body: Body, workspace: Workspace
) -> AsyncIterator[tuple[LeaveOut | None, Chunks]]:
    """Provide whom a body of contacts leaves out, and the contacts.

    Raises:
        InvalidRequest: The body breaks a rule; the details name each place.
    """
    reading = ParseOptions(
        channel_from_body=False,
        sms_campaigns_enabled=workspace.sms_campaigns_enabled,
        default_region=workspace.default_region,
        this_year=server.engine.now().year,
        is_audience=True,
    )
    async with _parsed(server, body, reading, workspace_id=workspace.id) as (leave_out, chunks):
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
    if len(raw) <= _MAX_CONTACTS_INLINE:
        read = read_contacts(raw, reading)
    else:
        read = await to_thread.run_sync(_read_contacts_at_once, raw, reading, limiter=server.readers)
    yield read.head, _each(read.chunks)


def _read_contacts_at_once(raw: bytes, reading: ParseOptions) -> ParsedBody:
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
    # Not an argument: everybody on this machine may read those, and they have little room.
    given = file.with_name(_OPTIONS_FILE)
    await anyio.Path(given).write_text(options, "utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    log = file.with_name(_LOG_FILE)
    with log.open("xb") as errors:
        arguments = [*command, str(file), str(given)]
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
        while length := LENGTH.unpack(await _receive_exactly(stream, LENGTH.size))[0]:
            yield await _receive_exactly(stream, length)
    except TimeoutError:
        raise ParserProcessFailed(f"It wrote nothing for {_SILENT_SECONDS:.0f} s.") from None
    except anyio.IncompleteRead:
        status = await process.wait()
        output = await to_thread.run_sync(log.read_bytes)
        raise ParserProcessFailed(f"exit status {status}: {output[-_MAX_OUTPUT:].decode(errors='replace')}") from None


async def _receive_exactly(stream: BufferedByteReceiveStream, size: int) -> bytes:
    """Return the next bytes; raise `TimeoutError` if they do not come."""
    with anyio.fail_after(_SILENT_SECONDS):
        return await stream.receive_exactly(size)
