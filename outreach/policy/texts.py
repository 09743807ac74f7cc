"""Texts that come from outside and have to be kept whatever they hold."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

import attrs

_UNSTORABLE: Final = re.compile("[\\x00\\ud800-\\udfff]")


def storable(text: str) -> str:
    """Return a text that can be stored everywhere: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def quoted(text: str, longest: int) -> str:
    """Return a text on one line, in quotes, cut after so many characters."""
    cut = text if len(text) <= longest else text[:longest] + "\N{HORIZONTAL ELLIPSIS}"
    return json.dumps(cut, ensure_ascii=False)


def text_problem(text: object) -> str | None:
    """Return why something is no text that can be stored everywhere; None when it is one."""
    if not isinstance(text, str):
        return f"must be a text, not {type(text).__name__}"
    if "\x00" in text:
        return "must not contain NUL (U+0000)"
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return "must not contain lone surrogates"
    return None


@attrs.frozen
class RawNumber:
    """A number of a JSON document by the characters that it was written with: `1.10`, `1e5`.

    A parser that must not round delivers it where no integer of 64 bits can stand for the number.
    """

    text: str


JSON: TypeAlias = "str | int | float | Decimal | RawNumber | bool | Sequence[JSON] | Mapping[str, JSON] | None"
"""What a JSON document holds; a parser that must not round numbers may deliver `Decimal` or `RawNumber`."""


def as_text(value: JSON) -> str:
    """Return a JSON value as text.

    A string is itself, a number is as it was written, true and false are words, null is nothing, and anything
    else is compact JSON.

    Raises:
        ValueError: The value is or holds a number that JSON cannot write (NaN, infinity).
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else _compact(value)


def _compact(value: JSON) -> str:
    """Return compact JSON.

    `json.dumps` cannot write a `Decimal` digit by digit, so the containers are written here.
    """
    if isinstance(value, RawNumber):
        return value.text
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("JSON has no such number.")
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, Mapping):
        members = (f"{json.dumps(key, ensure_ascii=False)}:{_compact(item)}" for key, item in value.items())
        return "{" + ",".join(members) + "}"
    return "[" + ",".join(map(_compact, value)) + "]"


_I_WITH_DOT: Final = "i\u0307"


def fold(text: str) -> str:
    """Return a text without its differences of case and of spelling, for substring matching.

    Full case folding: `ß` and `SS` are `ss`, final and other sigmas are one, `İ`, `I` and `i` are one (the
    dotless i is not: without a language there is no telling). Canonically equal spellings, as of `é` in one or two code
    points, become the same.

    The result is composed (NFC), so that `cafe` does not find `Café`: an accent is not case. Compatibility
    forms (`①`, full-width letters) stay apart from the plain ones for the same reason.
    """
    # Decomposed first: folding sees through `ᾳ` only when its iota stands by itself.
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    # The case folding of `İ` leaves a dot that nobody types.
    return unicodedata.normalize("NFC", folded.replace(_I_WITH_DOT, "i"))


MAX_TRIGRAM_QUERY: Final = 32
"""Characters of a text that an index is asked for; those that hold them are compared with all of it."""

_MIN_TRIGRAM_QUERY: Final = 3


def trigram_query(folded: str) -> str | None:
    """Return what an index of the three characters that follow each other is asked for; None for a shorter text.

    Args:
        folded: What is searched for, folded.

    Returns:
        The beginning of the text, quoted, so that none of its characters means anything else.
    """
    if len(folded) < _MIN_TRIGRAM_QUERY:
        return None
    return '"' + folded[:MAX_TRIGRAM_QUERY].replace('"', '""') + '"'
