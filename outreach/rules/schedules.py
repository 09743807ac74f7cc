"""Decisions of a schedule at a moment, as pure functions of `now`."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Final, Literal
from zoneinfo import ZoneInfo

import attrs

from outreach.errors import Problem
from outreach.models.campaign import Campaign
from outreach.models.preflight import Preflight
from outreach.models.schedule import BLOCKED_TO_PAUSE, OccurrenceState, Schedule
from outreach.models.workspace import Workspace
from outreach.rules.readiness import approval_reason, is_person
from outreach.rules.recurrence import wall_clock

LEAD: Final = timedelta(minutes=15)
"""How long before its time the campaign of a run is made, so that a person can look at it."""

ON_TIME: Final = timedelta(minutes=5)
"""A run that is so late is on time."""

MISSED: Final = Problem(code="missed", message="No process worked at its time.")
"""Why a run is left out that comes too late."""

GROWTH: Final = Decimal("1.5")
"""A list that has grown by more than this factor since the last run is looked at by a person."""


def timing(schedule: Schedule, at: datetime, now: datetime) -> Literal["early", "now", "missed"]:
    """Return whether a run is made now, at or after its `LEAD`, or is too late."""
    if now < at - LEAD:
        return "early"
    late = timedelta(hours=schedule.late_hours or 0)
    return "now" if now <= at + max(late, ON_TIME) else "missed"


def not_again_since(schedule: Schedule, at: datetime) -> datetime | None:
    """Return from when on a person is left out who got a request of an earlier run; None if nobody is.

    Days of the schedule's zone count, not hours, so that a weekly run leaves out nobody of the week before by 7 days.
    """
    if schedule.not_again_within_days is None:
        return None
    zone = ZoneInfo(schedule.zone)
    day = at.astimezone(zone).date() - timedelta(days=schedule.not_again_within_days - 1)
    return wall_clock(datetime.combine(day, time()), zone)


def settled(schedule: Schedule, state: OccurrenceState, reason: str | None, contacts: int | None) -> Schedule:
    """Return a schedule with the result of a run: too many blocked ones in a row pause it."""
    if state == "started":
        schedule = attrs.evolve(schedule, blocked=0, known_contacts=contacts)
    elif state == "blocked":
        schedule = attrs.evolve(schedule, blocked=schedule.blocked + 1)
        if schedule.blocked >= BLOCKED_TO_PAUSE and schedule.state == "active":
            schedule = attrs.evolve(schedule, state="paused", reason=reason)
    if schedule.state == "active" and schedule.next_at is None and schedule.run_now_at is None:
        schedule = attrs.evolve(schedule, state="ended", reason="no_further_run")
    return schedule


def due_time(schedule: Schedule) -> datetime | None:
    """Return when something is to be done for a schedule; None for never."""
    if schedule.state != "active" or schedule.removed_at is not None:
        return None
    times = [
        *([] if schedule.next_at is None else [schedule.next_at - LEAD]),
        *([] if schedule.run_now_at is None else [schedule.run_now_at]),
    ]
    return min(times, default=None)


def obstacle(
    schedule: Schedule,
    template: Campaign,
    source: Campaign,
    run: Campaign,
    workspace: Workspace,
    found: Preflight,
    contacts: int,
) -> Problem | None:
    """Return why a run is not started, by its preflight; None if it is.

    Args:
        schedule: The schedule.
        template: The campaign that the run is like.
        source: The campaign whose contacts the run gets.
        run: The campaign of the run: one that a person has changed is another one than was approved.
        workspace: Its limits of approval.
        found: The preflight of the run.
        contacts: The contacts of the run before those of earlier runs were left out.
    """
    if found.problems:
        return Problem(code="not_ready", message=" ".join(one.message for one in found.problems))
    if not found.contacted:
        return Problem(code="nobody", message="None of its contacts would be contacted.")
    known = schedule.known_contacts
    if known is not None and contacts > known * GROWTH:
        message = f"Its list has {contacts:,} contacts, that of the last run had {known:,}."
        return Problem(code="audience_grew", message=message)
    amount = amount_of(found)
    if schedule.max_cost is not None and (amount is None or amount > schedule.max_cost):
        cost = "is not known" if amount is None else f"is {amount:,.2f}"
        return Problem(code="cost", message=f"Its cost {cost}, and max_cost is {schedule.max_cost:,}.")
    is_changed = is_person(run.changed_by or "") and approval_reason(workspace, contacts=found.contacts, amount=amount)
    if is_changed or needs_approval(schedule, template, source, workspace, found.contacts, amount):
        message = "A second person has to approve the schedule, or its limits, or the campaign that its runs are like."
        return Problem(code="awaits_approval", message=message)
    return None


def amount_of(found: Preflight) -> Decimal | None:
    """Return what a preflight says that a run costs; None unless all of it has a price."""
    return found.cost.amount if found.cost is not None and not found.cost.unpriced else None


def needs_approval(
    schedule: Schedule,
    template: Campaign,
    source: Campaign,
    workspace: Workspace,
    contacts: int,
    amount: Decimal | None,
) -> bool:
    """Return whether the start of a run needs approval that the schedule does not have.

    As with campaigns, only what a person at a console has set up needs it.
    """
    reason = approval_reason(workspace, contacts=contacts, amount=amount)
    changed_by = (schedule.changed_by, template.changed_by, source.changed_by)
    if reason is None or not any(is_person(one or "") for one in changed_by):
        return False
    known = schedule.approval
    if known is None or (known.revision, known.template_revision) != (schedule.revision, template.revision):
        return True
    if contacts > known.most_contacts:
        return True
    by_amount = workspace.approve_over_amount is not None
    return by_amount and (amount is None or known.most_amount is None or amount > known.most_amount)
