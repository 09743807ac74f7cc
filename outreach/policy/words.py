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


_LOOK_ALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0432\u043a\u043c\u043d"  # Cyrillic
    "\u03b1\u03b2\u03b5\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c3\u03c2\u03c4\u03c5\u03c7",  # Greek
    "aeopctyxsibkmh" + "abeikmvopsstux",
)
"""Letters of other scripts by the Latin ones that they look like, in lower case."""

_LATIN: Final = re.compile(r"[a-z]")


def latinised(word: str) -> str:
    """Return a word with Latin letters for those of other scripts that look like them."""
    return word.translate(_LOOK_ALIKES)


def parted(words: Words) -> Words:
    """Return words with their letters and their digits apart: `stop`, `2`, `end` of `stop2end`."""
    return tuple(part for word in words for part in _LETTERS_OR_DIGITS.findall(word))


def phrases(*texts: str) -> frozenset[Words]:
    """Return phrases as the words that they are."""
    return frozenset(words_of(text) for text in texts)
