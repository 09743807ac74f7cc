"""A database in one SQLite file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar, cast

from outreach.clock import Clock
from outreach.errors import ConfigError, StorageError
from outreach.protocols.storage import Operation
from outreach.storage.sqlite.connect import open_quick_reader, open_reader, open_writer
from outreach.storage.sqlite.lock import SqliteDispatchLock
from outreach.storage.sqlite.readers import Readers
from outreach.storage.sqlite.sql import statement
from outreach.storage.sqlite.watch import OPEN_FILES, FileWatch
from outreach.storage.sqlite.writer import Writer

T = TypeVar("T")

_READERS: Final = 2
"""One long read must not keep all others waiting; more would only compete for the same processor."""


class SqliteStorage:
    """A database in one SQLite file; see `outreach.protocols.storage.Storage`.

    Several processes may have the file open, on one machine; one of them dispatches.

    Args:
        path: The file; its directory must be there.
        clock: Where the writer measures how long a group of operations has lasted.
        host: What this machine is called; None takes the system's own identity.
        create: Whether opening it makes the file where there is none.
        migrate: Whether opening it brings the schema of an older version up to date.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock,
        host: str | None = None,
        create: bool = True,
        migrate: bool = True,
    ) -> None:
        self._path = Path(path)
        self._create = create
        self._migrate = migrate
        self._clock = clock
        self._watch = FileWatch(self._path, clock=clock)
        self._lock = SqliteDispatchLock(self._path, host=host, watch=self._watch)
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._quick_reader: sqlite3.Connection | None = None
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the file, and bring its schema up to date."""
        if self._writer is not None:
            raise StorageError("The storage is open already.")
        _require_asyncio()
        OPEN_FILES.refuse_inherited(self._path)
        async with AsyncExitStack() as stack:
            stack.callback(self._lock.release)
            self._lock.check_before_opening()
            opened = await open_writer(self._path, create=self._create, migrate=self._migrate)
            # After it the file may be closed, and not before: see `watch.OpenFiles`.
            stack.callback(self._watch.close)
            writer = Writer(*opened, clock=self._clock, watch=self._watch)
            stack.push_async_callback(writer.close)
            self._watch.open()
            readers = Readers(self._watch)
            stack.push_async_callback(readers.close)
            for _ in range(_READERS):
                readers.add(*await open_reader(self._path))
            glance = open_quick_reader(self._path)
            stack.callback(glance.close)
            self._writer, self._readers, self._quick_reader, self._closing = writer, readers, glance, stack.pop_all()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Finish what was queued, close, and give the dispatch lock back."""
        self._writer = self._readers = self._quick_reader = None
        await self._closing.aclose()

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction; return its result after the commit."""
        if self._writer is None:
            raise _not_open()
        return cast("T", await self._writer.run(operation, bulk=bulk))

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation on a snapshot; return its result."""
        if self._readers is None:
            raise _not_open()
        return cast("T", await self._readers.run(operation))

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return the number of the latest change of a workspace's lists; None while somebody repairs the log.

        It is one row of a table that is always in memory, and takes 3 microseconds, or 20 after a commit: so it is read
        in the loop's own thread. The way to a reader's thread and back takes many times as long.
        """
        if self._quick_reader is None:
            raise _not_open()
        # What is kept of a file that is not there any more is not told on.
        self._watch.check()
        try:
            row = self._quick_reader.execute(statement("campaigns.list"), {"workspace_id": workspace_id}).fetchone()
        except sqlite3.Error:
            return None
        return None if row is None else int(row[1])

    @property
    def lock(self) -> SqliteDispatchLock:
        """The lock that one dispatching process holds."""
        return self._lock


def _not_open() -> StorageError:
    return StorageError("The storage is not open: use it inside `async with`.")


def _require_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError as error:
        raise StorageError("SQLite storage runs under asyncio, not under trio: aiosqlite knows no other.") from error


_PREFIX: Final = "sqlite:///"
_FORMS: Final = "Write sqlite:///relative.db, or sqlite:////absolute/path.db with four slashes."


def sqlite_storage_from_url(
    url: str, *, clock: Clock, host: str | None = None, create: bool = True, migrate: bool = True
) -> SqliteStorage:
    """Return the storage that a URL names, not opened yet.

    What follows the third slash is the path, character by character: nothing is decoded, no option is known.

    Raises:
        ConfigError: The URL names no file that could be a database; the message says what would.
    """
    return SqliteStorage(path_of(url), clock=clock, host=host, create=create, migrate=migrate)


def path_of(url: str) -> Path:
    """Return the file that a URL names.

    Raises:
        ConfigError: It names none that could be a database; the message says what would.
    """
    if not url.startswith("sqlite:"):
        raise ConfigError(f"{url!r} is no URL of a SQLite database. {_FORMS}")
    text = url.removeprefix(_PREFIX)
    if text == url or not text:
        raise ConfigError(f"{url!r} names no file. {_FORMS}")
    if text == ":memory:":
        raise ConfigError("A SQLite database in memory cannot be shared by several connections: use memory:// instead.")
    if "?" in text or "#" in text or "\0" in text:
        raise ConfigError(f"{url!r} has more than a path, and no options are known. {_FORMS}")
    path = Path(text)
    if path.is_dir():
        raise ConfigError(f"{url!r} names a directory. Name a file in it: {url.rstrip('/')}/outreach.db")
    if not path.parent.is_dir():
        raise ConfigError(f"The directory {str(path.parent.absolute())!r} of {url!r} is not there. Create it first.")
    return path
