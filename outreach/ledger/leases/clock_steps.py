"""Waits that are no longer right: the clock was set back, or contact rules or a campaign's hours have changed.

Times from before a step are trusted only as far as they can be true. The leader notes between which moments the clock
was not set; only that time proves that a request has ended. The price: an operator may retry about a minute after a
server has started, and a clock set forth by a day makes idempotency keys expire.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.ledger import provider_throttles
from outreach.ledger.campaigns.recipients import put_recipient, steps_of
from outreach.ledger.campaigns.trail import ENGINE
from outreach.ledger.campaigns.transitions import due_time, move, withdraw_run
from outreach.ledger.common import call_settings_of, campaign_unit, settings_of
from outreach.ledger.schedules import TOO_EARLY, replan_after_clock_step, run_ahead
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.schedule import Occurrence
from outreach.models.states import CampaignAction, CampaignStatus, TrailRule
from outreach.models.work import CampaignRunState
from outreach.rules.deciding import HOLDING_RULES, are_contact_rules_outdated, contact_rules_key
from outreach.rules.phones import MAX_NUMBER_WAIT, NUMBER_BUSY
from outreach.rules.schedules import LEAD
from outreach.rules.settlement import DOUBLE_DIAL, MAX_RETRY_AFTER, RETRYABLE_OUTCOMES, TRANSIENT_FAILURES
from outreach.storage.unit_of_work import Transaction

_SET_BACK: Final = "the clock was set back"
"""Marks, followed by the size of the step, a run whose recipients wait by outdated times."""

_NEW_HOURS: Final = "the campaign had other hours"
"""Marks a run whose recipients wait for hours that the campaign no longer has."""

_MAX_ROWS: Final = 200

_BEFORE: Final = timedelta(microseconds=1)
"""Shifts what was made before a step before all that was made since, so that requests keep their order."""

NODES_DIFFER: Final = timedelta(minutes=1)
"""A time that is less far ahead may be another node's, by a clock that this one does not follow yet."""

_TRUSTED_AFTER: Final = timedelta(hours=1)
"""A machine that starts with a wrong clock has it set within minutes."""

_MOMENTARY: Final = ("withdrawn", "operator_retry", "deferred", "flow", DOUBLE_DIAL)
"""Waits that may end at once: a provider that gets a request too early throttles again."""

_OPEN: Final = frozenset({CampaignStatus.ACTIVE, CampaignStatus.PAUSED, CampaignStatus.SCHEDULED})


def measure_setback(tx: Transaction, now: datetime) -> timedelta | None:
    """Return at least how far the clock was set back since the last heartbeat; None if it was not.

    Zero if only a campaign's update time lies ahead of now.
    """
    lease = tx.leases.current()
    if lease is not None and (until := lease.steady_until or lease.renewed_at) > now:
        return until - now
    return timedelta() if any(campaign.updated_at > now for campaign in tx.campaigns.in_status(_OPEN)) else None


def is_trusted(tx: Transaction, now: datetime) -> bool:
    """Return whether the clock may decide what cannot be undone: it has not been set for an hour."""
    lease = tx.leases.current()
    if lease is None or lease.steady_since is None or lease.steady_until is None:
        return False
    # A step that no heartbeat has noticed yet may lie between the last one and now.
    return lease.steady_since + _TRUSTED_AFTER <= lease.steady_until and now < lease.steady_until + _TRUSTED_AFTER


def is_ahead(tx: Transaction, now: datetime) -> bool:
    """Return whether a time lies ahead of the leader's heartbeats: a step back may be known to the leader alone."""
    lease = tx.leases.current()
    return lease is not None and lease.steady_until is not None and now > lease.steady_until + NODES_DIFFER


def repair_what_the_last_left(tx: Transaction, *, receipt: timedelta | None, epoch: int, now: datetime) -> None:
    """Repair what no worker has noticed: for one that begins alone, or that leads after a lost one.

    `receipt` is the longest wait for a receipt, None without a bound.
    """
    back = measure_setback(tx, now)
    if back is not None:
        repair_after_clock_step(tx, back, epoch=epoch, now=now)
    else:
        # Nothing else shows times that were written by a wrong clock while no worker ran.
        correct_due_times(tx, now=now)
        correct_schedules(tx, now=now)
        correct_waits(tx, receipt=receipt, epoch=epoch, now=now)


