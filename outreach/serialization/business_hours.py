"""Business hours and holidays in and out of JSON: the stored form, and the days-shaped forms of a request.

Stored:

    {"enabled": true, "timezone": "America/New_York", "batchConcurrency": 10, "schedule": {"monday": [{"start": "09:00",
    "end": "17:00"}], …}}

Days-shaped, with hours for each day or the same for all:

    {"timezone": "…", "days": {"monday": {"enabled": true, "start": "09:00", "end": "17:00"}, …}}
    {"timezone": "…", "days": ["mon", "Tuesday"], "start": "09:00", "end": "17:00"}

Holidays:

    {"country": "US", "holidays": [{"date": "2026-12-25", "name": "Christmas Day", "enabled": true}]}

A country without `holidays` is filled with its national public holidays; with a `subdivision` (`ENG` of `GB`), also
with those of that part. A given list, even an empty one, is kept as it is. `outreach.rules.opening` decides when hours
are open.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from outreach.core.meant import dates_like, day_like, did_you_mean, nearest, regions_like, time_like
from outreach.models.base import UNSET
from outreach.models.fields import FieldRule, Refused, Text, boolean, check_value, fields_of, zone
from outreach.models.settings import (
    DAYS,
    DEFAULT_CONCURRENCY,
    MINUTES_A_DAY,
    BusinessHours,
    Holiday,
    HolidayCalendar,
    TimeWindow,
)
from outreach.rules.holidays import (
    code_of_country,
    filled_years,
    holiday_parts,
    is_supported,
    names_of_parts,
    public_holidays,
)
from outreach.serialization.documents import MINUTES, Document, to_json
from outreach.serialization.field_rules import Array, Checks, json_object, without_fraction

MAX_WINDOWS_A_DAY: Final = 48

_MAX_DAY_NAMES: Final = 100
_ZONE_NAME: Final = Text(0, 64)
_DAY_BY_NAME: Final = {name: day for day in DAYS for name in (day, day[:3])}
_UNKNOWN_DAY: Final = "is no day: use monday to sunday, or mon to sun"

_Schedule = dict[str, tuple[TimeWindow, ...]]


def read_business_hours(value: Any) -> BusinessHours:
    """Return the business hours in a JSON value of any accepted form; raise `Refused`.

    Unknown keys are ignored, but a misspelled day is refused, because that day would silently be closed. A day that is
    named twice (`mon` and `Monday`) has the windows of both.
    """
    given = json_object(value)
    checks = Checks()
    enabled = checks.read(".enabled", boolean, given.get("enabled", True))
    batch_concurrency = checks.read(
        ".batchConcurrency", _batch_concurrency, given.get("batchConcurrency", DEFAULT_CONCURRENCY)
    )
    timezone = checks.read(".timezone", _zone, given.get("timezone", UNSET))
    schedule = checks.read("", _schedule, given)
    checks.finish()
    return BusinessHours(enabled=enabled, timezone=timezone, schedule=schedule, batch_concurrency=batch_concurrency)


def write_business_hours(hours: BusinessHours) -> Document:
    """Return the stored form, with all seven days."""
    written: Document = to_json(hours)
    windows = written["schedule"]
    return {**written, "schedule": {day: windows.get(day, []) for day in DAYS}}


def read_schedule(value: Any) -> Mapping[str, tuple[TimeWindow, ...]]:
    """Return the windows of each day in an object with a key for each; raise `Refused`."""
    windows = Array(_window, maximum=MAX_WINDOWS_A_DAY)
    return {day: found for day, found in _windows_by_day(value, windows).items() if found}


def _batch_concurrency(value: Any) -> Any:
    return fields_of(BusinessHours)["batch_concurrency"].rule(without_fraction(value))


def _zone(name: Any) -> str:
    if name is UNSET:
        raise Refused("is required: an IANA time zone such as America/New_York")
    return zone(_ZONE_NAME(name))


def _schedule(given: Mapping[str, Any]) -> _Schedule:
    if ("schedule" in given) == ("days" in given):
        raise Refused("must have one of schedule and days, and not both")
    checks = Checks()
    schedule: _Schedule | None = None
    if "schedule" in given:
        windows = Array(_window, maximum=MAX_WINDOWS_A_DAY)
        schedule = checks.read(".schedule", lambda days: _windows_by_day(days, windows), given["schedule"])
    elif isinstance(given["days"], list):
        window = checks.read("", _window, given)
        names = checks.read(".days", Array(_day, maximum=_MAX_DAY_NAMES), given["days"])
        schedule = {day: (window,) if day in (names or ()) else () for day in DAYS}
    elif isinstance(given["days"], dict):
        schedule = checks.read(".days", lambda days: _windows_by_day(days, _window_of_day), given["days"])
    else:
        checks.note(".days", "must be an array of days, or an object with a key for each day")
    for day, found in (schedule or {}).items():
        if len(found) > MAX_WINDOWS_A_DAY:
            checks.note("", f"must have at most {MAX_WINDOWS_A_DAY} windows a day, has {len(found)} on {day}")
    checks.finish()
    return schedule or {}


def _windows_by_day(value: Any, rule: FieldRule) -> _Schedule:
    """Read an object with a key for each day, whose values follow a rule that returns windows."""
    checks = Checks()
    schedule: _Schedule = dict.fromkeys(DAYS, ())
    for key, item in json_object(value).items():
        day = _DAY_BY_NAME.get(key.lower())
        if day is None:
            # Escaped and cut, because the key may contain anything.
            checks.note("", f"has the key {key[:20]!a}, which {_UNKNOWN_DAY}{did_you_mean(day_like(key))}")
        else:
            schedule[day] += checks.read(f".{key}", rule, item) or ()
    checks.finish()
    return schedule


def _window_of_day(value: Any) -> tuple[TimeWindow, ...]:
    """Read `{"enabled", "start", "end"}`; the times of a disabled day are not read."""
    given = json_object(value)
    checks = Checks()
    enabled = checks.read(".enabled", boolean, given.get("enabled", True))
    checks.finish()
    return (_window(given),) if enabled else ()


def _day(name: Any) -> str:
    day = _DAY_BY_NAME.get(name.lower()) if isinstance(name, str) else None
    if day is None:
        raise Refused(f"{_UNKNOWN_DAY}{did_you_mean(day_like(name))}")
    return day


def _window(value: Any) -> TimeWindow:
    """Read `start` and `end`."""
    given = json_object(value)
    checks = Checks()
    start = checks.read(".start", _time, given.get("start", UNSET))
    end = checks.read(".end", _time, given.get("end", UNSET))
    checks.finish()
    if start == MINUTES_A_DAY:
        raise Refused("must not be 24:00, which can only be an end", ".start")
    if start == end:
        raise Refused("must differ from the start; a whole day is 00:00 to 24:00", ".end")
    return TimeWindow(start_minute=start, end_minute=end)


def _time(text: Any) -> int:
    """Return the minutes after midnight of a `HH:MM`."""
    if text is UNSET:
        raise Refused("is required, as HH:MM")
    minutes = MINUTES.get(text) if isinstance(text, str) else None
    if minutes is None:
        raise Refused(f"must be a time from 00:00 to 24:00, as HH:MM{did_you_mean(time_like(text))}")
    return minutes


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
