"""The words of a message in the one form in which they are compared."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

LONGEST: Final = 2000
"""Characters that are looked at: no carrier delivers a longer message, and reading stays cheap."""

_WORD: Final = re.compile(r"[^\W_]+")
_LETTERS_OR_DIGITS: Final = re.compile(r"\d+|\D+")
_APOSTROPHES: Final = dict.fromkeys(map(ord, "'\u2019\u2018\u02bc`\u00b4"))
"""Left out before anything else: `don't` is one word."""

_INVISIBLE: Final = frozenset({"Mn", "Me", "Cf"})
"""Accents, the marks that make a sign an emoji, and what has no width: they part no word."""

Words = tuple[str, ...]


def words_of(text: str) -> Words:
    """Return the words of a message.

    Compatibility forms (full width, mathematical letters) become plain letters, case and accents go, and everything
    that is neither letter nor digit only separates: quotes, hyphens, emoji.
    """
    plain = unicodedata.normalize("NFKC", text[:LONGEST]).translate(_APOSTROPHES).casefold()
    bare = (letter for letter in unicodedata.normalize("NFKD", plain) if unicodedata.category(letter) not in _INVISIBLE)
    return tuple(_WORD.findall("".join(bare)))


def parted(words: Words) -> Words:
    """Return words with their letters and their digits apart: `stop`, `2`, `end` of `stop2end`."""
    return tuple(part for word in words for part in _LETTERS_OR_DIGITS.findall(word))


def phrases(*texts: str) -> frozenset[Words]:
    """Return phrases as the words that they are."""
    return frozenset(words_of(text) for text in texts)
