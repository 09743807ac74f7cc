"""Schedules within a transaction: what became of a run, and the next one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

import attrs

from outreach.errors import Conflict, Problem
from outreach.ledger.common import record_audit
from outreach.models.campaign import Campaign
from outreach.models.schedule import Occurrence, OccurrenceState, PlannedRun, Schedule
from outreach.models.states import CampaignStatus, TrailEntry, TrailRule, TrailStepKind
from outreach.models.work import WorkUnit
from outreach.rules.holidays import closed_dates, extend_calendar
from outreach.rules.recurrence import runs_after
from outreach.rules.schedules import LEAD, due_time, settled, timing
from outreach.storage.unit_of_work import AlreadyExists, Transaction

REPLANNED: Final = Problem(code="replanned", message="The schedule was changed before this run began.")
"""Why a run whose campaign was made is left out: its time is in the plan no more."""

TOO_EARLY: Final = Problem(code=REPLANNED.code, message="Its campaign was made while the clock was ahead.")
"""Why a run whose campaign was made is left out until its time comes."""

_MOMENT: Final = timedelta(microseconds=1)
_MAX_LATE: Final = 20
"""So many of the last runs are looked at for some that may still be made late."""


class RunTaken(Conflict):
    """The run was made or left out meanwhile, or its schedule has changed: nothing is to be done."""


def closed_days(tx: Transaction, schedule: Schedule, now: datetime) -> frozenset[date]:
    """Return the holidays of the campaign that the runs are like."""
    template = tx.campaigns.get(schedule.workspace_id, schedule.template_id)
    return holidays_of(template, now)


def holidays_of(template: Campaign | None, now: datetime) -> frozenset[date]:
    """Return the holidays of a campaign."""
    if template is None or template.holidays is None:
        return frozenset()
    return closed_dates(extend_calendar(template.holidays, now.year))


def require_no_schedule(tx: Transaction, campaign: Campaign, now: datetime) -> None:
    """Raise `Conflict` if a schedule repeats a campaign, takes its contacts, or still leaves them out."""
    for schedule in tx.schedules.list_existing(campaign.workspace_id):
        if campaign.id in {schedule.template_id, schedule.audience_id} and schedule.state != "ended":
            raise Conflict(
                f"Campaign {campaign.name!r} is in use by schedule {schedule.name!r}: name another campaign there, or "
                "remove the schedule, first."
            )
    left_out_by = tx.occurrences.left_out_by(campaign.workspace_id, campaign.id, now=now)
    if left_out_by is not None:
        raise Conflict(
            f"Schedule {left_out_by!r} leaves out whom campaign {campaign.name!r} has reached, and would contact them "
            "again. Delete it after these days, or shorten not_again_within_days there, or remove the schedule, first."
        )


def runs_to_come(tx: Transaction, schedule: Schedule, after: datetime, now: datetime) -> Iterator[PlannedRun]:
    """Iterate over the runs of a schedule after a moment that are not over, in order: none is repeated.

    After the clock was set back this includes runs that were recorded as missed, and are not missed by the new time.
    """
    for one in runs_after(schedule, after, closed_days(tx, schedule, now)):
        known = tx.occurrences.get(schedule.workspace_id, schedule.id, one.at)
        if known is None or known.reason == REPLANNED.code or _is_missed_wrongly(tx, schedule, known, now):
            yield one


def _is_missed_wrongly(tx: Transaction, schedule: Schedule, run: Occurrence, now: datetime) -> bool:
    return run.state == "missed" and not is_missed(tx, schedule, run.at, now)


def replan(tx: Transaction, schedule: Schedule, now: datetime, *, after: datetime | None = None) -> Schedule:
    """Return a schedule as it goes on, with its next run after a moment, by default now."""
    found = _with_next(tx, schedule, after or now, now)
    if found.state == "ended" and found.next_at is not None:
        found = attrs.evolve(found, state="active", reason=None)
    elif found.state == "active" and found.next_at is None and found.run_now_at is None:
        found = attrs.evolve(found, state="ended", reason="no_further_run")
    return found


def replan_after_clock_step(tx: Transaction, schedule: Schedule, now: datetime) -> None:
    """Plan the runs again that a clock which was ahead has passed over."""
    made = now + LEAD + _MOMENT
    lately = tx.occurrences.page(schedule.workspace_id, schedule.id, before=made, limit=_MAX_LATE)
    missed = [one.at for one in lately if _is_missed_wrongly(tx, schedule, one, now)]
    last_at = next((one.at for one in lately if one.at not in missed), None)
    schedule = attrs.evolve(schedule, last_at=last_at)
    found = replan(tx, schedule, now, after=min([now, *(at - _MOMENT for at in missed)]))
    if found.next_at is None or (schedule.next_at is not None and schedule.next_at <= found.next_at):
        # A run that is late is still to be made.
        found = schedule
    run_now_at = None if found.run_now_at is None else min(found.run_now_at, now)
    put(tx, attrs.evolve(found, run_now_at=run_now_at, updated_at=min(found.updated_at, now)), now)


def note_new_holidays(tx: Transaction, template: Campaign, now: datetime) -> None:
    """Plan the next runs of the schedules that repeat a campaign anew, by its holidays; a run that is due stays."""
    for schedule in tx.schedules.list_existing(template.workspace_id):
        ahead = schedule.next_at is not None and schedule.next_at > now
        if schedule.template_id == template.id and schedule.state == "active" and ahead:
            put(tx, replan(tx, schedule, now), now)


def put(tx: Transaction, schedule: Schedule, now: datetime) -> None:
    """Replace a schedule, and write in the work feed when something is to be done for it."""
    tx.schedules.update(schedule)
    reschedule(tx, schedule, now)


def reschedule(tx: Transaction, schedule: Schedule, now: datetime) -> None:
    """Write in the work feed when something is to be done for a schedule."""
    # A run whose campaign is made is decided about even while its schedule is paused. `now` may be of a clock that is
    # ahead, and is set back later.
    made = tx.occurrences.made(schedule.workspace_id, schedule.id)
    tx.work.schedule(unit_of(schedule), due_time(schedule) if made is None else min(now, made.at - LEAD))


def unit_of(schedule: Schedule) -> WorkUnit:
    """Return a schedule's unit of work."""
    return WorkUnit("schedule", schedule.workspace_id, schedule.id)


