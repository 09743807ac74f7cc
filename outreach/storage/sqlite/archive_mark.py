"""The mark by which a file is known as an archive, so that it is not opened, restored or overwritten as a database."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from outreach.errors import StorageError

_APPLICATION_ID: Final = 0x4F757441
"""`OutA`, as `PRAGMA application_id` in the file's header: backups and `VACUUM` keep it, and `file` shows it."""


def mark_as_archive(raw: sqlite3.Connection) -> None:
    """Mark a connection's database as an archive."""
    raw.execute(f"PRAGMA application_id = {_APPLICATION_ID}")


def is_archive(raw: sqlite3.Connection) -> bool:
    """Return whether a connection's database is an archive."""
    return bool(raw.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION_ID)


def is_archive_file(path: Path) -> bool:
    """Return whether a file is an archive; False where none is, or what cannot be read."""
    # An archive is marked before it has a log, so that the file alone shows it; no file is made beside it.
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as raw:
        return is_archive(raw)
    return False


def require_no_archive(raw: sqlite3.Connection) -> None:
    """Raise `StorageError` if a connection's database is an archive."""
    if is_archive(raw):
        raise StorageError(
            f"{_named(raw)!r} is an archive of ended campaigns, and no database to work with. Nothing was changed. "
            "Name the database that it was made from: its `campaigns why` and `campaigns export` read the archive."
        )


def needs_migration(raw: sqlite3.Connection) -> str:
    """Return what is wrong with an archive that needs a migration, and the command that fixes it."""
    return (
        f"The archive {_named(raw)} was written by an older version of this package. Nothing was changed. Bring it up "
        f"to date: {migrating_command(raw)}"
    )


def migrating_command(raw: sqlite3.Connection) -> str:
    """Return the command that migrates an archive."""
    return f"outreach-server --database {shlex.quote(f'sqlite:///{_named(raw)}')} db migrate"


def _named(raw: sqlite3.Connection) -> str:
    return next(str(row[2]) for row in raw.execute("PRAGMA database_list") if row[1] == "main")
