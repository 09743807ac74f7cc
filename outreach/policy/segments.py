"""The number of segments of a text message: encoding, units, and an estimate that is never too low.

By 3GPP TS 23.038 and 23.040 a text in the GSM 7-bit alphabet counts septets, any other UTF-16 code units, and each part
of a longer text loses room to a header. Escape pairs and surrogate pairs are never split. Some carriers also keep
grapheme clusters together, so that the estimate is the larger of both counts. CR and LF may be split. The carrier's
later report is authoritative.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

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
        # What remains without these; ten times as fast as a set.
        return not text.encode().translate(None, _BASIC_ASCII)
    return _GSM_BASIC.issuperset(text)


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
