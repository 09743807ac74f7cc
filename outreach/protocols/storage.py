"""The protocol of storages: transactions over tables in the terms of the domain, and waking up by changes.

A storage runs a synchronous function in a writing transaction, or on a consistent read-only snapshot. Transactions
use the tables of `outreach.storage.unit_of_work`; the rules in `outreach.ledger` are written once over these tables. A
database implements `unit_of_work.kinds.Backend`, and `outreach.testing.storage_contract` checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, Protocol, Self, TypeVar, get_args, runtime_checkable

import anyio
import attrs

from outreach.models.base import wrong_identifier

if TYPE_CHECKING:
    from outreach.errors import StorageError
    from outreach.models.work import DatabaseHome, HighWaterMark
    from outreach.storage.unit_of_work import Transaction


T = TypeVar("T")

Operation = Callable[["Transaction"], T]
"""A synchronous function of a transaction that takes at most 100 ms and never waits.

It may run more than once, because another operation of its group was refused, so it has no other effect.
"""


@attrs.frozen
class OneQuery(Generic[T]):
    """A reading operation that makes one query: a storage may run it without a transaction, on the event loop's thread.

    Attributes:
        operation: The operation.
    """

    operation: Operation[T]

    def __call__(self, tx: Transaction) -> T:
        """Run it."""
        return self.operation(tx)


def _as_set(workspace_ids: Iterable[str]) -> frozenset[str]:
    found = tuple(workspace_ids)
    for one in found:
        if not isinstance(one, str):
            raise wrong_identifier(one)
    return frozenset(found)


@attrs.frozen
class Within(Generic[T]):
    """An operation that writes in these workspaces only; `Storage.write` takes any other for one that writes in all.

    What it decides by is of these workspaces too, or is written by operations for all workspaces only: a storage may
    run operations that share no workspace at the same time.

    Attributes:
        workspace_ids: The workspaces.
        operation: The operation.

    Raises:
        InvalidRequest: A workspace is named by something else than a text.
    """

    workspace_ids: frozenset[str] = attrs.field(converter=_as_set)
    operation: Operation[T]

    def __call__(self, tx: Transaction) -> T:
        """Run it.

        Raises:
            StorageError: It has written rows of another workspace, or rows of none.
        """
        result = self.operation(tx)
        tx.require_written_within(self.workspace_ids)
        return result


class DispatchLock(Protocol):
    """Ensures that no more workers than allowed dispatch from a database at a time."""

    async def acquire(self) -> int:
        """Take a place if one is free; return its number, from 1, or 0 if none is, or if that cannot be known now.

        It takes some seconds at the most, and takes no place if it is cancelled.

        No two workers of a database have the same place: a worker that takes one ends the lease of its previous holder.

        A place is not free while any process holds it, this one included: two engines may share one storage.

        Raises:
            DispatchRefused: Dispatch is disabled for this database here.
        """
        ...

    async def release(self, place: int | None = None) -> None:
        """Give a place back, if this storage holds it; by default all that it holds. Also done if it is cancelled."""
        ...

    async def find_free(self, places: Collection[int]) -> Collection[int]:
        """Return which places are certainly free, because their workers are gone; none where that cannot be known."""
        ...

    def home(self) -> DatabaseHome | None:
        """Return where the database is; None if not applicable (in memory)."""
        ...

    def high_water(self) -> HighWaterMark | None:
        """Return the high-water mark recorded outside the database, beside it or in this process, if any."""
        ...

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        """Record the database's state outside it, if there is a place, so that an older copy in its place is detected.

        Args:
            mark: The state.
            ended: Whether the dispatcher ends in order with this.
        """
        ...

    def ended_uncleanly(self) -> bool:
        """Return whether the last worker did not end in order, so that the data must be checked.

        False while another worker holds a place: it has checked them.
        """
        ...

    async def check_integrity(self) -> str | None:
        """Read all stored data, beside other work; return what is wrong, or None."""
        ...


@runtime_checkable
class ReplicatedStorage(Protocol):
    """A storage whose server may be replaced by another one, which may lack the last transactions."""

    @property
    def server_changes(self) -> int:
        """How often that was found since the opening, at the latest by the first write after it."""
        ...


@runtime_checkable
class RemoteStorage(Protocol):
    """A storage whose server may be out of reach, or take no writes."""

    async def why_unreachable(self) -> str | None:
        """Return why no connection can be made now, in the words of the driver; None where one can.

        It is called while an operation waits or has failed, and returns after some seconds at the latest.
        """
        ...

    async def why_not_writable(self) -> StorageError | None:
        """Return the error that the server gives to a write, which is undone; None where there is none.

        A lock of another process is no error. It returns after some seconds at the latest.
        """
        ...


class Storage(Protocol):
    """A database. Open it with `async with`; it may be used from one event loop."""

    async def __aenter__(self) -> Self:
        """Open it, and migrate its schema if configured.

        Raises:
            DatabaseMissing: It does not exist, and was not to be created.
            DatabaseOlder: An older version wrote it, and it was not to be migrated.
            DatabaseInUse: An older version wrote it, and another process has it open.
            DatabaseReplaced: Another database was put in its place; nothing was changed.
            DatabaseNewer: A newer version wrote it; nothing was changed.
            StorageError: It cannot be opened; the message says why and what to do.
        """
        ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Finish queued operations and close."""
        ...

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction, commit it durably, and return its result after the commit.

        Operations take effect one after the other, except those `Within` different workspaces. An error undoes the
        operation, and nothing else, and is raised here. If the caller is cancelled, the operation is done wholly or not
        at all.

        Args:
            operation: The operation.
            bulk: Part of a large job, which gives way to other operations.
        """
        ...

    async def read(self, operation: Operation[T]) -> T:
        """Run a read-only operation on a snapshot with every committed write; return its result.

        Raises:
            StorageError: The operation tried to write; nothing was changed.
        """
        ...

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return `CampaignLists.revision` as of the last commit, without waiting; None if the caller has to read it."""
        ...

    @property
    def lock(self) -> DispatchLock:
        """The lock of the dispatching processes."""
        ...


