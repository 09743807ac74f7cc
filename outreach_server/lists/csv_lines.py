"""The lines of a text file of unknown encoding, block by block."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import IO, Final

from outreach_server.lists.encodings import UTF_8, detect_encoding
from outreach_server.lists.errors import UnreadableList

MAX_LINE_LENGTH: Final = 65_536
"""Longer lines are cut, so that a file without line ends cannot fill the memory."""

_BLOCK: Final = 65_536


class Source:
    """A file that is read once, from its beginning to its end.

    Args:
        file: Read in blocks; need not be seekable.
        name: Its name in messages.
        encoding: Its encoding; None to detect it.

    Attributes:
        position: Bytes read so far.
        encoding: Its encoding; None before it is read.
        encoding_given: Whether it was not detected.
    """

    def __init__(self, file: IO[bytes], *, name: str, encoding: str | None) -> None:
        self.name = name
        self.position = 0
        self.encoding = encoding
        self.encoding_given = encoding is not None
        self._file = file

    def lines(self) -> Iterator[str]:
        r"""Go through the lines, with their ends: `\n`, `\r\n` or `\r`. A line that is too long is cut.

        Raises:
            UnreadableList: The file is not in this encoding; the message says where.
        """
        block = self._file.read(_BLOCK)
        encoding = self.encoding = self.encoding or detect_encoding(block, self._file)
        if codecs.lookup(encoding).name == UTF_8:
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

    def _undecodable(self, error: UnicodeError, encoding: str, line_number: int) -> UnreadableList:
        where = ""
        if isinstance(error, UnicodeDecodeError):
            offset = max(0, self.position - len(error.object) + error.start)
            line_number += error.object[: error.start].count(b"\n")
            where = f" at byte {offset} (line {line_number}): {error.object[error.start : error.end][:4].hex(' ')}"
        return UnreadableList(
            f"{self.name} is not {encoding.removesuffix('-sig')}{where}. "
            "Name its encoding, for example --encoding cp1252 (Excel in the west) or --encoding utf-16."
        )


_WITH_SURROGATES: Final = frozenset({"utf-7", "unicode-escape", "raw-unicode-escape"})
"""Codecs that also decode halves of pairs, which no database stores; no program writes lists in them."""


def is_encoding(name: str) -> bool:
    """Return whether a name is that of a text encoding."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=name)
        return codecs.lookup(name).name not in _WITH_SURROGATES
    except (LookupError, ValueError):
        return False
