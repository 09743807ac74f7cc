"""A database in one SQLite file: its connections, and readers on snapshots in parallel with the writer.

Each connection has its thread. All readers take jobs from one queue, so that one long read leaves the others available.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import aiosqlite

from outreach.core.clock import Clock
from outreach.errors import ConfigError, Problem, StorageError
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import OneQuery, Operation
from outreach.storage.base.dispatch_note import of_state_directory
from outreach.storage.base.writer import Job, Queue, deliver
from outreach.storage.sqlite.backend import Session, Writer, read_now
from outreach.storage.sqlite.copying import require_database
from outreach.storage.sqlite.errors import as_caller_error, translate
from outreach.storage.sqlite.lock import SqliteDispatchLock
from outreach.storage.sqlite.schema import apply_migrations
from outreach.storage.sqlite.sql import statement
from outreach.storage.sqlite.thread import LockWait, call, close, connect, post
from outreach.storage.sqlite.watch import OPEN_FILES, FileWatch

BUSY_SECONDS: Final = 30
"""How long opening waits for another process's write."""

BUSY_POLL_SECONDS: Final = 0.2
"""How long SQLite waits at a time afterwards: its wait cannot be interrupted when the storage closes."""

_COMMON: Final = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16384",  # KiB
)

_WRITER: Final = (
    # Commits survive a power cut, as the delivery contract demands.
    "PRAGMA synchronous = FULL",
    # A large import must not leave a large log.
    "PRAGMA journal_size_limit = 67108864",
)

_READER: Final = ("PRAGMA query_only = ON",)

_BUSY_TIMEOUT: Final = f"PRAGMA busy_timeout = {BUSY_POLL_SECONDS * 1000:.0f}"


async def open_writer(
    path: Path, *, create: bool = True, migrate: bool = True, clock: Clock
) -> tuple[aiosqlite.Connection, Session]:
    """Open the writing connection, and create or migrate the file if asked to.

    Raises:
        DatabaseOlder: Migrations are pending and `migrate` is false.
        DatabaseInUse: Migrations are pending and another process has it open.
        DatabaseMissing: There is no file, or an empty one, and `create` is false.
        DatabaseNewer: A newer version of this package wrote it; nothing was changed.
        StorageError: The file is foreign or unusable.
    """
    if create:
        create_private(path)
    else:
        require_database(path)
    return await _open(path, partial(_prepare_writer, migrate=migrate), read_only=False, clock=clock)


async def open_reader(path: Path, *, clock: Clock) -> tuple[aiosqlite.Connection, Session]:
    """Open a reading connection."""
    return await _open(path, _prepare_reader, read_only=True, clock=clock)


def open_quick_reader(path: Path, *, clock: Clock) -> Session:
    """Open a connection for tiny reads on the event loop's thread, which never waits."""
    try:
        raw = sqlite3.connect(path, isolation_level=None, timeout=0)
        _set_up(raw, (*_READER, "PRAGMA cache_size = -256"))
    except sqlite3.Error as error:
        raise _unusable(path, error) from error
    return Session(raw, read_only=True, clock=clock)


