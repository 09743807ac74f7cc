"""Detecting that a database file was replaced, at its opening and while it is open, by its footprint.

SQLite opens any file under a database's name together with the log beside it: an older copy beside a log that was left
behind silently becomes a mixture. The first page of the file shows this. It changes with each checkpoint, and is then
one of the versions in the log or, if the log has restarted since, not older than the last known commit. Commits
therefore raise a stamp in the first page about once a second, and after each restart of the log (`user_version` in
SQLite's header, which every way of copying keeps).
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from outreach.core.clock import Clock
from outreach.errors import ConfigError, DatabaseInUse, DatabaseLogDeleted, DatabaseReplaced

_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_LOG_MAGICS: Final = frozenset({0x377F0682, 0x377F0683})
_LARGEST_PAGE: Final = 65_536
_READ_ATTEMPTS: Final = 5


@attrs.frozen(kw_only=True)
class Footprint:
    """The state of a database on disk, as recorded.

    Attributes:
        page: Digest of the file's first page.
        written_at: Modification time in nanoseconds.
        latest: The stamp of the latest known commit, including the log.
        salts: The log's salts, which change when it restarts; None without a log.
    """

    page: str
    written_at: int
    latest: int
    salts: str | None

    @classmethod
    def read(cls, noted: object) -> Footprint | None:
        """Return a footprint from the result of `attrs.asdict`; None for anything else."""
        match noted:
            case {
                "page": str(page),
                "written_at": int(written_at),
                "latest": int(latest),
                "salts": (str() | None) as salts,
            }:
                return cls(page=page, written_at=written_at, latest=latest, salts=salts)
            case _:
                return None


@attrs.frozen(kw_only=True)
class FileState:
    """The current state of the files: first page, modification time in nanoseconds and the log's salts."""

    page: bytes
    written_at: int
    salts: str | None

    @property
    def stamp(self) -> int:
        """The stamp in the first page."""
        return int.from_bytes(self.page[60:64], "big", signed=True)

    def footprint(self, latest: int) -> Footprint:
        """Return the footprint of this state."""
        return Footprint(page=_digest(self.page), written_at=self.written_at, latest=latest, salts=self.salts)


def read_file_state(file: int, log: Path) -> FileState | None:
    """Return the state of an open file and its log; None if it is not a database."""
    page, salts = b"", salts_of(log)
    for _ in range(_READ_ATTEMPTS):
        # A checkpoint between both reads would mix two states.
        page, before = _read_start(file, _LARGEST_PAGE), salts
        salts = salts_of(log)
        if salts == before:
            break
    if len(page) < _HEADER or not page.startswith(_MAGIC):
        return None
    page = page[: _page_size(page)]
    return FileState(page=page, written_at=os.fstat(file).st_mtime_ns, salts=salts)


def has_commits(log: Path) -> bool:
    """Return whether a log holds anything that SQLite would add to the file."""
    return salts_of(log) is not None and log.stat().st_size >= _LOG_HEADER + _FRAME_HEADER + 512


def continues(known: Footprint, now: FileState, log: Path, *, at_rest: bool = False) -> bool:
    """Return whether commits and checkpoints alone can have led from a footprint to the current state.

    With `at_rest` no process has the file open, so that an unchanged first page means an unwritten file.
    """
    if _digest(now.page) == known.page:
        return not at_rest or _is_same_time(now.written_at, known.written_at)
    if now.salts is not None and now.salts == known.salts:
        return any(page == now.page for page in _first_pages(log))
    return now.stamp >= known.latest


def _read_start(file: int, size: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, size, 0)
    # Windows has no pread; there, no two threads read the same file.
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, size)


def _digest(page: bytes) -> str:
    return hashlib.sha256(page).hexdigest()[:32]