def repair_after_clock_step(tx: Transaction, back: timedelta, *, epoch: int, now: datetime) -> None:
    """Wake and correct what times from before the step may delay; `back` is zero if its size is unknown.

    Campaigns shorten waits in slices (`shorten_waits`). Throttles last from now at most as long as they were meant to.
    Start and update times are capped at now, so that later replies and failures count.
    """
    for campaign in tx.campaigns.in_status(_OPEN):
        _repair_campaign(tx, campaign, back, epoch, now)
    _correct_unknown(tx, back, now)
    correct_due_times(tx, now=now)
    correct_schedules(tx, now=now)
    _try_webhooks(tx, now)
    for throttle in tx.provider_throttles.list():
        provider_throttles.restart_throttle(tx, throttle.workspace_id, throttle.provider, now)


def correct_due_times(tx: Transaction, *, now: datetime) -> None:
    """Let units be checked as soon as if they were changed now: an early check changes nothing."""
    for work in tx.work.due():
        unit = work.unit
        # A schedule waits for a time of the wall clock, whatever that showed before.
        if work.due_at is None or work.due_at <= now or unit.kind == "schedule":
            continue
        campaign = tx.campaigns.get(unit.workspace_id, unit.id) if unit.kind == "campaign" else None
        due = now if campaign is None else due_time(campaign, now)
        if due is not None and due < work.due_at:
            tx.work.schedule(unit, due)


def correct_schedules(tx: Transaction, *, now: datetime) -> None:
    """Plan schedules again that a clock which was ahead has changed; what it made and did not begin is cancelled."""
    for workspace in tx.workspaces.list():
        for schedule in tx.schedules.list_existing(workspace.id):
            if max(schedule.updated_at, (schedule.last_at or now) - LEAD) <= now:
                continue
            ahead = run_ahead(tx, schedule, now)
            if ahead is not None and is_too_early(ahead[0], now):
                withdraw_run(tx, *ahead, state="skipped", why=TOO_EARLY, now=now, actor=ENGINE)
            replan_after_clock_step(tx, tx.schedules.existing(workspace.id, schedule.id), now)


def is_too_early(run: Occurrence, now: datetime) -> bool:
    """Return whether the campaign of a run was made by a clock that was ahead."""
    return now < run.at - LEAD - NODES_DIFFER


def corrected_created_at(tx: Transaction, dispatch: Dispatch, now: datetime) -> datetime:
    """Return when a dispatch was created, before the step if its clock was set back.

    A time ahead of now would keep it in flight until that time comes again.
    """
    since = _steady_since(tx, now) if dispatch.created_at > now else None
    return dispatch.created_at if since is None else since - _BEFORE


def latest_time(tx: Transaction, noted: datetime, now: datetime) -> datetime:
    """Return when something that was noted at a time was done at the latest.

    A time ahead of now dates from before a clock step. Clocks of nodes may differ for as long as a lease lasts.
    """
    if noted <= now:
        return noted
    since = _steady_since(tx, now) if noted > now + NODES_DIFFER else None
    return now if since is None else min(since, now)


def _steady_since(tx: Transaction, now: datetime) -> datetime | None:
    """Return since when the clock has not been set; None if no worker has measured yet how far it was set back."""
    lease = tx.leases.current()
    # If the last heartbeat lies ahead too, `repair_after_clock_step` is still to come.
    noticed = lease is not None and lease.steady_until is not None and lease.steady_until <= now
    return lease.steady_since if lease is not None and noticed else None


