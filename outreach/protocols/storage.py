"""Where the engine keeps everything: transactions over tables that speak the domain's language.

A storage offers two things: run a synchronous function in a transaction that may write, and run one on a
consistent snapshot that may only read. What a transaction can touch are the tables of `outreach.working_set`. The
rules of the domain are in `outreach.operations`, written once, over these tables; a database implements sets
(`working_set.backend`), and `outreach.testing.storage_contract` checks it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.working_set import Transaction

T = TypeVar("T")

Operation = Callable[[Transaction], T]
"""A synchronous function of a transaction: it touches nothing else, never waits, and takes at most 100 ms.

It may be run more than once before its result is given, because another operation of its group was refused: it has no
effect but on the transaction.
"""


class DispatchLock(Protocol):
    """Sees to it that one process at a time dispatches from a database."""

    def acquire(self) -> bool:
        """Take the lock without waiting; return whether it was free and is now the caller's.

        It is not free while anybody holds it, this process included: two engines may share one storage.

        Raises:
            DispatchRefused: Nothing may be dispatched from this database here.
        """
        ...

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        ...

    def home(self) -> DatabaseHome | None:
        """Return where the database is now; None where that means nothing (in memory)."""
        ...

    def high_water(self) -> HighWaterMark | None:
        """Return what was last noted beside the database; None when nothing is noted."""
        ...

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        """Note how far the database has come, outside it, so that an older copy put in its place is noticed.

        Args:
            mark: How far.
            ended: Whether whoever notes it stops dispatching now, in order.
        """
        ...

    def ended_uncleanly(self) -> bool:
        """Return whether the last dispatcher did not end in order, so that the data has to be looked through."""
        ...

    async def check_integrity(self) -> str | None:
        """Read all of the stored data, beside all other work; return what is wrong with it, None when nothing is."""
        ...


class Storage(Protocol):
    """A database. Open it with `async with`; it may be used from one event loop."""

    async def __aenter__(self) -> Self:
        """Open it, and bring its schema up to date where that is asked for.

        Raises:
            DatabaseMissing: There is none, and none was to be created.
            DatabaseOlder: It was written by an older version, and was not to be changed.
            DatabaseInUse: The same; it was to be changed, and another process has it open.
            DatabaseReplaced: Another database was put in its place; nothing was changed.
            DatabaseNewer: It was written by a newer version of this package; nothing was changed.
            StorageError: It cannot be opened; the message says why and what to do.
        """
        ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Finish what was queued and close."""
        ...

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction, commit it durably, and return its result after the commit.

        Operations take effect one after the other. What one raises undoes all that it did, and nothing else,
        and is raised here. When the caller is cancelled the operation is done wholly or not at all.

        Args:
            operation: What to do.
            bulk: It is a piece of large work: operations without this go first.
        """
        ...

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation that writes nothing on a snapshot that holds every committed write; return its result.

        Raises:
            StorageError: The operation tried to write; nothing was changed.
        """
        ...

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return what `CampaignLists.revision` of every committed write is, at once: a look that waits for nobody.

        None where it cannot be told in that way, now or ever: whoever asks has to read.
        """
        ...

    @property
    def lock(self) -> DispatchLock:
        """The lock that one dispatching process holds."""
        ...
