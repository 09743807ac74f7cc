"""How far a ledger has come, recorded beside its file after each commit.

The log holds commits that are not in the file yet. Where it is deleted after a kill, the file alone does not show that
commits are missing. The numbers recorded here do: they are higher than those in the ledger. A log that was added to the
file before it went has taken nothing with it, and the numbers agree.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

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
            found = _read(self._file, offset, _POSITION.size)
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


def _read(file: int, offset: int, size: int) -> bytes:
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
