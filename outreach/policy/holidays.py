"""Holiday calendars: in and out of JSON, and filled for a country.

    {"country": "US", "holidays": [{"date": "2026-12-25", "name": "Christmas Day", "enabled": true}]}

A country without `holidays` is filled with its national public holidays; with a `subdivision` (`ENG` of `GB`), also
with those of that part. A given list, even an empty one, is kept as it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final

import attrs

from outreach.convert.json_reader import JsonReader
from outreach.extras import needed_for
from outreach.models.hours import Holiday, HolidayCalendar

MAX_HOLIDAYS: Final = 1000

_MAX_NAME_LENGTH: Final = 255
_YEARS_AHEAD: Final = 2
_MAX_YEAR_DISTANCE: Final = 10
"""How far from now a year may be that shows that a calendar was filled."""

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
        holidays = _public_holidays(country, subdivision, _years(this_year))
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


def closed_dates(calendar: HolidayCalendar) -> frozenset[date]:
    """Return the enabled dates, for `outreach.policy.opening`."""
    return frozenset(holiday.date for holiday in calendar.holidays if holiday.enabled)


def extend_calendar(calendar: HolidayCalendar, this_year: int) -> HolidayCalendar:
    """Return a country's calendar with the missing years, from this year to the second next.

    Only a filled calendar is extended: one with every public holiday, enabled or not, of at least one year. Years with
    any holiday are not changed, so that removed ones stay removed.
    """
    country, part = calendar.country, calendar.subdivision
    if country is None or not calendar.holidays or not _is_supported(country, part):
        return calendar
    present = {holiday.date for holiday in calendar.holidays}
    years = {day.year for day in present if abs(day.year - this_year) <= _MAX_YEAR_DISTANCE}
    if not any(_has_all_holidays(country, part, year, present) for year in years):
        return calendar
    lacking = [
        year
        for year in _years(this_year)
        if not any(holiday.date in present for holiday in _public_holidays_of_year(country, part, year))
    ]
    return attrs.evolve(calendar, holidays=calendar.holidays + _public_holidays(country, part, lacking))


def _years(this_year: int) -> range:
    return range(this_year, this_year + _YEARS_AHEAD + 1)


def holiday_parts(country: str) -> Sequence[str]:
    """Return the parts of a country with public holidays of their own, for `subdivision`; empty if unknown."""
    return tuple(_subdivisions().get(country.upper(), ()))


def _has_all_holidays(country: str, part: str | None, year: int, present: set[date]) -> bool:
    expected = {holiday.date for holiday in _public_holidays_of_year(country, part, year)}
    return bool(expected) and expected <= present


def _is_supported(country: str, part: str | None = None) -> bool:
    known = _subdivisions().get(country)
    return known is not None and (part is None or part in known)


@functools.cache
def _subdivisions() -> Mapping[str, list[str]]:
    """Return the subdivisions of each country whose holidays are known."""
    # Imported here, because it takes long and few processes need it.
    with needed_for("A holiday calendar with a country"):
        import holidays

    return holidays.list_supported_countries(include_aliases=False)


def _public_holidays(country: str, part: str | None, years: Iterable[int]) -> tuple[Holiday, ...]:
    return tuple(holiday for year in years for holiday in _public_holidays_of_year(country, part, year))


@functools.lru_cache(maxsize=256)
def _public_holidays_of_year(country: str, part: str | None, year: int) -> tuple[Holiday, ...]:
    import holidays

    days = holidays.country_holidays(country, subdiv=part, years=year)
    return tuple(Holiday(date=day, name=name, enabled=True) for day, name in sorted(days.items()) if day.year == year)


def _read_country(reader: JsonReader, value: object, path: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and _COUNTRY.fullmatch(value) and _is_supported(value.upper()):
        return value.upper()
    reader.note(path, "must be the two-letter ISO 3166 code of a country whose holidays are known, such as US")
    return None


def _read_subdivision(reader: JsonReader, country: str | None, value: object, path: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        reader.note(path, "must be a string")
    elif country is None:
        reader.note(path, "needs the country that it is a part of")
    else:
        known = {name.upper(): name for name in _subdivisions()[country]}
        if value.upper() in known:
            return known[value.upper()]
        parts = f"one of {', '.join(known.values())}" if known else "left out: none is known"
        reader.note(path, f"must be {parts} for {country}")
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
    reader.note(path, "must be a date as YYYY-MM-DD")
    return None
