"""A process that dies at a chosen point: from then on its storage takes and tells nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self, TypeVar

import attrs

from outreach.protocols.storage import DispatchLock, Operation, Storage
from tests.engine.calling import CALLS

T = TypeVar("T")

NO_GRACE: Final = attrs.evolve(CALLS, stop_grace_seconds=0.0)
"""Who is killed waits for nothing."""


class Killed(OSError):
    """The process is dead."""


class Mortal:
    """A storage whose process is killed when a condition holds.

    What was committed before stays; nothing is written, and nothing read, afterwards.

    Attributes:
        dies_before: Asked before each write; the process is dead before it when this says so.
        dies_after: Asked after each commit; the process is dead, the commit is not acknowledged, when this says so.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.dead = False
        self.dies_before: Callable[[], bool] = lambda: False
        self.dies_after: Callable[[Storage], Awaitable[bool]] = _never

    async def __aenter__(self) -> Self:
        """Open it."""
        await self._storage.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close it, as the operating system does for the dead."""
        await self._storage.__aexit__(exc_type, exc, tb)

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Write, unless the process is dead."""
        self.dead = self.dead or self.dies_before()
        self._live()
        result = await self._storage.write(operation, bulk=bulk)
        self.dead = self.dead or await self.dies_after(self._storage)
        self._live()
        return result

    async def read(self, operation: Operation[T]) -> T:
        """Read, unless the process is dead."""
        self._live()
        return await self._storage.read(operation)

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return the storage's own, unless the process is dead."""
        self._live()
        return self._storage.campaign_list_revision(workspace_id)

    @property
    def lock(self) -> DispatchLock:
        """The storage's own lock, which goes with the process."""
        return self._storage.lock

    def _live(self) -> None:
        if self.dead:
            raise Killed("Killed.")


async def _never(_: Storage) -> bool:
    return False


async def has_intent(storage: Storage) -> bool:
    """Return whether a dispatch stands in the ledger without an outcome."""
    return bool(await storage.read(lambda tx: tx.dispatches.abandoned((), limit=1)))
