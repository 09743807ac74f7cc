"""How a number in a list is read: as itself or not at all, never as somebody else's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers import PhoneNumber, PhoneNumberFormat, PhoneNumberType

from outreach.rules.numbering import country_of, international, is_valid, number_kind
from outreach.rules.phones import (
    CALLING_CODE,
    SEVERAL_NUMBERS,
    TRUNK_PREFIX,
    NumberReading,
    canonical_phone,
    normalise,
    read_number,
)
from outreach.rules.whole_numbers import LOST_DIGITS

_TYPES = (PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE)
_REGIONS = sorted(phonenumbers.SUPPORTED_REGIONS)

_AREAS = {
    "DE": [("30", 8), ("40", 7), ("89", 8), ("221", 7), ("351", 7), ("371", 7), ("421", 7), ("6221", 6), ("33203", 5)],
    "AT": [("1", 7), ("316", 6), ("463", 6), ("512", 6), ("662", 6), ("732", 6), ("4242", 5), ("7242", 5)],
    "FR": [("1", 8), ("2", 8), ("3", 8), ("4", 8), ("5", 8)],
    "GB": [("20", 8), ("121", 7), ("131", 7), ("161", 7), ("1223", 6), ("1865", 6), ("29", 8)],
    "IT": [("02", 8), ("06", 8), ("011", 7), ("081", 7), ("0471", 6), ("055", 7)],
}
"""Area codes of landlines, each with a usual number of digits behind it."""


def _e164(number: PhoneNumber) -> str:
    return phonenumbers.format_number(number, PhoneNumberFormat.E164)


def _written(number: PhoneNumber, region: str) -> dict[str, str]:
    """Return the ways to write a number of a region."""
    e164 = _e164(number)
    national = phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)
    written = {
        "nationally": national,
        "E.164": e164,
        "without plus": e164[1:],
        "00": "00" + e164[1:],
        "spaced": phonenumbers.format_number(number, PhoneNumberFormat.INTERNATIONAL),
        # A cell that holds a number has no zero at its beginning.
        "cell": "".join(digit for digit in national if digit.isdigit()).lstrip("0"),
    }
    written["cell as a decimal number"] = written["cell"] + ".0"
    written["without plus, as a decimal number"] = e164[1:] + ".0"
    written["E.164 as a decimal number"] = e164 + ",00"
    written["in scientific notation"] = f"{e164[1]}.{e164[2:]}E+{len(e164) - 2}"
    metadata = phonenumbers.PhoneMetadata.metadata_for_region(region)
    assert metadata is not None
    prefix = str(metadata.preferred_international_prefix or metadata.international_prefix).replace("~", "")
    if prefix.isdigit():
        written["prefix of the region"] = prefix + e164[1:]
    return written


def _examples() -> Iterator[tuple[str, PhoneNumber]]:
    for region in _REGIONS:
        for kind in _TYPES:
            number = phonenumbers.example_number_for_type(region, kind)
            if number is not None:
                yield region, number


def test_no_example_of_any_region_becomes_another_number() -> None:
    """However it is written, it is read as itself or refused with a reason, and of the usual ways at most 2 % are."""
    refused, usual = 0, 0
    for region, number in _examples():
        for way, raw in _written(number, region).items():
            reading = read_number(raw, region)
            assert reading.phone in {None, _e164(number)}, (region, way, raw, reading)
            assert (reading.phone is None) == (reading.problem is not None)
            if way in {"nationally", "E.164", "without plus", "00", "spaced"}:
                usual += 1
                refused += reading.phone is None
    assert usual > 2000
    assert refused <= usual * 0.02


@st.composite
def _valid_numbers(draw: st.DrawFn) -> tuple[str, PhoneNumber]:
    """Draw a valid mobile or landline number of a region: an example, with other digits at its end if that is one."""
    region, example = draw(st.sampled_from(list(_examples())))
    significant = phonenumbers.national_significant_number(example)
    kept = draw(st.integers(0, len(significant) - 1))
    digits = significant[:kept] + draw(st.text("0123456789", min_size=1, max_size=len(significant) - kept))
    # The form of Gabon until 2019, which is written like the form since.
    if region == "GA" and len(digits) == 7:
        return region, example
    try:
        number = phonenumbers.parse(f"+{example.country_code}{digits}")
    except phonenumbers.NumberParseException:
        return region, example
    valid = phonenumbers.is_valid_number_for_region(number, region) and phonenumbers.number_type(number) in _TYPES
    return region, number if valid and phonenumbers.national_significant_number(number) == digits else example


@given(_valid_numbers())
def test_no_number_of_any_region_becomes_another_one(drawn: tuple[str, PhoneNumber]) -> None:
    """A landline that has the digits of a mobile number, but for the calling code, is the only exception."""
    region, number = drawn
    for way, raw in _written(number, region).items():
        phone = normalise(raw, region)
        if number_kind(_e164(number)) == "landline" and phone is not None and raw[:1] != "+" and way[:2] != "00":
            code = str(number.country_code)
            other = {phone.removeprefix("+" + code), _e164(number).removeprefix("+" + code)}
            if number_kind(phone) == "mobile" and any(code + one in other for one in other):
                continue
        assert phone in {None, _e164(number)}, (region, way, raw)


def _with_a_slip(digits: str) -> Iterator[str]:
    """Return digits with each one left out, and with a further one at each place."""
    for at in range(len(digits)):
        yield digits[:at] + digits[at + 1 :]
        yield digits[:at] + str(at % 10) + digits[at:]
    yield digits + "0"


def test_a_digit_too_many_or_too_few_behind_a_calling_code_makes_no_local_number() -> None:
    """The code stays a code; a mobile number that starts like it, and has lost its trunk prefix, is counted as such."""
    for region, number in _examples():
        code, digits = str(number.country_code), phonenumbers.national_significant_number(number)
        for slip in _with_a_slip(digits):
            for sign in ("", "00", "+"):
                reading = read_number(f"{sign}{code}{slip}", region)
                if sign or reading.correction != TRUNK_PREFIX:
                    assert reading.phone in {None, international(code + slip)}, (region, sign, code, slip, reading)
                else:
                    assert number_kind(reading.phone or "") == "mobile"


_PREFIX_THAT_BEGINS_NUMBERS = frozenset({"BY", "KZ", "RU"})
_REWRITTEN_IN_PART = frozenset({"GA", "NF"})
"""A local number that is a digit shorter has a form of its own."""


def test_a_digit_too_many_or_too_few_behind_a_trunk_prefix_makes_no_valid_number_with_it() -> None:
    """`0151…` is not read as a number that begins with 0."""
    for region, number in _examples():
        written = "".join(filter(str.isdigit, phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)))
        digits = phonenumbers.national_significant_number(number)
        prefix = written.removesuffix(digits)
        if prefix == written or region in _PREFIX_THAT_BEGINS_NUMBERS | _REWRITTEN_IN_PART:
            continue
        for slip in _with_a_slip(digits):
            phone = read_number(prefix + slip, region).phone
            if phone is not None and not (prefix + slip).startswith("00"):
                assert phone == international(f"{number.country_code}{slip}") or not is_valid(phone), (region, slip)


@pytest.mark.parametrize(
    ("raw", "region", "problem"),
    [
        (
            "491512345670",
            "DE",
            "starts with the country code of DE, but +491512345670 is not a valid number; "
            "as a local number it would be +49491512345670",
        ),
        (
            "412012345678",
            "CH",
            "starts with the country code of CH, but +412012345678 is not a valid number; "
            "as a local number it would be +41412012345678",
        ),
        ("71234567809", "KZ", "starts with the country code of KZ, but +71234567809 is not a valid number"),
        ("012456789", "FR", "is not a possible number of FR"),
        ("00612345678", "FR", "is ambiguous: +612345678 or +33612345678"),
        ("0066251234567", "TH", "is ambiguous: +6251234567 or +66251234567"),
    ],
)
def test_a_number_with_a_digit_too_many_or_too_few_is_refused(raw: str, region: str, problem: str) -> None:
    """It would be somebody else's landline, or a number in another country."""
    assert read_number(raw, region) == NumberReading(None, problem=problem)


