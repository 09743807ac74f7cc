"""Copies of a database file, and the mark by which a file is known as an archive and not opened as a database."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

from outreach.errors import DatabaseMissing, StorageError
from outreach.storage.base.progress import Progress
from outreach.storage.sqlite.errors import is_damage, primary_code, translate

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


def identity_of(raw: sqlite3.Connection) -> str:
    """Return the identity of a database, which its copies share."""
    return str(raw.execute("SELECT id FROM database_identity").fetchone()[0])


PAGES_AT_A_TIME: Final = 4096
MAX_PROBLEMS: Final = 20

_BUSY_SECONDS: Final = 10.0


@contextmanager
def open_read_only(path: Path, *, at_rest: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a database and its log without changing them; only a transaction that a killed process left is taken back.

    Args:
        path: The file.
        at_rest: Nothing writes it, so that without a log no files are created beside it.

    Raises:
        DatabaseMissing: There is none.
        StorageError: It cannot be read.
    """
    require_database(path)
    log = sibling_path(path, "-wal")
    if log.exists() and log.stat().st_size:
        how = "mode=ro"
    elif at_rest and not _has_journal(path):
        how = "mode=ro&immutable=1"
    else:
        # Read-only mode would create the files beside it and leave them there, and takes no transaction back.
        how = "mode=rw"
    # Only SQLite may open it: see `watch.OpenFiles`.
    address = f"file:{quote(str(path.absolute()))}?{how}"
    try:
        with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)) as raw:
            raw.execute("PRAGMA query_only = ON")
            raw.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
            yield raw
    except sqlite3.Error as error:
        raise StorageError(f"The database {str(path)!r} cannot be read. {translate(error).message}") from error


def sibling_path(path: Path, ending: str) -> Path:
    """Return the path of a file beside a database: its name with a suffix."""
    return path.with_name(path.name + ending)


def _has_journal(path: Path) -> bool:
    """Return whether a journal lies beside a database, from which SQLite may have to take a transaction back."""
    journal = sibling_path(path, "-journal")
    return journal.exists() and journal.stat().st_size > 0


def is_empty(path: Path) -> bool:
    """Return whether a file exists and is empty, and so is its log."""
    log = sibling_path(path, "-wal")
    return path.is_file() and not path.stat().st_size and not (log.exists() and log.stat().st_size)


def require_database(path: Path) -> None:
    """Raise `DatabaseMissing` where no file is, or an empty one, which SQLite would take for a new database."""
    if not path.is_file():
        raise DatabaseMissing(f"There is no database at {str(path.absolute())!r}.")
    if is_empty(path):
        raise DatabaseMissing(
            f"There is no database in the file {str(path.absolute())!r}: it is empty. Restore a backup with "
            "`outreach-server db restore FILE`, or make a new database with `outreach-server workspaces create NAME`."
        )


def copy_database(source: sqlite3.Connection, draft: Path, *, progress: Progress | None = None) -> None:
    """Copy one snapshot of a database, which may be written meanwhile, into a private file, and check that.

    Args:
        source: Outside a transaction.
        draft: The new file, replaced if it exists and removed on failure.
        progress: Receives the progress.

    Raises:
        StorageError: The file cannot be written, or the source is damaged.
    """
    try:
        remove(draft)
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(draft, isolation_level=None)) as target:
            source.execute("BEGIN")
            try:
                source.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
                source.backup(target, pages=PAGES_AT_A_TIME, progress=partial(_copied, progress))
            finally:
                source.execute("ROLLBACK")
            with progress.watching(target, "checking the copy") if progress else nullcontext():
                problems = integrity_problems(target, quick=True)
        if problems:
            raise StorageError(f"The database to be copied is damaged: {problems[0]}")
        sync(draft)
    except sqlite3.Error as error:
        remove(draft)
        if primary_code(error) == sqlite3.SQLITE_FULL:
            raise StorageError(f"The disk of the copy {str(draft)!r} is full: make room.") from error
        raise StorageError(f"The copy {str(draft)!r} cannot be written. {translate(error).message}") from error
    except OSError as error:
        remove(draft)
        raise StorageError(f"The copy {str(draft)!r} cannot be written: {error.strerror}.") from error
    except BaseException:
        remove(draft)
        raise


def _copied(progress: Progress | None, _: int, left: int, total: int) -> None:
    if progress is not None and total:
        progress.at("copying", 1 - left / total)


def integrity_problems(raw: sqlite3.Connection, *, quick: bool) -> list[str]:
    """Return the problems of the stored data, after reading all of it."""
    try:
        rows = raw.execute(f"PRAGMA {'quick_check' if quick else 'integrity_check'}({MAX_PROBLEMS})").fetchall()
        messages = [str(row[0]) for row in rows if row[0] != "ok"]
        # A row may have several lines, with a heading first. Only headings are removed, unless nothing else is left.
        lines = [
            line for message in messages for line in message.splitlines() if not line.startswith("*** in database")
        ]
        found = lines or messages
        if not quick and not found:
            broken = raw.execute("PRAGMA foreign_key_check").fetchmany(MAX_PROBLEMS)
            found = [f"row {row[1]} of {row[0]} refers to a row of {row[2]} that is not there" for row in broken]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return [str(error)]
    return found


def key_file_beside(path: Path) -> Path | None:
    """Return the file with the key of a database's credentials; None if there is none."""
    file = Path(f"{os.path.realpath(path)}.key")
    return file if file.exists() else None


def sync(path: Path) -> None:
    """Sync a file, or the names in a directory, to disk."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except PermissionError:
        # Windows cannot open directories, and syncs their names by itself.
        if path.is_dir():
            return
        raise
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def give_to_owner(file: Path, database: Path) -> None:
    """Give a file that root has made to the owner of a database, or of its directory: a server runs as that user."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        owner = (database if database.exists() else database.parent).stat()
        os.chown(file, owner.st_uid, owner.st_gid)


def put_in_place(draft: Path, file: Path) -> None:
    """Give a complete copy the name of a file, which it replaces together with what SQLite left beside that one."""
    # SQLite would take another file's log or journal for the copy's own, and mix both.
    for ending in ("-journal", "-wal", "-shm"):
        sibling_path(file, ending).unlink(missing_ok=True)
    os.replace(draft, file)


def remove(draft: Path) -> None:
    """Remove an incomplete copy and SQLite's files beside it, as far as possible."""
    for path in (draft, sibling_path(draft, "-journal"), sibling_path(draft, "-wal"), sibling_path(draft, "-shm")):
        with suppress(OSError):
            path.unlink(missing_ok=True)