def create_private(path: Path) -> None:
    """Create a missing file that only its owner can read; SQLite gives `-wal` and `-shm` the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StorageError(
            f"The database {str(path)!r} cannot be created: {error.strerror}. Its directory must exist and be "
            "writable for this user."
        ) from error


async def _open(
    path: Path, prepare: Callable[[sqlite3.Connection], None], *, read_only: bool, clock: Clock
) -> tuple[aiosqlite.Connection, Session]:
    try:
        connection = await connect(path, busy_seconds=BUSY_SECONDS)
    except sqlite3.Error as error:
        raise _unusable(path, error) from error
    try:
        await call(connection, prepare)
        return connection, await call(connection, partial(Session, read_only=read_only, clock=clock))
    except BaseException as error:
        await close(connection)
        if isinstance(error, sqlite3.Error):
            raise _unusable(path, error) from error
        raise


def _prepare_writer(raw: sqlite3.Connection, *, migrate: bool) -> None:
    _set_up(raw, _COMMON)
    apply_migrations(raw, migrate=migrate)
    _set_up(raw, (*_WRITER, _BUSY_TIMEOUT))


def _prepare_reader(raw: sqlite3.Connection) -> None:
    _set_up(raw, (*_COMMON, *_READER, _BUSY_TIMEOUT))


def _set_up(raw: sqlite3.Connection, pragmas: Iterable[str]) -> None:
    for pragma in pragmas:
        raw.execute(pragma)


def _unusable(path: Path, error: sqlite3.Error) -> StorageError:
    return StorageError(f"The database {str(path)!r} cannot be opened. {translate(error).message}")


_CLOSE_SECONDS: Final = 0.5
"""Interrupting a read loses nothing."""


class Readers:
    """Runs operations over reading connections, which it owns; `watch` detects that the file was replaced."""

    def __init__(self, watch: FileWatch) -> None:
        self._watch = watch
        self._readers: list[_Reader] = []
        self._queue = Queue()
        self._lock_wait = LockWait()

    def add(self, connection: aiosqlite.Connection, session: Session) -> None:
        """Add a connection."""
        reader = _Reader(self._queue, connection, session, self._lock_wait, self._watch)
        self._readers.append(reader)
        self._queue.add(reader.wake)

    async def run(self, operation: Operation[Any]) -> Any:
        """Queue an operation; return its result, or raise its error."""
        return await self._queue.submit(operation).outcome()

    async def close(self) -> None:
        """Finish queued operations for a moment, then close the connections."""
        self._lock_wait.end()
        for reader in self._readers:
            await close(reader.connection, timeout_seconds=_CLOSE_SECONDS)


class _Reader:
    """One connection and its thread."""

    def __init__(
        self, queue: Queue, connection: aiosqlite.Connection, session: Session, lock_wait: LockWait, watch: FileWatch
    ) -> None:
        self.connection = connection
        self._watch = watch
        self._lock_wait = lock_wait
        self._queue = queue
        self._session = session

    def wake(self) -> None:
        post(self.connection, self._work)

    def _work(self, raw: sqlite3.Connection) -> None:
        while (job := self._queue.take_or_sleep(self.wake)) is not None:
            self._run(raw, job)
            deliver([job])

    def _run(self, raw: sqlite3.Connection, job: Job) -> None:
        """Run one operation on the snapshot that its first query takes."""
        try:
            self._watch.check()
            self._lock_wait.retry_while_busy(lambda: _begin(raw))
            # Rows cached before may be outdated, and belong to their callers.
            self._session.rows.forget()
            job.run(self._session.transaction)
        except BaseException as error:  # whatever it is, it is the caller's
            job.fail(as_caller_error(error))
        finally:
            # SQLite may have ended the transaction after a disk error.
            with suppress(sqlite3.Error):
                raw.execute("ROLLBACK")


def _begin(raw: sqlite3.Connection) -> None:
    """Begin a read; its first query takes the snapshot and waits for locks of other processes.

    Recovering the log and closing the last connection hold such a lock for a moment.
    """
    try:
        raw.execute("BEGIN")
        raw.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.Error:
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        raise


T = TypeVar("T")

_READERS: Final = 2
"""So that one long read does not block all others; more would compete for the same processor."""


class SqliteStorage:
    """A database in one SQLite file; see `outreach.protocols.storage.Storage`.

    Several processes on one machine may open the file; as many as allowed dispatch.

    Args:
        path: The file; its directory must exist.
        clock: The clock of this machine.
        host: A name for this machine; None for the system's identity.
        create: Whether opening creates a missing file.
        migrate: Whether opening migrates an older file.
        workers: How many processes may dispatch from the file at a time; the others stand by.
        state_dir: Where this machine notes how far the database has come, beside the note beside the file; None for
            nowhere.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock,
        host: str | None = None,
        create: bool = True,
        migrate: bool = True,
        workers: int = 1,
        state_dir: Path | None = None,
    ) -> None:
        # Now: it may be opened much later, when a daemon has changed its directory.
        self._path = Path(path).absolute()
        self._create = create
        self._migrate = migrate
        self._clock = clock
        self._watch = FileWatch(self._path, clock=clock)
        self._state_dir = state_dir
        self._lock = SqliteDispatchLock(self._path, host=host, watch=self._watch, workers=workers, state_dir=state_dir)
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._quick_reader: Session | None = None
        self._closing = AsyncExitStack()
        self._instrumentation = Instrumentation()

    async def __aenter__(self) -> Self:
        """Open the file and migrate it."""
        if self._writer is not None:
            raise StorageError("The storage is open already.")
        _require_asyncio()
        OPEN_FILES.refuse_inherited(self._path)
        async with AsyncExitStack() as stack:
            stack.callback(self._lock.give_back)
            self._lock.check_before_opening()
            opened = await open_writer(self._path, create=self._create, migrate=self._migrate, clock=self._clock)
            # Closed after the writer: see `watch.OpenFiles`.
            stack.callback(self._watch.close)
            stack.callback(self._lock.positions.close)
            writer = Writer(
                *opened,
                clock=self._clock,
                watch=self._watch,
                positions=self._lock.positions,
                instrumentation=self._instrumentation,
            )
            stack.push_async_callback(writer.close)
            self._watch.open()
            await call(opened[0], self._lock.find_lost_commits)
            readers = Readers(self._watch)
            stack.push_async_callback(readers.close)
            for _ in range(_READERS):
                readers.add(*await open_reader(self._path, clock=self._clock))
            quick_reader = open_quick_reader(self._path, clock=self._clock)
            stack.callback(quick_reader.connection.close)
            stack.callback(self._before_closing)
            self._writer, self._readers, self._quick_reader, self._closing = (
                writer,
                readers,
                quick_reader,
                stack.pop_all(),
            )
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Finish queued operations, close, and release the dispatch lock."""
        self._writer = self._readers = self._quick_reader = None
        await self._closing.aclose()

    def _before_closing(self) -> None:
        self._watch.before_closing()
        # A full disk does not keep a process from ending.
        with suppress(StorageError):
            self._lock.note_deleted_log()

    def observe(self, instrumentation: Instrumentation) -> None:
        """Report each transaction to this instrumentation, from the next opening on."""
        self._instrumentation = instrumentation

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction; return its result after the commit."""
        if self._writer is None:
            raise _not_open()
        return cast("T", await self._writer.run(operation, bulk=bulk))

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation on a snapshot; return its result."""
        if self._readers is None or self._quick_reader is None:
            raise _not_open()
        if isinstance(operation, OneQuery):
            # The way to another thread takes longer than the query.
            self._watch.check()
            with suppress(sqlite3.Error):
                return cast("T", read_now(self._quick_reader, operation))
        return cast("T", await self._readers.run(operation))

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return the revision of a workspace's campaign lists; None while the log is being repaired.

        It reads one cached row in 3 to 20 microseconds, so that it runs on the event loop's thread: the way to another
        thread takes much longer.
        """
        if self._quick_reader is None:
            raise _not_open()
        # A replaced file must not be read.
        self._watch.check()
        try:
            row = self._quick_reader.connection.execute(
                statement("campaigns.list"), {"workspace_id": workspace_id}
            ).fetchone()
        except sqlite3.Error:
            return None
        return None if row is None else int(row[1])

    async def diagnose(self) -> Sequence[Problem]:
        """Return what is wrong with the file, also while this is not open."""
        from outreach.storage.sqlite.diagnosis import diagnose_file

        return [*await asyncio.to_thread(diagnose_file, self._path), *of_state_directory(self._state_dir)]

    @property
    def lock(self) -> SqliteDispatchLock:
        """The dispatch lock."""
        return self._lock


