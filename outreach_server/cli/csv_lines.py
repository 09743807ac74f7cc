"""The lines of a text file of unknown encoding, block by block."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import IO, Final

import click

MAX_LINE_LENGTH: Final = 65_536
"""Longer lines are cut, so that a file without line ends cannot fill the memory."""

_BLOCK: Final = 65_536
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Source:
    """A file that is read once, from its beginning to its end.

    Args:
        file: Read in blocks; need not be seekable.
        name: Its name in messages.
        encoding: Its encoding; None for its byte order mark's, or UTF-8.

    Attributes:
        position: Bytes read so far.
    """

    def __init__(self, file: IO[bytes], *, name: str, encoding: str | None) -> None:
        self.name = name
        self.position = 0
        self._file = file
        self._encoding = encoding

    def lines(self) -> Iterator[str]:
        r"""Go through the lines, with their ends: `\n`, `\r\n` or `\r`. A line that is too long is cut.

        Raises:
            click.ClickException: The file is not in this encoding; the message says where.
        """
        block = self._file.read(_BLOCK)
        encoding = self._encoding or _by_mark(block) or "utf-8"
        if codecs.lookup(encoding).name == "utf-8":
            encoding = "utf-8-sig"
        # The newline decoder holds a `\r` back until it knows whether `\n` follows.
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)("strict"), translate=False)
        pending, line_number, cutting = "", 1, False
        while True:
            self.position += len(block)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as error:
                raise self._undecodable(error, encoding, line_number) from None
            for line in io.StringIO(pending + text, newline=""):
                if line[-1] not in "\r\n":
                    pending = line
                    break
                line_number += 1
                if not cutting:
                    yield line
                cutting = False
            else:
                pending = ""
            if len(pending) > MAX_LINE_LENGTH:
                if not cutting:
                    yield pending[: MAX_LINE_LENGTH + 1] + "\n"
                pending, cutting = "", True
            if not block:
                break
            block = self._file.read(_BLOCK)
        if pending and not cutting:
            yield pending

    def _undecodable(self, error: UnicodeError, encoding: str, line_number: int) -> click.ClickException:
        where = ""
        if isinstance(error, UnicodeDecodeError):
            offset = max(0, self.position - len(error.object) + error.start)
            line_number += error.object[: error.start].count(b"\n")
            where = f" at byte {offset} (line {line_number}): {error.object[error.start : error.end][:4].hex(' ')}"
        return click.ClickException(
            f"{self.name} is not {encoding.removesuffix('-sig')}{where}. "
            "Name its encoding, for example --encoding cp1252 (Excel in the west) or --encoding utf-16."
        )


class Encoding(click.ParamType[str]):
    """The name of a text encoding."""

    name = "encoding"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, checked."""
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=value)
        except (LookupError, ValueError):
            self.fail(f"{value!r} is not a text encoding; use a name such as utf-8, cp1252 or utf-16.", param, ctx)
        return value


def _by_mark(block: bytes) -> str | None:
    return next((encoding for mark, encoding in _BYTE_ORDER_MARKS if block.startswith(mark)), None)