def _correct_unknown(tx: Transaction, back: timedelta, now: datetime) -> None:
    # As far back as the clock was set, because providers are asked for what they have received since then.
    after: tuple[datetime, str] | None = None
    while found := tx.dispatches.unknown(None, limit=_MAX_ROWS, after=after):
        after = (found[-1].created_at, found[-1].id)
        for dispatch in found:
            if dispatch.created_at > now:
                created_at = min(dispatch.created_at - back, now - _BEFORE)
                tx.dispatches.update(attrs.evolve(dispatch, created_at=created_at))


def _try_webhooks(tx: Transaction, now: datetime) -> None:
    """Let webhooks that have refused something be tried at once: how long they have waited is not known."""
    after = ""
    while page := tx.webhooks.active(after=after, limit=_MAX_ROWS):
        for one in page:
            after, cursor = one.id, tx.webhook_cursors.get(one.workspace_id, one.id)
            if cursor is None or not (tx.webhook_holds.hasten(one.workspace_id, one.id, now) or cursor.failures):
                continue
            since = None if cursor.failing_since is None else min(cursor.failing_since, now)
            probe_at = None if cursor.probe_at is None else min(cursor.probe_at, now)
            # A process that delivers to it begins anew by its new time.
            again = attrs.evolve(cursor, failing_since=since, probe_at=probe_at, updated_at=now)
            tx.webhook_cursors.put(again)


def correct_waits(tx: Transaction, *, receipt: timedelta | None, epoch: int, now: datetime) -> None:
    """Let campaigns shorten waits that no rule can have made (`shorten_waits`): a wrong clock made them.

    `receipt` is the longest wait for a receipt; None leaves these waits out.
    """
    campaigns = tx.campaigns.in_status(_OPEN)
    found = set(
        tx.recipients.waiting_beyond(
            # A provider may have asked for a deferral of this length.
            (one.workspace_id, one.id, reason, now + (MAX_RETRY_AFTER if reason == "deferred" else longest))
            for one in campaigns
            for reason, longest in _waits(tx, one)
        )
    )
    if receipt is not None:
        found.update(tx.recipients.in_progress_beyond([(one.workspace_id, one.id) for one in campaigns], now + receipt))
    for campaign in campaigns:
        if campaign.id in found:
            _mark_set_back(tx, campaign, timedelta(), epoch)


def _mark_set_back(tx: Transaction, campaign: Campaign, back: timedelta, epoch: int) -> None:
    run = tx.runs.get(campaign.workspace_id, campaign.id) or CampaignRunState(
        workspace_id=campaign.workspace_id, campaign_id=campaign.id, owner_epoch=epoch, next_slot_at=None
    )
    tx.runs.put(attrs.evolve(run, postponed_under=f"{_SET_BACK} by {back.total_seconds()} s"))


def _repair_campaign(tx: Transaction, campaign: Campaign, back: timedelta, epoch: int, now: datetime) -> None:
    started = campaign.started_at
    # A new revision, so that earlier decisions are made again.
    known = attrs.evolve(
        campaign,
        updated_at=min(campaign.updated_at, now),
        started_at=None if started is None else min(started, now),
        revision=campaign.revision + 1,
    )
    tx.campaigns.update(known)
    if (
        known.status is CampaignStatus.ACTIVE
        and known.scheduled_start_at is not None
        and known.scheduled_start_at > now
    ):
        # It starts again by the corrected clock.
        paused = move(tx, known, CampaignAction.PAUSE, now=now, actor=ENGINE, detail=_SET_BACK)
        known = move(tx, paused, CampaignAction.RESUME_SCHEDULE, now=now, actor=ENGINE, detail=_SET_BACK)
    _mark_set_back(tx, campaign, back, epoch)
    tx.work.schedule(campaign_unit(campaign), due_time(known, now))


def recorded_setback(run: CampaignRunState) -> timedelta | None:
    """Return how far the clock was set back since a run's recipients were postponed; None if it was not."""
    if run.postponed_under is None or not run.postponed_under.startswith(_SET_BACK):
        return None
    return timedelta(seconds=float(run.postponed_under.split()[-2]))


