"""The time zones in which a phone number may be, by the longest prefix of it that a table has.

`phonenumbers` has the same table, beside 44 MB that nobody here reads; `phonenumberslite` leaves all of that out. The
table in `number_zones.txt` is made from that of `phonenumbers` for each version of this package.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources


def number_zones(phone: str) -> tuple[str, ...]:
    """Return the names of the zones as the table has them; empty where the number or its place is not known.

    A number that belongs to no place, such as a toll-free one, may be anywhere in its country.

    Args:
        phone: E.164.
    """
    # Imported where it is used: its tables take long to load.
    import phonenumbers

    try:
        number = phonenumbers.parse(phone)
    except phonenumbers.NumberParseException:
        return ()
    kind = phonenumbers.number_type(number)
    country = number.country_code
    if country is None or kind == phonenumbers.PhoneNumberType.UNKNOWN:
        return ()
    if phonenumbers.is_number_type_geographical(kind, country):
        digits = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)[1:]
    else:
        digits = str(country)
    table = _table()
    for length in range(len(digits), 0, -1):
        if (zones := table.get(digits[:length])) is not None:
            return zones
    return ()


@functools.cache
def _table() -> Mapping[str, tuple[str, ...]]:
    """Return the zones by prefix."""
    text = resources.files("outreach.policy").joinpath("number_zones.txt").read_text("utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            zones, *prefixes = line.split(" ")
            found |= dict.fromkeys(prefixes, tuple(zones.split("&")))
    return found
