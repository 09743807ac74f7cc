"""Reads of several services that are made at the same time, in one snapshot of the database."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context, ContextVar, copy_context
from types import TracebackType
from typing import Any, Self, TypeVar

from outreach.errors import OutreachError, StorageError
from outreach.protocols.storage import Operation
from outreach.storage.unit_of_work import Transaction

T = TypeVar("T")

_Read = Callable[[Operation[Any]], Awaitable[Any]]
_Outcome = tuple[Any, OutreachError | None]
_Waiting = Sequence[tuple[Operation[Any], asyncio.Future[Any]]]


class JoinedReads:
    """Runs calls of services side by side; what they read at the same time, they read in one snapshot.

    The first reads of all calls are of one snapshot, then the second ones of those that read again, and so on. The
    calls are made within `async with`, whose end waits for all of them:

        async with JoinedReads() as reads:
            campaign = reads.start(engine.campaigns.get(workspace_id, campaign_id))
            counts = reads.start(engine.campaigns.count_recipients(workspace_id, campaign_id))
        print(campaign.result(), counts.result())
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._unfinished = 0
        self._waiting: list[tuple[Operation[Any], asyncio.Future[Any]]] = []
        self._blocked: Counter[object] = Counter()
        self._read: _Read | None = None
        self.is_open = False

    async def __aenter__(self) -> Self:
        """Begin."""
        await self._group.__aenter__()
        self.is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the calls; raise the first error of one, which has cancelled the others."""
        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self.is_open = False

    def start(self, call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a call; its result is known after the end of the block."""
        context, token = copy_context(), object()
        context.run(_JOINED.set, (self, token))
        # It belongs to the group, which waits for it.
        task = self._begin(call, context)
        self._unfinished += 1
        task.add_done_callback(self._end)
        return task

    async def read(self, read: _Read, operation: Operation[T], token: object) -> T:
        """Run an operation together with those of the other calls.

        Args:
            read: Runs an operation on a snapshot.
            operation: The operation.
            token: The call that it is of.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._read = read
        self._waiting.append((operation, future))
        self._blocked[token] += 1
        self._look()
        return await future

    def _begin(self, call: Coroutine[Any, Any, T], context: Context | None = None) -> asyncio.Task[T]:
        try:
            return self._group.create_task(call, context=context)
        except RuntimeError:
            # The group ends, because a call has failed or the block was cancelled, and begins nothing any more.
            call.close()
            raise

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._unfinished -= 1
        if not task.cancelled() and task.exception() is not None:
            self.is_open = False
        self._look()

    def _look(self) -> None:
        """Read, if every call that has not finished waits for that; soon, as one may begin several reads at once."""
        if self._waiting and len(self._blocked) >= self._unfinished:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        if not self._waiting or self._read is None:
            return
        waiting, self._waiting = self._waiting, []
        self._blocked.clear()
        try:
            self._begin(_run(self._read, waiting))
        except RuntimeError:
            self.is_open = False
            _cancel(waiting)


_JOINED: ContextVar[tuple[JoinedReads, object] | None] = ContextVar("outreach_joined_reads", default=None)


async def read_joined(read: _Read, operation: Operation[T]) -> T:
    """Run an operation by `read`: together with others, within a call that `JoinedReads` has started."""
    joined = _JOINED.get()
    # Something that a call has begun for others may outlast it.
    if joined is None or not joined[0].is_open:
        result: T = await read(operation)
        return result
    reads, token = joined
    return await reads.read(read, operation, token)


async def _run(read: _Read, waiting: _Waiting) -> None:
    def operation(tx: Transaction) -> Sequence[_Outcome]:
        return [_outcome(one, tx) for one, _ in waiting]

    try:
        outcomes: Sequence[_Outcome] = await read(operation)
    except asyncio.CancelledError:
        _cancel(waiting)
        raise
    except Exception as error:
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)
        return
    for (_, future), (result, refused) in zip(waiting, outcomes, strict=True):
        if future.done():
            continue
        if refused is None:
            future.set_result(result)
        else:
            future.set_exception(refused)


def _cancel(waiting: _Waiting) -> None:
    for _, future in waiting:
        future.cancel()


def _outcome(operation: Operation[Any], tx: Transaction) -> _Outcome:
    try:
        return operation(tx), None
    except StorageError:
        raise
    except OutreachError as error:
        # The other operations may succeed.
        return None, error
