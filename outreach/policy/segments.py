"""How many segments a text message takes: the encoding, the units, and an estimate that is never too low.

The rules are those of 3GPP TS 23.038 and 23.040: a text whose characters are all in the GSM 7-bit alphabet
counts septets, any other counts UTF-16 code units; a text that does not fit into one segment gives each of its
parts up to a header. An escape pair and a surrogate pair never straddle two parts. Some carriers keep whole
grapheme clusters (a family emoji, a letter with its combining mark) together as well, so the estimate is the
larger of both counts. A carriage return and a line feed are two characters, which may be split_digits. What the carrier
reports afterwards is the truth.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import attrs

Encoding = Literal["GSM-7", "UCS-2"]

_GSM_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿"
    "abcdefghijklmnopqrstuvwxyzäöñüà"
)
_GSM_EXTENSION: Final = frozenset("\f^{}\\[~]|€")
_GSM_ALL: Final = _GSM_BASIC | _GSM_EXTENSION

_SINGLE: Final[dict[Encoding, int]] = {"GSM-7": 160, "UCS-2": 70}
_PART: Final[dict[Encoding, int]] = {"GSM-7": 153, "UCS-2": 67}

_ZWJ: Final = "\u200d"
_JOINERS: Final = frozenset({_ZWJ, "\u200c", "\uff9e", "\uff9f"})


@attrs.frozen(kw_only=True)
class SegmentCount:
    """What a text takes.

    Attributes:
        encoding: The alphabet that the whole text is sent in.
        units: Septets in GSM-7 (an extension character counts two), UTF-16 code units in UCS-2.
        segments: Messages on the wire; an empty text counts one, which is how carriers bill it.
    """

    encoding: Encoding
    units: int
    segments: int


def count_segments(text: str) -> SegmentCount:
    """Return the encoding of a text and how many segments it takes."""
    encoding: Encoding = "GSM-7" if _GSM_ALL.issuperset(text) else "UCS-2"
    sizes = _septets(text) if encoding == "GSM-7" else _code_units(text)
    units = sum(sizes)
    if units <= _SINGLE[encoding]:
        return SegmentCount(encoding=encoding, units=units, segments=1)
    part = _PART[encoding]
    segments = max(_fill(sizes, part), _fill(_cluster_sizes(text, sizes), part))
    return SegmentCount(encoding=encoding, units=units, segments=segments)


def _septets(text: str) -> list[int]:
    return [2 if character in _GSM_EXTENSION else 1 for character in text]


def _code_units(text: str) -> list[int]:
    return [2 if character > "\uffff" else 1 for character in text]


def _fill(sizes: Iterable[int], part: int) -> int:
    """Return how many parts are needed when each is filled in turn and nothing straddles two.

    What is larger than a part by itself starts a part and flows over.
    """
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
    """Return whether a character belongs to the cluster of the one before it.

    This follows Unicode's extended grapheme clusters (UAX 29) from what the standard library knows, but for CR and
    LF, which carriers part. It leaves out what no message carries (prepended marks, Indic conjuncts) and joins after
    every zero-width joiner.

    Args:
        previous: The character before.
        character: The character to place.
        flags: How many regional indicators, which make a flag in pairs, stand directly before it.
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
    """Return whether a Korean letter belongs to the syllable of the one before it."""
    if _is_leading_jamo(previous):
        return _is_leading_jamo(character) or _is_later_jamo(character) or "\uac00" <= character <= "\ud7a3"
    return _is_later_jamo(character) and (_is_later_jamo(previous) or "\uac00" <= previous <= "\ud7a3")


def _is_leading_jamo(character: str) -> bool:
    return "\u1100" <= character <= "\u115f" or "\ua960" <= character <= "\ua97c"


def _is_later_jamo(character: str) -> bool:
    return "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7fb"
