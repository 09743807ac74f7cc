"""Holiday calendars in and out of JSON.

    {"country": "US", "holidays": [{"date": "2026-12-25", "name": "Christmas Day", "enabled": true}]}

A country without `holidays` is filled with its national public holidays; with a `subdivision` (`ENG` of `GB`), also
with those of that part. A given list, even an empty one, is kept as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

from outreach.convert.json_reader import JsonReader
from outreach.meant import dates_like, did_you_mean, nearest, regions_like
from outreach.models.hours import Holiday, HolidayCalendar
from outreach.policy.holidays import (
    code_of_country,
    filled_years,
    holiday_parts,
    is_supported,
    names_of_parts,
    public_holidays,
)

MAX_HOLIDAYS: Final = 1000

_MAX_NAME_LENGTH: Final = 255
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_COUNTRY: Final = re.compile(r"[A-Za-z]{2}")


def parse_holidays(value: object, *, this_year: int, path: str = "holidays_config") -> HolidayCalendar:
    """Return the calendar in a JSON value.

    Unknown keys are ignored. Country and subdivision may have any case and are stored as in ISO 3166.

    Args:
        value: The parsed JSON.
        this_year: The first of the three years that are filled.
        path: The value's name in errors.

    Raises:
        InvalidRequest: The value is not a calendar; the details name each place.
        ConfigError: It names a country, and the extra `holidays` is not installed.
    """
    reader = JsonReader()
    config = reader.read_object(value, path) or {}
    country = _read_country(reader, config.get("country"), f"{path}.country")
    subdivision = _read_subdivision(reader, country, config.get("subdivision"), f"{path}.subdivision")
    entries = config.get("holidays")
    holidays: tuple[Holiday, ...] = ()
    if entries is not None:
        holidays = _read_holidays(reader, entries, f"{path}.holidays")
    elif country is not None:
        holidays = public_holidays(country, subdivision, filled_years(this_year))
    reader.finish()
    return HolidayCalendar(country=country, holidays=holidays, subdivision=subdivision)


def to_json(calendar: HolidayCalendar) -> dict[str, object]:
    """Return the stored form; without a subdivision it has no such key, as the interface shows it."""
    return {
        "country": calendar.country,
        **({} if calendar.subdivision is None else {"subdivision": calendar.subdivision}),
        "holidays": [
            {"date": holiday.date.isoformat(), "name": holiday.name, "enabled": holiday.enabled}
            for holiday in calendar.holidays
        ],
    }


def _read_country(reader: JsonReader, value: object, path: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and _COUNTRY.fullmatch(value) and is_supported(value.upper()):
        return value.upper()
    code = code_of_country(value) if isinstance(value, str) else None
    meant = f": {value!r} is {code}" if code is not None else did_you_mean(_countries_meant(value)) or ", such as US"
    reader.note(path, f"must be the two-letter ISO 3166 code of a country whose holidays are known{meant}")
    return None


def _countries_meant(value: object) -> Sequence[str]:
    return [found for found in regions_like(value) if is_supported(found.partition(" ")[0])]


def _read_subdivision(reader: JsonReader, country: str | None, value: object, path: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        reader.note(path, "must be a string")
    elif country is None:
        reader.note(path, "needs the country that it is a part of")
    else:
        known = {name.upper(): name for name in holiday_parts(country)}
        if value.upper() in known:
            return known[value.upper()]
        parts = f"one of {', '.join(known.values())}" if known else "left out: none is known"
        names = names_of_parts(country)
        near = nearest(value, [*names, *known.values()])
        meant = "" if near is None else f": {value!r} is {names[near]}" if near in names else did_you_mean(near)
        reader.note(path, f"must be {parts} for {country}{meant}")
    return None


def _read_holidays(reader: JsonReader, value: object, path: str) -> tuple[Holiday, ...]:
    entries = reader.read_array(value, path, most=MAX_HOLIDAYS) or ()
    found = (_read_holiday(reader, entry, f"{path}[{index}]") for index, entry in enumerate(entries))
    return tuple(holiday for holiday in found if holiday is not None)


def _read_holiday(reader: JsonReader, value: object, path: str) -> Holiday | None:
    entry = reader.read_object(value, path)
    if entry is None:
        return None
    day = _read_date(reader, entry, f"{path}.date")
    name = reader.read_text(entry.get("name", ""), f"{path}.name", most=_MAX_NAME_LENGTH)
    enabled = reader.read_boolean(entry.get("enabled", True), f"{path}.enabled")
    if day is None or name is None or enabled is None:
        return None
    return Holiday(date=day, name=name, enabled=enabled)


def _read_date(reader: JsonReader, entry: Mapping[str, object], path: str) -> date | None:
    text = entry.get("date")
    if isinstance(text, str) and _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass
    reader.note(path, f"must be a date as YYYY-MM-DD{did_you_mean(dates_like(text))}")
    return None
