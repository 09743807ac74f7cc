"""What the one file unpacks only when it is first imported, so that a start does not pay for it."""

from __future__ import annotations

import errno
import fcntl
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

FOLDER = "later"

PARTS = {
    "holidays": ("holidays/locale/",),
    "psycopg_binary": ("psycopg_binary/", "psycopg_binary.libs/"),
    "tzdata": ("tzdata/",),
}
"""The package whose import unpacks it, and the places of its files."""


_NO_SPACE = (
    "There is no space in {place} to unpack what is needed now. Make room there, name another directory by the "
    "variable TMPDIR, or take the executable as a directory, which unpacks nothing."
)


class NoSpaceError(OSError):
    """There is no space to unpack a package."""


class UnpackLater(MetaPathFinder):
    """Finds no module, but unpacks the files of a package before others find it.

    Args:
        unpacked: Where the executable has unpacked everything else.
    """

    def __init__(self, unpacked: Path) -> None:
        self._unpacked = unpacked

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Unpack the package's files, if nobody did."""
        if fullname in PARTS:
            self._unpack(self._unpacked / FOLDER / f"{fullname}.zip")

    def _unpack(self, archive: Path) -> None:
        if not archive.exists():
            return
        # Imported here, because most starts need none of it.
        import zipfile

        with archive.with_suffix(".lock").open("wb") as lock:
            # The server and its helper processes have the same directory.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if archive.exists():
                try:
                    with zipfile.ZipFile(archive) as opened:
                        opened.extractall(self._unpacked)
                except OSError as error:
                    if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                        raise
                    raise NoSpaceError(error.errno, _NO_SPACE.format(place=self._unpacked.parent)) from None
                archive.unlink()


def install(unpacked: Path) -> None:
    """Unpack what is imported from now on."""
    sys.meta_path.insert(0, UnpackLater(unpacked))
