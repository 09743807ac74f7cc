"""Business hours: when a campaign may reach people, by weekday and wall clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

import attrs

DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""In the order of `datetime.weekday()`."""

MINUTES_A_DAY: Final = 24 * 60


@attrs.frozen(kw_only=True)
class TimeWindow:
    """One half-open stretch of wall-clock time, in minutes after midnight.

    Attributes:
        start_minute: The first minute that is open, 0 to 1439.
        end_minute: The first minute that is closed again, 0 to 1440; before the start it lies on the next day.
            It never equals the start.
    """

    start_minute: int
    end_minute: int

    def __attrs_post_init__(self) -> None:
        """Refuse a window that has no meaning.

        Raises:
            ValueError: A minute is out of range, or the window starts where it ends.
        """
        if not (0 <= self.start_minute < MINUTES_A_DAY and 0 <= self.end_minute <= MINUTES_A_DAY):
            raise ValueError("A window's minutes lie within one day.")
        if self.start_minute == self.end_minute:
            raise ValueError("A window ends at another minute than it starts.")

    @property
    def is_overnight(self) -> bool:
        """Whether the window runs into the next day."""
        return self.end_minute < self.start_minute


@attrs.frozen(kw_only=True)
class BusinessHours:
    """When a campaign may reach people, and how many at a time.

    Attributes:
        enabled: Whether the hours are observed; when not, every hour is open.
        timezone: The IANA zone whose wall clock counts.
        schedule: The windows of each day of `DAYS`; a day that is missing or has none is closed.
        batch_concurrency: Recipients dispatched in one wave, 1 to 40.
    """

    enabled: bool
    timezone: str
    schedule: Mapping[str, tuple[TimeWindow, ...]]
    batch_concurrency: int


@attrs.frozen(kw_only=True)
class Holiday:
    """One date.

    Attributes:
        date: The day, in the zone of the hours check.
        name: What people call it; may be empty.
        enabled: Whether it is observed.
    """

    date: date
    name: str
    enabled: bool


@attrs.frozen(kw_only=True)
class HolidayCalendar:
    """The holidays of a campaign.

    Attributes:
        country: Whose public holidays these are, as ISO 3166 alpha-2, or None.
        holidays: The dates, in the order in which they were given.
        subdivision: Which part of the country it is, as ISO 3166-2 without the country (`ENG` of `GB`), whose own
            holidays belong to it as well; None is the whole country.
    """

    country: str | None
    holidays: tuple[Holiday, ...]
    subdivision: str | None = None
