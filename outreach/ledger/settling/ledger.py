"""Outcomes and reports of dispatches, merged into the ledger from every source, and what the engine stops by them.

It stops campaigns whose requests fail, and ends the open recipients of those that are over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.core.copying import copy_with
from outreach.ledger import provider_throttles
from outreach.ledger.campaigns import trail
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.campaigns.transitions import complete_if_done, move
from outreach.ledger.common import campaign_unit, provider_of
from outreach.ledger.leases.clock_steps import corrected_created_at
from outreach.ledger.opt_out import entries
from outreach.ledger.sending import intents
from outreach.ledger.settling import call_outcomes, message_outcomes, recipient_outcomes
from outreach.models.account import PROVIDERS
from outreach.models.campaign import Campaign, Counters, PauseReason, Recipient
from outreach.models.dispatch import FAILURE_CLASSES, OPTED_OUT, Dispatch, DispatchOutcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.states import (
    MESSAGE_STATUS_RANK,
    CampaignAction,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    TrailRule,
)
from outreach.protocols.voice import Analyser
from outreach.rules.settlement import (
    JUDGED_DISPATCHES,
    LOCAL_INTERRUPTIONS,
    NOT_REACHED,
    Backoff,
    close_recipient,
    closing_status,
    counts_against_budget,
    expire_receipt_wait,
    is_spent,
    may_settle,
)
from outreach.storage.unit_of_work import Transaction

_FAR_FUTURE: Final = timedelta(days=3650)
"""Later than anything is due."""


def close_open_recipients(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, limit: int) -> bool:
    """End a slice of a cancelled or expired campaign's open recipients; return whether more are left.

    An accepted message that waits for its receipt ends as completed; a later receipt still counts.
    """
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    closing = closing_status(campaign.status) if campaign else None
    if campaign is None or closing is None:
        return False
    rows = tx.recipients.closable(workspace_id, campaign_id, limit=limit)
    change = Counters()
    for recipient in rows:
        after = close_recipient(recipient, closing, now)
        change += put_recipient(tx, workspace_id, recipient, after, rule=TrailRule.STOP, now=now)
    accepted: Sequence[Recipient] = ()
    if campaign.channel == "sms" and len(rows) < limit:
        accepted = tx.recipients.overdue_in_progress(
            workspace_id, campaign_id, now + _FAR_FUTURE, limit=limit - len(rows)
        )
    for recipient in accepted:
        after = expire_receipt_wait(recipient, now)
        change += put_recipient(tx, workspace_id, recipient, after, rule=TrailRule.RECEIPT_WAIT, now=now)
    if rows or accepted:
        tx.campaigns.add_counters(workspace_id, campaign_id, change)
    more = len(rows) + len(accepted) == limit
    work = tx.work.get(campaign_unit(campaign))
    if not more and work is not None and work.due_at is not None:
        # In flight recipients end by their outcomes, so that later starts need not check this campaign.
        tx.work.schedule(campaign_unit(campaign), None)
    return more


def next_receipt_deadline(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime) -> datetime | None:
    """Return when the next wait for a receipt ends; None if there is none."""
    first = tx.recipients.overdue_in_progress(workspace_id, campaign_id, now + _FAR_FUTURE, limit=1)
    return first[0].due_at if first else None


def expire_receipt_waits(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, limit: int) -> bool:
    """Complete a slice of the recipients whose wait for a receipt has ended; return whether more are left."""
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None:
        return False
    rows = tx.recipients.overdue_in_progress(workspace_id, campaign_id, now, limit=limit)
    change = Counters()
    for recipient in rows:
        after = expire_receipt_wait(recipient, now)
        change += put_recipient(tx, workspace_id, recipient, after, rule=TrailRule.RECEIPT_WAIT, now=now)
    if rows:
        counters = tx.campaigns.add_counters(workspace_id, campaign_id, change)
        complete_if_done(tx, attrs.evolve(campaign, counters=counters), now=now)
    return len(rows) == limit


def charge_error_budget(tx: Transaction, dispatch: Dispatch, now: datetime) -> None:
    """Count a dispatch against its campaign's budget, and pause the campaigns that must stop.

    A failure of the account pauses its campaigns even if a single message or call had it.
    """
    if not counts_against_budget(dispatch):
        return
    traits = FAILURE_CLASSES.get(dispatch.reason or "")
    account = None if traits is None else traits.pauses
    if account is not None:
        if provider_throttles.has_old_credentials(tx, dispatch, now):
            # The operator has replaced them, and may have resumed the campaigns already.
            return
        # A scheduled campaign would start into the same failure.
        running = {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}
        for other in tx.campaigns.in_status(running, workspace_id=dispatch.workspace_id):
            if other.channel == dispatch.channel and provider_of(tx, other) == dispatch.provider:
                _pause(tx, other, account, now)
        return
    campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id) if dispatch.campaign_id else None
    if campaign is None:
        return
    # A resume starts a new budget: the operator has seen the earlier failures. Requests from before a clock step may be
    # older than a resume, and must not hide the others.
    since = trail.last_activation(tx, campaign)
    history = tx.dispatches.judged(dispatch.workspace_id, campaign.id, since=since, until=now, limit=JUDGED_DISPATCHES)
    if campaign.status is CampaignStatus.ACTIVE and is_spent(history):
        _pause(tx, campaign, "error_budget", now)


def _pause(tx: Transaction, campaign: Campaign, reason: PauseReason, now: datetime) -> None:
    move(tx, campaign, CampaignAction.PAUSE, now=now, actor="engine", pause_reason=reason)


def settle(
    tx: Transaction,
    workspace_id: str,
    dispatch_id: str,
    outcome: DispatchOutcome,
    *,
    backoff: Backoff,
    now: datetime,
    by: TrailRule = TrailRule.PROVIDER_ANSWER,
    proven: bool = False,
) -> Dispatch | None:
    """Merge the outcome of a dispatch; return the dispatch, or None if it is not in the ledger.

    A dispatch takes one outcome. A later one changes it only if it was unknown, or if it proves that the provider
    accepted what it had refused. No lease is needed (docs/delivery-contract.md#rule-8).

    `by` is the source for the trail; `proven` says whether later events show the acceptance.
    """
    dispatch = tx.dispatches.get(workspace_id, dispatch_id)
    if dispatch is None:
        return None
    accepted_after_all = proven and outcome.state is DispatchState.ACCEPTED and dispatch.state in NOT_REACHED
    if not may_settle(dispatch.state, outcome.state) and not accepted_after_all:
        if dispatch.provider_id is None and outcome.provider_id is not None:
            dispatch = attrs.evolve(dispatch, provider_id=outcome.provider_id)
            tx.dispatches.update(dispatch)
            _copy_provider_id(tx, dispatch)
        return dispatch
    # A local interruption stays the reason when the doubt ends without an answer: the provider is not at fault.
    ours = (
        outcome.state in {DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP} and dispatch.reason in LOCAL_INTERRUPTIONS
    )
    settled = copy_with(
        dispatch,
        state=outcome.state,
        provider_id=outcome.provider_id or dispatch.provider_id,
        reason=dispatch.reason if ours else outcome.reason,
        error_code=outcome.error_code,
        error_message=outcome.error_message,
        settled_at=now,
        created_at=corrected_created_at(tx, dispatch, now)
        if outcome.state is DispatchState.UNKNOWN
        else dispatch.created_at,
    )
    if dispatch.state is DispatchState.DISPATCHING and by is not TrailRule.PROVIDER_ANSWER:
        # The request may not have started yet, and must not start any more.
        tx.stops.increment(dispatch.workspace_id)
    tx.dispatches.update(settled)
    trail.record_outcome(tx, dispatch, settled, by=by, now=now)
    if outcome.state is DispatchState.REFUSED and outcome.reason == OPTED_OUT:
        entries.record_carrier_opt_out(tx, settled, outcome.error_code, now)
    if outcome.state is DispatchState.REFUSED:
        provider_throttles.note_unreachable(tx, settled, reason=outcome.reason, error_code=outcome.error_code, now=now)
    if settled.message_id is not None:
        message_outcomes.settle(tx, settled, outcome, now)
    if settled.call_id is not None:
        call_outcomes.settle(tx, settled, outcome, now, by=by)
    if settled.campaign_id is not None:
        recipient_outcomes.settle(tx, settled, outcome, backoff, now, by=by)
    charge_error_budget(tx, settled, now)
    return settled


def believable(tx: Transaction, dispatch: Dispatch, answer: DispatchOutcome) -> DispatchOutcome:
    """Return what a provider's answer proves: an acceptance with the identifier of another request proves nothing.

    It may be the answer to that one, which something between here and the provider has mixed up. The providers of the
    engine number their requests for all accounts together; what an adapter of one's own returns may be unique within an
    account only, so that its identifiers are compared within the workspace.
    """
    if answer.state is not DispatchState.ACCEPTED or answer.provider_id is None:
        return answer
    holders = _others_with(tx, dispatch, answer.provider_id)
    ours = next((holder for holder in holders if holder.workspace_id == dispatch.workspace_id), None)
    if ours is None and not (holders and dispatch.provider in PROVIDERS):
        return answer
    # The dispatch of another workspace is not named.
    whose = "another request" if ours is None else f"dispatch {ours.id}"
    return DispatchOutcome(
        state=DispatchState.UNKNOWN,
        reason="repeated_id",
        error_message=f"The answer named {answer.provider_id}, the identifier of {whose}.",
    )


def prefetch_for_reports(tx: Transaction, events: Sequence[Report]) -> None:
    """Read the rows that these reports concern, in one go."""
    tx.dispatches.prefetch((event.workspace_id, event.dispatch_id) for event in events if event.dispatch_id is not None)
    nameless = [event for event in events if _by_our_id(tx, event) is None]
    tx.dispatches.prefetch_by_provider_id(
        (event.workspace_id, event.provider, name) for event in nameless for name in provider_ids_of(event)
    )
    found = [dispatch for dispatch in (dispatch_of(tx, event) for event in events) if dispatch is not None]
    prefetch_for_dispatches(tx, found)
    tx.dispatches.prefetch_of_recipients(recipients_of(found))


def prefetch_for_outcomes(tx: Transaction, outcomes: Sequence[tuple[Dispatch, DispatchOutcome]]) -> None:
    """Read the rows that these outcomes concern, in one go."""
    prefetch_for_dispatches(tx, [dispatch for dispatch, _ in outcomes])
    again = [dispatch for dispatch, outcome in outcomes if recipient_outcomes.may_have_succeeded(dispatch, outcome)]
    tx.dispatches.prefetch_of_recipients(recipients_of(again))


def prefetch_for_dispatches(tx: Transaction, dispatches: Sequence[Dispatch]) -> None:
    """Read the rows that the outcomes of these dispatches concern, in one go."""
    tx.dispatches.prefetch((dispatch.workspace_id, dispatch.id) for dispatch in dispatches)
    recipients = recipients_of(dispatches)
    tx.campaigns.prefetch((workspace_id, campaign_id) for workspace_id, campaign_id, _ in recipients)
    tx.recipients.prefetch(recipients)


def recipients_of(dispatches: Sequence[Dispatch]) -> Sequence[tuple[str, str, int]]:
    """Return the workspace, campaign and position of the recipients of dispatches."""
    return [
        (dispatch.workspace_id, dispatch.campaign_id, dispatch.position)
        for dispatch in dispatches
        if dispatch.campaign_id is not None and dispatch.position is not None
    ]


def apply_opt_out(tx: Transaction, dispatch: Dispatch, event: Report, now: datetime) -> bool:
    """Record the opt-out that a report has, if it has one, and nothing else of it; return whether it is new."""
    if isinstance(event, CallReport):
        return _opt_out_in_call(tx, dispatch, event, now)
    if not _rises(dispatch, event) or not _says_opted_out(event):
        return False
    return entries.record_carrier_opt_out(tx, dispatch, event.error_code, now)


def _opt_out_in_call(tx: Transaction, dispatch: Dispatch, event: CallReport, now: datetime) -> bool:
    return event.do_not_call and entries.record_opt_out_in_call(tx, dispatch, event.at, event.provider_id, now)


def _rises(dispatch: Dispatch, event: MessageReport) -> bool:
    known = dispatch.report or MessageStatus.ACCEPTED
    return MESSAGE_STATUS_RANK[event.status] > MESSAGE_STATUS_RANK[known]


def _says_opted_out(event: MessageReport) -> bool:
    return event.status is MessageStatus.FAILED and event.reason == OPTED_OUT


def apply_report(tx: Transaction, event: Report, *, backoff: Backoff, analyser: Analyser, now: datetime) -> bool:
    """Merge a provider's report; return whether it changed anything.

    A report with our dispatch id settles an unknown dispatch. Statuses only move up; late, repeated and unmatched
    reports change nothing.
    """
    dispatch = dispatch_of(tx, event)
    if dispatch is None:
        return False
    # Counts in every status of the call: it may come after the end.
    opted_out = isinstance(event, CallReport) and _opt_out_in_call(tx, dispatch, event, now)
    if dispatch.state is not DispatchState.ACCEPTED:
        if dispatch.state in NOT_REACHED and not _proves_acceptance(dispatch, event):
            return opted_out
        # Keep the identifier from the answer: later reports may name that alone.
        accepted = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=dispatch.provider_id or event.provider_id)
        settled = settle(
            tx,
            dispatch.workspace_id,
            dispatch.id,
            accepted,
            backoff=backoff,
            now=now,
            by=TrailRule.PROVIDER_REPORT,
            proven=True,
        )
        if settled is None or settled.state is not DispatchState.ACCEPTED:
            return opted_out
        dispatch = settled
    if dispatch.provider_id is None and event.provider_id is not None:
        dispatch = attrs.evolve(dispatch, provider_id=event.provider_id)
        tx.dispatches.update(dispatch)
        _copy_provider_id(tx, dispatch)
    if isinstance(event, CallReport):
        return _report_call(tx, dispatch, event, analyser, backoff, now) or opted_out
    return _report_message(tx, dispatch, event, backoff, now)


def end_silent_call(tx: Transaction, dispatch: Dispatch, *, silence: timedelta, now: datetime) -> bool:
    """End the call of a dispatch that has not ended `silence` after it was dialed; return whether it has ended.

    A later report still counts.
    """
    call = call_outcomes.end_if_silent(tx, dispatch.workspace_id, dispatch.call_id or "", silence, now)
    if call is None:
        return False
    trail.record_call(tx, dispatch, call, rule=TrailRule.CALL_SILENCE, now=now)
    if dispatch.campaign_id is not None:
        recipient_outcomes.call_ended(tx, dispatch, call, now)
    return True


def mark_abandoned(tx: Transaction, *, backoff: Backoff, now: datetime, limit: int) -> int:
    """Mark the dispatches as unknown that workers whose lease is over left without an outcome; return how many."""
    left = tx.dispatches.abandoned({worker.epoch for worker in tx.workers.list()}, limit=limit)
    lost = DispatchOutcome(state=DispatchState.UNKNOWN, reason="worker_lost")
    for dispatch in left:
        settle(tx, dispatch.workspace_id, dispatch.id, lost, backoff=backoff, now=now)
    return len(left)


def belongs_to_another(tx: Transaction, dispatch: Dispatch, provider_id: str) -> bool:
    """Return whether a provider's identifier belongs to another dispatch of any workspace.

    Workspaces may share an account.
    """
    return bool(_others_with(tx, dispatch, provider_id))


def _others_with(tx: Transaction, dispatch: Dispatch, provider_id: str) -> Sequence[Dispatch]:
    found = tx.dispatches.with_provider_id(dispatch.provider, provider_id)
    return [holder for holder in found if holder.id != dispatch.id]


def dispatch_of(tx: Transaction, event: Report) -> Dispatch | None:
    """Return the dispatch of a report, by our identifier, else by the provider's; None if there is none."""
    dispatch = _by_our_id(tx, event)
    if dispatch is not None:
        return dispatch
    for name in provider_ids_of(event):
        dispatch = tx.dispatches.by_provider_id(event.workspace_id, event.provider, name)
        if dispatch is not None:
            return dispatch
    return None


def _by_our_id(tx: Transaction, event: Report) -> Dispatch | None:
    return tx.dispatches.get(event.workspace_id, event.dispatch_id) if event.dispatch_id is not None else None


def provider_ids_of(event: Report) -> Sequence[str]:
    """Return the provider's identifiers in a report; each may be the one in its answer."""
    names = (event.provider_id, event.telephony_id if isinstance(event, CallReport) else None)
    return [name for name in names if name is not None]


def _proves_acceptance(dispatch: Dispatch, event: Report) -> bool:
    """Return whether a report shows that the provider accepted a request that it had refused or deferred.

    A provider reports nothing on a deferred request. After a refusal a failure proves nothing, and a refused call has
    ended.
    """
    if dispatch.state is not DispatchState.REFUSED:
        return True
    return isinstance(event, MessageReport) and event.status in {MessageStatus.SENT, MessageStatus.DELIVERED}


def _copy_provider_id(tx: Transaction, dispatch: Dispatch) -> None:
    if dispatch.call_id is not None:
        call = tx.calls.get(dispatch.workspace_id, dispatch.call_id)
        if call is not None and call.provider_call_id is None:
            tx.calls.update(attrs.evolve(call, provider_call_id=dispatch.provider_id))
    if dispatch.message_id is not None:
        message = tx.messages.get(dispatch.workspace_id, dispatch.message_id)
        if message is not None and message.provider_id is None:
            tx.messages.update(attrs.evolve(message, provider_id=dispatch.provider_id))


def _report_call(
    tx: Transaction, dispatch: Dispatch, event: CallReport, analyser: Analyser, backoff: Backoff, now: datetime
) -> bool:
    call = call_outcomes.apply_report(tx, dispatch, event, analyser, now)
    if call is None:
        return _analyse_call(tx, dispatch, event, analyser, now)
    trail.record_call(tx, dispatch, call, rule=TrailRule.PROVIDER_REPORT, now=now)
    if call.is_open:
        return True
    if event.reason is not None:
        dispatch = attrs.evolve(dispatch, reason=event.reason)
        tx.dispatches.update(dispatch)
        provider_throttles.note_unreachable(tx, dispatch, reason=event.reason, error_code=dispatch.error_code, now=now)
    if dispatch.campaign_id is not None:
        recipient_outcomes.call_ended(tx, dispatch, call, now, backoff=backoff, message_left=event.message_left)
    provider_throttles.throttle_until_reset(tx, dispatch, event, now)
    charge_error_budget(tx, dispatch, now)
    return True


def _analyse_call(tx: Transaction, dispatch: Dispatch, event: CallReport, analyser: Analyser, now: datetime) -> bool:
    call = call_outcomes.apply_analysis(tx, dispatch, event, analyser, now)
    if call is not None:
        trail.record_call(tx, dispatch, call, rule=TrailRule.PROVIDER_REPORT, now=now)
    if call is not None and dispatch.campaign_id is not None:
        recipient_outcomes.call_analysed(tx, dispatch, call, now)
    return call is not None


def _report_message(tx: Transaction, dispatch: Dispatch, event: MessageReport, backoff: Backoff, now: datetime) -> bool:
    intents.keep_chosen_number(tx, dispatch, event.from_number)
    if not _rises(dispatch, event):
        return False
    known = dispatch.report or MessageStatus.ACCEPTED
    failed = event.status is MessageStatus.FAILED
    # A delivery clears an earlier failure.
    reason = event.reason if failed else None if known is MessageStatus.FAILED else dispatch.reason
    reported = copy_with(
        dispatch, report=event.status, reason=reason, error_code=event.error_code or dispatch.error_code
    )
    tx.dispatches.update(reported)
    trail.record_message_report(tx, dispatch, event, now)
    if failed:
        provider_throttles.note_unreachable(tx, dispatch, reason=event.reason, error_code=event.error_code, now=now)
    if _says_opted_out(event):
        entries.record_carrier_opt_out(tx, dispatch, event.error_code, now)
    if dispatch.message_id is not None:
        message_outcomes.apply_receipt(tx, dispatch, event)
    else:
        recipient_outcomes.apply_receipt(tx, dispatch, event, backoff=backoff, now=now)
    provider_throttles.throttle_until_reset(tx, dispatch, event, now)
    charge_error_budget(tx, reported, now)
    return True
