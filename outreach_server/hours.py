"""Opening hours in text form: `mon-fri 09:00-17:00`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from outreach import TimeWindow
from outreach.models import DAYS
from outreach.server_support import day_like, did_you_mean, hours_like, sentence, time_like

_TIMES: Final = re.compile(r"([^-]+)-([^-]+)")
_TIME: Final = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)?")
_LAST_MINUTE: Final = 24 * 60
_EXAMPLES: Final = "'mon-fri 09:00-17:00', 'sat,sun 10:00-14:00' or 'daily 18:00-02:00'"


@attrs.frozen(kw_only=True)
class Opening:
    """One window, and the days on which it opens."""

    days: Sequence[str]
    window: TimeWindow


class WrongHours(ValueError):
    """Says which part of a text is wrong, and what to write."""


class _Wrong(Exception):
    """Says which part is wrong."""


def read_opening(text: str) -> Opening:
    """Return the days and the window of a text; one that ends before it starts runs into the next day.

    Raises:
        WrongHours: It is no such text.
    """
    days, _, times = text.strip().lower().replace("\N{EN DASH}", "-").rpartition(" ")
    try:
        if (meant := hours_like(text)) is not None:
            raise _Wrong(f"the days stand before the times{did_you_mean(repr(meant))}")
        found = _TIMES.fullmatch(times)
        if found is None:
            raise _Wrong(f"{times!r} is not a time from and to")
        if not days.strip():
            raise _Wrong("the days are missing")
        start, end = _minute(found[1]), _minute(found[2])
        if start in {end, _LAST_MINUTE}:
            raise _Wrong(f"no window begins at {times}")
        return Opening(days=_days(days), window=TimeWindow(start_minute=start, end_minute=end))
    except _Wrong as error:
        raise WrongHours(f"{text!r} is not valid: {sentence(str(error))} Write it like {_EXAMPLES}.") from None


def schedule_of(openings: Iterable[Opening]) -> Mapping[str, tuple[TimeWindow, ...]]:
    """Return the windows of each day, in the order of the week; a day without any is closed."""
    schedule: dict[str, tuple[TimeWindow, ...]] = {}
    for day in DAYS:
        windows = [opening.window for opening in openings if day in opening.days]
        if windows:
            schedule[day] = tuple(sorted(windows, key=lambda window: window.start_minute))
    return schedule


def hours_text(config: Mapping[str, Any]) -> str:
    """Return business hours, in the interface's stored form, in a line: `mon-fri 09:00-17:00, America/New_York`."""
    shown = schedule_text(config["schedule"])
    if not shown and not config["enabled"]:
        return f"at any hour, {config['timezone'] or 'UTC'}"
    observed = "" if config["enabled"] else " (not observed)"
    return f"{shown or 'never'}, {config['timezone']}{observed}"


def schedule_text(schedule: Mapping[str, Any]) -> str:
    """Return the windows of each day, as JSON has them, in a line: `mon-fri 09:00-17:00; sat 10:00-12:00`."""
    runs: list[tuple[list[str], str]] = []
    for day in DAYS:
        windows = ", ".join(f"{window['start']}-{window['end']}" for window in schedule.get(day) or ())
        if runs and runs[-1][1] == windows:
            runs[-1][0].append(day)
        else:
            runs.append(([day], windows))
    return "; ".join(f"{_span(days)} {windows}" for days, windows in runs if windows)


def place_text(hours: Mapping[str, Any]) -> str:
    """Return the hours of a place, as JSON has them, in a line: `US-FL: mon-sun 08:00-20:00 (Fla. Stat. 501.616)`."""
    return f"{hours['place']}: {schedule_text(hours['schedule'])} ({hours['source']})"


def _span(days: Sequence[str]) -> str:
    first, last = days[0][:3], days[-1][:3]
    return first if first == last else f"{first}-{last}"


def _days(text: str) -> Sequence[str]:
    """Return the named days; raise `_Wrong` for unknown ones."""
    if text.strip() == "daily":
        return DAYS
    days: list[str] = []
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        begin = _day(first)
        end = _day(last) if dash else begin
        # Wraps around the weekend, as from Friday to Monday.
        days += [DAYS[(begin + step) % 7] for step in range((end - begin) % 7 + 1)]
    return tuple(days)


def _day(text: str) -> int:
    for index, day in enumerate(DAYS):
        if text in {day, day[:3]}:
            return index
    meant = day_like(text)
    raise _Wrong(f"{text!r} is not a day, such as mon or monday{did_you_mean(meant[:3] if meant else None)}")


def _minute(text: str) -> int:
    found = _TIME.fullmatch(text)
    minute = int(found[1]) * 60 + int(found[2] or 0) if found is not None else -1
    if found is not None and found[3] is not None and 1 <= int(found[1]) <= 12 and int(found[2] or 0) <= 59:
        half = _LAST_MINUTE // 2
        minute = minute % half + (half if found[3] == "pm" else 0)
        raise _Wrong(f"{text!r} is not a time of 24 hours: it is {minute // 60:02}:{minute % 60:02}")
    if found is not None and found[2] is None and minute <= _LAST_MINUTE and found[3] is None:
        raise _Wrong(f"{text!r} has no minutes: it is {minute // 60:02}:00")
    if found is None or found[3] is not None or int(found[2]) > 59 or minute > _LAST_MINUTE:
        raise _Wrong(f"{text!r} is not a time of day, from 00:00 to 24:00{did_you_mean(time_like(text))}")
    return minute
