"""A storage in plain Python structures, which keeps the same contract as the durable ones."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from anyio.lowlevel import checkpoint

from outreach.clock import Clock
from outreach.errors import StorageError
from outreach.protocols.storage import DispatchLock, Operation
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.lock import MemoryLock
from outreach.storage.memory.transaction import Tables

T = TypeVar("T")


class MemoryStorage:
    """A database that lives as long as this object.

    It may be opened by several engines, and again after it was closed: they see the same data. Operations run
    on the event loop, each after one checkpoint: a caller that is cancelled is so before its operation.

    Args:
        clock: Accepted, so that every storage is made in the same way; operations bring their own `now`.
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._journal = Journal()
        self._tables = Tables(self._journal)
        self._lock = MemoryLock()
        self._users = 0
        self._queued = 0
        self._queued_first = 0

    async def __aenter__(self) -> Self:
        """Open it."""
        self._users += 1
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Finish what was queued and close."""
        self._users -= 1
        while not self._users and self._queued:
            await checkpoint()

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction and return its result."""
        self._check_open()
        self._queued += 1
        try:
            await self._wait_for_turn(bulk=bulk)
            with self._journal.recording():
                return operation(self._tables)
        finally:
            self._queued -= 1

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation that writes nothing and return its result."""
        self._check_open()
        await checkpoint()
        return operation(self._tables)

    @property
    def lock(self) -> DispatchLock:
        """The lock that one dispatching engine holds."""
        return self._lock

    def _check_open(self) -> None:
        if not self._users:
            raise StorageError("The storage is not open: use it within `async with`.")

    async def _wait_for_turn(self, *, bulk: bool) -> None:
        if bulk:
            await checkpoint()
            while self._queued_first:
                await checkpoint()
            return
        self._queued_first += 1
        try:
            await checkpoint()
        finally:
            self._queued_first -= 1
