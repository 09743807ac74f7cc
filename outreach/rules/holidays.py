"""Holiday calendars: their closed dates, and the public holidays of a country and its parts."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final

import attrs

from outreach.core.extras import needed_for
from outreach.models.settings import Holiday, HolidayCalendar

_YEARS_AHEAD: Final = 2
_MAX_YEAR_DISTANCE: Final = 10
"""How far from now a year may be that shows that a calendar was filled."""


def closed_dates(calendar: HolidayCalendar) -> frozenset[date]:
    """Return the enabled dates, for `outreach.rules.opening`."""
    return frozenset(holiday.date for holiday in calendar.holidays if holiday.enabled)


def extend_calendar(calendar: HolidayCalendar, this_year: int) -> HolidayCalendar:
    """Return a country's calendar with the missing years, from this year to the second next.

    Only a filled calendar is extended: one with every public holiday, enabled or not, of at least one year. Years with
    any holiday are not changed, so that removed ones stay removed.
    """
    country, part = calendar.country, calendar.subdivision
    if country is None or not calendar.holidays or not is_supported(country, part):
        return calendar
    present = {holiday.date for holiday in calendar.holidays}
    years = {day.year for day in present if abs(day.year - this_year) <= _MAX_YEAR_DISTANCE}
    if not any(_has_all_holidays(country, part, year, present) for year in years):
        return calendar
    lacking = [
        year
        for year in filled_years(this_year)
        if not any(holiday.date in present for holiday in _public_holidays_of_year(country, part, year))
    ]
    return attrs.evolve(calendar, holidays=calendar.holidays + public_holidays(country, part, lacking))


def filled_years(this_year: int) -> range:
    """Return the years that a calendar is filled with."""
    return range(this_year, this_year + _YEARS_AHEAD + 1)


def holiday_parts(country: str) -> Sequence[str]:
    """Return the parts of a country with public holidays of their own, for `subdivision`; empty if unknown."""
    return tuple(_subdivisions().get(country.upper(), ()))


def code_of_country(text: str) -> str | None:
    """Return the ISO 3166 code of a country that is written otherwise, such as `UK` or `Germany`; None if unknown."""
    with needed_for("A holiday calendar with a country"):
        from holidays.registry import COUNTRIES

    wanted = "_".join(text.casefold().split())
    for name, (_, code, *aliases) in COUNTRIES.items():
        if wanted in {name, *(alias.casefold() for alias in aliases)} and is_supported(code):
            return code
    return None


def names_of_parts(country: str) -> Mapping[str, str]:
    """Return the codes of a country's parts by their names, such as that of `Bayern` of DE."""
    import holidays

    names: Mapping[str, str] = getattr(holidays.country_holidays(country), "subdivisions_aliases", {})
    return names


def _has_all_holidays(country: str, part: str | None, year: int, present: set[date]) -> bool:
    expected = {holiday.date for holiday in _public_holidays_of_year(country, part, year)}
    return bool(expected) and expected <= present


def is_supported(country: str, part: str | None = None) -> bool:
    """Return whether the public holidays of a country, or a part of it, are known."""
    known = _subdivisions().get(country)
    return known is not None and (part is None or part in known)


@functools.cache
def _subdivisions() -> Mapping[str, list[str]]:
    """Return the subdivisions of each country whose holidays are known."""
    # Imported here, because it takes long and few processes need it.
    with needed_for("A holiday calendar with a country"):
        import holidays

    return holidays.list_supported_countries(include_aliases=False)


def public_holidays(country: str, part: str | None, years: Iterable[int]) -> tuple[Holiday, ...]:
    """Return the public holidays of some years, in order."""
    return tuple(holiday for year in years for holiday in _public_holidays_of_year(country, part, year))


@functools.lru_cache(maxsize=256)
def _public_holidays_of_year(country: str, part: str | None, year: int) -> tuple[Holiday, ...]:
    import holidays

    days = holidays.country_holidays(country, subdiv=part, years=year)
    return tuple(Holiday(date=day, name=name, enabled=True) for day, name in sorted(days.items()) if day.year == year)
