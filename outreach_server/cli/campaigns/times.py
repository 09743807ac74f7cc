"""The options of a campaign's times: start, expiry, business hours and holidays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Final
from zoneinfo import ZoneInfo

import attrs
import click

from outreach import BusinessHours, InvalidRequest
from outreach.http import parse_holidays
from outreach.models import Holiday, HolidayCalendar
from outreach.protocols import SystemClock
from outreach.server_support import sentence
from outreach_server.cli.durations import time_text
from outreach_server.cli.values import DATE, MOMENT, OPENING_HOURS, ZONE
from outreach_server.hours import Opening, schedule_of

TIMES: Final = (
    click.option(
        "--schedule-at",
        type=MOMENT,
        help="Begin then, instead of at once after the start. Such as 2026-11-30T09:00, by the clocks of --timezone or "
        "of the campaign's zone, or 2026-11-30T09:00+01:00.",
    ),
    click.option("--expires-at", type=MOMENT, help="Contact nobody from then on; written like --schedule-at."),
    click.option(
        "--hours",
        type=OPENING_HOURS,
        multiple=True,
        metavar="'DAYS FROM-TO'",
        help="Business hours, such as 'mon-fri 09:00-17:00' or 'daily 18:00-02:00'; repeat for more. Needs --timezone.",
    ),
    click.option(
        "--timezone",
        type=ZONE,
        metavar="ZONE",
        help="The time zone of --hours, holidays, and times without an offset, such as America/New_York; by default "
        "UTC.",
    ),
    click.option(
        "--holidays",
        "country",
        metavar="COUNTRY[-PART]",
        help="Contact nobody on the public holidays of a country, such as US, or of a part of it too, such as GB-ENG.",
    ),
    click.option(
        "--holiday",
        "dates",
        type=DATE,
        multiple=True,
        help="Contact nobody on this date, such as 2026-12-24; repeat for more.",
    ),
)


@attrs.frozen
class Schedule:
    """When a campaign begins and expires."""

    begins_at: datetime | None
    expires_at: datetime | None


def check_zone(
    timezone: str | None, hours: Sequence[Opening], moments: Sequence[datetime | None], holidays: bool
) -> None:
    """Check that a zone is given with what needs it, and only then.

    Raises:
        click.UsageError: Hours have no zone, or a zone has nothing.
    """
    if hours and timezone is None:
        raise click.UsageError("--hours needs --timezone: the zone of its clocks, such as Europe/Berlin.")
    if timezone is not None and not hours and not holidays and not any(moments):
        raise click.UsageError("--timezone needs --hours, --schedule-at, --expires-at or holidays, which it is for.")


def read_schedule(schedule_at: datetime | None, expires_at: datetime | None, zone: str) -> Schedule:
    """Return the times of a campaign; those without an offset are by the clocks of a zone.

    Raises:
        click.UsageError: A time has passed, does not exist there, or they exclude each other.
    """
    begins, expires = with_offset("--schedule-at", schedule_at, zone), with_offset("--expires-at", expires_at, zone)
    now = SystemClock().now()
    if begins is not None and begins <= now:
        raise click.UsageError(
            f"--schedule-at {time_text(begins, zone)} has passed: the campaign would start at once when it is "
            "started. Name a time ahead, or leave it out."
        )
    if expires is not None and expires <= now:
        raise click.UsageError(f"--expires-at {time_text(expires, zone)} has passed: nobody would be contacted.")
    if begins is not None and expires is not None and expires <= begins:
        raise click.UsageError("--expires-at must come after --schedule-at.")
    return Schedule(begins, expires)


def with_offset(option: str, moment: datetime | None, zone: str) -> datetime | None:
    """Return the time of an option, by a zone's clocks without an offset; raise `UsageError` if there is none."""
    if moment is None or moment.tzinfo is not None:
        return moment
    local = moment.replace(tzinfo=ZoneInfo(zone))
    later = local.replace(fold=1)
    try:
        local.astimezone(UTC)
    except OverflowError:
        raise click.UsageError(f"{option} is too near the end of the calendar for a time of {zone}.") from None
    if local.astimezone(UTC).astimezone(local.tzinfo).replace(tzinfo=None) != moment:
        raise click.UsageError(
            f"{option} {moment:%Y-%m-%d %H:%M} does not exist in {zone}: the clocks go forward then."
        )
    if local.utcoffset() != later.utcoffset():
        raise click.UsageError(
            f"{option} {moment:%Y-%m-%d %H:%M} comes twice in {zone}, because the clocks go back. Say which: "
            f"{local.isoformat(timespec='minutes')} or {later.isoformat(timespec='minutes')}."
        )
    return local.astimezone(UTC)


def business_hours(hours: Sequence[Opening], timezone: str | None, batch_concurrency: int) -> BusinessHours | None:
    """Return the requested business hours, if any; a zone alone is that of the campaign's times."""
    if timezone is None:
        return None
    return BusinessHours(
        enabled=bool(hours), timezone=timezone, schedule=schedule_of(hours), batch_concurrency=batch_concurrency
    )


def holiday_calendar(country: str | None, dates: Sequence[date]) -> HolidayCalendar | None:
    """Return the requested holidays, of a country such as `GB-ENG` and on dates, if any.

    Raises:
        click.UsageError: The country is unknown.
    """
    if country is None and not dates:
        return None
    public = HolidayCalendar(country=None, holidays=())
    if country is not None:
        name, dash, part = country.partition("-")
        wanted = {"country": name, "subdivision": part if dash else None}
        try:
            public = parse_holidays(wanted, this_year=SystemClock().now().year, path="--holidays")
        except InvalidRequest as error:
            detail = error.details[0]
            place = detail.path.rpartition(".")[2]
            raise click.UsageError(sentence(f"--holidays {country!r}: the {place} {detail.message}")) from None
    known = {holiday.date for holiday in public.holidays}
    own = [Holiday(date=day, name="", enabled=True) for day in dates if day not in known]
    return attrs.evolve(public, holidays=(*public.holidays, *own))