@pytest.mark.parametrize(
    ("raw", "region", "reading"),
    [
        ("0491 5123456", "DE", NumberReading("+494915123456")),
        ("(55) 99123-4567", "BR", NumberReading("+5555991234567")),
        ("590271234", "GP", NumberReading("+590590271234")),
        ("262161234", "RE", NumberReading("+262262161234")),
        ("9123456789", "IN", NumberReading("+919123456789", correction=TRUNK_PREFIX)),
        ("7012345678", "KZ", NumberReading("+77012345678", correction=TRUNK_PREFIX)),
    ],
)
def test_a_local_number_may_start_like_the_calling_code(raw: str, region: str, reading: NumberReading) -> None:
    """Written as usual it is certain; a mobile number without its trunk prefix is counted as a correction."""
    assert read_number(raw, region) == reading


@pytest.mark.parametrize(
    ("raw", "region", "phone"),
    [
        ("4915123456701", "DE", "+4915123456701"),
        ("447911123456", "GB", "+447911123456"),
        ("33612345678", "FR", "+33612345678"),
        ("38343201234", "XK", "+38343201234"),
        ("5215512345678", "MX", "+5215512345678"),
    ],
)
def test_the_calling_code_of_the_region_is_read_without_its_plus(raw: str, region: str, phone: str) -> None:
    """The number is the one that was meant, and the reading says that it was corrected."""
    assert read_number(raw, region) == NumberReading(phone, correction=CALLING_CODE)


