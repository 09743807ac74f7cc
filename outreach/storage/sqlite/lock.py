"""The places of the dispatching processes, and the high-water mark and the position of the ledger beside it.

The position is recorded beside the file after each commit: how far the ledger has come. The log holds commits that are
not in the file yet. Where it is deleted after a kill, the file alone does not show that commits are missing. The
numbers recorded here do: they are higher than those in the ledger. A log that was added to the file before it went has
taken nothing with it, and the numbers agree.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import socket
import sqlite3
import struct
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from outreach.core.config import MAX_WORKERS
from outreach.errors import DispatchRefused
from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.storage.base.dispatch_note import DispatchNote, cannot_be_written, note_in
from outreach.storage.sqlite.copying import identity_of, integrity_problems
from outreach.storage.sqlite.thread import call, close, connect
from outreach.storage.sqlite.watch import FileWatch, Footprint

if TYPE_CHECKING:
    from filelock import BaseFileLock


_QUERY: Final = """
    SELECT
        (SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'trail'),
        (SELECT change FROM last_change),
        (SELECT COALESCE(SUM(number), 0) FROM stop_counts)
"""

_DATABASE: Final = struct.Struct("64s")
_POSITION: Final = struct.Struct("<qqq")

_SLOTS: Final = 64
"""Each opened file writes to one by chance, so that few share one: between reading a slot and writing it, another
process could write a higher number, which would be lost. Numbers of processes would be equal in containers."""

_SIZE: Final = _DATABASE.size + _SLOTS * _POSITION.size

_OPEN_AGAIN_SECONDS: Final = 1.0


class Position(NamedTuple):
    """Numbers of a ledger that only rise; what must not be lost raises one of them.

    Intents, whatever makes work due and what operators do raise the change number, ends and opt-outs the trail's,
    pauses the stops.

    Attributes:
        trail: The highest number of the trail.
        change: The highest change number.
        stops: How many stops there have been.
    """

    trail: int
    change: int
    stops: int

    def has_reached(self, other: Position) -> bool:
        """Return whether nothing of another position is missing here."""
        return all(ours >= theirs for ours, theirs in zip(self, other, strict=True))


def position_of(raw: sqlite3.Connection) -> Position:
    """Return the position of a ledger."""
    return Position(*raw.execute(_QUERY).fetchone())


class PositionFile:
    """The file `FILE.dispatch-position`, which the first worker makes.

    It is written without a sync: a killed process loses nothing of it, and after a power cut it is only older. The
    writer's thread records positions; the other methods may be called beside it.

    Args:
        path: The database.
        slot: Which slot it writes to; None for one by chance.

    Attributes:
        path: The file.
        is_kept: Whether commits leave it as it is, until `begin` records another position.
    """

    def __init__(self, path: Path, *, slot: int | None = None) -> None:
        self._slot = secrets.randbelow(_SLOTS) if slot is None else slot
        self.path = path.with_name(f"{path.name}.dispatch-position")
        self.is_kept = False
        self._file: int | None = None
        self._latest: Position | None = None
        self._is_new = False
        self._next_try = 0.0

    def read(self, database: str) -> Position | None:
        """Return the highest numbers that are recorded for a database; None where nothing is."""
        try:
            content = self.path.read_bytes()
        except OSError:
            return None
        if len(content) != _SIZE or content[: _DATABASE.size] != _head(database):
            return None
        slots = _POSITION.iter_unpack(content[_DATABASE.size :])
        return Position(*(max(numbers) for numbers in zip(*slots, strict=True)))

    def begin(self, database: str, position: Position | None = None) -> None:
        """Record this position alone, for a database.

        Args:
            database: Its id.
            position: None to make a missing file, or that of another database, and to keep what there is else.

        Raises:
            OSError: The file cannot be written.
        """
        if position is None and self.read(database) is not None:
            return
        slots = [Position(0, 0, 0)] * _SLOTS
        if position is not None:
            slots[self._slot] = position
        # In place: other processes may have it open.
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            _write(file, 0, _head(database) + b"".join(_POSITION.pack(*slot) for slot in slots))
            os.ftruncate(file, _SIZE)
        finally:
            os.close(file)
        self._is_new, self.is_kept = True, False

    def before_commit(self, raw: sqlite3.Connection) -> Position | None:
        """Return the position that a transaction is about to commit; None while it is not to be recorded."""
        if self.is_kept:
            return None
        if self._is_new:
            self._is_new, self._next_try = False, 0.0
            self.close()
        if self._file is None:
            self._file = self._open()
        return None if self._file is None else position_of(raw)

    def record(self, position: Position | None) -> None:
        """Record what `before_commit` has returned, after the commit; a higher number in the slot stays."""
        if position is None or position == self._latest or self._file is None:
            return
        # A disk that refuses the write stops no commit: the next heartbeat's mark shows the worker the failure.
        with suppress(OSError):
            offset = _DATABASE.size + self._slot * _POSITION.size
            found = _read_at(self._file, offset, _POSITION.size)
            there = _POSITION.unpack(found) if len(found) == _POSITION.size else position
            _write(self._file, offset, _POSITION.pack(*map(max, position, there)))
            self._latest = position

    def close(self) -> None:
        """Close it."""
        file, self._file, self._latest = self._file, None, None
        if file is not None:
            os.close(file)

    def _open(self) -> int | None:
        now = time.monotonic()
        if now < self._next_try:
            return None
        self._next_try = now + _OPEN_AGAIN_SECONDS
        try:
            return os.open(self.path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        except OSError:
            return None


def _head(database: str) -> bytes:
    return _DATABASE.pack(database.encode())


def _read_at(file: int, offset: int, size: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, size, offset)
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, size)


def _write(file: int, offset: int, content: bytes) -> None:
    if hasattr(os, "pwrite"):
        os.pwrite(file, content, offset)
    else:
        os.lseek(file, offset, os.SEEK_SET)
        os.write(file, content)


NETWORK_FILE_SYSTEMS: Final = frozenset(
    {
        "9p",
        "afpfs",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "davfs",
        "fuse.ceph",
        "fuse.cephfs",
        "fuse.davfs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "prl_fs",
        "smb2",
        "smb3",
        "smbfs",
        "vboxsf",
        "vmhgfs",
        "webdav",
    }
)
"""File systems that other machines may share, where no locks can be relied on."""

_CHECK_BUSY_SECONDS: Final = 5.0

_DIRECTORY: Final = "The directory of the database"

_MACHINE_ID: Final = Path("/etc/machine-id")

_log = logging.getLogger("outreach")


class Mount(NamedTuple):
    """A mount point and its kind of file system."""

    point: str
    kind: str


def system_mounts() -> Iterable[Mount]:
    """Return the mounts of this machine."""
    import psutil

    return [Mount(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]


class SqliteDispatchLock:
    """Operating-system locks on files beside the database, which are released when their process ends.

    Each place is one lock: `FILE.dispatch`, `FILE.dispatch.2` and so on.

    The note beside it holds the high-water mark (epoch, change number, last heartbeat), which shows whether the
    database was restored from an older copy. Heartbeats write it; a file of its own shows the commits since
    (`position`). A second note, elsewhere, shows a directory that was set back with the first one.

    Args:
        path: The database.
        host: A name for this machine, if the system's identity changes at each start, as in a container; None for the
            system's.
        mounts: Returns the mounts of this machine.
        watch: Watches the open database file; None if it is not open.
        workers: How many places there are, 16 at most.
        state_dir: The directory of the second note; None for none.

    Attributes:
        positions: The record of commits.
    """

    def __init__(
        self,
        path: Path,
        *,
        host: str | None = None,
        mounts: Callable[[], Iterable[Mount]] = system_mounts,
        watch: FileWatch | None = None,
        workers: int = 1,
        state_dir: Path | None = None,
    ) -> None:
        self._workers = workers
        self._watch = watch
        self._log_was_left = False
        self._is_log_deleted = self._is_loss_noted = False
        # The thread that finds the log deleted writes the note, too.
        self._noting = threading.RLock()
        if watch is not None:
            watch.on_log_deleted = self._on_log_deleted
        # One file under two names is one database.
        self._path = Path(os.path.realpath(path))
        note = self._path.with_name(f"{self._path.name}.dispatch-note")
        self._note = DispatchNote(note, _DIRECTORY)
        # One in the same directory would be set back with the first one.
        apart = state_dir is not None and Path(os.path.realpath(state_dir)) != self._path.parent
        self._second_note = note_in(state_dir, f"file {self._path}") if state_dir is not None and apart else None
        self.positions = PositionFile(self._path)
        self._lost: tuple[HighWaterMark, Position] | None = None
        self._host = host
        self._mounts = mounts
        self._held: dict[int, BaseFileLock] = {}

    def check_before_opening(self) -> None:
        """Check the file, its log and the note before SQLite opens them.

        Raises:
            DatabaseReplaced: The file does not belong to the log and the note; nothing was changed.
        """
        self._is_log_deleted = self._is_loss_noted = False
        if self._watch is not None:
            self._log_was_left = self._watch.before_opening(Footprint.read(self._note.content().get("file")))

    def find_lost_commits(self, raw: sqlite3.Connection) -> None:
        """Compare the ledger that was opened with what its processes have recorded after their commits.

        Where commits are missing, the next worker pauses what runs.
        """
        # Read first: other processes may go on.
        noted = self.positions.read(identity_of(raw))
        if noted is None or (found := position_of(raw)).has_reached(noted):
            return
        # It says so until the mark does.
        self.positions.is_kept = True
        self._lost = mark_ahead(raw), found
        _log.error(
            "The database lacks commits that a process had made: its log was deleted after that process was killed, or "
            "an older copy was put in its place. Campaigns are paused before anything is sent.",
            extra={"action": "commits_lost"},
        )
        # Tried again when a worker asks for a place.
        with suppress(DispatchRefused):
            self.note_lost_commits()

    def note_lost_commits(self) -> None:
        """Have the next worker pause what runs, if the ledger lacks commits; raise `DispatchRefused` if that fails."""
        with self._noting:
            if self._lost is None:
                return
            mark, position = self._lost
            noted = self.high_water()
            epoch = noted.epoch if noted is not None and noted.database == mark.database else 0
            self._write_note(attrs.evolve(mark, epoch=max(mark.epoch, epoch)), ended=False)
            self._begin_positions(mark.database, position)
            self._lost = None

    def ended_uncleanly(self) -> bool:
        """Return whether the last process did not close the database, or did not record that it did.

        A log that was found at the opening may also belong to another running process; one that dispatches has checked
        the database.
        """
        places = (place for place in range(1, MAX_WORKERS + 1) if place not in self._held)
        if any(not self.is_free(place) for place in places):
            return False
        noted = self._note.content()
        return self._log_was_left or (bool(noted) and noted.get("ended") is not True)

    async def check_integrity(self) -> str | None:
        """Read the whole database in a thread of its own; return the first problem, or None."""
        connection = await connect(self._path, busy_seconds=_CHECK_BUSY_SECONDS)
        raw = connection._conn
        try:
            problems = await call(connection, partial(integrity_problems, quick=True))
        finally:
            # Cancelling waits only for the page that is being read.
            raw.interrupt()
            await close(connection)
        return problems[0] if problems else None

    async def acquire(self) -> int:
        """Take the lowest free place; see `take`.

        Raises:
            DatabaseReplaced: The file was replaced while it is open.
            DispatchRefused: As `take`.
        """
        if self._watch is not None:
            try:
                self._watch.check()
            finally:
                self.note_deleted_log()
        self.note_lost_commits()
        return self.take()

    async def release(self, place: int | None = None) -> None:
        """Give a place back; see `give_back`."""
        self.give_back(place)

    async def find_free(self, places: Collection[int]) -> Collection[int]:
        """Return which places no process holds."""
        return [place for place in places if self.is_free(place)]

    def take(self) -> int:
        """Take the lowest free place without waiting; return it, or 0 if all are taken, by any process.

        Raises:
            DispatchRefused: The database is on a network file system, or a lock file cannot be written.
        """
        self._refuse_network()
        for place in range(1, self._workers + 1):
            if place not in self._held and (lock := self._lock(place)) is not None:
                self._held[place] = lock
                return place
        return 0

    def is_free(self, place: int) -> bool:
        """Return whether no process holds a place."""
        if place in self._held:
            return False
        if not os.path.exists(self._lock_path(place)):
            return True
        lock = self._lock(place)
        if lock is not None:
            lock.release(force=True)
        return lock is not None

    def _lock_path(self, place: int) -> str:
        return f"{self._path}.dispatch" if place == 1 else f"{self._path}.dispatch.{place}"

    def _lock(self, place: int) -> BaseFileLock | None:
        """Take the lock of a place and return it; None if a process holds it."""
        from filelock import FileLock, Timeout

        path = self._lock_path(place)
        # Made in the process that takes it: one that was made before a fork is refused after it.
        lock = FileLock(path, mode=0o600, thread_local=False, blocking=False, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            return None
        except OSError as error:
            raise DispatchRefused(
                f"The dispatch lock {path!r} cannot be taken ({error.strerror}). The directory of the database must be "
                "writable, on a file system with locks.",
                reason="lock",
            ) from error
        return lock

    def give_back(self, place: int | None = None) -> None:
        """Give a place back, if it is held here; by default all that are."""
        for one in list(self._held) if place is None else [place]:
            lock = self._held.pop(one, None)
            if lock is not None:
                lock.release(force=True)

    def home(self) -> DatabaseHome:
        """Return the database's current home."""
        return DatabaseHome(host=self._host or host_id(), path=str(self._path))

    def high_water(self) -> HighWaterMark | None:
        """Return the recorded high-water mark, the further one of two; None without a readable note."""
        beside = self._note.mark()
        second = self._second_note.mark() if self._second_note is not None else None
        if beside is None or second is None:
            return beside or second
        # Another database may have been here.
        is_further = (second.epoch, second.change) > (beside.epoch, beside.change)
        return second if second.database == beside.database and is_further else beside

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        """Write the high-water mark, and whether the worker is ending; raise `DispatchRefused` if that fails.

        Once the log was deleted, the raised mark stays (`note_deleted_log`).
        """
        with self._noting:
            if not self._is_loss_noted:
                self._write_note(mark, ended=ended)
                if self._watch is not None:
                    self._begin_positions(mark.database)

    def _write_note(self, mark: HighWaterMark, *, ended: bool) -> None:
        footprint = self._watch.footprint() if self._watch is not None else None
        self._note.write(mark, ended=ended, file=attrs.asdict(footprint) if footprint is not None else None)
        if self._second_note is not None:
            self._second_note.write(mark)

    def _begin_positions(self, database: str, position: Position | None = None) -> None:
        try:
            self.positions.begin(database, position)
        except OSError as error:
            raise cannot_be_written(self.positions.path, _DIRECTORY, error) from error

    def note_deleted_log(self) -> None:
        """Have the next worker pause what runs, if the log was deleted: commits may be lost with it.

        Raises:
            DispatchRefused: The note cannot be written; call this again.
        """
        with self._noting:
            noted = self.high_water()
            if noted is None or self._is_loss_noted or not self._is_log_deleted:
                return
            # As after a restore: the file is older than its mark.
            self._write_note(attrs.evolve(noted, epoch=noted.epoch + 1), ended=False)
            self._is_loss_noted = True

    def _on_log_deleted(self) -> None:
        self._is_log_deleted = True
        # Tried again when a worker asks for a place, and at the end.
        with suppress(DispatchRefused):
            self.note_deleted_log()

    def _refuse_network(self) -> None:
        kind = file_system_of(self._path, self._mounts())
        if kind in NETWORK_FILE_SYSTEMS:
            raise DispatchRefused(
                f"The database {str(self._path)!r} is on a network file system ({kind}), where two machines could "
                "dispatch at once. Move the database to a local disk, or serve it without dispatching.",
                reason="network_file_system",
            )


