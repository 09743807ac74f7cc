"""Texts from outside (storing, quoting, folding and searching them), and the number of segments of a message.

By 3GPP TS 23.038 and 23.040 a text in the GSM 7-bit alphabet counts septets, any other UTF-16 code units, and each part
of a longer text loses room to a header. Escape pairs and surrogate pairs are never split. Some carriers also keep
grapheme clusters together, so that the estimate is the larger of both counts. CR and LF may be split. The carrier's
later report is authoritative.
"""

from __future__ import annotations

import functools
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import attrs
import orjson

from outreach.models.fields import UNSTORABLE


def storable(text: str) -> str:
    """Return a text that every storage accepts: NUL and lone surrogates become U+FFFD."""
    return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


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


Encoding = Literal["GSM-7", "UCS-2"]

_GSM_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿"
    "abcdefghijklmnopqrstuvwxyzäöñüà"
)
_BASIC_ASCII: Final = "".join(one for one in _GSM_BASIC if one.isascii()).encode()
_GSM_EXTENSION: Final = frozenset("\f^{}\\[~]|€")
_GSM_ALL: Final = _GSM_BASIC | _GSM_EXTENSION

_SINGLE: Final[dict[Encoding, int]] = {"GSM-7": 160, "UCS-2": 70}
_PART: Final[dict[Encoding, int]] = {"GSM-7": 153, "UCS-2": 67}

_ZWJ: Final = "\u200d"
_JOINERS: Final = frozenset({_ZWJ, "\u200c", "\uff9e", "\uff9f"})

_PLAIN_FORMS: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u0060\uff40\u00b4\u02b9\u02bb\u02bc\u2039\u203a\u275b\u275c", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u02ba\u00ab\u00bb\u275d\u275e\u301d\u301e", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u2022\u2023\u2043\u25cf\u25aa\u2219", "-"),
    # Spaces of every width, which word processors and web pages bring.
    **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "),
    **dict.fromkeys("\u202f\u205f\u3000\t", " "),
    # Of no width: joiners, hints for breaks, and the marks of direction that copied phone numbers have.
    **dict.fromkeys(
        "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u2060\u2066\u2067\u2068\u2069\ufeff\u00ad\ufe0f", ""
    ),
    "\u2025": "..",
    "\u2026": "...",
    "\u203c": "!!",
    "\u2044": "/",
    "\u2028": "\n",
    "\u2029": "\n",
    "\u00d7": "x",
    # Ligatures and full-width forms.
    **{one: unicodedata.normalize("NFKC", one) for one in "\u0132\u0133\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"},
    **{chr(code + 0xFEE0): chr(code) for code in range(0x21, 0x7F) if chr(code) in _GSM_ALL},
}
"""The texts in GSM-7 that replace typographic characters, with the same meaning.

Letters with accents, other letters (`\u0142`), signs (`\u2122`), raised digits and fractions are not here: without them
a name or a number would be another one.
"""

_PLAIN_TABLE: Final = str.maketrans(_PLAIN_FORMS)

_SUBSTITUTES: Final = {
    **_PLAIN_FORMS,
    "\u00b7": "-",
    "\u00f7": "/",
    "\u2122": "(TM)",
    "\u00ae": "(R)",
    "\u00a9": "(C)",
    "\u2116": "No.",
    "\u00b0": " deg",
    "\u0153": "oe",
    "\u0152": "OE",
    "\u0142": "l",
    "\u0141": "L",
    "\u0111": "d",
    "\u0110": "D",
    "\u0131": "i",
}


class SegmentCount(NamedTuple):
    """The encoding, units and segments of a text; a tuple, because there is one for every message.

    Attributes:
        encoding: The alphabet of the whole text.
        units: Septets in GSM-7 (an extension character counts two), UTF-16 code units in UCS-2.
        segments: Messages on the wire; an empty text counts one, as carriers bill it.
    """

    encoding: Encoding
    units: int
    segments: int


