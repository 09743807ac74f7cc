"""A storage of one's own: an encrypted file, by SQLite3 Multiple Ciphers (`pip install apsw-sqlite3mc`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import apsw
from anyio import to_thread
from file_lock import FileLock

from outreach.backends import (
    AlreadyExists,
    Change,
    Kind,
    OperationRunner,
    Row,
    Value,
    Write,
    everything_changed,
    pending_sqlite_migrations,
    sqlite_load,
    sqlite_statement,
    sqlite_write,
    write_one_by_one,
)
from outreach.errors import StorageBusy, StorageError
from outreach.protocols import Operation

T = TypeVar("T")

ROW_ERRORS = (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError, apsw.RangeError)
DUPLICATE = ("UNIQUE", "PRIMARY KEY")
BUSY_MILLISECONDS = 10_000


class EncryptedBackend:
    """One connection: the functions of a backend, and the three of its transactions."""

    # All processes run on one machine, by whose clock the engine goes anyway.
    own_clock = False

    def __init__(self, connection: apsw.Connection, *, begin: str) -> None:
        self._connection = connection
        self._begin = begin
        self._version = -1

    def now(self) -> datetime:
        return datetime.now(UTC)

    def changes(self) -> Callable[[str], bool] | None:
        before, self._version = self._version, int(self._connection.pragma("data_version"))
        return None if self._version == before else everything_changed

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Iterable[Row]:
        return self._connection.execute(sqlite_load(kind), (json.dumps([list(key) for key in keys]),)).fetchall()

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        return self._connection.execute(sqlite_statement(name), dict(values)).fetchall()

    def execute(self, name: str, values: Mapping[str, Value]) -> int:
        return self._run(sqlite_statement(name), [dict(values)])

    def write(self, kind: Kind[Any], change: Change, rows: Sequence[Sequence[Value]]) -> int:
        text, arrange = sqlite_write(kind, change)
        return self._run(text, map(arrange, rows))

    def run_many(self, name: str, rows: Iterable[Sequence[Value]]) -> int:
        return self._run(sqlite_statement(name), rows)

    def write_all(self, writes: Sequence[Write]) -> Sequence[int]:
        return write_one_by_one(self, writes)

    def write_numbered(self, writes: Sequence[Write], *, at_commit: bool) -> None:
        write_one_by_one(self, writes)

    def is_row_error(self, error: Exception) -> bool:
        return isinstance(error, ROW_ERRORS) or not isinstance(error, apsw.Error)

    def begin(self, workspace_ids: frozenset[str] | None = None) -> None:
        self._connection.execute(self._begin)

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def roll_back(self) -> None:
        with suppress(apsw.Error):
            self._connection.execute("ROLLBACK")

    def _run(self, text: str, rows: Iterable[Any]) -> int:
        written = 0
        for row in rows:
            self._connection.execute(text, row).fetchall()
            written += self._connection.changes()
        return written


class EncryptedStorage:
    """A database in one encrypted file; see `outreach.protocols.Storage`. Use each object from one event loop.

    Args:
        path: The file; its directory must exist.
        key: The passphrase.
    """

    def __init__(self, path: Path, *, key: str) -> None:
        self._path = path
        self._key = key
        self._lock = FileLock(path, check=self._find_damage)
        self._connections: list[apsw.Connection] = []
        self._writer: OperationRunner | None = None
        self._reader: OperationRunner | None = None
        self._turn, self._bulk_turn, self._read_turn = anyio.Lock(), anyio.Lock(), anyio.Lock()
        self._queued = 0

    async def __aenter__(self) -> Self:
        await to_thread.run_sync(self._open)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._writer = self._reader = None
        with anyio.CancelScope(shield=True):
            while self._queued:
                async with self._turn, self._read_turn:
                    pass
            while self._connections:
                await to_thread.run_sync(self._connections.pop().close)
            await self._lock.release()

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        writer = _open_one(self._writer)
        async with AsyncExitStack() as stack:
            stack.enter_context(self._in_queue())
            if bulk:
                # So that at most one bulk operation is ahead of any other.
                await stack.enter_async_context(self._bulk_turn)
            await stack.enter_async_context(self._turn)
            # A thread that has begun is waited for, so that a cancelled caller leaves all or nothing.
            return await to_thread.run_sync(_translating, writer.write, operation)

    async def read(self, operation: Operation[T]) -> T:
        reader = _open_one(self._reader)
        with self._in_queue():
            async with self._read_turn:
                return await to_thread.run_sync(_translating, reader.read, operation)

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        # It must not wait, and a connection's own mutex may make it.
        return None

    @property
    def lock(self) -> FileLock:
        return self._lock

    def _open(self) -> None:
        with _translated():
            writer = self._connect()
            _migrate(writer)
            writer.execute("PRAGMA foreign_keys = ON")
            reader = self._connect()
        self._writer = OperationRunner(*[EncryptedBackend(writer, begin="BEGIN IMMEDIATE")] * 2)
        self._reader = OperationRunner(*[EncryptedBackend(reader, begin="BEGIN")] * 2)

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path))
        self._connections.append(connection)
        connection.pragma("key", self._key)
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        return connection

    def _find_damage(self) -> str | None:
        connection = apsw.Connection(str(self._path))
        try:
            connection.pragma("key", self._key)
            found = connection.pragma("quick_check")
        except apsw.Error as error:
            return str(error)
        finally:
            connection.close()
        return None if found == "ok" else str(found)

    @contextmanager
    def _in_queue(self) -> Iterator[None]:
        self._queued += 1
        try:
            yield
        finally:
            self._queued -= 1


def _open_one(runner: OperationRunner | None) -> OperationRunner:
    if runner is None:
        raise StorageError("The storage is not open: use it within `async with`.")
    return runner


def _migrate(connection: apsw.Connection) -> None:
    """Apply the pending migrations, all or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TABLE IF NOT EXISTS applied_migrations (name TEXT PRIMARY KEY)")
        applied = [name for (name,) in connection.execute("SELECT name FROM applied_migrations")]
        for name, texts in pending_sqlite_migrations(applied).items():
            for text in texts:
                connection.execute(text)
            connection.execute("INSERT INTO applied_migrations VALUES (?)", (name,))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _translating(run: Callable[[Operation[T]], T], operation: Operation[T]) -> T:
    with _translated():
        return run(operation)


@contextmanager
def _translated() -> Iterator[None]:
    """Raise the driver's errors as the engine's."""
    try:
        yield
    except apsw.BusyError as error:
        raise StorageBusy("The database is locked by another process that has been writing for long.") from error
    except apsw.NotADBError as error:
        raise StorageError("The key is wrong, or the file is no database.") from error
    except apsw.ConstraintError as error:
        if any(name in str(error) for name in DUPLICATE):
            raise AlreadyExists(str(error)) from error
        raise LookupError("A row refers to something that is not there, or is referred to.") from error
    except apsw.Error as error:
        raise StorageError(f"The database cannot be used. ({error})") from error
