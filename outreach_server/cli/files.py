"""Files that commands write: complete under their name, or not there."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import click


async def write_parts(parts: AsyncIterator[bytes], file: Path | None) -> int:
    """Write the parts of a file; return how many bytes it has.

    Args:
        parts: Its content, in order.
        file: Where it goes, which replaces what is there; None for standard output.
    """
    if file is None:
        out = sys.stdout.buffer
        size = 0
        async for part in parts:
            size += out.write(part)
        out.flush()
        return size
    # Under another name until it is complete, so that nobody takes a part for the whole.
    draft = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        size = 0
        # As private as the database: it holds people's numbers.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            async for part in parts:
                size += out.write(part)
        draft.replace(file)
    except OSError as error:
        raise click.ClickException(f"Could not write {str(file)!r}: {error.strerror}.") from error
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return size


def write_text(text: str, file: Path) -> None:
    """Write a text file in UTF-8, which replaces what is there."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"Could not write {str(file)!r}: {error.strerror}.") from error
