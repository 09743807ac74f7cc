"""The two processes of the one-file executable, and the directory that the first unpacks for the second."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_MARK = "running.lock"


def begin(unpacked: Path) -> None:
    """End with the first process, even if it is killed, and delete what killed ones have left."""
    first = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != first:
        os.kill(os.getpid(), signal.SIGKILL)
    _mark(unpacked)
    for other in unpacked.parent.glob("_MEI*"):
        if other != unpacked and (other / "outreach_server").is_dir():
            with suppress(OSError):
                _delete_if_left(other)


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
