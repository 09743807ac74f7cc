"""Recurring campaigns: schedules, and what became of each of their runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar, Final, Literal

import attrs

from outreach.errors import Problem
from outreach.models.base import UNSET, Unset
from outreach.models.fields import Checked, ListOf, Refused, Text, bounded, ruled, sized
from outreach.models.fields import zone as zone_name
from outreach.models.recurrence import recurrence_rule

HolidayPolicy = Literal["skip", "next_day", "ignore"]
"""The treatment of a run on a holiday of the campaign: left out, moved to the next day that is none, or made."""

OverlapPolicy = Literal["skip", "allow"]
"""The treatment of a run while the campaign of the run before it has not ended."""

ScheduleState = Literal["active", "paused", "ended"]

OccurrenceState = Literal["made", "started", "blocked", "skipped", "missed"]
"""The result of a run:

    made: its campaign was made, and is being checked
    started: its campaign was started
    blocked: it was not started, for the reason; its campaign, if it was made, waits for a person
    skipped: it was left out
    missed: nothing worked at its time
"""

MAX_EXCEPTIONS: Final = 200
FIRST_DAY: Final = date(2020, 1, 1)
LAST_DAY: Final = date(2199, 12, 31)

BLOCKED_TO_PAUSE: Final = 2
"""So many runs in a row that are blocked pause their schedule."""

_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


def day(value: Any) -> date:
    """Return a day within the years of schedules."""
    if type(value) is not date:
        raise Refused(f"must be a date, not {type(value).__name__}")
    if not FIRST_DAY <= value <= LAST_DAY:
        raise Refused(f"must be a day from {FIRST_DAY} to {LAST_DAY}")
    return value


@attrs.frozen(kw_only=True)
class ScheduleApproval:
    """The approval of a schedule by a second person: runs within its limits need no other one.

    Attributes:
        revision: That of the schedule; a change of the schedule ends the approval.
        template_revision: That of the campaign that the runs are like; a change of it ends the approval too.
        most_contacts: The most contacts of a run.
        most_amount: The most that a run may cost, in whole units of the price table's currency; None for no amount:
            where starts are approved by their cost, it covers no run.
        approved_by: Who has approved it, as the audit trail names people.
    """

    revision: int
    template_revision: int
    most_contacts: int
    most_amount: int | None
    approved_by: str
    approved_at: datetime


@attrs.frozen(kw_only=True)
class NewScheduleApproval(Checked):
    """Within which limits a second person approves the runs of a schedule; see `ScheduleApproval`."""

    revision: int = bounded(0, 2**31 - 1)
    most_contacts: int = bounded(1, 100_000_000)
    most_amount: int | None = bounded(0, 1_000_000_000, default=None)


@attrs.frozen(kw_only=True)
class Schedule:
    """A schedule, by which campaigns that are like one campaign are made and started.

    Attributes:
        template_id: The campaign that each run is like.
        audience_id: The campaign whose contacts each run gets, as they are then; None for those of the template.
        rule: How it repeats, as in RFC 5545.
        zone: The IANA zone of its days and its time.
        starts_on: The first day that counts.
        at: The time of the day, `HH:MM`.
        ends_on: The last day; None for no end.
        except_dates: Days without a run.
        holidays: The treatment of runs on the template's holidays.
        late_hours: How late the latest of the missed runs is made; None if it is left out.
        not_again_within_days: A contact that got a request of an earlier run of this schedule less than this many days
            ago, by the days of its zone, or waits for one, is left out; None for nobody.
        max_cost: A run that costs more is not started, in whole units of the price table's currency; None for no limit.
        reason: Why it is paused, or has ended; else None.
        next_at: The time of the next run; None without one.
        run_now_at: When a person asked for a run beside the others that was not made yet; else None.
        last_at: The time of the last run that was planned and is over; none before it is made.
        blocked: How many runs in a row were blocked.
        known_contacts: The contacts of the last run, from which the next one must not grow by half; None if nothing is
            known, or after a person's change.
        revision: Increases with each change by a person.
        changed_by: Who has changed it last.
        approval: The approval by a second person, if any.
        removed_at: When it was removed; else None.
    """

    _hidden: ClassVar = ("known_contacts",)

    id: str
    workspace_id: str
    name: str
    template_id: str
    audience_id: str | None
    rule: str
    zone: str
    starts_on: date
    at: str
    ends_on: date | None
    except_dates: tuple[date, ...]
    holidays: HolidayPolicy
    overlap: OverlapPolicy
    late_hours: int | None
    not_again_within_days: int | None
    max_cost: int | None
    state: ScheduleState
    reason: str | None
    next_at: datetime | None
    run_now_at: datetime | None
    last_at: datetime | None
    blocked: int
    known_contacts: int | None
    revision: int
    changed_by: str
    approval: ScheduleApproval | None
    created_at: datetime
    updated_at: datetime
    removed_at: datetime | None = None

    @property
    def source_id(self) -> str:
        """The campaign whose contacts each run gets."""
        return self.audience_id or self.template_id


@attrs.frozen(kw_only=True)
class NewSchedule(Checked):
    """A schedule to create; the fields are those of `Schedule`.

    Attributes:
        name: 1 to 80 characters, not all blank; the campaigns are called after it and their day.
        except_dates: At most 200.
        late_hours: 1 to 168.
        not_again_within_days: 1 to 3,650.
    """

    name: str = sized(1, 80)
    template_id: str
    audience_id: str | None = None
    rule: str = ruled(recurrence_rule)
    zone: str = ruled(zone_name)
    starts_on: date = ruled(day)
    at: str = ruled(Text(pattern=_TIME, meaning="must be a time of the day such as 09:30"))
    ends_on: date | None = ruled(day, default=None)
    except_dates: Sequence[date] = ruled(ListOf(day, maximum=MAX_EXCEPTIONS), default=())
    holidays: HolidayPolicy = "skip"
    overlap: OverlapPolicy = "skip"
    late_hours: int | None = bounded(1, 168, default=None)
    not_again_within_days: int | None = bounded(1, 3650, default=None)
    max_cost: int | None = bounded(0, 1_000_000_000, default=None)

    def _problems(self) -> Sequence[Problem]:
        return plan_problems(self)


def plan_problems(schedule: NewSchedule | Schedule) -> Sequence[Problem]:
    """Return what is wrong with a schedule whose fields are valid each by itself."""
    if not schedule.name.strip():
        return (Problem(path="name", message="must not be blank"),)
    if schedule.ends_on is not None and schedule.ends_on < schedule.starts_on:
        return (Problem(path="ends_on", message="must not be earlier than starts_on"),)
    return ()


@attrs.frozen(kw_only=True)
class ScheduleUpdate(Checked):
    """The fields of a schedule to change; `UNSET` leaves a field as it is, None clears it."""

    _rules_from: ClassVar = (NewSchedule,)

    name: str | Unset = UNSET
    template_id: str | Unset = UNSET
    audience_id: str | Unset | None = UNSET
    rule: str | Unset = UNSET
    zone: str | Unset = UNSET
    starts_on: date | Unset = UNSET
    at: str | Unset = UNSET
    ends_on: date | Unset | None = UNSET
    except_dates: Sequence[date] | Unset = UNSET
    holidays: HolidayPolicy | Unset = UNSET
    overlap: OverlapPolicy | Unset = UNSET
    late_hours: int | Unset | None = UNSET
    not_again_within_days: int | Unset | None = UNSET
    max_cost: int | Unset | None = UNSET


@attrs.frozen(kw_only=True)
class PlannedRun:
    """A run that a schedule is going to have.

    Attributes:
        at: Its moment, in UTC.
        day: Its day in the schedule's zone.
        moved_from: The holiday from which it was moved; None if it was not.
    """

    at: datetime
    day: date
    moved_from: date | None = None


@attrs.frozen(kw_only=True)
class Occurrence:
    """A run of a schedule, or what came instead of it.

    Attributes:
        at: The time that it was planned for, which is unique within its schedule.
        run_id: The campaign that was made; None if none was.
        reason: Why it was not started; else None.
        detail: More about the reason, in words; else None.
        contacts: The contacts of the campaign before those of earlier runs were left out; None without a campaign.
        amount: The campaign's cost by the workspace's prices; None if that is not known.
        decided_at: When this was written.
    """

    workspace_id: str
    schedule_id: str
    at: datetime
    run_id: str | None
    state: OccurrenceState
    reason: str | None
    detail: str | None
    contacts: int | None
    amount: Decimal | None
    decided_at: datetime
