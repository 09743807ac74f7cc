"""Batching: concurrent requests are answered by one operation."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar, cast

import anyio

Q = TypeVar("Q")
A = TypeVar("A")


class _PendingItem(Generic[Q, A]):
    """An item with its answer or error.

    Attributes:
        called: What its task waits for, unless it leads from the start.
        has_gone: Whether its task has been cancelled, so that it can lead nothing.
    """

    def __init__(self, item: Q) -> None:
        self.item = item
        self.called: asyncio.Future[None] | None = None
        self.leads = False
        self.has_gone = False
        self.answer: A | None = None
        self.error: Exception | None = None

    def call(self) -> None:
        """Wake its task, if it waits."""
        if self.called is not None and not self.called.done():
            self.called.set_result(None)


class Batcher(Generic[Q, A]):
    """Collects items, and answers each batch by one call.

    While one batch is answered the next collects; one of the waiting tasks leads it. If the leader is cancelled or the
    batch fails, items are submitted again, after a failure each alone: submitting an item twice must be harmless.

    Args:
        answer: Returns the answers to some items in order; its error for a single item is that item's.
        max_size: The largest size of a batch.
        size: Returns the size of an item.
        pause_seconds: How long to collect after a batch before the next one; an item that comes later does not wait.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Q]], Awaitable[Sequence[A]]],
        *,
        max_size: int,
        size: Callable[[Q], int] = lambda _: 1,
        pause_seconds: float = 0.0,
    ) -> None:
        self._answer = answer
        self._max_size = max_size
        self._size = size
        self._pause_seconds = pause_seconds
        self._pause_ends = float("-inf")
        self._waiting: deque[_PendingItem[Q, A]] = deque()
        self._answering = False

    async def submit(self, item: Q) -> A:
        """Return the answer to an item, or raise its error."""
        pending: _PendingItem[Q, A] = _PendingItem(item)
        self._waiting.append(pending)
        if self._answering:
            await self._wait(pending)
        else:
            self._answering = pending.leads = True
        if pending.leads:
            await self._lead(pending)
        if pending.error is not None:
            raise pending.error
        return cast("A", pending.answer)

    async def _wait(self, pending: _PendingItem[Q, A]) -> None:
        pending.called = asyncio.get_running_loop().create_future()
        try:
            await pending.called
        except BaseException:
            pending.has_gone = True
            if pending in self._waiting:
                self._waiting.remove(pending)
            if pending.leads:
                self._hand_over()
            raise

    async def _lead(self, own: _PendingItem[Q, A]) -> None:
        """Answer a batch that includes one's own item."""
        batch: list[_PendingItem[Q, A]] = []
        try:
            # Items submitted meanwhile join the batch, at least those of the same turn of the loop.
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(self._pause_ends - loop.time(), 0.0))
            left = self._max_size
            while self._waiting and (not batch or self._size(self._waiting[0].item) <= left):
                batch.append(self._waiting.popleft())
                left -= self._size(batch[-1].item)
            await self._answer_all(batch)
            self._pause_ends = loop.time() + self._pause_seconds
        except BaseException:
            self._waiting.extendleft(pending for pending in reversed(batch) if not pending.has_gone)
            self._waiting.remove(own)
            batch = []
            raise
        finally:
            for pending in batch:
                pending.call()
            self._hand_over()

    async def _answer_all(self, batch: Sequence[_PendingItem[Q, A]]) -> None:
        try:
            answers = await self._answer([pending.item for pending in batch])
            for pending, answer in zip(batch, answers, strict=True):
                pending.answer, pending.error = answer, None
        except Exception as error:
            if len(batch) == 1:
                batch[0].error = error
                return
            # All at once: if the cause is shared, such as a blocked database, no item waits for another.
            async with anyio.create_task_group() as tasks:
                for pending in batch:
                    tasks.start_soon(self._answer_all, [pending])

    def _hand_over(self) -> None:
        """Let a waiting task lead the next batch."""
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].call()
        else:
            self._answering = False
