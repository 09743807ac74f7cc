"""Texts whose characters an earlier program damaged: replaced by `\N{REPLACEMENT CHARACTER}`, or encoded twice."""

from __future__ import annotations

import re
from typing import Final

REPLACED: Final = "\N{REPLACEMENT CHARACTER}"
"""What programs write for bytes that they cannot read."""


def _characters_of(first: int, last: int) -> str:
    """Return the characters, as a set of a pattern, that these bytes are in Windows-1252 or Latin-1."""
    found = {bytes([one]).decode(encoding, "ignore") for one in range(first, last + 1) for encoding in _ENCODINGS}
    return f"[{''.join(map(re.escape, sorted(found)))}]"


_ENCODINGS: Final = ("cp1252", "latin-1")
_NEXT: Final = _characters_of(0x80, 0xBF)

# What follows must be a text of one script: a French word may end with `é`, a non-breaking space and `»`, which are the
# bytes of a Chinese sign.
_TWICE: Final = re.compile(
    "|".join(
        (
            f"{_characters_of(0xC2, 0xC5)}{_NEXT}",  # letters of European languages, and their signs
            f"\u00e2[\u20ac\u0080\u201a\u0082]{_NEXT}",  # quotation marks, dashes, the sign of the euro
            f"(?:{_characters_of(0xCE, 0xDB)}{_NEXT}){{2,}}",  # Greek, Cyrillic, Hebrew, Arabic
            f"(?:{_characters_of(0xE0, 0xED)}{_NEXT}{_NEXT}){{2,}}",  # languages of Asia
            f"\u00f0[\u0178\u009f\u009d]{_NEXT}{_NEXT}",  # emoji
        )
    )
)
"""The characters of UTF-8 that was read in another encoding."""


def decoded_once(text: str) -> str | None:
    """Return what a text was before its UTF-8 was read in Windows-1252: `Müller` of `MÃ¼ller`; None if it was not."""
    if text.isascii():
        return None
    once = _TWICE.sub(lambda found: _decoded(found[0]), text)
    return once if once != text else None


def _decoded(text: str) -> str:
    try:
        return b"".join(map(_byte, text)).decode()
    except UnicodeDecodeError:
        return text


def _byte(letter: str) -> bytes:
    try:
        return letter.encode("cp1252")
    except UnicodeEncodeError:
        return letter.encode("latin-1")
