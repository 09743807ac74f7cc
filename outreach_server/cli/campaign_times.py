"""The options of a campaign's times: start, expiry, business hours and holidays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, Final

import attrs
import click

from outreach import BusinessHours
from outreach.http import parse_holidays
from outreach.models import Holiday, HolidayCalendar
from outreach.protocols import SystemClock
from outreach_server.cli.hours import Opening, OpeningHours, schedule_of
from outreach_server.cli.values import DATE, MOMENT

TIMES: Final = (
    click.option("--schedule-at", type=MOMENT, help="Begin then, instead of at once after the start."),
    click.option("--expires-at", type=MOMENT, help="Contact nobody from then on."),
    click.option(
        "--hours",
        type=OpeningHours(),
        multiple=True,
        metavar="'DAYS FROM-TO'",
        help="Business hours, such as 'mon-fri 09:00-17:00'; repeat for more. Needs --timezone.",
    ),
    click.option("--timezone", metavar="ZONE", help="The time zone of --hours, such as America/New_York."),
    click.option(
        "--holidays",
        "country",
        metavar="COUNTRY[-PART]",
        help="Contact nobody on the public holidays of a country, such as US, or of a part of it too, such as GB-ENG.",
    ),
    click.option("--holiday", "dates", type=DATE, multiple=True, help="Contact nobody on this date; repeat for more."),
)


def time_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of times to a command."""
    for option in reversed(TIMES):
        command = option(command)
    return command


def check_times(
    schedule_at: datetime | None, expires_at: datetime | None, hours: Sequence[Opening], timezone: str | None
) -> None:
    """Check what can be checked without a database.

    Raises:
        click.UsageError: A time has passed, or options exclude or require each other.
    """
    if bool(hours) != (timezone is not None):
        raise click.UsageError("--hours and --timezone go together: hours need a time zone.")
    now = SystemClock().now()
    if schedule_at is not None and schedule_at <= now:
        raise click.UsageError(
            f"--schedule-at {schedule_at:%Y-%m-%d %H:%M} UTC has passed: the campaign would start at once when it is "
            "started. Name a time ahead, or leave it out."
        )
    if expires_at is not None and expires_at <= now:
        raise click.UsageError(f"--expires-at {expires_at:%Y-%m-%d %H:%M} UTC has passed: nobody would be contacted.")
    if schedule_at is not None and expires_at is not None and expires_at <= schedule_at:
        raise click.UsageError("--expires-at must come after --schedule-at.")


def business_hours(hours: Sequence[Opening], timezone: str | None, batch_concurrency: int) -> BusinessHours | None:
    """Return the requested business hours, if any."""
    if timezone is None:
        return None
    return BusinessHours(
        enabled=True, timezone=timezone, schedule=schedule_of(hours), batch_concurrency=batch_concurrency
    )


def holiday_calendar(country: str | None, dates: Sequence[date]) -> HolidayCalendar | None:
    """Return the requested holidays, of a country such as `GB-ENG` and on dates, if any.

    Raises:
        InvalidRequest: The country is unknown.
    """
    if country is None and not dates:
        return None
    public = HolidayCalendar(country=None, holidays=())
    if country is not None:
        country, dash, part = country.partition("-")
        wanted = {"country": country, "subdivision": part if dash else None}
        public = parse_holidays(wanted, this_year=SystemClock().now().year, path="--holidays")
    known = {holiday.date for holiday in public.holidays}
    own = [Holiday(date=day, name="", enabled=True) for day in dates if day not in known]
    return attrs.evolve(public, holidays=(*public.holidays, *own))
