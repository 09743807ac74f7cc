"""Texts from outside: storing, quoting, folding and searching them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import attrs
import orjson

_UNSTORABLE: Final = re.compile("[\\x00\\ud800-\\udfff]")


def storable(text: str) -> str:
    """Return a text that every storage accepts: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def quoted(text: str, longest: int) -> str:
    """Return a text on one line, in quotes, cut after `longest` characters."""
    cut = text if len(text) <= longest else text[:longest] + "\N{HORIZONTAL ELLIPSIS}"
    return json.dumps(cut, ensure_ascii=False)


def text_problem(text: object) -> str | None:
    """Return why a value is not a storable text, or None."""
    if not isinstance(text, str):
        return f"must be a text, not {type(text).__name__}"
    if "\x00" in text:
        return "must not contain NUL (U+0000)"
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return "must not contain lone surrogates"
    return None


_ZERO_WIDTH: Final = dict.fromkeys(map(ord, "\u180e\u200b\u200c\u200d\u2060\ufeff"))
_NON_BREAKING: Final = "\u00a0\u2007\u202f"
_AS_SPACES: Final = dict.fromkeys(map(ord, _NON_BREAKING), " ")
_AS_NOTHING: Final = dict.fromkeys(map(ord, _NON_BREAKING))


def composed(text: str) -> str:
    """Return a text in NFC: one spelling of each letter, and the one with the fewest characters."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def composed_or_none(text: str | None) -> str | None:
    """Return a text in NFC, or None."""
    return text if text is None or text.isascii() else unicodedata.normalize("NFC", text)


def composed_json(document: str) -> str:
    """Return a JSON document with its names and texts in NFC."""
    if document.isascii() or unicodedata.is_normalized("NFC", document):
        return document
    # Not the document as a whole: the n of an escaped line end would take an accent that follows it.
    return orjson.dumps(_composed_value(orjson.loads(document))).decode()


def _composed_value(value: Any) -> Any:
    if isinstance(value, str):
        return composed(value)
    if isinstance(value, dict):
        return {composed(key): _composed_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_composed_value(item) for item in value]
    return value


def name_spellings(name: str) -> tuple[str, ...]:
    """Return what a name is compared by: in NFC, with non-breaking spaces as spaces, and without them if that differs.

    Spaces around it and zero-width spaces are left out.
    """
    if name.isascii():
        return (name.strip(),)
    plain = composed(name).translate(_ZERO_WIDTH)
    spaced = plain.translate(_AS_SPACES).strip()
    bare = plain.translate(_AS_NOTHING).strip()
    return (spaced,) if bare == spaced else (spaced, bare)


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: it is empty, or has only spaces of any kind and width."""
    return not (text.strip() if text.isascii() else text.translate(_ZERO_WIDTH).strip())


@attrs.frozen
class RawNumber:
    """A number of a JSON document as it was written (`1.10`, `1e5`), if no 64-bit integer can stand for it."""

    text: str


JSON: TypeAlias = "str | int | float | Decimal | RawNumber | bool | Sequence[JSON] | Mapping[str, JSON] | None"
"""A JSON value; a parser that must not round may return `Decimal` or `RawNumber`."""


def as_text(value: JSON) -> str:
    """Return a JSON value as text: strings and numbers as written, null as nothing, anything else as compact JSON.

    Raises:
        ValueError: The value contains a number that JSON cannot write (NaN, infinity).
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else _compact(value)


def _compact(value: JSON) -> str:
    """Return compact JSON; `json.dumps` cannot write a `Decimal` digit by digit."""
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
    """Return a text folded for substring matching, without differences of case and spelling.

    Full case folding: `ß` and `SS` are `ss`, all sigmas are one, `İ`, `I` and `i` are one (not the dotless i, which
    needs a language). Canonically equal spellings become the same. The result is composed (NFC), so that accents count,
    and compatibility forms (`①`, full width) stay distinct.
    """
    # Decomposed first, because folding handles `ᾳ` only with a separate iota.
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    # The folding of `İ` leaves a dot that nobody types.
    return unicodedata.normalize("NFC", folded.replace(_I_WITH_DOT, "i"))


MAX_TRIGRAM_QUERY: Final = 32
"""The length of the prefix that the index is searched for; its results are compared in full."""

_MIN_TRIGRAM_QUERY: Final = 3


def trigram_query(folded: str) -> str | None:
    """Return the query for a trigram index: the quoted beginning of a folded text; None if it is too short."""
    if len(folded) < _MIN_TRIGRAM_QUERY:
        return None
    return '"' + folded[:MAX_TRIGRAM_QUERY].replace('"', '""') + '"'
