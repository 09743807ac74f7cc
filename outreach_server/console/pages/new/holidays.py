"""The holidays of a new campaign, as its form shows them: those of a country, and dates of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

import attrs

from outreach import Campaign, ConfigError, InvalidRequest
from outreach.http import parse_holidays
from outreach.models import Holiday, HolidayCalendar

_MOST_DATES: Final = 100


@attrs.frozen(kw_only=True)
class HolidayForm:
    """The values of the fields.

    Attributes:
        country: A country such as `US`, or a part of one such as `GB-ENG`.
        dates: Dates, one a line.
        plain: Whether the form can show the calendar that the campaign has.
    """

    country: str
    dates: str
    plain: bool


def holidays_of(form: Mapping[str, str], campaign: Campaign, this_year: int) -> HolidayForm:
    """Return the typed values, else the calendar of the campaign."""
    calendar = campaign.holidays
    if calendar is None:
        return HolidayForm(country=form.get("country", ""), dates=form.get("dates", ""), plain=True)
    country = "-".join(part for part in (calendar.country, calendar.subdivision) if part)
    own = [one.date for one in calendar.holidays if not one.name and one.enabled]
    try:
        plain = _calendar(country, own, this_year) == calendar
    except (InvalidRequest, ConfigError):
        plain = False
    dates = "\n".join(one.isoformat() for one in own)
    return HolidayForm(country=form.get("country", country), dates=form.get("dates", dates), plain=plain)


def read_holidays(form: Mapping[str, str], this_year: int, problems: dict[str, str]) -> HolidayCalendar | None:
    """Return the calendar of a form; its faults are added to `problems`."""
    country = form.get("country", "").strip()
    lines = form.get("dates", "").split()
    try:
        dates = list(dict.fromkeys(date.fromisoformat(one) for one in lines))
    except ValueError:
        problems["dates"] = "Write each date as 2026-12-24, on a line of its own."
        return None
    if len(dates) > _MOST_DATES:
        problems["dates"] = f"At most {_MOST_DATES} dates."
        return None
    if not country and not dates:
        return None
    try:
        return _calendar(country, dates, this_year)
    except InvalidRequest as error:
        problems["country"] = f"The country {error.details[0].message.rstrip('.')}."
    except ConfigError as error:
        problems["country"] = error.message
    return None


def _calendar(country: str, dates: list[date], this_year: int) -> HolidayCalendar:
    name, dash, part = country.partition("-")
    public = HolidayCalendar(country=None, holidays=())
    if name:
        wanted: dict[str, Any] = {"country": name, "subdivision": part if dash else None}
        public = parse_holidays(wanted, this_year=this_year, path="holidays")
    known = {one.date for one in public.holidays}
    own = tuple(Holiday(date=day, name="", enabled=True) for day in dates if day not in known)
    return attrs.evolve(public, holidays=(*public.holidays, *own))
