"""The backup of a database during its migration."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from outreach.errors import StorageError
from outreach.storage.base.progress import Progress
from outreach.storage.sqlite.copying import copy_database, open_read_only, put_in_place, remove, sibling_path, sync
from outreach.storage.sqlite.errors import translate

BACKUP_SUFFIX: Final = ".before-migration"
"""The suffix of the backup's name."""

_DRAFT: Final = ".part"

_ROOM: Final = 2
"""The free space needed, in database sizes: one for the copy, one for the changed pages in SQLite's journal."""


@contextmanager
def backup_during_migration(raw: sqlite3.Connection, progress: Progress) -> Iterator[None]:
    """Keep a backup of a database beside it during the block, and for good if the block fails.

    It is complete before the block begins, and private. A database in memory has none.

    Args:
        raw: A connection outside a transaction, with no other writer.
        progress: Receives the progress of the copy.

    Raises:
        StorageError: There is no room, the copy cannot be written, the database is damaged (the block did not begin),
            or the database refused a step of the block.
    """
    path = file_of(raw)
    if path is None:
        yield
        return
    backup = _name_for(raw, path)
    draft = sibling_path(backup, _DRAFT)
    # An earlier, incomplete copy takes room.
    remove(draft)
    _require_room(path)
    copy_database(raw, draft, progress=progress)
    put_in_place(draft, backup)
    sync(path.parent)
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(
            f"The migration of the database {str(path)!r} failed, and nothing was changed. {translate(error).message} "
            f"A backup remains at {str(backup)!r} until it succeeds."
        ) from error
    _delete(backup)


def remove_migration_backup(raw: sqlite3.Connection) -> None:
    """Remove the backup, complete or not, that a killed process left beside a migrated database."""
    path = file_of(raw)
    if path is None:
        return
    backup = sibling_path(path, BACKUP_SUFFIX)
    if (draft := sibling_path(backup, _DRAFT)).exists():
        remove(draft)
    if backup.exists() and _is_of(raw, backup):
        _delete(backup)


def file_of(raw: sqlite3.Connection) -> Path | None:
    """Return the file of a connection's database; None in memory."""
    file = next(row[2] for row in raw.execute("PRAGMA database_list") if row[1] == "main")
    return Path(file) if file else None


def _require_room(path: Path) -> None:
    size = path.stat().st_size
    free = shutil.disk_usage(path.parent).free
    if free < _ROOM * size:
        raise StorageError(
            f"There is no room for the backup that migrating the database {str(path)!r} needs: "
            f"{_ROOM * size // 2**20 + 1:,} MiB are needed beside it, {free // 2**20:,} MiB are free. Nothing was "
            "changed. Make room and try again."
        )


def _name_for(raw: sqlite3.Connection, path: Path) -> Path:
    """Return a name for the backup, never that of another database's."""
    names = (sibling_path(path, BACKUP_SUFFIX if number == 1 else f"{BACKUP_SUFFIX}-{number}") for number in count(1))
    return next(name for name in names if not name.exists() or _is_of(raw, name))


def _is_of(raw: sqlite3.Connection, file: Path) -> bool:
    """Return whether a file is a copy of a connection's database, of any time."""
    identity = "SELECT id FROM database_identity"
    with suppress(StorageError, sqlite3.Error), open_read_only(file, at_rest=True) as other:
        return bool(other.execute(identity).fetchone() == raw.execute(identity).fetchone())
    return False


def _delete(backup: Path) -> None:
    # A leftover backup does no harm.
    with suppress(OSError):
        backup.unlink()
        sync(backup.parent)
