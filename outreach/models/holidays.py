"""Holidays: the dates on which a campaign reaches nobody."""

from __future__ import annotations

from datetime import date

import attrs


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
