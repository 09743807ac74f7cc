"""Files that commands write: complete under their name, or not there."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import click


async def write_parts(parts: AsyncIterator[bytes], file: Path | None) -> int:
    """Write the parts of a file; return how many bytes it has.

    Args:
        parts: Its content, in order.
        file: Where it goes, which replaces a file that is there; None for standard output.
    """
    if file is None:
        out = sys.stdout.buffer
        size = 0
        async for part in parts:
            size += out.write(part)
        out.flush()
        return size
    size = 0
    with _written(file) as out:
        async for part in parts:
            size += out.write(part)
    return size


@contextmanager
def _written(file: Path, *, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Open what becomes a file when the block has ended.

    Args:
        file: Where it goes.
        mode: Who may read it, less the umask: by default as private as the database, for it holds people's numbers.
    """
    try:
        if file.exists() and not file.is_file():
            # A pipe or a device, such as /dev/null, which must not be replaced.
            with file.open("wb") as out:
                yield out
            return
        # Under another name until it is complete, so that nobody takes a part for the whole; a link stays one.
        place = Path(os.path.realpath(file))
        # Two containers on one volume may have the same process number.
        draft = place.with_name(f".{place.name}.{uuid.uuid4().hex}.part")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            draft.replace(place)
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()
    except OSError as error:
        raise click.ClickException(f"Could not write {str(file)!r}: {error.strerror}.") from error


def write_text(text: str, file: Path) -> None:
    """Write a text file in UTF-8, which replaces what is there once it is complete."""
    with _written(file, mode=0o666) as out:
        out.write(text.encode())
