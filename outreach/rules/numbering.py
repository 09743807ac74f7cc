"""Facts about numbers from the numbering tables (possible, valid, region), and the spellings of one line.

A number is dialled as it was written. The register, duplicates, the frequency cap and look-ups compare lines: a
person is recognised by the first spelling. `phonenumbers` is imported when needed, because its tables are large.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, Literal

import attrs

if TYPE_CHECKING:
    from phonenumbers import PhoneMetadata, PhoneNumber


_OLD_AND_NEW: Final = (
    # Mexico dropped the 1 of mobile numbers in 2019. Messaging channels still write it.
    (re.compile(r"\+52(?:1(?=[0-9]{10}$))?([0-9]{10})"), ("+52", "+521")),
    # Argentina writes a 9 before the area code of mobile numbers that are called from abroad.
    (re.compile(r"\+54(?:9(?=[0-9]{10}$))?([0-9]{10})"), ("+54", "+549")),
)
"""The group of a pattern is the same in all spellings; then what stands before it in each, that of the key first."""

_BRAZILIAN_MOBILE: Final = re.compile(r"\+55([1-9][0-9])(?:9(?=[0-9]{8}$))?([6-9][0-9]{7})")
"""Brazil put a 9 before the eight digits of mobile numbers, which began with 6 to 9. Landlines begin with 2 to 5."""


def spellings(phone: str) -> tuple[str, ...]:
    """Return all spellings of a number in E.164, itself first."""
    if phone[:3] not in {"+52", "+54", "+55"}:
        return (phone,)
    known = _all_spellings(phone)
    return (phone, *(each for each in known if each != phone))


def person_key(phone: str) -> str:
    """Return the key of the person at a number in E.164: the same for all spellings, itself one of them."""
    return phone if phone[:3] not in {"+52", "+54", "+55"} else _all_spellings(phone)[0]


def _all_spellings(phone: str) -> tuple[str, ...]:
    if (match := _BRAZILIAN_MOBILE.fullmatch(phone)) is not None:
        area, subscriber = match.groups()
        return (f"+55{area}9{subscriber}", f"+55{area}{subscriber}")
    for pattern, prefixes in _OLD_AND_NEW:
        if (match := pattern.fullmatch(phone)) is not None:
            return tuple(prefix + match[1] for prefix in prefixes)
    return (phone,)


E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")

_MEXICAN_MOBILE: Final = re.compile(r"\+521([0-9]{10})")
"""The form of Mexican mobile numbers until 2019, which messaging channels still use."""

NANP_CODE: Final = 1
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
        if E164.fullmatch(number) and is_plain_international(number[1:]):
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
    prefixed = phone if source == phonenumbers.CountryCodeSource.FROM_NUMBER_WITH_IDD else None
    if phone is None or source != phonenumbers.CountryCodeSource.FROM_DEFAULT_COUNTRY:
        phone = international(f"{country_code(region)}{number}")
    return None if phone is not None and _keeps_trunk_prefix(phone, region) else phone, prefixed


def _keeps_trunk_prefix(phone: str, region: str) -> bool:
    """Return whether no number, but digits that are as long as one only with the trunk prefix of a region."""
    import phonenumbers

    prefix = phonenumbers.ndd_prefix_for_region(region, True)
    if prefix is None or country_code(region) == NANP_CODE:
        return False
    return phone.startswith(f"+{country_code(region)}{prefix}") and not is_valid(phone)


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


def former_readings(phone: str, region: str) -> tuple[str, ...]:
    """Return what earlier versions read in a region where a number was written without a plus sign, or with `00`.

    It has only those that are another number: they read these digits as a national number, or behind the number of an
    operator, wherever that was possible.
    """
    region = region.upper()
    plan = _plan_of_region(region)
    digits = phone[1:]
    if plan is None or (plan.code == NANP_CODE and digits[:1] == "1"):
        return ()
    if plan.begins_unlike_a_number(digits):
        found = [_former_reading(digits, region)]
    else:
        found = [f"+{plan.code}{digits}"] if len(digits) in plan.lengths else []
    if plan.has_own_prefix:
        found.append(_former_reading("00" + digits, region))
    return tuple(each for each in found if each is not None and each != phone)


@functools.lru_cache(maxsize=4096)
def _former_reading(number: str, region: str) -> str | None:
    phone = _possible(_parse(number, region))
    return None if phone is None else international(phone[1:])


def is_nearly_as_long(digits: str, region: str) -> bool:
    """Return whether digits are as long as a national number of a region, give or take one digit."""
    plan = _plan_of_region(region)
    return plan is not None and any(abs(len(digits) - length) <= 1 for length in plan.lengths)


def is_national_form(digits: str, phone: str) -> bool:
    """Return whether a number in E.164 has these digits where its country writes it nationally.

    German numbers have a trunk zero there, Spanish ones do not.
    """
    import phonenumbers

    number = _parse(phone, None)
    if number is None:
        return False
    written = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    return phonenumbers.normalize_digits_only(written) == digits


def number_kind(phone: str) -> NumberKind:
    """Return whether a number in E.164 is a mobile one or a landline, as far as its numbering plan shows."""
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
    return formatted if E164.fullmatch(formatted) else None


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


@attrs.frozen(kw_only=True)
class _NumberingPlan:
    """The numbering plan of a country code, or of one region that shares it with others.

    Attributes:
        code: The country code.
        trunk_prefix: The prefix that is removed or rewritten in national numbers.
        international_prefix: The digits before a country code without a plus sign.
        lengths: The lengths of national numbers.
    """

    code: int
    trunk_prefix: re.Pattern[str] | None
    international_prefix: re.Pattern[str]
    lengths: frozenset[int]

    @property
    def has_own_prefix(self) -> bool:
        """Return whether the international prefix is another one than `00`."""
        return self.international_prefix.pattern != "00"

    def begins_unlike_a_number(self, digits: str) -> bool:
        """Return whether digits begin with what is removed or rewritten."""
        patterns = (self.trunk_prefix, self.international_prefix)
        return any(pattern is not None and pattern.match(digits) is not None for pattern in patterns)


@functools.cache
def _numbering_plan(code: int) -> _NumberingPlan | None:
    import phonenumbers

    if code not in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        return None
    region = phonenumbers.region_code_for_country_code(code)
    return _plan(phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code(code, region))


@functools.cache
def _plan_of_region(region: str) -> _NumberingPlan | None:
    import phonenumbers

    plan = _plan(phonenumbers.PhoneMetadata.metadata_for_region(region)) if is_region(region) else None
    main = None if plan is None else _numbering_plan(plan.code)
    if plan is None or main is None:
        return plan
    # Whether a length is possible, the library reads in the plan of the main region.
    return attrs.evolve(plan, lengths=plan.lengths | main.lengths)


def _plan(metadata: PhoneMetadata | None) -> _NumberingPlan | None:
    if metadata is None or metadata.general_desc is None:
        return None
    prefix = metadata.national_prefix_for_parsing
    return _NumberingPlan(
        code=int(metadata.country_code or 0),
        trunk_prefix=re.compile(prefix) if prefix else None,
        international_prefix=re.compile(metadata.international_prefix or "00"),
        lengths=frozenset(metadata.general_desc.possible_length),
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