def _not_open() -> StorageError:
    return StorageError("The storage is not open: use it inside `async with`.")


def _require_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError as error:
        raise StorageError(
            "SQLite storage runs under asyncio, not under trio, which aiosqlite does not support."
        ) from error


_PREFIX: Final = "sqlite:///"
_FORMS: Final = "Write sqlite:///relative.db, or sqlite:////absolute/path.db with four slashes."


def sqlite_storage_from_url(
    url: str,
    *,
    clock: Clock,
    host: str | None = None,
    create: bool = True,
    migrate: bool = True,
    workers: int = 1,
    state_dir: Path | None = None,
) -> SqliteStorage:
    """Return the unopened storage of a URL; the text after the third slash is the path, without decoding or options.

    Raises:
        ConfigError: The URL does not name a possible database file.
    """
    return SqliteStorage(
        path_of(url), clock=clock, host=host, create=create, migrate=migrate, workers=workers, state_dir=state_dir
    )


def path_of(url: str) -> Path:
    """Return the file of a URL, or raise `ConfigError`."""
    if not url.startswith("sqlite:"):
        raise ConfigError(f"{url!r} is not the URL of a SQLite database. {_FORMS}")
    text = url.removeprefix(_PREFIX)
    if text == url or not text:
        raise ConfigError(f"{url!r} names no file. {_FORMS}")
    if text == ":memory:":
        raise ConfigError("A SQLite database in memory cannot be shared by several connections: use memory:// instead.")
    if "?" in text or "#" in text or "\0" in text:
        raise ConfigError(f"{url!r} has more than a path, and there are no options. {_FORMS}")
    path = Path(text)
    if path.is_dir():
        raise ConfigError(f"{url!r} names a directory. Name a file in it: {url.rstrip('/')}/outreach.db")
    if not path.parent.is_dir():
        raise ConfigError(f"The directory {str(path.parent.absolute())!r} of {url!r} does not exist. Create it first.")
    return path
