"""Backing up, checking and migrating a database."""

from __future__ import annotations

import glob
import os
import sqlite3
import time
import uuid
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from outreach.core.clock import SystemClock
from outreach.errors import StorageError
from outreach.models.database import DatabaseCheck
from outreach.storage.base.progress import ProgressCallback
from outreach.storage.base.schema import written_by_newer
from outreach.storage.sqlite.copying import (
    copy_database,
    integrity_problems,
    is_archive,
    is_archive_file,
    open_read_only,
    put_in_place,
    remove,
    require_database,
    sibling_path,
    sync,
)
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.lock import SqliteDispatchLock
from outreach.storage.sqlite.schema import apply_migrations, version_of
from outreach.storage.sqlite.storage import BUSY_SECONDS
from outreach.storage.sqlite.watch import FileWatch, exclusive_use

_DRAFT_SECONDS: Final = 24 * 60 * 60
"""A draft is left by a killed backup if nothing was written to it for this long."""


def back_up(path: Path, file: Path, *, overwrite: bool = False) -> int:
    """Copy a database, which may be in use, into a file; return the file's size.

    Raises:
        DatabaseMissing: There is no database.
        DatabaseInUse: A process has the file open.
        StorageError: The file exists, is part of a database or cannot be written, or the database is unreadable or
            damaged.
    """
    path = Path(os.path.realpath(path))
    if file.exists() and not overwrite:
        raise StorageError(f"The file {str(file)!r} exists already and was not changed.")
    if file.exists() and not file.is_file():
        # Such as /dev/null, which root would replace.
        raise StorageError(f"{str(file)!r} is no file. Name one for the backup.")
    if file.exists() and path.exists() and os.path.samefile(file, path):
        raise StorageError(f"{str(file)!r} is the database itself. Name another file for the backup.")
    _require_no_database(path, file)
    if is_archive_file(file) and not is_archive_file(path):
        raise StorageError(f"{str(file)!r} is an archive of ended campaigns. Name another file for the backup.")
    if not file.absolute().parent.is_dir():
        raise StorageError(f"The directory {str(file.absolute().parent)!r} does not exist. Create it first.")
    SqliteDispatchLock(path, watch=FileWatch(path, clock=SystemClock())).check_before_opening()
    _remove_old_drafts(file)
    # Two containers on one volume may have the same process number.
    draft = sibling_path(file, f".{uuid.uuid4().hex}.part")
    try:
        with exclusive_use(file):
            with open_read_only(path) as raw:
                copy_database(raw, draft)
            put_in_place(draft, file)
        sync(file.absolute().parent)
    except OSError as error:
        raise StorageError(f"The backup {str(file)!r} cannot be written: {error.strerror}.") from error
    finally:
        draft.unlink(missing_ok=True)
    return file.stat().st_size


def _remove_old_drafts(file: Path) -> None:
    """Remove what killed processes left of earlier backups to this file, as far as possible."""
    oldest = time.time() - _DRAFT_SECONDS
    for draft in file.absolute().parent.glob(f"{glob.escape(file.name)}.{'[0-9a-f]' * 32}.part"):
        with suppress(OSError):
            if draft.stat().st_mtime < oldest:
                remove(draft)


def _require_no_database(path: Path, file: Path) -> None:
    """Raise `StorageError` if a backup would replace a file of the database itself, or another database."""
    place = Path(os.path.realpath(file.parent)) / file.name
    ending = str(place).removeprefix(str(path)) if place.parent == path.parent else ""
    if ending in {"-wal", "-shm", "-journal", ".key"} or ending.startswith(".dispatch"):
        raise StorageError(f"{str(file)!r} belongs to the database itself. Name another file for the backup.")
    if file.exists() and any(sibling_path(place, one).exists() for one in (".dispatch", ".dispatch-note", ".key")):
        raise StorageError(
            f"{str(file)!r} is a database with the files of a server beside it, and no backup. Nothing was changed. "
            "Name another file for the backup. To replace a database by a backup, use `outreach-server db restore`."
        )


def check(path: Path, *, quick: bool = False) -> DatabaseCheck:
    """Check all pages of a database, which may be in use, and unless `quick` all indexes.

    Raises:
        DatabaseMissing: There is none.
        StorageError: It cannot be read at all.
    """
    path = Path(os.path.realpath(path))
    log = sibling_path(path, "-wal")
    SqliteDispatchLock(path, watch=FileWatch(path, clock=SystemClock())).check_before_opening()
    with open_read_only(path) as raw:
        problems = integrity_problems(raw, quick=quick)
        pending_migrations: Sequence[str] = ()
        if not problems:
            version = version_of(raw)
            pending_migrations = version.pending_migrations
            if version.is_foreign:
                problems = ["The file holds the tables of something else."]
            elif version.newer:
                problems = [written_by_newer("It", version)]
        return DatabaseCheck(
            problems=problems,
            size=path.stat().st_size,
            log_size=log.stat().st_size if log.exists() else 0,
            pending_migrations=pending_migrations,
            is_archive=is_archive(raw),
        )


def migrate(path: Path, *, on_progress: ProgressCallback | None = None) -> Sequence[str]:
    """Migrate an older database or archive; return the names of the applied migrations.

    See `apply_migrations` for the errors.
    """
    require_database(path)
    SqliteDispatchLock(path, watch=FileWatch(path, clock=SystemClock())).check_before_opening()
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)) as raw:
            return apply_migrations(raw, archives=True, on_progress=on_progress)
    except sqlite3.Error as error:
        raise StorageError(f"The database {str(path)!r} cannot be used. {translate(error).message}") from error
