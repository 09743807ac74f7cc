"""Segments: the vectors of a carrier's own calculator, and the rules behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.segments import SegmentCount, count_segments

_FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
_GRIN = "\U0001f600"
_ACUTE_E = "e\u0301"

_VECTORS = [
    ("a" * 160, "GSM-7", 1),
    ("a" * 161, "GSM-7", 2),
    ("a" * 306, "GSM-7", 2),
    ("a" * 307, "GSM-7", 3),
    ("a" * 459, "GSM-7", 3),
    ("a" * 460, "GSM-7", 4),
    ("a" * 159 + "€", "GSM-7", 2),
    ("a" * 158 + "€", "GSM-7", 1),
    ("a" * 152 + "€" + "a" * 152, "GSM-7", 3),
    ("a" * 152 + "€" + "a" * 151, "GSM-7", 2),
    ("€" * 80, "GSM-7", 1),
    ("€" * 81, "GSM-7", 2),
    ("я" * 70, "UCS-2", 1),
    ("я" * 71, "UCS-2", 2),
    ("я" * 134, "UCS-2", 2),
    ("я" * 135, "UCS-2", 3),
    ("я" * 68 + _GRIN, "UCS-2", 1),
    ("я" * 69 + _GRIN, "UCS-2", 2),
    ("я" * 66 + _GRIN + "я" * 66, "UCS-2", 3),
    ("я" * 66 + _GRIN + "я" * 65, "UCS-2", 2),
    (_GRIN * 35, "UCS-2", 1),
    (_GRIN * 36, "UCS-2", 2),
    (_FAMILY, "UCS-2", 1),
    ("я" * 60 + _FAMILY, "UCS-2", 2),
    (_FAMILY * 7, "UCS-2", 2),
    ("я" * 60 + _FAMILY + "я" * 63, "UCS-2", 3),
    ("я" * 66 + _ACUTE_E + "я" * 66, "UCS-2", 3),
    ("`", "UCS-2", 1),
    ("“hi” ’", "UCS-2", 1),
    ("“" + "a" * 159, "UCS-2", 3),
    ("a\r\nb", "GSM-7", 1),
    ("a" * 158 + "\r\n", "GSM-7", 1),
    ("a" * 159 + "\r\n", "GSM-7", 2),
    ("я" * 69 + "\r\n", "UCS-2", 2),
    ("a" * 152 + "\r\n" + "a" * 152, "GSM-7", 2),
    ("a" * 152 + "\r\n" + "a" * 153, "GSM-7", 3),
    ("a" * 305 + "\r\n" + "a" * 152, "GSM-7", 3),
    ("я" * 66 + "\r\n" + "я" * 66, "UCS-2", 2),
    ("я" * 66 + "\r\n" + "я" * 67, "UCS-2", 3),
    ("\f", "GSM-7", 1),
    ("ç", "UCS-2", 1),
    ("Ç", "GSM-7", 1),
    ("\t", "UCS-2", 1),
    ("\u00a0", "UCS-2", 1),
    ("\x00", "UCS-2", 1),
    ("\x1b", "UCS-2", 1),
    (_ACUTE_E, "UCS-2", 1),
    ("\U0001f1eb\U0001f1f7", "UCS-2", 1),
    ("", "GSM-7", 1),
]


@pytest.mark.parametrize(("text", "encoding", "segments"), _VECTORS)
def test_the_count_is_the_calculators(text: str, encoding: str, segments: int) -> None:
    """Frozen answers of sms-segments-calculator 1.3.0."""
    count = count_segments(text)
    assert (count.encoding, count.segments) == (encoding, segments)


@pytest.mark.parametrize(
    ("text", "units"),
    [("", 0), ("abc", 3), ("a€", 3), ("\f^{}\\[~]|€", 20), ("я", 1), (_GRIN, 2), (_FAMILY, 11), ("^я", 2), ("\r\n", 2)],
)
def test_units_are_septets_or_code_units(text: str, units: int) -> None:
    """An extension character costs two only in the 7-bit alphabet."""
    assert count_segments(text).units == units


def test_the_seven_bit_alphabet_has_137_characters() -> None:
    """127 basic ones and ten behind the escape; no other code point is in it."""
    alphabet = [chr(point) for point in range(0x110000) if count_segments(chr(point)).encoding == "GSM-7"]
    assert len(alphabet) == 137
    assert sum(count_segments(character).units for character in alphabet) == 147


@pytest.mark.parametrize(
    "cluster",
    [
        "e\u0301\u0323",
        "\U0001f44d\U0001f3fd",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
        "\U0001f1eb\U0001f1f7",
        "\U0001f3f4\U000e0067\U000e0062\U000e007f",
        "\u1112\u1161\u11ab",
        "\uac00\u11a8",
        "\u1100\u1100\u1161",
        "\u1100\uac00",
        "\u1112\u1161\u1161",
        "का",
        "ｶﾞ",
        _FAMILY,
        "❤\ufe0f\u200d\U0001f525",
    ],
)
def test_a_cluster_is_kept_together(cluster: str) -> None:
    """What a reader sees as one character moves into the next part as a whole."""
    size = count_segments(cluster).units
    lead = "я" * (68 - size)
    assert count_segments(lead + cluster + "я" * 66).segments == 3
    assert count_segments(lead[1:] + cluster + "я" * 67).segments == 2


@pytest.mark.parametrize(
    "pair", ["яb", "\U0001f600\U0001f600", "\u200dя", "\n\u0301", "\u1161\u1100", "я\u1161", "\ra", "\r\n"]
)
def test_characters_that_stand_alone_may_be_parted(pair: str) -> None:
    """A part is filled to the brim where nothing joins its last character to the next."""
    first, second = pair[0], pair[1]
    lead = "я" * (67 - count_segments("я" + first).units + 1)
    rest = "я" * (67 - count_segments("я" + second).units + 1)
    assert count_segments(lead + pair + rest).segments == 2


def test_flags_are_pairs_of_indicators() -> None:
    """Of three flags, six indicators, none is torn apart, and no two flags stick together."""
    flag = "\U0001f1eb\U0001f1f7"
    assert count_segments("я" * 63 + flag * 3 + "я" * 59).segments == 2
    assert count_segments("я" * 64 + flag * 3 + "я" * 58).segments == 3


def test_a_cluster_larger_than_a_part_flows_over() -> None:
    """A tower of 199 combining marks has to be cut somewhere."""
    assert count_segments("e" + "\u0301" * 199) == SegmentCount(encoding="UCS-2", units=200, segments=3)
    assert count_segments("e" + "\u0301" * 200 + "я").segments == 4


def _slowly(text: str) -> tuple[str, int]:
    """Fill parts character by character, as 3GPP TS 23.040 says; for texts in which nothing joins two characters."""
    basic = (
        "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿"
        "abcdefghijklmnopqrstuvwxyzäöñüà"
    )
    extension = "\f^{}\\[~]|€"
    septets = all(character in basic + extension for character in text)
    single, part = (160, 153) if septets else (70, 67)
    sizes = []
    for character in text:
        if septets:
            sizes.append(2 if character in extension else 1)
        else:
            sizes.append(2 if ord(character) > 0xFFFF else 1)
    if sum(sizes) <= single:
        return "GSM-7" if septets else "UCS-2", 1
    parts, left = 1, part
    for size in sizes:
        if size > left:
            parts, left = parts + 1, part
        left -= size
    return "GSM-7" if septets else "UCS-2", parts


_APART = st.sampled_from("aZ9 @£ÇàΔ\r\n€^{}[]~|\\\fçя“’\u4e16😀🎉")


@given(
    text=st.one_of(
        st.text(_APART, max_size=500),
        st.text(st.sampled_from("a€^\r\n"), min_size=100, max_size=700),
        st.text(st.sampled_from("я😀\r\n"), min_size=50, max_size=400),
    )
)
def test_the_count_is_that_of_filling_parts_one_character_after_the_other(text: str) -> None:
    """Where no two characters make one that a reader sees, the estimate is exact."""
    count = count_segments(text)
    assert (count.encoding, count.segments) == _slowly(text)


@given(text=st.text(st.one_of(st.sampled_from("a€я😀\u0301\u200d\r\n🇫"), st.characters(codec=None)), max_size=500))
def test_the_count_is_within_its_bounds(text: str) -> None:
    """Never fewer parts than the units need, and a part of a cluster's size is the most that is lost on each."""
    count = count_segments(text)
    single, part = (160, 153) if count.encoding == "GSM-7" else (70, 67)
    if count.units <= single:
        assert count.segments == 1
    else:
        assert -(-count.units // part) <= count.segments <= count.units


@given(before=st.text(max_size=200), after=st.text(max_size=200))
def test_more_text_never_takes_fewer_units_or_segments(before: str, after: str) -> None:
    """An estimate grows with the text."""
    short, long = count_segments(before), count_segments(before + after)
    if short.encoding == long.encoding:
        assert short.units <= long.units
        assert short.segments <= long.segments
