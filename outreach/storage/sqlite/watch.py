"""Noticing that another file was put in the place of a database: at its opening, and while it is open."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from outreach.clock import Clock
from outreach.errors import ConfigError, DatabaseInUse, DatabaseReplaced
from outreach.storage.sqlite.footprint import FileState, Footprint, continues, has_commits, read_file_state, salts_of

FILE_CHECK_SECONDS: Final = 0.5
"""How often the file is looked at while it is read or written; it takes a few microseconds."""

_TRIES: Final = 4
_TRY_AGAIN_SECONDS: Final = 0.05
"""Another process's checkpoint may be in the midst of writing what is looked at."""

_FIRST_SECOND: Final = 1_767_225_600
"""Stamps count seconds from 2026 on: 68 years of them fit."""

_LAST_STAMP: Final = 2**31 - 1

Inode = tuple[int, int]


class OpenFiles:
    """The database files that this process has open, by what they are and not by their names.

    POSIX drops all locks of a process on a file when it closes any descriptor of it, those of SQLite's connections
    included (https://www.sqlite.org/howtocorrupt.html, 2.2). So there is one descriptor for each file, which is closed
    when the last storage has closed its connections.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Inode, tuple[int, int]] = {}
        self._processes: dict[Inode, int] = {}

    def refuse_inherited(self, path: Path) -> None:
        """Check that this process was not forked from one that had the file open.

        SQLite notes its locks in memory too, and in a child takes those of the parent for its own. So the parent
        deletes the log as it closes, and what the child commits later is lost
        (https://www.sqlite.org/howtocorrupt.html, 2.6).

        Raises:
            ConfigError: It was.
        """
        inode = inode_of(path)
        process = self._processes.get(inode, os.getpid()) if inode is not None else os.getpid()
        if process != os.getpid():
            raise ConfigError(
                f"{str(path)!r} was open in process {process} as this one, {os.getpid()}, was forked from it, and an "
                "SQLite database does not survive a fork: what is written here could be lost. Close the engine before "
                "the fork, or open it after the fork only."
            )

    def has(self, path: Path) -> bool:
        """Return whether this process has a storage open on this file."""
        inode = inode_of(path)
        with self._lock:
            return inode in self._open

    def take(self, path: Path) -> tuple[int, Inode]:
        """Return the descriptor of a file, and what file it is."""
        with self._lock:
            inode = inode_of(path)
            file, count = self._open.get(inode, (-1, 0)) if inode is not None else (-1, 0)
            if not count:
                file = os.open(path, os.O_RDONLY)
                found = os.fstat(file)
                inode = (found.st_dev, found.st_ino)
            assert inode is not None  # noqa: S101 - it is that of what was opened
            self._open[inode] = (file, count + 1)
            self._processes[inode] = os.getpid()
            return file, inode

    def give_back(self, inode: Inode) -> None:
        """Close the descriptor with the last storage."""
        with self._lock:
            file, count = self._open.pop(inode)
            if count > 1:
                self._open[inode] = (file, count - 1)
            else:
                del self._processes[inode]
                os.close(file)


OPEN_FILES: Final = OpenFiles()


def inode_of(path: Path) -> Inode | None:
    """Return which file a path leads to; None for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class FileWatch:
    """Follows the file of one storage; any thread may look, and the others are its writer's.

    Args:
        path: The database.
        clock: Where stamps come from.
    """

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self._path = Path(os.path.realpath(path))
        self._log = self._path.with_name(f"{self._path.name}-wal")
        self._clock = clock
        self._file = -1
        self._inode: Inode | None = None
        self._known: Footprint | None = None
        self._latest = 0
        self._stamped_at: tuple[int, str | None] | None = None
        self._stamping = 0
        self._look_again = 0.0
        self._replaced: str | None = None
        self._lock = threading.Lock()

    def footprint(self) -> Footprint | None:
        """Return how the file lies now, to be noted beside it; None while it is not open. Any thread may call it."""
        known = self._known
        if known is None:
            return None
        found = read_file_state(self._file, self._log)
        # Where it is another file already, the next transaction finds it out.
        return found.footprint(self._latest) if found is not None and continues(known, found, self._log) else known

    def before_opening(self, noted: Footprint | None) -> bool:
        """Look at the file before SQLite does; return whether a log was left behind by whoever had it open last.

        Raises:
            DatabaseReplaced: It is not the file that the log beside it belongs to; nothing was changed.
        """
        if OPEN_FILES.has(self._path) or not self._path.is_file() or not has_commits(self._log):
            return False
        file = os.open(self._path, os.O_RDONLY)
        try:
            found = read_file_state(file, self._log)
        finally:
            os.close(file)
        # What is no database at all SQLite itself refuses.
        if noted is not None and found is not None and not continues(noted, found, self._log, at_rest=True):
            raise DatabaseReplaced(
                f"The database {str(self._path)!r} is not the file that the log beside it ({self._log.name}) belongs "
                "to: another file was copied over it, and the log was left. SQLite would mix both, without a word. "
                "Nothing was changed, and nothing is sent. Put the backup in its place with "
                "`outreach-server db restore FILE` (restore_database), which takes the log into account and keeps both."
            )
        return True

    def open(self) -> None:
        """Begin to follow the file; to be called once SQLite has it open."""
        self._file, self._inode = OPEN_FILES.take(self._path)
        found = read_file_state(self._file, self._log)
        self._latest = found.stamp if found is not None else 0
        self._known = found.footprint(self._latest) if found is not None else None
        self._replaced, self._look_again = None, 0.0

    def close(self) -> None:
        """Follow it no more; to be called once SQLite has closed it."""
        inode, self._inode = self._inode, None
        if inode is not None:
            OPEN_FILES.give_back(inode)

    def check(self) -> None:
        """Look whether it is still the same file, now and then; to be called before each transaction.

        Raises:
            DatabaseReplaced: It is not, once and for all.
        """
        if self._replaced is None and time.monotonic() < self._look_again:
            return
        with self._lock:
            if self._replaced is None and time.monotonic() >= self._look_again:
                self._look_closely()
        if self._replaced is not None:
            # One of its own for each thread: an error keeps where it was raised.
            raise DatabaseReplaced(self._replaced)

    def _look_closely(self) -> None:
        for tries_left in range(_TRIES - 1, -1, -1):
            if self._look_once():
                self._look_again = time.monotonic() + FILE_CHECK_SECONDS
                return
            if tries_left:
                time.sleep(_TRY_AGAIN_SECONDS)
        self._replaced = (
            f"Another file was put in the place of the database {str(self._path)!r} while it is open: nothing is "
            "read, written or sent by this process any more. Stop it, and put the backup in the database's place with "
            "`outreach-server db restore FILE` (restore_database)."
        )

    def stamp(self, raw: sqlite3.Connection) -> None:
        """Have the transaction that is about to be committed raise the stamp, where it has not been raised lately."""
        second = int(self._clock.now().timestamp()) - _FIRST_SECOND
        now = second, salts_of(self._log)
        if now == self._stamped_at:
            return
        before: int = raw.execute("PRAGMA user_version").fetchone()[0]
        stamp = min(max(before + 1, second), _LAST_STAMP)
        raw.execute(f"PRAGMA user_version = {stamp}")
        self._stamped_at, self._stamping = now, stamp

    def committed(self) -> None:
        """Remember the stamp of what was committed."""
        self._latest = max(self._latest, self._stamping)

    def _look_once(self) -> bool:
        if inode_of(self._path) != self._inode:
            return False
        found: FileState | None = read_file_state(self._file, self._log)
        if found is None or (self._known is not None and not continues(self._known, found, self._log)):
            return False
        self._known = found.footprint(self._latest)
        return True


_SHARED_FIRST: Final = 0x40000002
_SHARED_SIZE: Final = 510
"""The bytes that every connection of SQLite locks for reading for as long as it is open, in WAL mode
(https://www.sqlite.org/fileformat2.html#the_lock_byte_page)."""


@contextmanager
def exclusive_use(path: Path) -> Iterator[None]:
    """Keep every other process from having the database open within the block; nothing where there is no file.

    Raises:
        DatabaseInUse: Somebody has it open, this process included.
    """
    in_use = DatabaseInUse(
        f"The database {str(path)!r} is in use: stop the server, and whatever else has it open, first."
    )
    if OPEN_FILES.has(path):
        # On POSIX the end of the block would lose SQLite's own locks.
        raise in_use
    if sys.platform == "win32" or not path.exists():
        # An open file cannot be replaced there.
        yield
        return
    import fcntl

    file = os.open(path, os.O_RDWR)
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
        except OSError as error:
            raise in_use from error
        yield
    finally:
        os.close(file)
