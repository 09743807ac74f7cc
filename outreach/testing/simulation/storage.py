"""Storage as the simulated processes see it: one database, a process that can be cut off from it."""

from __future__ import annotations

import asyncio
import functools
import random
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

from outreach.errors import StorageError
from outreach.models.work import HighWater, Home
from outreach.protocols.storage import DispatchLock, Operation, Transaction
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.transaction import Tables
from outreach.storage.sqlite.schema import bring_up_to_date
from outreach.storage.sqlite.transaction import SqliteTransaction
from outreach.testing.simulation.faults import Faults
from outreach.testing.simulation.touched import NotingTransaction, Touched

T = TypeVar("T")

_SLOW_SECONDS: Final = 2.0
"""How long an operation waits for its turn at the most."""


class Database(Protocol):
    """The one database: operations run at once, each in a transaction."""

    def write(self, operation: Operation[T]) -> tuple[T, Mapping[str, Touched]]:
        """Run an operation that may write, and commit it; return what it has written too."""
        ...

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that reads."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class MemoryDatabase:
    """The tables in memory."""

    def __init__(self) -> None:
        self._journal = Journal()
        self._tables = Tables(self._journal)
        self._noting = NotingTransaction(self._tables)

    def write(self, operation: Operation[T]) -> tuple[T, Mapping[str, Touched]]:
        """Run an operation that may write, and commit it; return what it has written too."""
        with self._journal.recording():
            return operation(self._noting.fresh()), self._noting.touched

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that reads."""
        return operation(self._tables)

    def close(self) -> None:
        """Do nothing: memory goes by itself."""


class SqliteDatabase:
    """The tables of SQLite, over one connection in this thread: an inline executor of the same functions."""

    def __init__(self, path: Path | None = None) -> None:
        self._raw = _open(path)
        self._tables = SqliteTransaction(self._raw)
        self._noting = NotingTransaction(self._tables)

    def write(self, operation: Operation[T]) -> tuple[T, Mapping[str, Touched]]:
        """Run an operation that may write, and commit it; return what it has written too."""
        self._raw.execute("BEGIN IMMEDIATE")
        try:
            result = operation(self._noting.fresh())
        except BaseException:
            self._raw.execute("ROLLBACK")
            raise
        self._raw.execute("COMMIT")
        return result, self._noting.touched

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that reads."""
        return operation(self._tables)

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()


@functools.cache
def _empty() -> bytes:
    """Return a database that is up to date and empty: making one takes longer than many a simulation."""
    raw = sqlite3.connect(":memory:", isolation_level=None)
    try:
        bring_up_to_date(raw)
        return raw.serialize()
    finally:
        raw.close()


def _open(path: Path | None) -> sqlite3.Connection:
    raw = sqlite3.connect(str(path) if path else ":memory:", isolation_level=None)
    raw.row_factory = sqlite3.Row
    raw.execute("PRAGMA foreign_keys = ON")
    if path is None:
        raw.deserialize(_empty())
    else:
        bring_up_to_date(raw)
    return raw


class Killed(StorageError):
    """The simulated process is dead: nothing that it still does has any effect."""


class Machine:
    """What outlives a process: the lock file, the note beside the database, and where the database is.

    Attributes:
        moves: How often the database has been moved.
    """

    def __init__(self) -> None:
        self.holder: object | None = None
        self.noted: HighWater | None = None
        self.moves = 0

    @property
    def path(self) -> str:
        """Where the database is."""
        return f"/simulated-{self.moves}.db"


class ProcessLock:
    """The dispatch lock as one process sees it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._home = Home(host="simulated", path=machine.path)

    def acquire(self) -> bool:
        """Take the lock unless some process has it."""
        if self._machine.holder is not None:
            return False
        self._machine.holder = self
        return True

    def release(self) -> None:
        """Give it back if it is ours."""
        if self._machine.holder is self:
            self._machine.holder = None

    def home(self) -> Home | None:
        """Return where the database is."""
        return self._home

    def high_water(self) -> HighWater | None:
        """Return what was last noted."""
        return self._machine.noted

    def note(self, mark: HighWater, *, ended: bool = False) -> None:
        """Note how far the database has come."""
        if self._machine.holder is self:
            self._machine.noted = mark

    def crashed(self) -> bool:
        """Return False: the simulation has no disk."""
        return False

    async def find_damage(self) -> str | None:
        """Return None, for the same reason."""
        return None


class ProcessStorage:
    """The database as one process sees it.

    Args:
        database: The one database.
        machine: Lock and note.
        rng: Decides how long operations take.
        faults: Decides at which commits the process dies; None for one that never does.
        check: Run after every commit, within this turn, with what was written in which workspace.
        die: Called when the process is to die.
        held_up: Called when an operation that writes waits for long, with what was decided before.

    Attributes:
        cut: Whether the process is cut off from it: it is dead, whatever its tasks still try.
    """

    def __init__(
        self,
        *,
        database: Database,
        machine: Machine,
        rng: random.Random,
        faults: Faults | None,
        check: Callable[[Transaction, Mapping[str, Touched]], None],
        die: Callable[[], None],
        held_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._rng = rng
        self._faults = faults
        self._check = check
        self._die = die
        self._held_up = held_up
        self._lock = ProcessLock(machine)
        self.cut = False

    async def __aenter__(self) -> Self:
        """Open it."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close it; the operating system gives the lock back."""
        self._lock.release()

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation, unless the process is dead; it may die just before or just after the commit."""
        await self._take_time(writes=True)
        self._require_alive()
        if self._faults is not None and self._faults.draw("kill_before_commit"):
            self.kill()
        self._require_alive()
        result, touched = self._database.write(operation)
        self._database.read(lambda tx: self._check(tx, touched))
        if self._faults is not None and self._faults.draw("kill_after_commit"):
            self.kill()
        await self._take_time()
        self._require_alive()
        return result

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation that reads, unless the process is dead."""
        await self._take_time()
        self._require_alive()
        return self._database.read(operation)

    @property
    def lock(self) -> DispatchLock:
        """The lock as this process sees it."""
        return self._lock

    def kill(self) -> None:
        """Cut the process off, first of all; then have it cleared away."""
        if not self.cut:
            self.cut = True
            self._lock.release()
            self._die()

    def _require_alive(self) -> None:
        if self.cut:
            raise Killed("The process is dead.")

    async def _take_time(self, *, writes: bool = False) -> None:
        # Half of the time nothing but a turn of the loop, which costs less; now and then long enough that much happens
        # between what was read and what is written.
        slow = self._faults is not None and self._faults.draw("slow_storage")
        if slow and writes:
            self._held_up()
        await asyncio.sleep(self._rng.random() * _SLOW_SECONDS if slow else max(self._rng.random() * 0.04 - 0.02, 0.0))
