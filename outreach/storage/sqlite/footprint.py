"""Recognising a database's own file.

SQLite opens any file under a database's name together with the log beside it: an older copy beside a log that was left
behind silently becomes a mixture. The first page of the file shows this. It changes with each checkpoint, and is then
one of the versions in the log or, if the log has restarted since, not older than the last known commit. Commits
therefore raise a stamp in the first page about once a second, and after each restart of the log (`user_version` in
SQLite's header, which every way of copying keeps).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

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
        page, before = _read(file, _LARGEST_PAGE), salts
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


def _read(file: int, size: int) -> bytes:
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