def count_segments(text: str) -> SegmentCount:
    """Return the encoding of a text and its number of segments."""
    if _is_plain(text):
        # Nearly every text: each character is one septet and a cluster of its own.
        units = len(text)
        parts = 1 if units <= _SINGLE["GSM-7"] else -(-units // _PART["GSM-7"])
        return SegmentCount("GSM-7", units, parts)
    encoding: Encoding = "GSM-7" if _GSM_ALL.issuperset(text) else "UCS-2"
    sizes = _septets(text) if encoding == "GSM-7" else _code_units(text)
    units = sum(sizes)
    if units <= _SINGLE[encoding]:
        return SegmentCount(encoding, units, 1)
    part = _PART[encoding]
    segments = max(_fill(sizes, part), _fill(_cluster_sizes(text, sizes), part))
    return SegmentCount(encoding, units, segments)


def _is_plain(text: str) -> bool:
    """Return whether all characters of a text are in the basic alphabet of GSM-7."""
    if text.isascii():
        # The rest without these; ten times as fast as a set.
        return not text.encode().translate(None, _BASIC_ASCII)
    return _GSM_BASIC.issuperset(text)


def plain_form(text: str) -> str:
    """Return a text with the plain forms of its typographic characters, if these are all that GSM-7 lacks.

    Else the text itself: one other character makes it UCS-2 anyway, and so does a plain form that takes more segments.
    """
    if _is_plain(text):
        return text
    plain = text.translate(_PLAIN_TABLE)
    if not is_gsm(plain) or count_segments(plain).segments > count_segments(text).segments:
        return text
    return plain


def is_gsm(text: str) -> bool:
    """Return whether GSM-7 has all characters of a text."""
    return _GSM_ALL.issuperset(text)


def characters_outside_gsm(text: str) -> frozenset[str]:
    """Return the characters of a text that GSM-7 lacks; one of them makes the whole text UCS-2."""
    return frozenset(text) - _GSM_ALL


def _septets(text: str) -> list[int]:
    return [2 if character in _GSM_EXTENSION else 1 for character in text]


def _code_units(text: str) -> list[int]:
    return [2 if character > "\uffff" else 1 for character in text]


def _fill(sizes: Iterable[int], part: int) -> int:
    """Return how many parts are needed if no item is split, except those larger than a part."""
    parts, used = 1, 0
    for size in sizes:
        if used + size > part and used:
            parts, used = parts + 1, 0
        used += size
        if used > part:
            more, used = divmod(used - 1, part)
            parts, used = parts + more, used + 1
    return parts


def _cluster_sizes(text: str, sizes: list[int]) -> Iterator[int]:
    """Yield the size of each grapheme cluster."""
    total = 0
    previous = ""
    flags = 0
    for character, size in zip(text, sizes, strict=True):
        if previous and not _continues(previous, character, flags):
            yield total
            total = 0
        total += size
        flags = flags + 1 if _is_regional_indicator(character) else 0
        previous = character
    yield total


def _continues(previous: str, character: str, flags: int) -> bool:
    """Return whether a character continues the cluster of the previous one.

    This follows Unicode's extended grapheme clusters (UAX 29) as far as the standard library allows, except that CR and
    LF are separate. Prepended marks and Indic conjuncts are left out, and every zero-width joiner joins. `flags` counts
    the regional indicators directly before, which form flags in pairs.
    """
    if character < "\u0300" or previous < " ":
        return False
    if character in _JOINERS or unicodedata.category(character) in {"Mn", "Me", "Mc"}:
        return True
    if "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f":
        return True  # skin tones, and the tags of subdivision flags
    if _is_regional_indicator(character):
        return flags % 2 == 1
    if previous == _ZWJ:
        return unicodedata.category(character) in {"So", "Sm", "Cn"}
    return _continues_hangul(previous, character)


def _is_regional_indicator(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _continues_hangul(previous: str, character: str) -> bool:
    """Return whether a Korean letter continues the syllable of the previous one."""
    if _is_leading_jamo(previous):
        return _is_leading_jamo(character) or _is_later_jamo(character) or "\uac00" <= character <= "\ud7a3"
    return _is_later_jamo(character) and (_is_later_jamo(previous) or "\uac00" <= previous <= "\ud7a3")


def _is_leading_jamo(character: str) -> bool:
    return "\u1100" <= character <= "\u115f" or "\ua960" <= character <= "\ua97c"


def _is_later_jamo(character: str) -> bool:
    return "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7fb"


@functools.lru_cache(maxsize=4096)
def substitute(character: str) -> str | None:
    """Return what an author may write in GSM-7 for a character, possibly nothing; None if nothing there is like it.

    A letter with an accent that GSM-7 lacks has the letter without it. `plain_form` replaces fewer characters.
    """
    if (known := _SUBSTITUTES.get(character)) is not None:
        return known
    plain = "".join(one for one in unicodedata.normalize("NFKD", character) if not unicodedata.combining(one))
    if plain and is_gsm(plain):
        return plain
    # An accent by itself follows its letter.
    return "" if not plain else None


def character_name(character: str) -> str:
    """Return a character's name in Unicode, in small letters, or its code."""
    return unicodedata.name(character, f"U+{ord(character):04X}").lower()
