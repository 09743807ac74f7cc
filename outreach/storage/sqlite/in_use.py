"""Seeing to it that no other process has a database file open."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from outreach.errors import DatabaseInUse
from outreach.storage.sqlite.watch import OPEN_FILES

_SHARED_FIRST: Final = 0x40000002
_SHARED_SIZE: Final = 510
"""The bytes that every connection of SQLite locks for reading for as long as it is open, in WAL mode
(https://www.sqlite.org/fileformat2.html#the_lock_byte_page)."""


@contextmanager
def nobody_else(path: Path) -> Iterator[None]:
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
