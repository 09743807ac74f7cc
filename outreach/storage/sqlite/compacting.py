"""Replacing a database by a copy of itself without the room that deleted rows left."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from outreach.core.clock import SystemClock
from outreach.errors import StorageError
from outreach.models.database import Compaction
from outreach.storage.base.progress import Progress, ProgressCallback
from outreach.storage.sqlite.copying import (
    give_to_owner,
    integrity_problems,
    remove,
    require_database,
    sibling_path,
    sync,
)
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.lock import SqliteDispatchLock
from outreach.storage.sqlite.restoring import free_name
from outreach.storage.sqlite.schema import apply_migrations, locked_without_log
from outreach.storage.sqlite.storage import BUSY_SECONDS, create_private
from outreach.storage.sqlite.watch import OPEN_FILES, FileWatch, in_use


def compact(
    path: Path, *, delete_old: bool = False, now: datetime, on_progress: ProgressCallback | None = None
) -> Compaction:
    """Put a compact copy (`VACUUM INTO`) in the place of a database, or of an archive, after it was checked.

    The old file is kept beside it under a name with the time. Its rows are the same, so that work goes on with it.

    Args:
        path: The database.
        delete_old: Whether the old file is deleted at the end.
        now: The time, for the name of the old file.
        on_progress: Receives a sentence about the progress every 2 s; None logs them.

    Raises:
        DatabaseMissing: There is no database, or the file is empty.
        DatabaseInUse: A process has it open.
        DatabaseOlder: It needs a migration.
        StorageError: It is damaged, there is no room, or a step failed. In every case nothing was changed.
    """
    path = Path(os.path.realpath(path))
    require_database(path)
    if OPEN_FILES.has(path):
        # On POSIX, closing another descriptor would drop SQLite's own locks.
        raise in_use(path)
    SqliteDispatchLock(path, watch=FileWatch(path, clock=SystemClock())).check_before_opening()
    draft = sibling_path(path, ".compacting")
    remove(draft)
    progress = Progress("Compacting the database", on_progress)
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)) as raw:
            apply_migrations(raw, migrate=False, archives=True)
            with locked_without_log(raw):
                before = path.stat().st_size
                _require_room(raw, path)
                _write(raw, draft, progress)
                # Still locked: no process may write what the copy does not have.
                kept = _swap(path, draft, now)
    except sqlite3.Error as error:
        raise StorageError(
            f"The database {str(path)!r} cannot be compacted. {translate(error).message} Nothing was changed."
        ) from error
    except OSError as error:
        raise StorageError(
            f"The database {str(path)!r} cannot be compacted: {error.strerror}. Nothing was changed."
        ) from error
    finally:
        remove(draft)
    if delete_old:
        kept.unlink()
        sync(path.parent)
    progress.done("The database is compact")
    return Compaction(size_before=before, size=path.stat().st_size, replaced_database=None if delete_old else kept)


def _require_room(raw: sqlite3.Connection, path: Path) -> None:
    [[pages], [unused], [size]] = (
        raw.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
    )
    needed, free = (pages - unused) * size, shutil.disk_usage(path.parent).free
    if free < needed:
        raise StorageError(
            f"There is no room for a compact copy of the database {str(path)!r}: up to {needed // 2**20 + 1:,} MiB are "
            f"needed beside it, {free // 2**20:,} MiB are free. Nothing was changed. Make room and try again."
        )


def _write(raw: sqlite3.Connection, draft: Path, progress: Progress) -> None:
    """Write a private, checked and synced copy."""
    create_private(draft)
    with progress.watching(raw, "copying"):
        raw.execute("VACUUM INTO ?", (str(draft),))
    with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
        with progress.watching(copy, "checking the copy"):
            problems = integrity_problems(copy, quick=True)
        if not problems and _counts(copy) != _counts(raw):
            problems = ["the copy has not as many rows"]
    if problems:
        raise StorageError(f"The database is damaged: {problems[0]}. Nothing was changed. Restore a backup.")
    sync(draft)


def _counts(raw: sqlite3.Connection) -> Mapping[str, int]:
    """Return how many rows each table holds."""
    names = raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'")
    return {
        name: raw.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0]  # noqa: S608 - a name of the schema
        for (name,) in names.fetchall()
    }


def _swap(path: Path, draft: Path, now: datetime) -> Path:
    """Put the draft in a database's place; return where the old one is kept. It stays in its place if a step fails."""
    kept = free_name(sibling_path(path, f".before-compact-{now:%Y%m%dT%H%M%SZ}"))
    # A hard link: the first name stays until it is replaced.
    os.link(path, kept)
    try:
        give_to_owner(draft, path)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            kept.unlink()
        raise
    sync(path.parent)
    return kept
