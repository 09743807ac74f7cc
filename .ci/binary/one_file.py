"""The two processes of the one-file executable, and the directory that the first unpacks for the second."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_MARK = "running.lock"

_UNPACKING_SECONDS = 600.0
"""A directory in which nothing was written for so long is not being unpacked any more."""


def begin(unpacked: Path) -> None:
    """End with the first process, even if it is killed, and delete what killed ones have left."""
    first = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != first:
        os.kill(os.getpid(), signal.SIGKILL)
    _mark(unpacked)
    delete_left(unpacked)


def delete_left(unpacked: Path) -> None:
    """Delete what killed processes have left, and what starts have left that failed for want of space."""
    for other in unpacked.parent.glob("_MEI*"):
        with suppress(OSError):
            if other == unpacked:
                continue
            if (other / _MARK).exists():
                if (other / "outreach_server").is_dir():
                    _delete_if_left(other)
            elif _is_half_of(other, unpacked):
                shutil.rmtree(other)


def _is_half_of(other: Path, unpacked: Path) -> bool:
    """Return whether a directory is a start of this executable that has failed in the middle of unpacking.

    Programs of others unpack beside it, so each of its files has to be one of ours. One that unpacks now is younger.
    """
    newest = max((found.lstat().st_mtime for found in (other, *other.rglob("*"))), default=0.0)
    files = [found.relative_to(other) for found in other.rglob("*") if not found.is_dir()]
    return (
        bool(files)
        and other.stat().st_uid == os.getuid()
        and time.time() - newest > _UNPACKING_SECONDS
        and all((unpacked / file).exists() for file in files)
    )


def _mark(unpacked: Path) -> None:
    """Hold a lock for as long as the process lives; it gets its name once it is held."""
    new = unpacked / f"{_MARK}.new"
    descriptor = os.open(new, os.O_CREAT | os.O_WRONLY, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    new.rename(unpacked / _MARK)


def _delete_if_left(other: Path) -> None:
    descriptor = os.open(other / _MARK, os.O_WRONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(other)
    finally:
        os.close(descriptor)
