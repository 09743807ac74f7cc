"""Batching: concurrent requests are answered by one operation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar, cast

import anyio

Q = TypeVar("Q")
A = TypeVar("A")

_MAX_AT_ONCE: Final = 2
"""Batches that are answered at a time. With more of them each would be smaller."""


class _PendingItem(Generic[Q, A]):
    """An item with its answer or error.

    Attributes:
        whose: Whose item it is.
        called: What its task waits for, unless it leads from the start.
        has_gone: Whether its task has been cancelled, so that it can lead nothing.
    """

    def __init__(self, item: Q, size: int, whose: Hashable) -> None:
        self.item = item
        self.size = size
        self.whose = whose
        self.called: asyncio.Future[None] | None = None
        self.leads = False
        self.has_gone = False
        self.answer: A | None = None
        self.error: Exception | None = None

    def call(self) -> None:
        """Wake its task, if it waits."""
        if self.called is not None and not self.called.done():
            self.called.set_result(None)


class _Waiting(Generic[Q, A]):
    """The waiting items of one owner, in their order, with the sum of their sizes."""

    def __init__(self) -> None:
        self.items: dict[_PendingItem[Q, A], None] = {}
        self.size = 0

    def add(self, pending: _PendingItem[Q, A]) -> None:
        """Add an item behind the others."""
        self.items[pending] = None
        self.size += pending.size

    def remove(self, pending: _PendingItem[Q, A]) -> None:
        """Remove an item."""
        del self.items[pending]
        self.size -= pending.size


class Batcher(Generic[Q, A]):
    """Collects items, and answers each batch by one call.

    While one batch is answered the next collects; one of the waiting tasks leads it. Items of others than those in the
    batch do not wait for its end: they form a second one. If the leader is cancelled or the batch fails, items are
    submitted again, after a failure each alone: submitting an item twice must be harmless.

    Args:
        answer: Returns the answers to some items in order; its error for a single item is that item's.
        max_size: Returns the largest size of a batch.
        size: Returns the size of an item.
        whose: Returns whose item it is, such as its workspace; all are one's by default.
        pause_seconds: How long to collect after a batch of several before the next one; an item that comes later does
            not wait.
        enough: So many items end the pause, and so does a full batch.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Q]], Awaitable[Sequence[A]]],
        *,
        max_size: Callable[[], int],
        size: Callable[[Q], int] = lambda _: 1,
        whose: Callable[[Q], Hashable] = lambda _: None,
        pause_seconds: float = 0.0,
        enough: int = 100,
    ) -> None:
        self._answer = answer
        self._max_size = max_size
        self._size = size
        self._whose = whose
        self._pause_seconds = pause_seconds
        self._enough = enough
        # How many of the waiting items the next batch may take, and their size in total.
        self._count = 0
        self._total = 0
        self._has_enough = asyncio.Event()
        self._pause_ends = float("-inf")
        # Owners in the order of their turns.
        self._waiting: dict[Hashable, _Waiting[Q, A]] = {}
        self._gathers = False
        self._batches = 0
        self._answered: set[Hashable] = set()
        """The owners of the items in the batches that run."""

    async def submit(self, item: Q) -> A:
        """Return the answer to an item, or raise its error."""
        pending: _PendingItem[Q, A] = _PendingItem(item, self._size(item), self._whose(item))
        self._add(pending)
        is_free = pending.whose not in self._answered
        if is_free:
            self._count += 1
            self._total += pending.size
            self._end_pause_if_enough()
        if is_free and self._has_room():
            self._gathers = pending.leads = True
        else:
            await self._wait(pending)
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
            if pending.whose in self._waiting and pending in self._waiting[pending.whose].items:
                self._remove(pending)
                self._count_anew()
            if pending.leads:
                self._gathers = False
                self._hand_over()
            raise

    async def _lead(self, own: _PendingItem[Q, A]) -> None:
        """Answer a batch that includes one's own item."""
        try:
            await self._collect()
        except BaseException:
            self._remove(own)
            self._count_anew()
            self._gathers = False
            self._hand_over()
            raise
        batch = self._gather(own)
        answered = {pending.whose for pending in batch}
        self._answered |= answered
        self._batches += 1
        self._count_anew()
        self._gathers = False
        self._hand_over()
        try:
            await self._answer_all(batch)
            if len(batch) > 1:
                self._pause_ends = asyncio.get_running_loop().time() + self._pause_seconds
            for pending in batch:
                pending.call()
        except BaseException:
            own.has_gone = True
            self._put_back([pending for pending in batch if not pending.has_gone])
            raise
        finally:
            self._answered -= answered
            self._batches -= 1
            self._count_anew()
            self._hand_over()

    async def _collect(self) -> None:
        """Wait until the pause is over or enough items wait, at least for those of the same turn of the loop."""
        await asyncio.sleep(0)
        if self._pause_ends > asyncio.get_running_loop().time():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._pause_ends):
                    await self._has_enough.wait()

    def _gather(self, own: _PendingItem[Q, A]) -> list[_PendingItem[Q, A]]:
        """Take a batch from those that wait, and that are not of an owner whose items are being answered.

        Items of an owner are taken in their order. An owner with items left, also that of `own`, has its next turn
        after the others.
        """
        batch, left = [own], self._max_size() - own.size
        self._remove(own)
        for _, waiting in self._free():
            for pending in waiting.items:
                if pending.size > left:
                    break
                batch.append(pending)
                left -= pending.size
        for pending in batch[1:]:
            self._remove(pending)
        for whose in dict.fromkeys(pending.whose for pending in batch):
            if whose in self._waiting:
                self._waiting[whose] = self._waiting.pop(whose)
        return batch

    def _free(self) -> list[tuple[Hashable, _Waiting[Q, A]]]:
        """Return the owners whose items the next batch may take."""
        return [(whose, waiting) for whose, waiting in self._waiting.items() if whose not in self._answered]

    def _add(self, pending: _PendingItem[Q, A]) -> None:
        if pending.whose not in self._waiting:
            self._waiting[pending.whose] = _Waiting()
        self._waiting[pending.whose].add(pending)

    def _remove(self, pending: _PendingItem[Q, A]) -> None:
        self._waiting[pending.whose].remove(pending)
        if not self._waiting[pending.whose].items:
            del self._waiting[pending.whose]

    def _put_back(self, batch: Sequence[_PendingItem[Q, A]]) -> None:
        """Put items before all others again."""
        later, self._waiting = self._waiting, {}
        for pending in batch:
            self._add(pending)
        for waiting in later.values():
            for pending in waiting.items:
                self._add(pending)

    def _count_anew(self) -> None:
        free = [waiting for _, waiting in self._free()]
        self._count = sum(len(waiting.items) for waiting in free)
        self._total = sum(waiting.size for waiting in free)
        self._has_enough.clear()
        self._end_pause_if_enough()

    def _end_pause_if_enough(self) -> None:
        if self._count >= self._enough or self._total >= self._max_size():
            self._has_enough.set()

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

    def _has_room(self) -> bool:
        return not self._gathers and self._batches < _MAX_AT_ONCE

    def _hand_over(self) -> None:
        """Let a waiting task lead the next batch."""
        free = self._free() if self._has_room() else []
        if free:
            leader = next(iter(free[0][1].items))
            self._gathers = leader.leads = True
            leader.call()
