"""Transactions that go on statement by statement, so that others run between what one reads.

As in PostgreSQL, each statement sees what has been committed before it. From its first statement that writes on, a
transaction goes on to its end: others would not see what it writes, and wait for what it has written.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from outreach.core.clock import Clock
from outreach.serialization.documents import Value
from outreach.storage.sqlite.backend import SqliteBackend, Transactions
from outreach.storage.unit_of_work.kinds import Change, Kind, Row
from outreach.testing.virtual_time import VirtualClock

T = TypeVar("T")

_WORKSPACE: Final = "workspace_id"

_THREAD: Final = threading.local()
"""Knows the work of a thread."""


class Abandoned(BaseException):
    """Ends a transaction between two statements: the server has ended it, or its process is dead."""


class Stepped(Generic[T]):
    """Work that stops before some of its statements; it runs in a thread of its own, and only while its owner waits.

    Args:
        work: The work. It calls `stop` where it may stop.

    Attributes:
        began_at: The time that its first look at a clock has shown; all later ones show it too, so that it is for the
            checks a transaction of that moment.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._go_on = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._abandoned = self._done = False
        self._result: list[T] = []
        self._error: BaseException | None = None
        self.began_at: datetime | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self) -> bool:
        """Have the work go on to its next stop; return whether it is done."""
        self._go_on.release()
        self._stopped.acquire()
        if self._done:
            self._thread.join()
        return self._done

    def abandon(self) -> None:
        """End the work where it has stopped."""
        self._abandoned = True
        while not self._done:
            self.step()

    def result(self) -> T:
        """Return what has come of work that is done, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def stop(self) -> None:
        """Stop until the owner lets the work go on.

        Raises:
            Abandoned: It is not to go on.
        """
        if not self._abandoned:
            self._stopped.release()
            self._go_on.acquire()
        if self._abandoned:
            raise Abandoned

    def _run(self) -> None:
        self._go_on.acquire()
        _THREAD.work = self
        try:
            self._result.append(self._work())
        except BaseException as error:  # it is the owner's
            self._error = error
        self._done = True
        self._stopped.release()


class SteppingClock(VirtualClock):
    """A clock that stands still for a transaction that goes on in steps, and while one is checked.

    Attributes:
        shows: What it shows while that is checked.
    """

    shows: datetime | None = None

    def now(self) -> datetime:
        """Return the time."""
        work: Stepped[Any] | None = getattr(_THREAD, "work", None)
        if work is None:
            return self.shows or super().now()
        work.began_at = work.began_at or super().now()
        return work.began_at


class SteppingBackend(SqliteBackend):
    """A connection whose transactions may stop before a statement that reads, until they have written.

    Attributes:
        stop: Called before each statement that reads.
        is_open: Whether the transaction has written.
        written_in: The workspaces in which it has written rows that name theirs.
    """

    own_clock = True

    def __init__(self, raw: sqlite3.Connection, clock: Clock, *, changes: Callable[[], Callable[[str], bool]]) -> None:
        super().__init__(raw, clock)
        self._changes = changes
        self.stop: Callable[[], None] | None = None
        self.is_open = False
        self.written_in: set[str] = set()

    def changes(self) -> Callable[[str], bool]:
        """Return what others have committed."""
        return self._changes()

    def begin(self) -> None:
        """Begin the transaction of the database, unless that has been done."""
        if not self.is_open:
            self.connection.execute("BEGIN IMMEDIATE")
            self.is_open = True

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Iterable[Row]:
        """Return the rows of a kind that have these keys."""
        self._read()
        return super().load(kind, keys)

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        """Run a named query."""
        self._read()
        return super().query(name, values)

    def execute(self, name: str, values: Mapping[str, Value]) -> int:
        """Run a named statement that writes; return how many rows it wrote."""
        self.begin()
        return super().execute(name, values)

    def write(self, kind: Kind[Any], change: Change, rows: Sequence[Sequence[Value]]) -> int:
        """Write rows of a kind; return how many were written."""
        self.begin()
        names = kind.key if change == "delete" else kind.columns
        if _WORKSPACE in names:
            place = names.index(_WORKSPACE)
            self.written_in.update(str(row[place]) for row in rows)
        return super().write(kind, change, rows)

    def run_many(self, name: str, rows: Iterable[Sequence[Value]]) -> int:
        """Run a named statement for each of many rows of values; return how many rows it wrote."""
        self.begin()
        return super().run_many(name, rows)

    def _read(self) -> None:
        if self.stop is not None and not self.is_open:
            self.stop()


class SteppingTransactions(Transactions):
    """The transactions of a backend that may stop: the database's begin where they first write.

    Args:
        backend: The backend.
    """

    def __init__(self, backend: SteppingBackend) -> None:
        super().__init__(backend.connection)
        self._backend = backend

    def begin(self, workspace_ids: frozenset[str] | None = None) -> None:
        """Begin a transaction; at once if it does not stop."""
        self._backend.is_open = False
        self._backend.written_in.clear()
        if self._backend.stop is None:
            self._backend.begin()

    def commit(self) -> None:
        """Commit it."""
        if self._backend.is_open:
            super().commit()
            self._backend.is_open = False

    def roll_back(self) -> None:
        """Undo it."""
        if self._backend.is_open:
            super().roll_back()
            self._backend.is_open = False

    def check_open(self, error: BaseException) -> None:
        """Raise if it cannot go on."""
        if isinstance(error, Abandoned):
            raise error
        if self._backend.is_open:
            super().check_open(error)
