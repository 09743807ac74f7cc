"""Business hours in and out of JSON: the stored form, and the days-shaped forms of a request.

Stored:

    {"enabled": true, "timezone": "America/New_York", "batchConcurrency": 10, "schedule": {"monday": [{"start": "09:00",
    "end": "17:00"}], …}}

Days-shaped, with hours for each day or the same for all:

    {"timezone": "…", "days": {"monday": {"enabled": true, "start": "09:00", "end": "17:00"}, …}}
    {"timezone": "…", "days": ["mon", "Tuesday"], "start": "09:00", "end": "17:00"}

`outreach.policy.opening` decides when they are open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from outreach.convert.json_reader import JsonReader
from outreach.meant import day_like, did_you_mean, time_like
from outreach.models.fields import Refused, bounds_of, zone
from outreach.models.hours import DAYS, DEFAULT_CONCURRENCY, MINUTES_A_DAY, BusinessHours, TimeWindow

MAX_WINDOWS_A_DAY: Final = 48

_MAX_DAY_NAMES: Final = 100
_MAX_ZONE_LENGTH: Final = 64
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_DAY_BY_NAME: Final = {name: day for day in DAYS for name in (day, day[:3])}
_UNKNOWN_DAY: Final = "is no day: use monday to sunday, or mon to sun"


def parse_business_hours(value: object, *, path: str = "business_hours_config") -> BusinessHours:
    """Return the business hours in a JSON value of any accepted form.

    Unknown keys are ignored, but a misspelled day is an error, because that day would silently be closed. A day that is
    named twice (`mon` and `Monday`) has the windows of both. `path` names the value in errors.

    Raises:
        InvalidRequest: The value has no accepted form; the details name each place.
    """
    reader = JsonReader()
    hours = _read_hours(reader, value, path)
    reader.finish()
    return hours


def to_json(hours: BusinessHours) -> dict[str, object]:
    """Return the stored form, with all seven days."""
    return {
        "enabled": hours.enabled,
        "timezone": hours.timezone,
        "schedule": {
            day: [
                {"start": _as_time(window.start_minute), "end": _as_time(window.end_minute)}
                for window in hours.schedule.get(day, ())
            ]
            for day in DAYS
        },
        "batchConcurrency": hours.batch_concurrency,
    }


def _read_hours(reader: JsonReader, value: object, path: str) -> BusinessHours:
    """Return what could be read, which counts only if the reader noted no error."""
    config = reader.read_object(value, path)
    if config is None:
        # Errors about keys do not help somebody who did not send an object.
        return BusinessHours(enabled=False, timezone="", schedule={}, batch_concurrency=DEFAULT_CONCURRENCY)
    enabled = reader.read_boolean(config.get("enabled", True), f"{path}.enabled")
    bounds = bounds_of(BusinessHours, "batch_concurrency")
    batch_concurrency = reader.read_integer(
        config.get("batchConcurrency", DEFAULT_CONCURRENCY),
        f"{path}.batchConcurrency",
        least=bounds.minimum,
        most=bounds.maximum,
    )
    return BusinessHours(
        enabled=enabled is True,
        timezone=_read_zone(reader, config, path),
        schedule=_read_days(reader, config, path),
        batch_concurrency=batch_concurrency or DEFAULT_CONCURRENCY,
    )


def _read_zone(reader: JsonReader, config: Mapping[str, object], path: str) -> str:
    place = f"{path}.timezone"
    if "timezone" not in config:
        reader.note(place, "is required: an IANA time zone such as America/New_York")
        return ""
    name = reader.read_text(config["timezone"], place, most=_MAX_ZONE_LENGTH)
    if name is not None:
        try:
            zone(name)
        except Refused as refused:
            reader.note(place, refused.details[0].message)
    return name or ""


def _read_days(reader: JsonReader, config: Mapping[str, object], path: str) -> dict[str, tuple[TimeWindow, ...]]:
    if ("schedule" in config) == ("days" in config):
        reader.note(path, "must have one of schedule and days, and not both")
        return {}
    windows: dict[str, list[TimeWindow]] = {day: [] for day in DAYS}
    if "schedule" in config:
        _read_schedule(reader, config["schedule"], f"{path}.schedule", windows)
    elif isinstance(config["days"], list):
        _read_day_list(reader, config, path, windows)
    elif isinstance(config["days"], dict):
        _read_day_objects(reader, config["days"], f"{path}.days", windows)
    else:
        reader.note(f"{path}.days", "must be an array of days, or an object with a key for each day")
    for day, found in windows.items():
        if len(found) > MAX_WINDOWS_A_DAY:
            reader.note(path, f"must have at most {MAX_WINDOWS_A_DAY} windows a day, has {len(found)} on {day}")
    return {day: tuple(found) for day, found in windows.items()}


def _read_schedule(reader: JsonReader, value: object, path: str, windows: dict[str, list[TimeWindow]]) -> None:
    """Read `{"monday": [{"start", "end"}, …], …}`."""
    for key, entries in (reader.read_object(value, path) or {}).items():
        day = _read_day_key(reader, key, path)
        if day is None:
            continue
        for index, entry in enumerate(reader.read_array(entries, f"{path}.{key}", most=MAX_WINDOWS_A_DAY) or ()):
            place = f"{path}.{key}[{index}]"
            times = reader.read_object(entry, place)
            if times is not None:
                windows[day].extend(_read_window(reader, times, place))


def _read_day_objects(
    reader: JsonReader, days: dict[str, object], path: str, windows: dict[str, list[TimeWindow]]
) -> None:
    """Read `{"monday": {"enabled", "start", "end"}, …}`; the times of a disabled day are not read."""
    for key, value in days.items():
        day = _read_day_key(reader, key, path)
        if day is None:
            continue
        place = f"{path}.{key}"
        entry = reader.read_object(value, place)
        if entry is not None and reader.read_boolean(entry.get("enabled", True), f"{place}.enabled"):
            windows[day].extend(_read_window(reader, entry, place))


def _read_day_list(
    reader: JsonReader, config: Mapping[str, object], path: str, windows: dict[str, list[TimeWindow]]
) -> None:
    """Read `["mon", "Tuesday"]` with one `start` and `end` for all."""
    place = f"{path}.days"
    times = _read_window(reader, config, path)
    for index, name in enumerate(reader.read_array(config["days"], place, most=_MAX_DAY_NAMES) or ()):
        day = _DAY_BY_NAME.get(name.lower()) if isinstance(name, str) else None
        if day is None:
            reader.note(f"{place}[{index}]", f"{_UNKNOWN_DAY}{did_you_mean(day_like(name))}")
        else:
            windows[day] = list(times)


def _read_day_key(reader: JsonReader, key: str, path: str) -> str | None:
    day = _DAY_BY_NAME.get(key.lower())
    if day is None:
        # Escaped and cut, because the key may contain anything.
        reader.note(path, f"has the key {key[:20]!a}, which {_UNKNOWN_DAY}{did_you_mean(day_like(key))}")
    return day


def _read_window(reader: JsonReader, times: Mapping[str, object], path: str) -> tuple[TimeWindow, ...]:
    """Return the window of `start` and `end`, or nothing if they are wrong."""
    start = _read_time(reader, times, path, "start")
    end = _read_time(reader, times, path, "end")
    if start is None or end is None:
        return ()
    if start == MINUTES_A_DAY:
        reader.note(f"{path}.start", "must not be 24:00, which can only be an end")
    elif start == end:
        reader.note(f"{path}.end", "must differ from the start; a whole day is 00:00 to 24:00")
    else:
        return (TimeWindow(start_minute=start, end_minute=end),)
    return ()


def _read_time(reader: JsonReader, times: Mapping[str, object], path: str, name: str) -> int | None:
    """Return the minutes after midnight of a `HH:MM`."""
    place = f"{path}.{name}"
    if name not in times:
        reader.note(place, "is required, as HH:MM")
        return None
    text = times[name]
    if text == "24:00":
        return MINUTES_A_DAY
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        reader.note(place, f"must be a time from 00:00 to 24:00, as HH:MM{did_you_mean(time_like(text))}")
        return None
    return int(match[1]) * 60 + int(match[2])


def _as_time(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
