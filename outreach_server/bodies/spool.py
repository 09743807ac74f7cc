"""Directories of large bodies in work. They contain personal data, so none may stay behind."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import psutil
from anyio import to_thread
from filelock import FileLock, Timeout

_PREFIX: Final = "outreach-body-"
_LOCK_FILE: Final = "in-work"
_NAME: Final = re.compile(r"outreach-body-([0-9]+)-.*")


@asynccontextmanager
async def spool_directory(root: Path | None) -> AsyncIterator[Path]:
    """Create a private directory, and delete it at the end in any case."""
    # Not in a thread: if the waiting task were cancelled, the directory would be left behind.
    made = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root))
    try:
        with _lock_of(made):
            yield made
    finally:
        try:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(_delete, made)
        finally:
            # The end of a server cancels tasks past the shield, and a thread never begins what was cancelled by then.
            _delete(made)


def is_usable(root: Path) -> bool:
    """Return whether this process may make directories in a directory."""
    return root.is_dir() and os.access(root, os.W_OK | os.X_OK)


def sweep(root: Path | None) -> int:
    """Delete the directories of killed servers; return how many there were."""
    swept = 0
    for path in Path(root or tempfile.gettempdir()).glob(_PREFIX + "*"):
        match = _NAME.fullmatch(path.name)
        if match is None or _is_in_work(path, int(match[1])):
            continue
        _delete(path)
        swept += not path.exists()
    return swept


def _delete(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _is_in_work(path: Path, process: int) -> bool:
    if process != os.getpid() and psutil.pid_exists(process):
        return True
    # In containers process ids prove nothing: each server has its predecessor's, and those of others are invisible.
    try:
        with _lock_of(path):
            return False
    except Timeout:
        return True
    except OSError:
        # It is no directory, or another user's: nothing that this server works on.
        return False


def _lock_of(directory: Path) -> FileLock:
    return FileLock(directory / _LOCK_FILE, timeout=0, mode=0o600, thread_local=False, fallback_to_soft=False)
