"""What tells a database's own file from another one that was put in its place.

SQLite takes whatever lies under a database's name together with the log beside it, and nothing in either says that they
belong together: an older copy beside a log that was left behind becomes a mixture without a word. So the first page of
the file is followed. It changes only when the log is taken into the file (a checkpoint), and with each of those: then
it is one of the versions that are in the log; or, where the log has begun anew since, one that is no older than the
last commit that was known before. To tell older from newer every first page has a stamp, which commits raise about
once a second, and once for each beginning of the log (`user_version` of SQLite's header: kept by every way of copying).
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
_LOOKS: Final = 5


@attrs.frozen(kw_only=True)
class Footprint:
    """How a database lay on the disk at a moment.

    Attributes:
        page: Digest of the first page of the file alone.
        written_at: When the file was written last, in nanoseconds: a copy of exactly what it was is told by that.
        latest: The stamp of the latest commit that was known, the log included.
        salts: What the present log is called, which changes each time that it begins anew; None without one.
    """

    page: str
    written_at: int
    latest: int
    salts: str | None

    @classmethod
    def read(cls, noted: object) -> Footprint | None:
        """Return what `attrs.asdict` of one has written; None for anything else."""
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
    """What lies on the disk now.

    Attributes:
        page: The first page of the file alone.
        written_at: When the file was written last, in nanoseconds.
        salts: What the log is called; None without one.
    """

    page: bytes
    written_at: int
    salts: str | None

    @property
    def stamp(self) -> int:
        """The stamp in the first page."""
        return int.from_bytes(self.page[60:64], "big", signed=True)

    def footprint(self, latest: int) -> Footprint:
        """Return it as the footprint by which the file is known from now on."""
        return Footprint(page=_digest(self.page), written_at=self.written_at, latest=latest, salts=self.salts)


def read_file_state(file: int, log: Path) -> FileState | None:
    """Return what an opened file and its log are now; None when the file is no database (any more)."""
    page, salts = b"", salts_of(log)
    for _ in range(_LOOKS):
        # Between the two the log may be taken into the file and begin anew: they would not be of one moment.
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
    """Return whether the file can have become what it is now by commits and checkpoints alone.

    Args:
        known: How it lay before.
        now: How it lies now.
        log: The log beside it.
        at_rest: Nobody has it open: then it was not written either while its first page is what it was.
    """
    if _digest(now.page) == known.page:
        return not at_rest or _is_same_moment(now.written_at, known.written_at)
    if now.salts is not None and now.salts == known.salts:
        return any(page == now.page for page in _first_pages(log))
    return now.stamp >= known.latest


def _read(file: int, size: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, size, 0)
    # Windows has none, and no process there has a file that is followed twice in two threads.
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, size)


def _digest(page: bytes) -> str:
    return hashlib.sha256(page).hexdigest()[:32]


def _is_same_moment(now: int, known: int) -> bool:
    # Some ways of moving a directory keep whole seconds.
    return now == known or (now % 10**9 == 0 and now // 10**9 == known // 10**9)


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    return _LARGEST_PAGE if size == 1 else size


def salts_of(log: Path) -> str | None:
    """Return what a log is called, which changes each time that it begins anew; None where there is none."""
    # Only the database's own file has locks that closing would lose.
    try:
        with log.open("rb") as opened:
            header = opened.read(_LOG_HEADER)
    except OSError:
        return None
    if len(header) < _LOG_HEADER or int.from_bytes(header[:4], "big") not in _LOG_MAGICS:
        return None
    return header[16:24].hex()


def _first_pages(log: Path) -> Iterator[bytes]:
    """Yield the versions of the first page that a log has, of its present content alone."""
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
