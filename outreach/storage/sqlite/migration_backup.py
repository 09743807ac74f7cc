"""Keeping a database as it was while it is brought up to date."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from outreach.errors import StorageError
from outreach.storage.sqlite.copying import copy_database, open_read_only, remove, sibling_path, sync
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.progress import Progress

BACKUP_SUFFIX: Final = ".before-migration"
"""What is put behind the database's name to name the copy."""

_DRAFT: Final = ".part"

_ROOM: Final = 2
"""How many times the size has to be free: for the copy, and for what SQLite notes of the pages that it changes."""


@contextmanager
def backup_during_migration(raw: sqlite3.Connection, progress: Progress) -> Iterator[None]:
    """Have a copy of a database lie beside it within the block, and for good where the block fails.

    It is complete before the block begins, and readable for its owner alone. A database in memory has none.

    Args:
        raw: A connection to it that nobody writes beside, outside of a transaction.
        progress: Is told how far the copy is.

    Raises:
        StorageError: There is no room for it, or it cannot be written, or the database is damaged: the block did not
            begin. Or the database refused what the block did.
    """
    path = file_of(raw)
    if path is None:
        yield
        return
    kept = _name_for(raw, path)
    draft = sibling_path(kept, _DRAFT)
    # Half a copy of an earlier attempt takes room.
    remove(draft)
    _require_room(path)
    copy_database(raw, draft, progress=progress)
    os.replace(draft, kept)
    sync(path.parent)
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(
            f"The database {str(path)!r} could not be brought up to date, and is as it was. {translate(error).message} "
            f"A copy of it lies at {str(kept)!r} until it succeeds."
        ) from error
    _give_up(kept)


def remove_migration_backup(raw: sqlite3.Connection) -> None:
    """Remove the copy of a database that is up to date, which a process that was killed has left, whole or not."""
    path = file_of(raw)
    if path is None:
        return
    kept = sibling_path(path, BACKUP_SUFFIX)
    if (draft := sibling_path(kept, _DRAFT)).exists():
        remove(draft)
    if kept.exists() and _is_of(raw, kept):
        _give_up(kept)


def file_of(raw: sqlite3.Connection) -> Path | None:
    """Return the file of a connection's database; None for one in memory."""
    file = next(row[2] for row in raw.execute("PRAGMA database_list") if row[1] == "main")
    return Path(file) if file else None


def _require_room(path: Path) -> None:
    size = path.stat().st_size
    free = shutil.disk_usage(path.parent).free
    if free < _ROOM * size:
        raise StorageError(
            f"The database {str(path)!r} has to be brought up to date, and is copied first. There is no room for that: "
            f"{_ROOM * size // 2**20 + 1:,} MiB are needed beside it, and {free // 2**20:,} MiB are free. Nothing was "
            "changed. Make room and try again."
        )


def _name_for(raw: sqlite3.Connection, path: Path) -> Path:
    """Return where the copy is to lie: never in the place of another database's."""
    names = (sibling_path(path, BACKUP_SUFFIX if number == 1 else f"{BACKUP_SUFFIX}-{number}") for number in count(1))
    return next(name for name in names if not name.exists() or _is_of(raw, name))


def _is_of(raw: sqlite3.Connection, file: Path) -> bool:
    """Return whether a file is a copy of a connection's database, of whatever time."""
    identity = "SELECT id FROM database_identity"
    with suppress(StorageError, sqlite3.Error), open_read_only(file, at_rest=True) as other:
        return bool(other.execute(identity).fetchone() == raw.execute(identity).fetchone())
    return False


def _give_up(kept: Path) -> None:
    # What cannot be removed does no harm.
    with suppress(OSError):
        kept.unlink()
        sync(kept.parent)
