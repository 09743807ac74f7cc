"""Phone numbers: every spelling of a number is one person."""

from __future__ import annotations

import re
import time

import phonenumbers
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outreach.rules.phones import is_dialable, normalise, read_number

_E164 = re.compile(r"\+[1-9]\d{6,14}", re.ASCII)
_NANP_REGIONS = tuple(
    region for region in sorted(phonenumbers.SUPPORTED_REGIONS) if phonenumbers.country_code_for_region(region) == 1
)
_REGIONS = st.sampled_from(
    [None, "US", "us", "CA", "GB", "DE", "IT", "AR", "MX", "BR", "IN", "AG", "FR", "ZZ", "", "USA"]
)

_COUNTRY_CODES = st.sampled_from(sorted(phonenumbers.COUNTRY_CODE_TO_REGION_CODE))
_DIGITS = st.text("0123456789", min_size=1, max_size=17)
_CLEAN = st.one_of(
    _DIGITS,
    st.builds("+{}{}".format, _COUNTRY_CODES, _DIGITS),
    st.builds("{}{}".format, _COUNTRY_CODES, _DIGITS),
    st.from_regex(r"\+?1?[0-9]{10}", fullmatch=True),
)


@st.composite
def _spelt(draw: st.DrawFn) -> str:
    """Draw a number with separators and now and then a stray character in it."""
    number = draw(_CLEAN)
    for _ in range(draw(st.integers(0, 4))):
        position = draw(st.integers(0, len(number)))
        number = number[:position] + draw(st.sampled_from(" -.()/[]~\t\n\u00a0\u200e+x#0१٣a")) + number[position:]
    return number


@pytest.mark.parametrize(
    ("raw", "region", "expected"),
    [
        ("+1 (415) 555-0102", None, "+14155550102"),
        ("+1 (415) 555-0102", "GB", "+14155550102"),
        ("14155550102", "US", "+14155550102"),
        ("415-555-0102", "US", "+14155550102"),
        ("415.555.0102", "us", "+14155550102"),
        ("(415) 555-0102", "CA", "+14155550102"),
        ("  4155550102\n", "US", "+14155550102"),
        ("tel:+1-415-555-0102", None, "+14155550102"),
        ("07911 123456", "GB", "+447911123456"),
        ("+44 (0)7911 123456", None, "+447911123456"),
        ("447911123456", "GB", "+447911123456"),
        ("011 44 7911 123456", "US", "+447911123456"),
        ("0044 7911 123456", None, "+447911123456"),
        ("0044 7911 123456", "US", "+447911123456"),
        ("06 1234 5678", "IT", "+390612345678"),
        ("+390612345678", None, "+390612345678"),
    ],
)
def test_spellings_of_one_number_become_one(raw: str, region: str | None, expected: str) -> None:
    """Separators, trunk prefixes, the region and the plus sign make no other person."""
    assert normalise(raw, region) == expected


@pytest.mark.parametrize("raw", ["030 123456", "41555501"])
def test_the_default_region_is_where_digits_are_read(raw: str) -> None:
    """In Germany, whose numbers vary in length, digits without a plus sign are German."""
    number = normalise(raw, "DE")
    assert number is not None
    assert number.startswith("+49")


def test_possible_decides_and_not_valid() -> None:
    """A range that nobody has opened yet is a number all the same."""
    assert not phonenumbers.is_valid_number(phonenumbers.parse("+15552001234"))
    assert normalise("555-200-1234", "US") == "+15552001234"


@pytest.mark.parametrize(
    "raw",
    ["415-555-0102 ext. 5", "415-555-0102x123", "4155550102 #12", "415 555 0102;ext=7", "4155550102 Extension: 9"],
)
def test_extensions_are_dropped(raw: str) -> None:
    """A call to an extension goes to the same number."""
    assert normalise(raw, "US") == "+14155550102"


@pytest.mark.parametrize(
    "raw",
    [
        "＋１４１５５５５０１０２",
        "+١٤١٥٥٥٥٠١٠٢",
        "\u202a+1 415\u2011555\u20110102\u202c",
        "+1\u00a0415\u2007555\u200b0102",
    ],
)
def test_digits_of_any_script_and_invisible_marks_are_read(raw: str) -> None:
    """Numbers are copied from documents in every script."""
    assert normalise(raw, "US") == "+14155550102"