def _is_same_time(now: int, known: int) -> bool:
    # Some ways of copying keep only whole seconds.
    return now == known or (now % 10**9 == 0 and now // 10**9 == known // 10**9)


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    return _LARGEST_PAGE if size == 1 else size


def salts_of(log: Path) -> str | None:
    """Return the salts in a log's header, which change when it restarts; None without a log."""
    # Closing the log drops no locks, unlike closing the database.
    try:
        with log.open("rb") as opened:
            header = opened.read(_LOG_HEADER)
    except OSError:
        return None
    if len(header) < _LOG_HEADER or int.from_bytes(header[:4], "big") not in _LOG_MAGICS:
        return None
    return header[16:24].hex()


def _first_pages(log: Path) -> Iterator[bytes]:
    """Yield the versions of the first page in a log's current content."""
    try:
        opened = log.open("rb")
    except OSError:
        return
    with opened:
        header = opened.read(_LOG_HEADER)
        size = int.from_bytes(header[8:12], "big")
        offset = _LOG_HEADER
        while True:
            opened.seek(offset)
            frame = opened.read(_FRAME_HEADER)
            if len(frame) < _FRAME_HEADER or frame[8:16] != header[16:24]:
                return
            if int.from_bytes(frame[:4], "big") == 1:
                yield opened.read(size)
            offset += _FRAME_HEADER + size


FILE_CHECK_SECONDS: Final = 0.5
"""How often an active file is checked, which takes a few microseconds."""

_TRIES: Final = 4
_TRY_AGAIN_SECONDS: Final = 0.05
"""Retries, because another process's checkpoint may be writing the checked page."""

_OPENING_SECONDS: Final = 1.0
"""How long another process may take between locking the file and making its log."""

_FIRST_SECOND: Final = 1_767_225_600
"""Stamps count seconds from 2026 on, which leaves 68 years."""

_LAST_STAMP: Final = 2**31 - 1

Inode = tuple[int, int]


class OpenFiles:
    """The database files that this process has open, by inode.

    POSIX drops all of a process's locks on a file, SQLite's included, when it closes any descriptor of it
    (https://www.sqlite.org/howtocorrupt.html, 2.2). Each file therefore has one descriptor, which is closed after the
    last storage has closed its connections.
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
        """Return whether a storage of this process has this file open."""
        inode = inode_of(path)
        with self._lock:
            return inode in self._open

    def take(self, path: Path) -> tuple[int, Inode]:
        """Return the shared descriptor and the inode of a file."""
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
        """Release the descriptor, and close it with the last storage."""
        with self._lock:
            file, count = self._open.pop(inode)
            if count > 1:
                self._open[inode] = (file, count - 1)
            else:
                del self._processes[inode]
                os.close(file)


OPEN_FILES: Final = OpenFiles()


def inode_of(path: Path) -> Inode | None:
    """Return the inode of a path, or None."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class FileWatch:
    """Watches the file of one storage.

    Any thread may call `footprint` and `check`; the other methods are the writer's. `clock` is the source of stamps.

    Attributes:
        on_log_deleted: Called once, in the thread that finds the log deleted, before `check` raises in any thread.
    """

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self._path = Path(os.path.realpath(path))
        self._log = self._path.with_name(f"{self._path.name}-wal")
        self._log_files: dict[Path, Inode | None] = {}
        self._clock = clock
        self._file = -1
        self._inode: Inode | None = None
        self._known: Footprint | None = None
        self._latest = 0
        self._stamped_at: tuple[int, str | None] | None = None
        self._stamping: tuple[int, str | None] | None = None
        self._stamp = 0
        self._next_check = 0.0
        self._replaced: DatabaseReplaced | None = None
        self._lock = threading.Lock()
        self.on_log_deleted: Callable[[], None] = lambda: None

    def footprint(self) -> Footprint | None:
        """Return the file's current footprint, for the note; None while it is not open."""
        known = self._known
        if known is None:
            return None
        # Before the files: the writer may raise it meanwhile, and the state of before must not have the later stamp.
        latest = self._latest
        found = read_file_state(self._file, self._log)
        # A replaced file is reported by the next transaction.
        return found.footprint(latest) if found is not None and continues(known, found, self._log) else known

    def before_opening(self, noted: Footprint | None) -> bool:
        """Check the file before SQLite opens it; return whether its last user left a log.

        A log of another running process is not left.

        Raises:
            DatabaseLogDeleted: Another process has the file open, and the log is not there; nothing was changed.
            DatabaseReplaced: The log beside the file belongs to another one; nothing was changed.
        """
        if OPEN_FILES.has(self._path):
            return False
        if not has_commits(self._log):
            self._refuse_another_log()
            return False
        # A file that is new has no note; with one, SQLite would make a new database and delete the log.
        if not self._path.is_file() or (noted is not None and not self._path.stat().st_size):
            raise DatabaseReplaced(
                f"There is no database at {str(self._path)!r}, but its log {self._log.name} is there, with changes "
                "that are not in the file: it was moved, deleted or emptied without its log. Nothing was changed. Put "
                "the file back beside the log, or a backup with `outreach-server db restore FILE` (restore_database). "
                "To begin with a new database, move the log away first."
            )
        file = os.open(self._path, os.O_RDONLY)
        try:
            found, is_open = read_file_state(file, self._log), _is_open_elsewhere(file)
        finally:
            os.close(file)
        # SQLite itself refuses files that are not databases.
        if noted is not None and found is not None and not continues(noted, found, self._log, at_rest=True):
            raise DatabaseReplaced(
                f"The log {self._log.name} beside the database {str(self._path)!r} belongs to another file: the "
                "database was replaced without its log, and SQLite would mix both. "
                "Nothing was changed, and nothing is sent. Replace the database with "
                "`outreach-server db restore FILE` (restore_database), which handles the log and keeps both."
            )
        return not is_open

    def _refuse_another_log(self) -> None:
        """Check that no other process goes on with a log that has no name any more.

        SQLite would make another one, and the two would not know of each other's commits.
        """
        ends = time.monotonic() + _OPENING_SECONDS
        # A process that opens the file has it locked for a moment before it makes the log.
        while self._path.is_file() and not self._log.exists() and _is_used_with_log_elsewhere(self._path):
            if time.monotonic() > ends:
                raise DatabaseLogDeleted(
                    f"The log {self._log.name} of the database {str(self._path)!r} was deleted while another process "
                    "has it open. Nothing was changed. Stop that process, and start it again."
                )
            time.sleep(_TRY_AGAIN_SECONDS)

    def open(self) -> None:
        """Start watching; call this after SQLite has opened the file."""
        index = self._path.with_name(f"{self._path.name}-shm")
        self._log_files = {file: inode_of(file) for file in (self._log, index)}
        self._file, self._inode = OPEN_FILES.take(self._path)
        found = read_file_state(self._file, self._log)
        self._latest = found.stamp if found is not None else 0
        self._known = found.footprint(self._latest) if found is not None else None
        self._replaced, self._next_check = None, 0.0

    def before_closing(self) -> None:
        """Keep SQLite from adding the log to a file that was overwritten; call this before connections are closed.

        The last connection does that as it closes, and nothing would show the mixture afterwards. With the log beside
        it, the next opening refuses the file. A log that was only deleted is added: it belongs to the file.
        """
        # A disk that cannot be read does not keep a process from ending.
        with suppress(OSError), self._lock:
            if self._replaced is None:
                self._check_with_retries()
        if self._replaced is not None and not self.may_save_log():
            _keep_shared(self._file)

    def close(self) -> None:
        """Stop watching; call this after SQLite has closed the file."""
        inode, self._inode = self._inode, None
        if inode is not None:
            OPEN_FILES.give_back(inode)

    def check(self) -> None:
        """Check now and then that the file was not replaced; call this before each transaction.

        Raises:
            DatabaseReplaced: It was replaced; this is final.
        """
        if self._replaced is None and time.monotonic() < self._next_check:
            return
        with self._lock:
            if self._replaced is None and time.monotonic() >= self._next_check:
                self._check_with_retries()
        if self._replaced is not None:
            # A new error for each thread, because an error keeps its traceback.
            raise type(self._replaced)(self._replaced.message)

    def may_save_log(self) -> bool:
        """Return whether a deleted log can be added to the file: nothing was put in its place, which others may use."""
        gone = [file for file, inode in self._log_files.items() if inode_of(file) != inode]
        is_deleted = isinstance(self._replaced, DatabaseLogDeleted)
        return is_deleted and not any(file.exists() for file in gone) and self._is_same_file()

    def _check_with_retries(self) -> None:
        for tries_left in range(_TRIES - 1, -1, -1):
            if self._check_once():
                self._next_check = time.monotonic() + FILE_CHECK_SECONDS
                return
            if tries_left:
                time.sleep(_TRY_AGAIN_SECONDS)
        if self._is_same_file():
            # Before it is raised: the process may be killed at any time.
            self.on_log_deleted()
            self._replaced = DatabaseLogDeleted(
                f"The log {self._log.name} of the database {str(self._path)!r}, or its index, was deleted or replaced "
                "while it is open: this process no longer reads, writes or sends. Stop it and start it again; running "
                "campaigns are paused then. Resume them when your provider's lists say who was contacted."
            )
            return
        what = "replaced" if self._path.exists() else "moved or deleted"
        self._replaced = DatabaseReplaced(
            f"The database file {str(self._path)!r} was {what} while it is open: this process no longer "
            "reads, writes or sends. Stop it, and restore the backup with `outreach-server db restore FILE` "
            "(restore_database)."
        )

    def stamp(self, raw: sqlite3.Connection) -> None:
        """Raise the stamp in the transaction that is about to commit, about once a second."""
        second = int(self._clock.now().timestamp()) - _FIRST_SECOND
        now = second, salts_of(self._log)
        # A stamp before it was lost if its commit failed.
        self._stamping = None
        if now == self._stamped_at:
            return
        before: int = raw.execute("PRAGMA user_version").fetchone()[0]
        self._stamp = min(max(before + 1, second), _LAST_STAMP)
        raw.execute(f"PRAGMA user_version = {self._stamp}")
        self._stamping = now

    def committed(self) -> None:
        """Remember the stamp of the last commit."""
        if self._stamping is not None:
            self._stamped_at = self._stamping
            self._latest = max(self._latest, self._stamp)

    def _check_once(self) -> bool:
        # While it is open, SQLite neither deletes the log nor makes another one.
        for file, inode in self._log_files.items():
            present = inode_of(file)
            if inode is None:
                self._log_files[file] = present
            elif present != inode:
                return False
        if inode_of(self._path) != self._inode:
            return False
        # Before the files; see `footprint`.
        latest = self._latest
        found: FileState | None = read_file_state(self._file, self._log)
        if found is None or (self._known is not None and not continues(self._known, found, self._log)):
            return False
        self._known = found.footprint(latest)
        return True

    def _is_same_file(self) -> bool:
        """Return whether the file itself is the one that was opened, and was not overwritten."""
        if inode_of(self._path) != self._inode:
            return False
        found = read_file_state(self._file, self._log)
        # Without its log, only the stamp distinguishes a checkpoint from an older copy.
        return found is not None and (self._known is None or continues(self._known, found, self._log))


_SHARED_FIRST: Final = 0x40000002
_SHARED_SIZE: Final = 510
"""The bytes that each SQLite connection in WAL mode locks (https://www.sqlite.org/fileformat2.html#the_lock_byte_page).
"""

_FLOCK: Final = "hhqqi4x"
"""Linux's `struct flock`: kind, whence, start, length, process."""


def _shared_range(kind: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, _SHARED_FIRST, _SHARED_SIZE, 0)


def _is_used_with_log_elsewhere(path: Path) -> bool:
    """Return whether another process reads or writes a database whose commits go to a log."""
    if sys.platform != "linux":
        return False
    import fcntl

    with path.open("rb") as opened:
        # Bytes 18 and 19 of the header are 2 in WAL mode. A process that closes or replaces the file has it alone.
        in_wal_mode = opened.read(20)[18:] == b"\x02\x02"
        return in_wal_mode and _lock_elsewhere(opened.fileno()) == fcntl.F_RDLCK


def _is_open_elsewhere(file: int) -> bool:
    """Return whether another process has a database open; False where only taking the lock would show it."""
    if sys.platform != "linux":
        return False
    import fcntl

    return _lock_elsewhere(file) != fcntl.F_UNLCK


def _lock_elsewhere(file: int) -> int:
    """Return the kind of lock that another process has on a database."""
    import fcntl

    found = fcntl.fcntl(file, fcntl.F_GETLK, _shared_range(fcntl.F_WRLCK))
    return int(struct.unpack_from(_FLOCK, found)[0])


def _keep_shared(file: int) -> None:
    """Hold the lock of a reader until the descriptor is closed, against connections of this process too.

    Other systems have no such locks in Python: there, the next dispatcher checks the mixture's integrity.
    """
    if sys.platform != "linux":
        return
    import fcntl

    with suppress(OSError):
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _shared_range(fcntl.F_RDLCK))


def in_use(path: Path) -> DatabaseInUse:
    """Return the error of a database that another process, or a storage of this one, has open."""
    return DatabaseInUse(
        f"The database {str(path)!r} is in use: stop the server and every other process that has it open first."
    )


@contextmanager
def exclusive_use(path: Path) -> Iterator[None]:
    """Keep every other process from opening a database within the block; raise `DatabaseInUse` if one has it open."""
    if OPEN_FILES.has(path):
        # On POSIX, closing the descriptor below would drop SQLite's own locks.
        raise in_use(path)
    if sys.platform == "win32" or not path.exists():
        # Windows does not replace open files.
        yield
        return
    import fcntl

    file = os.open(path, os.O_RDWR)
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
        except OSError as error:
            raise in_use(path) from error
        yield
    finally:
        os.close(file)