def require_due(tx: Transaction, schedule: Schedule, at: datetime) -> Schedule:
    """Return a schedule as it is now, or raise `RunTaken` unless this run is still to be made.

    Args:
        tx: The transaction.
        schedule: The schedule when the run was decided on.
        at: The time of the run.
    """
    now = tx.schedules.get(schedule.workspace_id, schedule.id)
    if (
        now is None
        or now.removed_at is not None
        or (now.state, now.revision) != ("active", schedule.revision)
        or at not in {now.next_at, now.run_now_at}
    ):
        raise RunTaken("The schedule has changed meanwhile, or this run was made.")
    return now


def record_made(
    tx: Transaction, schedule: Schedule, at: datetime, *, run: Campaign, contacts: int, now: datetime
) -> None:
    """Record that the campaign of a run was made, in the transaction that makes it.

    Raises:
        RunTaken: The time has a run already, or the schedule has changed.
    """
    known = require_due(tx, schedule, at)
    _insert(tx, known, at, state="made", run_id=run.id, contacts=contacts, now=now)
    put(tx, _advanced(tx, known, at, now), now)


def record_left_out(
    tx: Transaction, schedule: Schedule, at: datetime, *, state: OccurrenceState, why: Problem, now: datetime
) -> None:
    """Record that no campaign was made for a run.

    Raises:
        RunTaken: The time has a run already, or the schedule has changed.
    """
    known = require_due(tx, schedule, at)
    one = _insert(tx, known, at, state=state, why=why, now=now)
    _settle(tx, _advanced(tx, known, at, now), one, now)


def record_decided(
    tx: Transaction,
    made: Occurrence,
    *,
    state: OccurrenceState,
    why: Problem | None = None,
    amount: Decimal | None = None,
    now: datetime,
) -> None:
    """Record that the campaign of a run was started, or why it was not; the first decision holds."""
    known = tx.occurrences.get(made.workspace_id, made.schedule_id, made.at)
    schedule = tx.schedules.get(made.workspace_id, made.schedule_id)
    if known is None or known.state != "made" or schedule is None:
        return
    _become(tx, schedule, attrs.evolve(known, amount=amount), state=state, why=why, now=now)


def record_withdrawn(tx: Transaction, run: Occurrence, *, state: OccurrenceState, why: Problem, now: datetime) -> None:
    """Record that the campaign of a run was cancelled before it began."""
    schedule = tx.schedules.get(run.workspace_id, run.schedule_id)
    if schedule is not None:
        _become(tx, schedule, run, state=state, why=why, now=now)


def run_ahead(tx: Transaction, schedule: Schedule, now: datetime) -> tuple[Occurrence, Campaign] | None:
    """Return the run of the rule whose campaign is made and has not begun, and this; None without one.

    A campaign to which a person gave another time is none.
    """
    at, place = schedule.last_at, schedule.workspace_id
    run = None if at is None else tx.occurrences.get(place, schedule.id, at)
    campaign = None if run is None or run.run_id is None else tx.campaigns.get(place, run.run_id)
    if run is None or campaign is None or campaign.started_at is not None or campaign.is_terminal:
        return None
    # A blocked one whose time is over waits for a person.
    waits = now < run.at or campaign.status is CampaignStatus.SCHEDULED
    return (run, campaign) if waits and campaign.scheduled_start_at == at else None


