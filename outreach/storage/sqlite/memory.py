"""A SQLite database in memory, run on the event loop, for tests and trials."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection
from functools import cache
from types import TracebackType
from typing import Self, TypeVar, cast

from anyio.lowlevel import checkpoint

from outreach.core.clock import Clock, SystemClock
from outreach.errors import ConfigError, StorageError
from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.protocols.storage import DispatchLock, Operation
from outreach.storage.sqlite.backend import Session, Transactions, read_now
from outreach.storage.sqlite.errors import as_caller_error
from outreach.storage.sqlite.schema import apply_migrations

T = TypeVar("T")


class MemoryStorage:
    """A database that lives as long as this object.

    Several engines of one event loop may open it, and it may be opened again after it was closed. Operations run on the
    event loop, each after one checkpoint, so that a cancelled caller's operation does not run.

    Args:
        clock: The clock of the database; the system's by default.
        workers: How many engines may dispatch from it at a time.
    """

    def __init__(self, *, clock: Clock | None = None, workers: int = 1) -> None:
        self._clock = clock or SystemClock()
        self._image = empty_database()
        self._writer: Session | None = None
        self._reader: Session | None = None
        self._lock = MemoryLock(workers)
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queued = 0
        self._queued_first = 0

    async def __aenter__(self) -> Self:
        """Open it.

        Raises:
            ConfigError: It is open on another event loop, as that of another `outreach.sync.Outreach`.
        """
        loop = asyncio.get_running_loop()
        if self._users and self._loop is not loop and self._loop is not None and not self._loop.is_closed():
            raise ConfigError(
                "This database in memory is open on another event loop, and two would write into one transaction. Let "
                "all use one engine, or a SQLite file."
            )
        self._loop = loop
        if self._writer is None:
            connection = open_image(self._image)
            self._writer = Session(connection, clock=self._clock)
            self._reader = Session(connection, read_only=True, clock=self._clock)
        self._users += 1
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Finish queued operations and close."""
        self._users -= 1
        while not self._users and self._queued:
            await checkpoint()
        if not self._users and self._writer is not None:
            connection, self._writer, self._reader = self._writer.connection, None, None
            self._image = connection.serialize()
            connection.close()

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction; return its result."""
        self._check_open()
        self._queued += 1
        try:
            await self._wait_for_turn(bulk=bulk)
            return write_now(cast("Session", self._writer), operation)
        finally:
            self._queued -= 1

    async def read(self, operation: Operation[T]) -> T:
        """Run a reading operation; return its result."""
        self._check_open()
        self._queued += 1
        try:
            await checkpoint()
            return read_now(cast("Session", self._reader), operation)
        finally:
            self._queued -= 1

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return the revision of a workspace's campaign lists."""
        self._check_open()
        return read_now(cast("Session", self._reader), lambda tx: tx.campaign_lists.revision(workspace_id))

    @property
    def lock(self) -> DispatchLock:
        """The dispatch lock."""
        return self._lock

    def _check_open(self) -> None:
        if self._writer is None or not (self._users or self._queued):
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


class MemoryLock:
    """The places of the engines that dispatch from one storage."""

    def __init__(self, workers: int = 1) -> None:
        self._workers = workers
        self._held: set[int] = set()
        self._noted: HighWaterMark | None = None

    async def acquire(self) -> int:
        """Take the lowest place that is free; return it, or 0 if none is."""
        place = next((one for one in range(1, self._workers + 1) if one not in self._held), 0)
        if place:
            self._held.add(place)
        return place

    async def release(self, place: int | None = None) -> None:
        """Give a place back, if it is held; by default all."""
        self._held = set() if place is None else self._held - {place}

    async def find_free(self, places: Collection[int]) -> Collection[int]:
        """Return which places no engine holds."""
        return [place for place in places if place not in self._held]

    def home(self) -> DatabaseHome | None:
        """Return None: a database in memory cannot be moved."""
        return None

    def high_water(self) -> HighWaterMark | None:
        """Return the recorded high-water mark."""
        return self._noted

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        """Record the high-water mark."""
        self._noted = mark

    def ended_uncleanly(self) -> bool:
        """Return False: a database in memory ends with its process."""
        return False

    async def check_integrity(self) -> str | None:
        """Return None: there is no file to check."""
        return None


def write_now(session: Session, operation: Operation[T]) -> T:
    """Run and commit an operation in its own transaction, or raise `StorageError` if the database refuses it."""
    try:
        return session.rows.run_writing(Transactions(session.connection), lambda: operation(session.transaction))
    except sqlite3.Error as error:
        raise as_caller_error(error) from None


@cache
def empty_database() -> bytes:
    """Return an empty migrated database, cached because migrating takes longer than many a test."""
    raw = sqlite3.connect(":memory:", isolation_level=None)
    try:
        apply_migrations(raw)
        return raw.serialize()
    finally:
        raw.close()


def open_image(image: bytes) -> sqlite3.Connection:
    """Return a connection to a new database in memory with this content."""
    raw = sqlite3.connect(":memory:", isolation_level=None, cached_statements=256, check_same_thread=False)
    raw.deserialize(image)
    raw.execute("PRAGMA foreign_keys = ON")
    return raw
