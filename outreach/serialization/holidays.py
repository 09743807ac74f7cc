"""Holiday calendars in and out of JSON.

    {"country": "US", "holidays": [{"date": "2026-12-25", "name": "Christmas Day", "enabled": true}]}

A country without `holidays` is filled with its national public holidays; with a `subdivision` (`ENG` of `GB`), also
with those of that part. A given list, even an empty one, is kept as it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from outreach.core.meant import dates_like, did_you_mean, nearest, regions_like
from outreach.models.fields import Refused, Text, boolean, check_value
from outreach.models.hours import Holiday, HolidayCalendar
from outreach.rules.holidays import (
    code_of_country,
    filled_years,
    holiday_parts,
    is_supported,
    names_of_parts,
    public_holidays,
)
from outreach.serialization.documents import Document, to_json
from outreach.serialization.field_rules import Array, Checks, json_object

MAX_HOLIDAYS: Final = 1000

_NAME: Final = Text(0, 255)
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
    calendar: HolidayCalendar = check_value(path, value, functools.partial(read_holidays, this_year=this_year))
    return calendar


def read_holidays(value: Any, *, this_year: int) -> HolidayCalendar:
    """Return the calendar in a JSON value; raise `Refused`. See `parse_holidays`."""
    given = json_object(value)
    checks = Checks()
    country = checks.read(".country", _country, given.get("country"))
    subdivision = checks.read(".subdivision", functools.partial(_subdivision, country), given.get("subdivision"))
    entries = given.get("holidays")
    holidays: tuple[Holiday, ...] | None = ()
    if entries is not None:
        holidays = checks.read(".holidays", Array(_holiday, maximum=MAX_HOLIDAYS), entries)
    elif country is not None:
        holidays = public_holidays(country, subdivision, filled_years(this_year))
    checks.finish()
    return HolidayCalendar(country=country, holidays=holidays or (), subdivision=subdivision)


def write_holidays(calendar: HolidayCalendar) -> Document:
    """Return a calendar as the interface shows it: without a subdivision it has no such key."""
    written = to_json(calendar)
    part = {} if calendar.subdivision is None else {"subdivision": calendar.subdivision}
    return {"country": calendar.country, **part, "holidays": written["holidays"]}


def _country(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and _COUNTRY.fullmatch(value) and is_supported(value.upper()):
        return value.upper()
    code = code_of_country(value) if isinstance(value, str) else None
    meant = f": {value!r} is {code}" if code is not None else did_you_mean(_countries_meant(value)) or ", such as US"
    raise Refused(f"must be the two-letter ISO 3166 code of a country whose holidays are known{meant}")


def _countries_meant(value: object) -> Sequence[str]:
    return [found for found in regions_like(value) if is_supported(found.partition(" ")[0])]


def _subdivision(country: str | None, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Refused("must be a string")
    if country is None:
        raise Refused("needs the country that it is a part of")
    known = {name.upper(): name for name in holiday_parts(country)}
    if value.upper() in known:
        return known[value.upper()]
    parts = f"one of {', '.join(known.values())}" if known else "left out: none is known"
    names = names_of_parts(country)
    near = nearest(value, [*names, *known.values()])
    meant = "" if near is None else f": {value!r} is {names[near]}" if near in names else did_you_mean(near)
    raise Refused(f"must be {parts} for {country}{meant}")


def _holiday(value: Any) -> Holiday:
    given = json_object(value)
    checks = Checks()
    day = checks.read(".date", _date, given.get("date"))
    name = checks.read(".name", _NAME, given.get("name", ""))
    enabled = checks.read(".enabled", boolean, given.get("enabled", True))
    checks.finish()
    return Holiday(date=day, name=name, enabled=enabled)


def _date(text: Any) -> date:
    if isinstance(text, str) and _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass
    raise Refused(f"must be a date as YYYY-MM-DD{did_you_mean(dates_like(text))}")