@pytest.mark.parametrize(
    "raw",
    [
        "",
        " ",
        "+",
        "00",
        "0",
        "911",
        "12345",
        "5550102",
        "4155550102\x00",
        "\x004155550102",
        "1-800-FLOWERS",
        "call 415-555-0102",
        "415-555-0102 x",
        "415 555 0102, 415 555 0103",
        "4155550102,5550103",
        "4155550102\n4155550103",
        "++14155550102",
        "1+4155550102",
        "+0123456789",
        "+999123456789",
        "²²²²²²²²²²",
        "\ud800" * 10,
        "415555\ud80001020",
        "1" * 64,
        "Ⅳ155550102",
        "😀",
    ],
)
def test_what_is_no_number_is_none(raw: str) -> None:
    """Letters, junk, two numbers in one and local numbers reach nobody."""
    assert normalise(raw, "US") is None


@pytest.mark.parametrize(
    "raw", ["1" * 1_000_000, "+" * 1_000_000, " " * 1_000_000 + "x", "4155550102" + "x" * 1_000_000]
)
def test_a_huge_text_is_refused_quickly(raw: str) -> None:
    """The length is looked at before anything is parsed."""
    started = time.perf_counter()
    assert normalise(raw, "US") is None
    assert time.perf_counter() - started < 5


@given(raw=_spelt(), region=_REGIONS)
@example(raw="+11555501020", region=None)
@example(raw="11155550102", region="US")
@example(raw="01155550102", region="US")
@example(raw="+525512345678", region=None)
@example(raw="+5215512345678", region=None)
@example(raw="+4900301234567", region=None)
def test_the_short_cuts_change_nothing(raw: str, region: str | None) -> None:
    """Each common form is answered at once, and exactly as the numbering tables would."""
    assert normalise(raw, region) == read_number(raw, region).phone


@given(raw=st.from_regex(r"\+?1?[0-9]{10}", fullmatch=True), region=st.sampled_from(_NANP_REGIONS))
def test_the_short_cuts_change_nothing_in_north_america(raw: str, region: str) -> None:
    """All regions under country code 1 read ten and eleven digits alike."""
    assert normalise(raw, region) == read_number(raw, region).phone


@pytest.mark.parametrize("code", sorted(phonenumbers.COUNTRY_CODE_TO_REGION_CODE))
def test_the_short_cuts_change_nothing_under_any_country_code(code: int) -> None:
    """Every length, and every first two digits, under every country code."""
    for lead in ("0", "1", "15", "2", "37", "44", "5", "68", "7", "80", "9", "91"):
        for length in range(4, 15):
            raw = f"+{code}{lead}" + "2345678901234"[: length - len(lead)]
            assert normalise(raw, None) == read_number(raw, None).phone, raw


_KINDS = sorted(phonenumbers.PhoneNumberType.values())
_FORMS = (
    phonenumbers.PhoneNumberFormat.E164,
    phonenumbers.PhoneNumberFormat.INTERNATIONAL,
    phonenumbers.PhoneNumberFormat.NATIONAL,
    phonenumbers.PhoneNumberFormat.RFC3966,
)


@pytest.mark.parametrize("region", sorted(phonenumbers.SUPPORTED_REGIONS))
def test_the_short_cuts_change_nothing_in_any_region(region: str) -> None:
    """Numbers of every kind, in every usual form, read at home, from the United States, and from nowhere."""
    numbers = [phonenumbers.example_number_for_type(region, kind) for kind in _KINDS]
    for number in [one for one in numbers if one is not None]:
        e164 = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
        for form in _FORMS:
            written = phonenumbers.format_number(number, form)
            for at in (region, region.lower(), "US", None):
                assert normalise(written, at) == read_number(written, at).phone, (written, at)
                assert normalise(e164[1:], at) == read_number(e164[1:], at).phone, (e164, at)


@given(raw=st.one_of(_spelt(), st.text(max_size=80)), region=_REGIONS, other=_REGIONS)
@example(raw="+4900301234567", region=None, other=None)
def test_an_answer_is_e164_and_stable(raw: str, region: str | None, other: str | None) -> None:
    """Whatever comes in, what comes out is one person's number for good."""
    number = normalise(raw, region)
    if number is not None:
        assert _E164.fullmatch(number)
        assert normalise(number, other) == number


@pytest.mark.parametrize("to", ["+14155550102", "14155550102", "1234567", "+123456789012345"])
def test_dialable_is_seven_to_fifteen_digits(to: str) -> None:
    """The pattern of POST /calls."""
    assert is_dialable(to)


@pytest.mark.parametrize(
    "to",
    [
        "", "+", "123456", "+123456", "1234567890123456", "0123456789", "+0123456", "++1234567",
        "1234567\n", "\n1234567",
        " 1234567", "123 4567", "1234567x", "١٢٣٤٥٦٧", "１２３４５６７", "1234567\x00",
    ],
)  # fmt: skip
def test_anything_else_is_not_dialable(to: str) -> None:
    """Only ASCII digits, and nothing before or behind them."""
    assert not is_dialable(to)
