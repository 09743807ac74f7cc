"""Opening hours in text form: `mon-fri 09:00-17:00`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import click

from outreach import TimeWindow

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIMES: Final = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")
_EXAMPLES: Final = "'mon-fri 09:00-17:00', 'sat,sun 10:00-14:00' or 'daily 18:00-02:00'"


@attrs.frozen(kw_only=True)
class Opening:
    """One window, and the days on which it opens."""

    days: Sequence[str]
    window: TimeWindow


class OpeningHours(click.ParamType[Opening]):
    """Days and a window of local time; one that ends before it starts runs into the next day."""

    name = "hours"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Opening:
        """Return the parsed opening hours."""
        if isinstance(value, Opening):
            return value
        days, _, times = str(value).strip().lower().rpartition(" ")
        try:
            found = _TIMES.fullmatch(times)
            if found is None:
                raise ValueError
            start, end = _minute(found[1], found[2]), _minute(found[3], found[4])
            return Opening(days=_days(days), window=TimeWindow(start_minute=start, end_minute=end))
        except ValueError:
            self.fail(f"{value!r} is not valid; write it like {_EXAMPLES}.", param, ctx)


def schedule_of(openings: Iterable[Opening]) -> Mapping[str, tuple[TimeWindow, ...]]:
    """Return the windows of each day, in the order of the week; a day without any is closed."""
    schedule: dict[str, tuple[TimeWindow, ...]] = {}
    for day in _DAYS:
        windows = [opening.window for opening in openings if day in opening.days]
        if windows:
            schedule[day] = tuple(sorted(windows, key=lambda window: window.start_minute))
    return schedule


def hours_text(config: Mapping[str, Any]) -> str:
    """Return business hours, in the interface's stored form, in a line: `mon-fri 09:00-17:00, America/New_York`."""
    runs: list[tuple[list[str], str]] = []
    for day in _DAYS:
        windows = ", ".join(f"{window['start']}-{window['end']}" for window in config["schedule"].get(day) or ())
        if runs and runs[-1][1] == windows:
            runs[-1][0].append(day)
        else:
            runs.append(([day], windows))
    shown = [f"{_span(days)} {windows}" for days, windows in runs if windows]
    observed = "" if config["enabled"] else " (not observed)"
    return f"{'; '.join(shown) or 'never'}, {config['timezone']}{observed}"


def _span(days: Sequence[str]) -> str:
    first, last = days[0][:3], days[-1][:3]
    return first if first == last else f"{first}-{last}"


def _days(text: str) -> Sequence[str]:
    """Return the named days; raise ValueError for unknown ones."""
    if text.strip() == "daily":
        return _DAYS
    days: list[str] = []
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        begin = _day(first)
        end = _day(last) if dash else begin
        # Wraps around the weekend, as from Friday to Monday.
        days += [_DAYS[(begin + step) % 7] for step in range((end - begin) % 7 + 1)]
    return tuple(days)


def _day(text: str) -> int:
    for index, day in enumerate(_DAYS):
        if text in {day, day[:3]}:
            return index
    raise ValueError(text)


def _minute(hours: str, minutes: str) -> int:
    if int(minutes) > 59:
        raise ValueError(minutes)
    return int(hours) * 60 + int(minutes)
