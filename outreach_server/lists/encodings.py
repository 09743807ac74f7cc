"""The encoding of a text file: by its mark, by the pattern of its bytes, or by what cannot be UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import IO, Final

UTF_8: Final = "utf-8"
WINDOWS: Final = "cp1252"
"""The encoding of a spreadsheet in western Europe and America, unless it is set to write UTF-8."""

BYTE_ORDER_MARKS: Final[Mapping[bytes, str]] = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is a prefix
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The marks that a file may begin with, and the encodings that they name."""

_BLOCK: Final = 1 << 20
_INVALID: Final = re.compile("[\udc80-\udcff]")
_VALID: Final = re.compile("[^\x00-\x7f\udc80-\udcff]")
_NOT_WINDOWS: Final = frozenset("\udc81\udc8d\udc8f\udc90\udc9d")
"""The bytes that Windows-1252 does not use."""


def detect_encoding(head: bytes, rest: IO[bytes]) -> str:
    """Return the encoding of a file, UTF-8 unless its bytes show another one.

    Args:
        head: Its first block.
        rest: The file after that block. One that can be rewound is read through, and rewound to here.
    """
    return _by_mark(head) or _by_zeros(head) or (WINDOWS if _is_windows(head, rest) else UTF_8)


def _by_mark(head: bytes) -> str | None:
    return next((encoding for mark, encoding in BYTE_ORDER_MARKS.items() if head.startswith(mark)), None)


def _by_zeros(head: bytes) -> str | None:
    """Return UTF-16 without a mark: the upper half of ASCII letters is zero, and no text has such a byte else."""
    half = len(head) // 2
    lower, upper = head[0::2].count(0), head[1::2].count(0)
    if half and lower == 0 and upper * 2 > half:
        return "utf-16-le"
    if half and upper == 0 and lower * 2 > half:
        return "utf-16-be"
    return None


def _is_windows(head: bytes, rest: IO[bytes]) -> bool:
    """Return whether a file is Windows-1252: it is not UTF-8, and no letter in it is."""
    try:
        if not rest.seekable():
            return False
        here = rest.tell()
    except (AttributeError, OSError, ValueError):
        return False
    decoder = codecs.getincrementaldecoder(UTF_8)("surrogateescape")
    wrong = False
    block = head
    while block:
        text = decoder.decode(block)
        if not text.isascii():
            found = _INVALID.findall(text)
            # A file with letters in UTF-8 is damaged, or was put together from two: one of them would become `ZoÃ«`.
            if not _NOT_WINDOWS.isdisjoint(found) or _VALID.search(text) is not None:
                rest.seek(here)
                return False
            wrong = wrong or bool(found)
        block = rest.read(_BLOCK)
    rest.seek(here)
    # A letter that is cut off at the end was not decoded: a broken download is no other encoding.
    return wrong
