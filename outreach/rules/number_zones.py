"""The country of a phone number, and its time zones, by its longest prefix in a table.

`phonenumbers` has this table among 44 MB of others, and `phonenumberslite` does not; `number_zones.txt` is made from it
for each version of this package.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources
from typing import Final

from outreach.rules.numbering import spellings

NANP: Final = re.compile(r"\+1[2-9][0-9]{9}")


def number_zones(phone: str) -> tuple[str, ...]:
    """Return the time zones of an E.164 number as the table has them; empty if the number or its place is unknown.

    A number without a place, such as a toll-free one, may be anywhere in its country.
    """
    if NANP.fullmatch(phone):
        return _zones_of_thousand(phone[:-3])
    # The table has one spelling of a line.
    return next((zones for each in spellings(phone) if (zones := look_up_zones(each))), ())


# A list of contacts in North America has many numbers of the same thousand.
@functools.lru_cache(maxsize=262_144)
def _zones_of_thousand(start: str) -> tuple[str, ...]:
    """Return the zones of all numbers of North America with this start: the last three digits decide nothing there."""
    return look_up_zones(f"{start}100")


@functools.lru_cache(maxsize=65_536)
def look_up_zones(phone: str) -> tuple[str, ...]:
    """Return what `number_zones` returns, without its shortcut, which is tested against this definition."""
    # Imported here, because its tables take long to load.
    import phonenumbers

    try:
        number = phonenumbers.parse(phone)
    except phonenumbers.NumberParseException:
        return ()
    kind = phonenumbers.number_type(number)
    country = number.country_code
    if country is None or kind == phonenumbers.PhoneNumberType.UNKNOWN:
        return ()
    digits = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)[1:]
    if not phonenumbers.is_number_type_geographical(kind, country):
        digits = _country_digits(digits, country)
    table = _table()
    for length in range(len(digits), 0, -1):
        if (zones := table.get(digits[:length])) is not None:
            return zones
    return ()


def _country_digits(digits: str, calling_code: int) -> str:
    """Return the start of a number that tells its country.

    In North America it is the area code; numbers of Kazakhstan begin with 77, which none of Russia does.
    """
    if calling_code == 1:
        return digits[:4]
    return "77" if digits.startswith("77") else str(calling_code)


@functools.cache
def _table() -> Mapping[str, tuple[str, ...]]:
    """Return the zones by prefix."""
    text = resources.files("outreach.rules").joinpath("number_zones.txt").read_text("utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            zones, *prefixes = line.split(" ")
            found |= dict.fromkeys(prefixes, tuple(zones.split("&")))
    return found


def country_of_phone(phone: str) -> str | None:
    """Return the country of an E.164 number as ISO 3166 alpha-2; None if it is unknown or of no country."""
    # The table's prefixes in North America are at most seven digits long, so the last three decide nothing.
    return look_up_country(f"{phone[:-3]}100" if NANP.fullmatch(phone) else phone)


@functools.lru_cache(maxsize=65_536)
def look_up_country(phone: str) -> str | None:
    """Return what `country_of_phone` returns, without its shortcut."""
    if not phone.startswith("+"):
        # What stands for an erased number may begin with digits as well.
        return None
    # Imported here, because its tables take long to load.
    import phonenumbers

    for length in (1, 2, 3):
        code = phone[1 : 1 + length]
        regions = phonenumbers.COUNTRY_CODE_TO_REGION_CODE.get(int(code)) if code.isdecimal() else None
        if regions is not None and len(regions) == 1:
            # Many calling codes belong to one country, whatever follows.
            return regions[0] if regions[0] != phonenumbers.REGION_CODE_FOR_NON_GEO_ENTITY else None
    try:
        return phonenumbers.region_code_for_number(phonenumbers.parse(phone))
    except phonenumbers.NumberParseException:
        return None