def note_new_hours(tx: Transaction, campaign: Campaign) -> None:
    """Let a campaign with new hours decide again about those who wait for contact hours within the old ones."""
    run = tx.runs.get(campaign.workspace_id, campaign.id)
    # A mark of a clock step wakes these as well, and others.
    if run is not None and run.postponed_under is not None and recorded_setback(run) is None:
        tx.runs.put(attrs.evolve(run, postponed_under=_NEW_HOURS))


def shorten_waits(
    tx: Transaction, campaign: Campaign, back: timedelta, *, receipt: timedelta, now: datetime, limit: int
) -> Iterator[tuple[Recipient, Recipient]]:
    """Yield recipients that wait longer than a new wait would last, each with its shortened wait.

    A wait lasts as long as it had left before the step, and never longer than `receipt` or a new wait of its kind.
    """
    left = limit
    for reason, longest in _waits(tx, campaign):
        for recipient in tx.recipients.postponed(campaign.workspace_id, campaign.id, reason, now + longest, limit=left):
            latest = now + _longest_wait(tx, campaign, recipient, longest)
            yield recipient, attrs.evolve(recipient, due_at=_sooner(recipient, back, latest))
            left -= 1
    for recipient in tx.recipients.in_progress_after(campaign.workspace_id, campaign.id, now + receipt, limit=left):
        yield recipient, attrs.evolve(recipient, due_at=_sooner(recipient, back, now + receipt))


def _sooner(recipient: Recipient, back: timedelta, latest: datetime) -> datetime:
    return latest if recipient.due_at is None else min(recipient.due_at - back, latest)


def _waits(tx: Transaction, campaign: Campaign) -> Iterator[tuple[str, timedelta]]:
    """Yield each reason to wait with its longest duration."""
    for reason in _MOMENTARY:
        yield reason, timedelta()
    if campaign.channel == "call":
        again = timedelta(minutes=call_settings_of(tx, campaign.workspace_id).retry_delay_minutes)
        for outcome in sorted(RETRYABLE_OUTCOMES | TRANSIENT_FAILURES):
            yield f"retry_{outcome}", again
        return
    yield NUMBER_BUSY, MAX_NUMBER_WAIT
    yield "retry", timedelta(minutes=settings_of(tx, campaign.workspace_id).retry_delay_minutes)
    waits = [step.wait_minutes or 0 for step in steps_of(tx, campaign) or ()]
    yield "flow_wait", timedelta(minutes=max(waits, default=0))


def _longest_wait(tx: Transaction, campaign: Campaign, recipient: Recipient, longest: timedelta) -> timedelta:
    """Return a recipient's longest wait; each flow step has its own."""
    steps = steps_of(tx, campaign) or () if recipient.reason == "flow_wait" else ()
    if not 0 < recipient.step <= len(steps):
        return longest
    return timedelta(minutes=steps[recipient.step - 1].wait_minutes or 0)


def release_postponed(
    tx: Transaction, workspace_id: str, campaign_id: str, *, receipt: timedelta, now: datetime, limit: int
) -> None:
    """Make a slice of the recipients postponed under outdated contact rules due now.

    The run stays outdated until none is left. Other waits keep their time unless a clock step changed it (`receipt` is
    the longest wait for a receipt).
    """
    run, workspace = tx.runs.get(workspace_id, campaign_id), tx.workspaces.get(workspace_id)
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if run is None or workspace is None or campaign is None or not are_contact_rules_outdated(run, workspace):
        return
    left = limit
    back = recorded_setback(run)
    if back is not None:
        for before, after in shorten_waits(tx, campaign, back, receipt=receipt, now=now, limit=limit):
            put_recipient(tx, workspace_id, before, after, rule=TrailRule.DEFERRAL, now=now)
            left -= 1
    for rule in HOLDING_RULES.values():
        if rule.released_by != "setting":
            continue
        for recipient in tx.recipients.postponed(workspace_id, campaign_id, rule.name, now, limit=left):
            again = attrs.evolve(recipient, due_at=now)
            put_recipient(tx, workspace_id, recipient, again, rule=rule.trail_rule, now=now)
            left -= 1
    if left:
        tx.runs.put(attrs.evolve(run, postponed_under=contact_rules_key(workspace)))