Topic = Literal["work", "calls", "keys"]
"""The subject of a change: units of work, calls, kept answers of idempotency keys."""


@runtime_checkable
class NotifyingStorage(Protocol):
    """A storage that is notified of what other processes commit."""

    @property
    def is_listening(self) -> bool:
        """Whether it is notified of commits now; it may be away from its server for a while."""
        ...

    def listen(self, notify: Callable[[str], None]) -> None:
        """Call this on the event loop with the topic of each change, from now on, at every opening."""
        ...


class WakeUps:
    """Lets tasks of one event loop wait for changes; without a storage that is notified of them they wait by the clock.

    Args:
        storage: Starts to listen at the first wait; None if it is not notified of commits.
    """

    def __init__(self, storage: NotifyingStorage | None = None) -> None:
        self._storage = storage
        self._listening = False
        self._woken: dict[str, anyio.Event] = {}

    def _begin(self) -> None:
        """Wait for nothing of before; the engine calls this as it opens, perhaps on another event loop."""
        self._woken.clear()

    def notify(self, topic: str) -> None:
        """Wake all that wait for a topic, or the next one that will; for every topic if it is none.

        A text that is no topic means that notifications may have been missed.
        """
        for one in [topic] if topic in get_args(Topic) else get_args(Topic):
            self._woken.setdefault(one, anyio.Event()).set()

    async def wait(self, topic: Topic, *, poll_seconds: float, listening_poll_seconds: float | None = None) -> None:
        """Wait until something of a topic may have changed; a notification since the last wait ends this one at once.

        Args:
            topic: The topic to wait for.
            poll_seconds: The longest wait.
            listening_poll_seconds: The longest wait while the storage is notified of changes; the same by default.
        """
        if self._storage is not None and not self._listening:
            self._listening = True
            self._storage.listen(self.notify)
        if listening_poll_seconds is not None and self._storage is not None and self._storage.is_listening:
            poll_seconds = listening_poll_seconds
        woken = self._woken.setdefault(topic, anyio.Event())
        with anyio.move_on_after(poll_seconds):
            await woken.wait()
        if woken.is_set() and self._woken.get(topic) is woken:
            del self._woken[topic]