def before_run(tx: Transaction, schedule: Schedule, run: Occurrence) -> Schedule:
    """Return a schedule as if this run of its rule had never been planned."""
    earlier = tx.occurrences.page(run.workspace_id, run.schedule_id, before=run.at, limit=1)
    return attrs.evolve(schedule, last_at=earlier[0].at if earlier else None)


def is_start_missed(tx: Transaction, run: Occurrence, now: datetime) -> bool:
    """Return whether a run is too late to begin, by the policy of its schedule."""
    schedule = tx.schedules.get(run.workspace_id, run.schedule_id)
    return schedule is not None and is_missed(tx, schedule, run.at, now)


def is_missed(tx: Transaction, schedule: Schedule, at: datetime, now: datetime) -> bool:
    """Return whether a run of the rule is too late, or the next one is due: only the latest is made up for."""
    if timing(schedule, at, now) == "missed":
        return True
    following = next(runs_after(schedule, at, closed_days(tx, schedule, now)), None)
    return schedule.state == "active" and following is not None and following.at <= now


def pause_after_restore(tx: Transaction, reason: str, now: datetime) -> None:
    """Pause all schedules: what has run since a copy was made is not known (docs/delivery-contract.md#rule-10)."""
    for workspace in tx.workspaces.list():
        for schedule in tx.schedules.list_existing(workspace.id):
            if schedule.state == "active":
                put(tx, attrs.evolve(schedule, state="paused", reason=reason, run_now_at=None, updated_at=now), now)
                _audit(tx, schedule, "pause", reason, now)


def _insert(
    tx: Transaction,
    schedule: Schedule,
    at: datetime,
    *,
    state: OccurrenceState,
    now: datetime,
    why: Problem | None = None,
    run_id: str | None = None,
    contacts: int | None = None,
) -> Occurrence:
    one = Occurrence(
        workspace_id=schedule.workspace_id,
        schedule_id=schedule.id,
        at=at,
        run_id=run_id,
        state=state,
        reason=None if why is None else why.code,
        detail=None if why is None else why.message,
        contacts=contacts,
        amount=None,
        decided_at=now,
    )
    known = tx.occurrences.get(one.workspace_id, one.schedule_id, at)
    if known is not None and (known.reason == REPLANNED.code or known.state == "missed"):
        # The plan was changed back, or the clock was set back: nothing went out.
        tx.occurrences.update(one)
        return one
    try:
        tx.occurrences.insert(one)
    except AlreadyExists:
        raise RunTaken("This time of the schedule has a run.") from None
    return one


def _advanced(tx: Transaction, schedule: Schedule, at: datetime, now: datetime) -> Schedule:
    """Return a schedule behind a run that was made or left out."""
    if at == schedule.run_now_at:
        return attrs.evolve(schedule, run_now_at=None)
    return _with_next(tx, attrs.evolve(schedule, last_at=at), at, now)


def _with_next(tx: Transaction, schedule: Schedule, after: datetime, now: datetime) -> Schedule:
    found = next(runs_to_come(tx, schedule, after, now), None)
    return attrs.evolve(schedule, next_at=None if found is None else found.at)


def _become(
    tx: Transaction, schedule: Schedule, one: Occurrence, *, state: OccurrenceState, why: Problem | None, now: datetime
) -> None:
    after = attrs.evolve(
        one,
        state=state,
        reason=None if why is None else why.code,
        detail=None if why is None else why.message,
        decided_at=now,
    )
    tx.occurrences.update(after)
    _settle(tx, schedule, after, now)


def _settle(tx: Transaction, schedule: Schedule, one: Occurrence, now: datetime) -> None:
    after = settled(schedule, one.state, one.reason, one.contacts)
    put(tx, attrs.evolve(after, updated_at=now), now)
    tx.trail.append(
        TrailEntry(
            at=now,
            workspace_id=one.workspace_id,
            what=TrailStepKind.SCHEDULE,
            rule=TrailRule.SCHEDULE,
            state=one.state,
            reason=one.reason,
            campaign_id=one.run_id if one.run_id and tx.campaigns.get(one.workspace_id, one.run_id) else None,
            due_at=one.at,
            schedule_id=one.schedule_id,
        )
    )
    if after.state == "paused" and schedule.state == "active":
        _audit(tx, schedule, "pause", one.reason, now)


def _audit(tx: Transaction, schedule: Schedule, action: str, detail: str | None, now: datetime) -> None:
    record_audit(tx, schedule.workspace_id, f"schedule.{action}", schedule.id, actor="engine", now=now, detail=detail)
