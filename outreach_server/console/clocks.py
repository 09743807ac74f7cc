"""How times and days are shown: the zone and the style."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import attrs

DAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""In the order of `date.weekday()`."""

MONTH_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_SHORT: Final = 3
"""The letters of a short name of a month."""


class DateStyle(StrEnum):
    """How dates and times are written: `28 Nov 2026 14:05`, `Nov 28, 2026, 2:05 PM` or `2026-11-28 14:05`."""

    DAY_FIRST = ""
    US = "us"
    ISO = "iso"

    def clock(self, at: datetime | time, *, seconds: bool = False) -> str:
        """Return a time of day."""
        rest = f"{at:%M:%S}" if seconds else f"{at:%M}"
        return f"{at.hour % 12 or 12}:{rest} {_half(at)}" if self is DateStyle.US else f"{at:%H}:{rest}"

    def hour(self, at: datetime) -> str:
        """Return a time of day without its minutes."""
        return f"{at.hour % 12 or 12} {_half(at)}" if self is DateStyle.US else f"{at:%H}"

    def day(self, day: date, *, short: bool = False, year: bool = True) -> str:
        """Return a day."""
        month = MONTH_NAMES[day.month - 1][: _SHORT if short else None]
        match self:
            case DateStyle.US:
                return f"{month} {day.day}{f', {day.year}' if year else ''}"
            case DateStyle.ISO:
                return f"{day:%Y-%m-%d}" if year else f"{day:%m-%d}"
            case _:
                return f"{day.day} {month}{f' {day.year}' if year else ''}"

    def weekday(self, day: date) -> str:
        """Return a day with its weekday, such as `Monday 4 January 2027`."""
        return f"{DAY_NAMES[day.weekday()]}{self._comma} {self.day(day)}"

    def moment(self, at: datetime, *, year: bool = True, seconds: bool = False) -> str:
        """Return a day and a time of it."""
        return f"{self.day(at, short=True, year=year)}{self._comma} {self.clock(at, seconds=seconds)}"

    @property
    def _comma(self) -> str:
        return "," if self is DateStyle.US else ""


@attrs.frozen
class Clocks:
    """By whose clocks times are told, and how they are written.

    Attributes:
        zone: The IANA zone; UTC is taken where this machine does not know it.
        dates: The style.
    """

    zone: str
    dates: DateStyle = DateStyle.DAY_FIRST

    @property
    def name(self) -> str:
        """The zone as people read it."""
        if self.zone == "UTC" or tzinfo_of(self.zone) is UTC:
            return "UTC"
        return f"{self.zone.rpartition('/')[2].replace('_', ' ')} time"

    def local(self, at: datetime) -> datetime:
        """Return a moment by these clocks."""
        return at.astimezone(tzinfo_of(self.zone))

    def moment(self, at: datetime, now: datetime, *, seconds: bool = False) -> str:
        """Return a moment in words: without the day if it is today, with the weekday within a week."""
        local, today = self.local(at), self.local(now).date()
        days = (local.date() - today).days
        if -2 < days < 7:
            day = ("yesterday ", "", "tomorrow ")[days + 1] if days < 2 else f"{DAY_NAMES[local.weekday()]} "
            return f"{day}{self.dates.clock(local, seconds=seconds)}"
        year = local.year != today.year or self.dates is DateStyle.ISO
        return self.dates.moment(local, year=year, seconds=seconds)

    def weekday(self, at: datetime) -> str:
        """Return the day of a moment, with its weekday."""
        return self.dates.weekday(self.local(at))


def tzinfo_of(zone: str) -> tzinfo:
    """Return the clocks of an IANA zone; UTC's where this machine does not know it."""
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def _half(at: datetime | time) -> str:
    return "AM" if at.hour < 12 else "PM"