@pytest.mark.parametrize(
    ("raw", "region"),
    [("14155550102", "US"), ("(415) 555-0102", "US"), ("0049 151 23456701", "DE"), ("+4915123456701", "DE")],
)
def test_a_number_as_people_of_its_region_write_it_is_no_correction(raw: str, region: str) -> None:
    """North America dials its calling code within its own region."""
    reading = read_number(raw, region)
    assert reading.phone is not None
    assert reading.correction is None


@pytest.mark.parametrize(
    ("raw", "region", "problem"),
    [
        ("", "US", "is empty"),
        ("1" * 65, "US", "is too long for a phone number"),
        ("unknown", "US", "is not a phone number"),
        ("+999123456789", "US", "is not a possible number"),
        ("5550102", "US", "is not a possible number of US without its area code"),
        ("447911123456", "US", "is not a possible number of US"),
        ("468123456", "SE", "is ambiguous: +46468123456 or +468123456"),
        ("14155550102", "DE", "is not a number of DE; with a plus sign it would be +14155550102"),
        ("(11) 91234-5600", "ES", "is not a possible number of ES"),
        ("212345678", "IT", "has lost its first zero: +390212345678 would be possible"),
        # Digits alone belong to no country where the list has no region.
        ("6465550102", None, "has no country code"),
        ("6505550102", None, "has no country code"),
        ("5125550102", None, "has no country code"),
        ("14155550102", "ZZ", "has no country code"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(raw: str, region: str | None, problem: str) -> None:
    """People correct what they know the fault of."""
    assert read_number(raw, region) == NumberReading(None, problem=problem)


@pytest.mark.parametrize(
    "raw", ["111-111-1111", "123-456-7890", "(415) 055-0102", "0612345678", "1 415 055 0102", "011 1 415 055 0102"]
)
@pytest.mark.parametrize("region", ["US", "CA", "JM"])
def test_north_american_area_codes_and_exchanges_begin_with_2_to_9(raw: str, region: str) -> None:
    """Other digits are placeholders, or a number of another country."""
    reading = read_number(raw, region)
    assert reading.phone is None
    assert reading.problem is not None
    assert reading.problem.startswith("cannot be a North American number")


@pytest.mark.parametrize("raw", ["000-000-0000", "0000000", "0012", "0049", "00999123456"])
@pytest.mark.parametrize("region", ["US", "DE", "BR", None])
def test_two_zeros_without_a_country_code_behind_them_are_refused(raw: str, region: str | None) -> None:
    """Two zeros begin an international number, and no country code begins with a zero."""
    assert read_number(raw, region) == NumberReading(None, problem="is not a possible number")


_PIECES = st.one_of(
    st.sampled_from(["0", "00", "000", "011", "+", "1", "49", "52", "999", " ", "-", "/", ";", "(", ")", " or ", "x"]),
    st.text("0123456789", max_size=12),
)


@given(
    st.one_of(st.lists(_PIECES, max_size=6).map("".join), st.text(max_size=20)),
    st.one_of(st.none(), st.sampled_from([*_REGIONS, "ZZ"])),
)
def test_a_reading_has_either_a_number_or_a_problem(raw: str, region: str | None) -> None:
    """A text is never refused without a reason."""
    reading = read_number(raw, region)
    assert (reading.phone is None) != (reading.problem is None)


@pytest.mark.parametrize(("phone", "problem"), [(None, None), ("+14155550102", "is empty")])
def test_a_reading_without_a_number_or_a_problem_cannot_be_made(phone: str | None, problem: str | None) -> None:
    """A caller that looks at one of them knows the other."""
    with pytest.raises(ValueError, match="a number or a problem"):
        NumberReading(phone, problem=problem)


@pytest.mark.parametrize(
    ("raw", "region", "phone"),
    [
        ("43664123456.0", "AT", "+43664123456"),
        ("15123456701.0", "DE", "+4915123456701"),
        ("+43664123456,00", None, "+43664123456"),
        (" tel:+43664123456.0", None, "+43664123456"),
        ("\u200b４３６６４１２３４５６．０", "AT", "+43664123456"),
        ("4.3664123456E+10", "AT", "+43664123456"),
        ("+4.3664123456E+10", None, "+43664123456"),
        ("4155550102.0", "US", "+14155550102"),
        ("415555010.0", "US", None),
        ("01.23.45.67.00", "FR", "+33123456700"),
    ],
)
def test_a_whole_number_may_be_written_as_a_decimal_one(raw: str, region: str | None, phone: str | None) -> None:
    """The zero behind the point is no digit of it; a point between groups is one of several."""
    assert (read_number(raw, region).phone, normalise(raw, region)) == (phone, phone)


def test_a_number_in_scientific_notation_that_has_lost_digits_says_so() -> None:
    """In any list, as in the file of an import."""
    assert read_number("4.36641E+10", "AT") == NumberReading(None, problem=LOST_DIGITS)


@pytest.mark.parametrize(
    ("raw", "region", "local", "foreign"),
    [
        ("447911123456", "DE", "+49447911123456", "+447911123456"),
        ("43664123456", "DE", "+4943664123456", "+43664123456"),
        ("43664123456.0", "DE", "+4943664123456", "+43664123456"),
        ("33612345678", "DE", "+4933612345678", "+33612345678"),
        ("12025550102", "AT", "+4312025550102", "+12025550102"),
    ],
)
def test_a_foreign_mobile_number_without_its_plus_is_no_landline(
    raw: str, region: str, local: str, foreign: str
) -> None:
    """Both readings are shown. With the zero of the landline, or the plus sign, each is what it says."""
    assert read_number(raw, region) == NumberReading(None, problem=f"is ambiguous: {local} or {foreign}")
    digits = local.removeprefix(f"+{phonenumbers.country_code_for_region(region)}")
    assert normalise("0" + digits, region) == local
    assert normalise(foreign, region) == foreign
    assert canonical_phone(raw.removesuffix(".0"), region) == foreign


def test_a_mobile_number_of_the_region_is_read_though_another_country_has_its_digits() -> None:
    """Its trunk prefix is gone, which is counted; where a country writes none nothing is missing."""
    assert read_number("15123456701", "DE") == NumberReading("+4915123456701", correction=TRUNK_PREFIX)
    assert read_number("68271234", "DK") == NumberReading("+4568271234")


def test_few_landlines_without_their_zero_are_refused() -> None:
    """Most of their digits are no mobile number elsewhere."""
    rng = random.Random(7)
    for region, share in {"DE": 0.02, "AT": 0.02, "FR": 0.02, "GB": 0.02, "IT": 0.0}.items():
        found = list(islice(_landlines(region, rng), 500))
        refused = [phone for phone in found if read_number(phone.removeprefix(_code(region)), region).phone is None]
        assert len(refused) <= share * len(found), (region, refused[:5])


def _code(region: str) -> str:
    return f"+{phonenumbers.country_code_for_region(region)}"


def _landlines(region: str, rng: random.Random) -> Iterator[str]:
    """Yield valid landlines of a region, with random digits behind those of a real area code."""
    for _ in range(100_000):
        area, length = rng.choice(_AREAS[region])
        phone = _code(region) + area + "".join(rng.choices("0123456789", k=length))
        if is_valid(phone) and number_kind(phone) == "landline":
            yield phone


def test_a_number_with_its_plus_is_taken_as_written() -> None:
    """The rule of North American numbers is for digits that may have lost something."""
    assert normalise("+1 415 055 0102", "US") == "+14150550102"


@pytest.mark.parametrize(
    "raw",
    [
        "415 555 0108 / 0109",
        "415-555-0108 or 415-555-0109",
        "415 555 0108, 415 555 0109",
        "4155550108;4155550109",
        "4155550108\n4155550109",
        "415 555 0108 415 555 0109",
        "+14155550108 +14155550109",
        "+14155550108/9",
        "home 415 555 0108 work 415 555 0109",
    ],
)
@pytest.mark.parametrize("region", ["US", None])
def test_two_numbers_in_a_cell_are_refused_as_two(raw: str, region: str | None) -> None:
    """Together they may be as long as one."""
    reading = read_number(raw, region)
    assert reading.phone is None
    if region is not None or "+" in raw or not raw.replace(" ", "").isdigit():
        assert reading.problem == SEVERAL_NUMBERS


@pytest.mark.parametrize(
    ("raw", "region"),
    [
        ("0171 2345678/9", "DE"),
        ("030 1234567\n030 7654321", "DE"),
        ("030 1234 030 5678", "DE"),
        ("(030) 1234 (030) 5678", "DE"),
        ("030-1234 030-5678", "DE"),
        ("030 1234 089 5678", "DE"),
        ("+49 30 1234 030 5678", "DE"),
        ("01 5120 01 5121", "AT"),
        ("01\u00a05120 01\u00a05121", "AT"),
        ("09 1234 09 5678", "FI"),
        ("06 5120 06 5121", "IT"),
    ],
)
def test_two_short_numbers_are_not_one_long_number(raw: str, region: str) -> None:
    """German numbers vary in length."""
    assert read_number(raw, region).problem == SEVERAL_NUMBERS
    assert normalise(raw, region) is None


@pytest.mark.parametrize(
    ("raw", "region", "phone"),
    [
        ("030 12 05 67 89", "DE", "+493012056789"),
        ("030 1234 0567", "DE", "+493012340567"),
        ("0151 234 056 01", "DE", "+4915123405601"),
        ("0171 030 0305", "DE", "+491710300305"),
        ("+44 (0)20 7946 0958", "DE", "+442079460958"),
        ("01 51 20 01 51", "AT", "+43151200151"),
        ("06 05 06 05 06", "FR", "+33605060506"),
    ],
)
def test_a_group_that_begins_with_a_zero_is_no_second_number(raw: str, region: str, phone: str) -> None:
    """An area code is repeated, or as long as one, and a number stands behind it."""
    assert read_number(raw, region).phone == phone


@pytest.mark.parametrize("region", [None, "DE"])
@pytest.mark.parametrize(
    ("raw", "phone"),
    [
        ("+48 (0)512 345 678", "+48512345678"),
        ("0048 (0) 512 345 678", "+48512345678"),
        ("+34 [0] 612 345 678", "+34612345678"),
        ("+43 (0)664 1234567", "+436641234567"),
        ("+39 (0)347 1234567", "+393471234567"),
        # Landlines of Italy keep their zero, also where a mobile number has the digits without it.
        ("+39 (0)6 69821234", "+390669821234"),
        ("+39 (0)331 123456", "+390331123456"),
    ],
)
def test_a_zero_in_brackets_behind_the_country_code_is_dropped_where_the_number_has_none(
    raw: str, region: str | None, phone: str
) -> None:
    """Many write it so in every country."""
    assert read_number(raw, region).phone == phone
    assert normalise(raw, region) == phone


@given(_valid_numbers(), st.lists(st.integers(1, 4), min_size=15, max_size=15), st.sampled_from([" ", "-", "\u00a0"]))
def test_a_number_is_one_number_in_any_grouping(
    drawn: tuple[str, PhoneNumber], lengths: list[int], separator: str
) -> None:
    """It is read as without separators, or refused as two; a mobile number is always one."""
    region, number = drawn
    national = "".join(filter(str.isdigit, phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)))
    groups, rest = [], national
    for length in lengths:
        groups.append(rest[:length])
        rest = rest[length:]
    grouped = read_number(separator.join(filter(None, [*groups, rest])), region)
    if grouped.problem != SEVERAL_NUMBERS or number_kind(_e164(number)) == "mobile":
        assert grouped == read_number(national, region)


@pytest.mark.parametrize("raw", ["030/1234567", "(030) / 1234567", "0151/23456789", "+49 30/1234567"])
def test_a_slash_behind_an_area_code_is_no_second_number(raw: str) -> None:
    """Germany writes its area codes so."""
    assert normalise(raw, "DE") in {"+49301234567", "+4915123456789"}


def test_digits_without_a_region_are_international_in_a_single_request_only() -> None:
    """The pattern of POST /calls and POST /sms makes the plus sign optional."""
    assert canonical_phone("14155550102", None) == "+14155550102"
    assert normalise("14155550102", None) is None


@pytest.mark.parametrize(
    ("written", "region", "phone"),
    [
        ("4155550102", "US", "+14155550102"),
        ("4915123456701", "DE", "+4915123456701"),
        ("14155550102", "DE", "+14155550102"),
        ("14155550102", "GB", "+14155550102"),
        ("468123456", "SE", "+468123456"),
    ],
)
def test_a_single_request_reads_its_region_first(written: str, region: str, phone: str) -> None:
    """What a list would refuse is international, as the pattern of `to` says."""
    assert canonical_phone(written, region) == phone


@pytest.mark.parametrize(
    ("phone", "country", "kind"),
    [
        ("+4915123456701", "DE", "mobile"),
        ("+49301234567", "DE", "landline"),
        ("+14155550102", "US", "unknown"),
        ("+5215512345678", "MX", "unknown"),
        ("+551187654321", "BR", "mobile"),
        ("+5491123456789", "AR", "mobile"),
        ("+447400123456", "GB", "mobile"),
        ("+15550001234", "US", "unknown"),
        ("+999123456789", None, "unknown"),
    ],
)
def test_country_and_kind_of_a_number_are_known(phone: str, country: str | None, kind: str) -> None:
    """North American and Mexican numbers do not show whether they are mobile."""
    assert country_of(phone) == country
    assert number_kind(phone) == kind
