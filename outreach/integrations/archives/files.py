"""Opening the files that contacts and requests of ended campaigns were moved into."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from outreach.errors import ArchiveUnavailable, DatabaseMissing, StorageError
from outreach.storage.base.schema import written_by_newer
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.copying import (
    identity_of,
    is_archive,
    mark_as_archive,
    migrating_command,
    needs_migration,
    open_read_only,
)
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.schema import apply_migrations, version_of
from outreach.storage.sqlite.storage import BUSY_SECONDS, create_private
from outreach.storage.unit_of_work import Transaction

_LOCK_SECONDS: Final = 10.0


@contextmanager
def read_archive(file: str, identity: str) -> Iterator[Transaction]:
    """Open an archive for reading, as one snapshot.

    Raises:
        ArchiveUnavailable: It is not there, is another file, or needs a migration; the message says what to do.
    """
    with _named_in_errors(file), open_read_only(Path(file)) as raw:
        _check(raw, file, identity)
        session = Session(raw, read_only=True)
        raw.execute("BEGIN")
        try:
            session.rows.begin()
            yield session.transaction
        finally:
            raw.execute("ROLLBACK")


@contextmanager
def write_archive(file: str, identity: str) -> Iterator[sqlite3.Connection]:
    """Open an archive for writing, outside a transaction; no other process moves or erases in it meanwhile.

    Raises:
        ArchiveUnavailable: It is not there, is another file, needs a migration, or is in use.
    """
    with _named_in_errors(file):
        if not Path(file).is_file():
            raise DatabaseMissing(f"There is no file {file!r}.")
        with lock_archive(file), closing(sqlite3.connect(file, isolation_level=None, timeout=BUSY_SECONDS)) as raw:
            _set_up(raw)
            _check(raw, file, identity)
            yield raw


def make_archive(file: Path) -> str:
    """Make an archive where there is no file, or none that is complete; return its identity.

    Raises:
        StorageError: It cannot be written, or holds something else.
    """
    create_private(file)
    try:
        with closing(sqlite3.connect(file, isolation_level=None, timeout=BUSY_SECONDS)) as raw:
            _set_up(raw)
            if not is_archive(raw):
                if version_of(raw).applied:
                    raise StorageError(
                        f"{str(file)!r} is a database, and no archive. Name another file for the archive."
                    )
                # Marked first: killed in between, it is an archive without tables, and is completed by the next run.
                mark_as_archive(raw)
            apply_migrations(raw, migrate=False, archives=True)
            return identity_of(raw)
    except sqlite3.Error as error:
        raise StorageError(f"The archive {str(file)!r} cannot be used. {translate(error).message}") from error


@contextmanager
def lock_archive(file: str) -> Iterator[None]:
    """Keep others from moving into an archive, and from erasing in it, within the block.

    Raises:
        ArchiveUnavailable: Another process does so.
    """
    lock = FileLock(f"{file}.lock", mode=0o600, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=_LOCK_SECONDS)
    except Timeout:
        raise ArchiveUnavailable(
            f"The archive {file} is in use: campaigns are being moved into it. Try again afterwards."
        ) from None
    except OSError as error:
        raise ArchiveUnavailable(f"The archive {file} cannot be locked: {error.strerror}.") from None
    try:
        yield
    finally:
        lock.release(force=True)


def _set_up(raw: sqlite3.Connection) -> None:
    raw.execute("PRAGMA foreign_keys = ON")
    # Rows are deleted elsewhere when they are committed here.
    raw.execute("PRAGMA synchronous = FULL")


def _check(raw: sqlite3.Connection, file: str, identity: str) -> None:
    version = version_of(raw)
    if version.newer:
        raise ArchiveUnavailable(f"{written_by_newer(f'The archive {file}', version)} Install that version.")
    if version.pending_migrations and version.applied:
        raise ArchiveUnavailable(needs_migration(raw), command=migrating_command(raw))
    if not version.applied or identity_of(raw) != identity:
        raise ArchiveUnavailable(
            f"The file {file} is not the archive that was there. Put that back. {_MOVED}", command=_SAY_WHERE
        )


_SAY_WHERE: Final = "outreach-server db archives --moved-to FILE"
_MOVED: Final = f"Where it was moved to another place, say so: {_SAY_WHERE}"


@contextmanager
def _named_in_errors(file: str) -> Iterator[None]:
    """Raise what is wrong with the file as `ArchiveUnavailable`."""
    try:
        yield
    except ArchiveUnavailable:
        raise
    except DatabaseMissing:
        raise ArchiveUnavailable(
            f"The archive {file} is not there. Put it back. {_MOVED}", command=_SAY_WHERE
        ) from None
    except sqlite3.Error as error:
        raise ArchiveUnavailable(f"The archive {file} cannot be used. {translate(error).message}") from error
    except StorageError as error:
        raise ArchiveUnavailable(f"The archive {file} cannot be used. {error.message}") from error
