"""Copying a whole database into a file that is complete, private and safe on the disk, or not there at all."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

from outreach.errors import DatabaseMissing, StorageError
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.progress import Progress

PAGES_AT_A_TIME: Final = 4096
MAX_PROBLEMS: Final = 20

_BUSY_SECONDS: Final = 10.0


@contextmanager
def open_read_only(path: Path, *, at_rest: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a database without changing it, its log included where it has one.

    Args:
        path: The file.
        at_rest: Nobody writes it: without a log nothing is made beside it then, and it may lie where nothing can be.

    Raises:
        DatabaseMissing: There is none.
        StorageError: It cannot be read.
    """
    if not path.is_file():
        raise DatabaseMissing(f"There is no database at {str(path.absolute())!r}.")
    log = sibling_path(path, "-wal")
    if log.exists() and log.stat().st_size:
        how = "mode=ro"
    elif at_rest:
        how = "mode=ro&immutable=1"
    else:
        # Who may only read makes the files beside it too, and leaves them there.
        how = "mode=rw"
    # Not opened in any other way: see `watch.OpenFiles`.
    address = f"file:{quote(str(path.absolute()))}?{how}"
    try:
        with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)) as raw:
            raw.execute("PRAGMA query_only = ON")
            raw.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
            yield raw
    except sqlite3.Error as error:
        raise StorageError(f"The database {str(path)!r} cannot be read. {translate(error).message}") from error


def sibling_path(path: Path, ending: str) -> Path:
    """Return the path of a file that belongs to a database and has its name with an ending."""
    return path.with_name(path.name + ending)


def copy_database(source: sqlite3.Connection, draft: Path, *, progress: Progress | None = None) -> None:
    """Write what a connection sees into a new file that only its owner can read, and look it through.

    The source goes on being written meanwhile: the copy is one snapshot of it, which is held for as long as it takes.

    Args:
        source: Outside of a transaction.
        draft: The new file; one that is there is written over. It is removed where anything fails.
        progress: Is told how far it is.

    Raises:
        StorageError: It cannot be written, or the source is damaged; the message says which.
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
            with progress.watching(target, "looking the copy through") if progress else nullcontext():
                problems = integrity_problems(target, quick=True)
        if problems:
            raise StorageError(f"What was to be copied is damaged: {problems[0]}")
        sync(draft)
    except sqlite3.Error as error:
        remove(draft)
        raise StorageError(f"The copy {str(draft)!r} cannot be written. {translate(error).message}") from error
    except OSError as error:
        remove(draft)
        raise StorageError(f"The copy {str(draft)!r} cannot be written: {error.strerror}.") from error
    except BaseException:
        remove(draft)
        raise


def _copied(progress: Progress | None, _: int, left: int, total: int) -> None:
    if progress is not None and total:
        progress.at("copying it first", 1 - left / total)


def integrity_problems(raw: sqlite3.Connection, *, quick: bool) -> list[str]:
    """Return what is wrong with the stored data, after reading all of it; nothing when nothing is."""
    try:
        rows = raw.execute(f"PRAGMA {'quick_check' if quick else 'integrity_check'}({MAX_PROBLEMS})").fetchall()
        found = [str(row[0]) for row in rows if row[0] != "ok"]
        if not quick and not found:
            broken = raw.execute("PRAGMA foreign_key_check").fetchmany(MAX_PROBLEMS)
            found = [f"row {row[1]} of {row[0]} refers to a row of {row[2]} that is not there" for row in broken]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise
        return [str(error)]
    return found


def sync(path: Path) -> None:
    """Have a file, or the names in a directory, on the disk before this returns."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except PermissionError:
        # Directories cannot be opened on Windows, which keeps their names safe by itself.
        if path.is_dir():
            return
        raise
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def remove(draft: Path) -> None:
    """Remove a copy that is not whole, and what SQLite has put beside it; what cannot be removed does no harm."""
    for path in (draft, sibling_path(draft, "-journal"), sibling_path(draft, "-wal"), sibling_path(draft, "-shm")):
        with suppress(OSError):
            path.unlink(missing_ok=True)
