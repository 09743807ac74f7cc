"""States of the United States by name, and states and time zones by ZIP code and area code, from `us_places.txt`."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources
from typing import Final

import attrs

_ZIP_CODE: Final = re.compile(r"(\d{3,5})(-?\d{4})?(\.0)?", re.ASCII)
_ZIP_DIGITS: Final = 5
_PREFIX_DIGITS: Final = 3
_NOT_A_LETTER: Final = re.compile(r"[^a-z]+")


@attrs.frozen
class UsPlace:
    """A state, or the ZIP codes with the same first three digits.

    Attributes:
        states: The codes of its states, sorted.
        zones: Its time zones, sorted.
    """

    states: tuple[str, ...]
    zones: tuple[str, ...]


@attrs.frozen
class _Table:
    """The table.

    Attributes:
        by_place: The places by the first three digits of ZIP codes, and by the codes of states.
        state_of_name: The codes of states by code and name, without case, spaces and punctuation.
        state_of_area: The codes of states by area code.
    """

    by_place: Mapping[str, UsPlace]
    state_of_name: Mapping[str, str]
    state_of_area: Mapping[str, str]


def read_us_place(zip_code: str | None, state: str | None) -> str | None:
    """Return the first three digits of a ZIP code; without a known one the code of a state; None if neither is known.

    A ZIP code may lack the zeros at its start, which spreadsheets remove, and end with the `.0` that they add.
    """
    table = _table()
    found = _ZIP_CODE.fullmatch(zip_code.strip()) if zip_code is not None else None
    if found is not None and (prefix := found[1].zfill(_ZIP_DIGITS)[:_PREFIX_DIGITS]) in table.by_place:
        return prefix
    return table.state_of_name.get(_plain(state)) if state is not None else None


def as_address(place: str) -> Mapping[str, str | None]:
    """Return a ZIP code or a state for which `read_us_place` returns this place."""
    if place.isdecimal():
        return {"zip_code": place.ljust(_ZIP_DIGITS, "0"), "state": None}
    return {"zip_code": None, "state": place}


def us_place(place: str) -> UsPlace | None:
    """Return the place that `read_us_place` has named; None if the table no longer has it."""
    return _table().by_place.get(place)


def is_state(code: str) -> bool:
    """Return whether a text is the code of a state, such as `FL`."""
    return code.isalpha() and code in _table().by_place


def state_of_area(area: str) -> str | None:
    """Return the state of an area code; None where it has none."""
    return _table().state_of_area.get(area)


def _plain(name: str) -> str:
    return _NOT_A_LETTER.sub("", name.casefold())


@functools.cache
def _table() -> _Table:
    text = resources.files("outreach.rules").joinpath("us_places.txt").read_text("utf-8")
    by_place: dict[str, UsPlace] = {}
    places_of_state: dict[str, list[UsPlace]] = {}
    state_of_name: dict[str, str] = {}
    state_of_area: dict[str, str] = {}
    for line in text.splitlines():
        kind, key, rest = line.split(" ", 2)
        if kind == "name":
            state_of_name |= dict.fromkeys(map(_plain, (key, *rest.split("|"))), key)
        elif kind == "area":
            state_of_area |= dict.fromkeys(rest.split(" "), key)
        elif kind == "zip":
            zones, *prefixes = rest.split(" ")
            place = UsPlace(tuple(key.split("&")), tuple(zones.split("&")))
            by_place |= dict.fromkeys(prefixes, place)
            for state in place.states:
                places_of_state.setdefault(state, []).append(place)
    for state, places in places_of_state.items():
        # A state that shares all its ZIP codes, such as Guam, may have the zones of all of them.
        own = [place for place in places if len(place.states) == 1] or places
        by_place[state] = UsPlace((state,), tuple(sorted({zone for place in own for zone in place.zones})))
    return _Table(by_place, state_of_name, state_of_area)
