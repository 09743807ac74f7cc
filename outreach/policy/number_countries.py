"""The country of a phone number."""

from __future__ import annotations

import functools

from outreach.policy.number_zones import NANP


def country_of_phone(phone: str) -> str | None:
    """Return the country of an E.164 number as ISO 3166 alpha-2; None if it is unknown or of no country."""
    # The last three digits decide nothing in North America (`policy.number_zones`).
    return look_up_country(f"{phone[:-3]}100" if NANP.fullmatch(phone) else phone)


@functools.lru_cache(maxsize=65_536)
def look_up_country(phone: str) -> str | None:
    """Return what `country_of_phone` returns, without its shortcut."""
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