def mark_ahead(raw: sqlite3.Connection) -> HighWaterMark:
    """Return a mark ahead of a database, so that the next worker pauses what runs."""
    epoch = raw.execute("SELECT max(epoch) FROM lease").fetchone()[0] or 0
    change = raw.execute("SELECT change FROM last_change").fetchone()[0]
    return HighWaterMark(database=identity_of(raw), epoch=epoch + 1, change=change)


def file_system_of(path: Path, mounts: Iterable[Mount]) -> str | None:
    """Return the kind of file system at a path: of its mounts the deepest, the last of equal ones."""
    deepest, kind = -1, None
    for mount in mounts:
        point = Path(mount.point)
        depth = len(point.parts)
        if depth >= deepest and path.is_relative_to(point):
            deepest, kind = depth, mount.kind
    return kind


def host_id() -> str:
    """Return an anonymous identifier of this machine that survives restarts."""
    machine = ""
    with suppress(OSError):
        machine = _MACHINE_ID.read_text(encoding="ascii", errors="replace").strip()
    if not machine:
        node = uuid.getnode()
        # The lowest bit of the first byte marks a random number, which changes at each start.
        machine = "" if node >> 40 & 1 else f"{node:012x}"
    return hashlib.sha256(f"outreach {machine} {socket.gethostname()}".encode()).hexdigest()[:32]
