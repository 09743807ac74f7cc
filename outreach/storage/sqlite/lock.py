"""The lock that one dispatching process holds, and the note beside the database."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import attrs
import psutil
from filelock import BaseFileLock, FileLock, Timeout

from outreach.clock import format_timestamp, parse_timestamp
from outreach.errors import DispatchRefused
from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.storage.sqlite.copying import integrity_problems
from outreach.storage.sqlite.footprint import Footprint
from outreach.storage.sqlite.thread import call, close, connect
from outreach.storage.sqlite.watch import FileWatch

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
"""Where another machine may hold the same file: neither SQLite's own locks nor ours can be relied on."""

_CHECK_BUSY_SECONDS: Final = 5.0

_MACHINE_ID: Final = Path("/etc/machine-id")


class Mount(NamedTuple):
    """A place in the tree of files and the kind of file system that begins there."""

    point: str
    kind: str


def system_mounts() -> Iterable[Mount]:
    """Return the mounts of this machine."""
    return [Mount(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]


class SqliteDispatchLock:
    """An operating system's lock on a file beside the database: it goes with the process, however that ends.

    Beside the database there is also a note, a small file: what it says of epoch, change number and last heartbeat
    tells a database that is older than itself, one that was restored, from the one that dispatched last.

    Args:
        path: The database.
        host: What this machine is called, where the system's own identity changes from start to start, as in
            a container; None takes the system's.
        mounts: Returns the mounts of this machine.
        watch: Follows the database's file while it is open; None where nothing has it open.
    """

    def __init__(
        self,
        path: Path,
        *,
        host: str | None = None,
        mounts: Callable[[], Iterable[Mount]] = system_mounts,
        watch: FileWatch | None = None,
    ) -> None:
        self._watch = watch
        self._log_was_left = False
        # One file under two names is one database.
        self._path = Path(os.path.realpath(path))
        self._note = self._path.with_name(f"{self._path.name}.dispatch-note")
        self._host = host
        self._mounts = mounts
        self._lock_path = f"{self._path}.dispatch"
        self._held: BaseFileLock | None = None

    def check_before_opening(self) -> None:
        """Look at the file, its log and the note before SQLite touches them.

        Raises:
            DatabaseReplaced: The file is not the one that the log and the note belong to; nothing was changed.
        """
        if self._watch is not None:
            self._log_was_left = self._watch.before_opening(Footprint.read(self._noted().get("file")))

    def ended_uncleanly(self) -> bool:
        """Return whether whoever had the database open last did not close it in order, or did not say so.

        A log that was there at the opening may also be that of a process that has it open beside this one.
        """
        noted = self._noted()
        return self._log_was_left or (bool(noted) and noted.get("ended") is not True)

    async def check_integrity(self) -> str | None:
        """Read the whole database beside all other work; return what is wrong with it, None when nothing is."""
        connection = await connect(self._path, busy_seconds=_CHECK_BUSY_SECONDS)
        raw = connection._conn
        try:
            problems = await call(connection, partial(integrity_problems, quick=True))
        finally:
            # Whoever is cancelled meanwhile waits for no more than the page that is being read.
            raw.interrupt()
            await close(connection)
        return problems[0] if problems else None

    def acquire(self) -> bool:
        """Take the lock without waiting; return False when it is held already, by whomever.

        Raises:
            DispatchRefused: The database is on a network file system, or the lock's file cannot be written.
        """
        if self._held is not None:
            return False
        self._refuse_network()
        # Made in the process that takes it: one that was made before a fork is refused after it.
        lock = FileLock(self._lock_path, mode=0o600, thread_local=False, blocking=False, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            return False
        except OSError as error:
            raise DispatchRefused(
                f"Nothing is dispatched from {str(self._path)!r}: the lock {self._lock_path!r} cannot be "
                f"taken ({error.strerror}). The directory of the database must be writable, on a file system that "
                "has locks.",
                reason="lock",
            ) from error
        self._held = lock
        return True

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        if self._held is not None:
            self._held.release(force=True)
            self._held = None

    def home(self) -> DatabaseHome:
        """Return where the database is now."""
        return DatabaseHome(host=self._host or host_id(), path=str(self._path))

    def high_water(self) -> HighWaterMark | None:
        """Return what was last noted; None when there is no note that can be read."""
        value = self._noted()
        try:
            database, epoch, change = value["database"], value["epoch"], value["change"]
            # A note of an earlier version does not say when.
            renewed_at = parse_timestamp(value["renewed_at"]) if value.get("renewed_at") is not None else None
        except (ValueError, TypeError, KeyError):
            return None
        # A file that was torn may still be JSON.
        dated = renewed_at is None or renewed_at.tzinfo is not None
        if type(database) is str and type(epoch) is int and type(change) is int and dated:
            return HighWaterMark(database=database, epoch=epoch, change=change, renewed_at=renewed_at)
        return None

    def _noted(self) -> Mapping[str, Any]:
        """Return the note as it is; empty when there is none, or none that can be read."""
        try:
            value = json.loads(self._note.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        """Note how far the database has come, and whether the worker that notes it is ending.

        Raises:
            DispatchRefused: The note cannot be written.
        """
        beside = self._note.with_name(f"{self._note.name}.new")
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "w", encoding="ascii") as opened:
                renewed_at = format_timestamp(mark.renewed_at) if mark.renewed_at is not None else None
                footprint = self._watch.footprint() if self._watch is not None else None
                json.dump(
                    {
                        **attrs.asdict(mark),
                        "renewed_at": renewed_at,
                        "ended": ended,
                        "file": attrs.asdict(footprint) if footprint is not None else None,
                    },
                    opened,
                )
            # Whole or not at all: a reader never finds half a note.
            beside.replace(self._note)
        except OSError as error:
            raise DispatchRefused(
                f"Nothing is dispatched from {str(self._path)!r}: the note {str(self._note)!r} cannot be written "
                f"({error.strerror}).",
                reason="note",
            ) from error

    def _refuse_network(self) -> None:
        kind = file_system_of(self._path, self._mounts())
        if kind in NETWORK_FILE_SYSTEMS:
            raise DispatchRefused(
                f"Nothing is dispatched from {str(self._path)!r}: it is on a network file system ({kind}), where two "
                "machines could dispatch at once. Move the database to a local disk; serving it without dispatching "
                "is possible.",
                reason="network_file_system",
            )


def file_system_of(path: Path, mounts: Iterable[Mount]) -> str | None:
    """Return the kind of file system that a path is on: of its mounts the one that lies deepest, the last of two."""
    deepest, kind = -1, None
    for mount in mounts:
        point = Path(mount.point)
        depth = len(point.parts)
        if depth >= deepest and path.is_relative_to(point):
            deepest, kind = depth, mount.kind
    return kind


def host_id() -> str:
    """Return what tells this machine from others: the same after a restart, and nothing that says which it is."""
    machine = ""
    with suppress(OSError):
        machine = _MACHINE_ID.read_text(encoding="ascii", errors="replace").strip()
    if not machine:
        node = uuid.getnode()
        # The lowest bit of the first byte says that the number was made up, and would be another next time.
        machine = "" if node >> 40 & 1 else f"{node:012x}"
    return hashlib.sha256(f"outreach {machine} {socket.gethostname()}".encode()).hexdigest()[:32]
