"""Where a contact is: the time zones and the regions whose hours count for it, and what tells them.

Its own time zone wins over its ZIP code, that over its state, and that over its number. The hours of a country or of a
state count for everybody who may be there, whatever tells the zone.
"""

from __future__ import annotations

import functools
from typing import Final

import attrs

from outreach.core.clock import is_zone
from outreach.models.campaign import Recipient
from outreach.models.states import ZoneSource
from outreach.rules.contact_hours import time_zones_of_phone
from outreach.rules.number_zones import NANP, country_of_phone
from outreach.rules.us_places import read_us_place, state_of_area, us_place

_WITH_US_ADDRESSES: Final = frozenset({"US", "CA", "PR", "VI", "GU", "AS", "MP"})
"""Countries of numbers whose ZIP codes and states are read: no Canadian address looks like one of the United States."""


@attrs.frozen
class ContactPlace:
    """Where a contact is.

    Attributes:
        zones: The time zones in which it may be, sorted; empty if none is known.
        source: What tells them.
        regions: Its country, and its states as `US-FL`, as far as they are known.
    """

    zones: tuple[str, ...]
    source: ZoneSource
    regions: tuple[str, ...]


def place_of(recipient: Recipient) -> ContactPlace:
    """Return where a contact is."""
    phone = recipient.phone or ""
    if recipient.time_zone is None and recipient.us_place is None:
        return place_of_phone(phone)
    return _known_place(phone, recipient.time_zone, recipient.us_place)


def place_of_phone(phone: str) -> ContactPlace:
    """Return where a number is, in E.164; nothing is known of an empty one."""
    # As in `number_zones`: the last three digits decide nothing in North America.
    return _place_of_number(f"{phone[:-3]}100" if NANP.fullmatch(phone) else phone)


def us_place_of(phone: str | None, zip_code: str | None, state: str | None) -> str | None:
    """Return the place in the United States that is stored of a contact; None for numbers of other countries."""
    if (zip_code is None and state is None) or phone is None or country_of_phone(phone) not in _WITH_US_ADDRESSES:
        return None
    return read_us_place(zip_code, state)


# A list of contacts in North America has many numbers of the same thousand.
@functools.lru_cache(maxsize=262_144)
def _place_of_number(phone: str) -> ContactPlace:
    return ContactPlace(time_zones_of_phone(phone), "number", _regions(phone, None))


@functools.lru_cache(maxsize=262_144)
def _known_place(phone: str, time_zone: str | None, place: str | None) -> ContactPlace:
    known = us_place(place) if place is not None else None
    regions = _regions(phone, None if known is None else known.states)
    if time_zone is not None:
        # Another machine may have stored it, with newer time zone rules.
        return ContactPlace((time_zone,) if is_zone(time_zone) else (), "own", regions)
    if known is None:
        return ContactPlace(time_zones_of_phone(phone), "number", regions)
    return ContactPlace(known.zones, "zip" if (place or "").isdecimal() else "state", regions)


def _regions(phone: str, states: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the country of a number and the states of a contact, by default that of the area code."""
    country = country_of_phone(phone)
    area = state_of_area(phone[2:5]) if NANP.fullmatch(phone) else None
    found = (() if area is None else (area,)) if states is None else states
    regions = {f"US-{state}" for state in found} | ({"US"} if found else set()) | ({country} if country else set())
    return tuple(sorted(regions))
