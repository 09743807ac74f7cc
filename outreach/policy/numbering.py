"""What the numbering tables know about numbers: which are possible, which are valid, and whose they are.

`phonenumbers` is imported when needed, because its tables are large.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, Literal

import attrs

from outreach.policy.spellings import spellings

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber

_E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")

_MEXICAN_MOBILE: Final = re.compile(r"\+521([0-9]{10})")
"""The form of Mexican mobile numbers until 2019, which messaging channels still use."""

_MAX_PASSES: Final = 8

NumberKind = Literal["mobile", "landline", "unknown"]
"""`unknown` is also a number of a plan that does not tell the two apart, such as the North American one."""


def is_region(region: str) -> bool:
    """Return whether a text names a region that numbers can be read in, such as `US`."""
    return region in _regions()


def international(digits: str) -> str | None:
    """Return the E.164 form of digits that begin with a country code, or None if the number is not possible.

    Reading the result again does not change it: where lengths vary (Germany), one reading removes only one of several
    trunk prefixes.
    """
    number = "+" + digits
    if (match := _MEXICAN_MOBILE.fullmatch(number)) is not None:
        return number if international("52" + match[1]) is not None else None
    for _ in range(_MAX_PASSES):
        if _E164.fullmatch(number) and is_plain_international(number[1:]):
            return number
        again = _possible(_parse(number, None))
        if again is None or again == number:
            return again
        number = again
    return None


def local_readings(number: str, region: str) -> tuple[str | None, str | None]:
    """Return the E.164 forms of digits in a region: as a national number, and behind its international prefix.

    Either is None if it is not possible.
    """
    import phonenumbers

    parsed = _parse(number, region)
    source = None if parsed is None else parsed.country_code_source
    phone = _possible(parsed)
    if phone is not None:
        phone = international(phone[1:])
    if phone is not None and source == phonenumbers.CountryCodeSource.FROM_DEFAULT_COUNTRY:
        return phone, None
    prefixed = phone if source == phonenumbers.CountryCodeSource.FROM_NUMBER_WITH_IDD else None
    return international(f"{country_code(region)}{number}"), prefixed


def with_first_zero(number: str, region: str) -> str | None:
    """Return the other number that digits are in a region with a zero before them, which spreadsheets drop, or None.

    Mostly there is none, as the zero is the trunk prefix. It may be a part of the number (Italy), or of a longer prefix
    (Hungary).
    """
    plan = _numbering_plan(country_code(region))
    if number[0] == "0" or plan is None:
        return None
    if plan.trunk_prefix is None:
        possible = len(number) + 1 in plan.lengths
    else:
        trunk = plan.trunk_prefix.match("0" + number)
        possible = trunk is None or trunk.end() > 1
    phone = local_readings("0" + number, region)[0] if possible else None
    return phone if phone is not None and number_kind(phone) != "unknown" else None


def number_kind(phone: str) -> NumberKind:
    """Return whether a number in E.164 is a mobile one or a landline, as far as its numbering plan tells."""
    import phonenumbers

    kind = _type_and_region(phone)[0]
    if kind == phonenumbers.PhoneNumberType.MOBILE:
        return "mobile"
    return "landline" if kind == phonenumbers.PhoneNumberType.FIXED_LINE else "unknown"


def country_of(phone: str) -> str | None:
    """Return the region of a number in E.164, such as `DE`; None if no numbering plan knows it.

    A possible number that is not valid belongs to the main region of its calling code.
    """
    return _type_and_region(phone)[1]


def is_valid(phone: str) -> bool:
    """Return whether a number in E.164, in any of its spellings, is in a range that its numbering plan has opened."""
    import phonenumbers

    return _type_and_region(phone)[0] != phonenumbers.PhoneNumberType.UNKNOWN


@functools.lru_cache(maxsize=256)
def _type_and_region(phone: str) -> tuple[int, str | None]:
    """Return the type and the region of a number in its first valid spelling."""
    import phonenumbers

    main: str | None = None
    for each in spellings(phone):
        number = _parse(each, None)
        if number is None:
            continue
        kind, region = phonenumbers.number_type(number), phonenumbers.region_code_for_number(number)
        if kind != phonenumbers.PhoneNumberType.UNKNOWN:
            return kind, region
        main = phonenumbers.region_code_for_country_code(number.country_code or 0)
    return phonenumbers.PhoneNumberType.UNKNOWN, main if main is not None and is_region(main) else None


def _parse(text: str, region: str | None) -> PhoneNumber | None:
    import phonenumbers

    try:
        return phonenumbers.parse(text, region, keep_raw_input=True)
    except phonenumbers.NumberParseException:
        return None


def _possible(number: PhoneNumber | None) -> str | None:
    """Return the E.164 form of a number, or None if the number is not possible."""
    import phonenumbers

    # `is_possible_number` also accepts numbers that work only within one area.
    if (
        number is None
        or phonenumbers.is_possible_number_with_reason(number) != phonenumbers.ValidationResult.IS_POSSIBLE
    ):
        return None
    formatted = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    return formatted if _E164.fullmatch(formatted) else None


def is_local(number: str, region: str) -> bool:
    """Return whether digits are a number that works only within one area of a region."""
    import phonenumbers

    parsed = _parse(number, region)
    local = phonenumbers.ValidationResult.IS_POSSIBLE_LOCAL_ONLY
    return parsed is not None and phonenumbers.is_possible_number_with_reason(parsed) == local


@functools.cache
def _regions() -> AbstractSet[str]:
    import phonenumbers

    return frozenset(phonenumbers.SUPPORTED_REGIONS)


@functools.cache
def _supported_country_code(region: str) -> int:
    import phonenumbers

    return phonenumbers.country_code_for_region(region)


def country_code(region: str) -> int:
    """Return a region's country code; 0 for an unknown region."""
    region = region.upper()
    return _supported_country_code(region) if is_region(region) else 0


@attrs.frozen
class _NumberingPlan:
    """The numbering plan of a country code: the prefix removed or rewritten in national numbers, and their lengths."""

    trunk_prefix: re.Pattern[str] | None
    lengths: frozenset[int]


@functools.cache
def _numbering_plan(code: int) -> _NumberingPlan | None:
    import phonenumbers

    if code not in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        return None
    region = phonenumbers.region_code_for_country_code(code)
    metadata = phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code(code, region)
    if metadata is None or metadata.general_desc is None:
        return None
    prefix = metadata.national_prefix_for_parsing
    return _NumberingPlan(
        trunk_prefix=re.compile(prefix) if prefix else None, lengths=frozenset(metadata.general_desc.possible_length)
    )


def is_plain_international(digits: str) -> bool:
    """Return whether digits are a possible number that `international` does not change."""
    for width in (1, 2, 3):
        plan = _numbering_plan(int(digits[:width]))
        if plan is not None:
            national = digits[width:]
            unchanged = plan.trunk_prefix is None or plan.trunk_prefix.match(national) is None
            return unchanged and len(national) in plan.lengths
    return False
