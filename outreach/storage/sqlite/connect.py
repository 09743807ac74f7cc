"""Opening and configuring connections."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

import aiosqlite

from outreach.core.clock import Clock
from outreach.errors import StorageError
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.copying import require_database
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.schema import apply_migrations
from outreach.storage.sqlite.thread import call, close, connect

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
