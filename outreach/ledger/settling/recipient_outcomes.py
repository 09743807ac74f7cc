"""The effects of outcomes and reports on campaign recipients."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.ledger.campaigns.recipients import advance_in_flow, put_recipient, steps_of
from outreach.ledger.campaigns.transitions import complete_if_done, may_reopen, reopen_if_open
from outreach.ledger.common import call_settings_of, campaign_unit, quarantine_reason, settings_of
from outreach.models.call import Call, CallOutcome, CallVerdict
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import ASSUMED_SENT, Dispatch, DispatchOutcome
from outreach.models.reports import MessageReport
from outreach.models.resources import FlowStep
from outreach.models.states import (
    IN_FLIGHT_RECIPIENT_STATUSES,
    CallStatus,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    RecipientStatus,
    TrailRule,
)
from outreach.rules.deciding import rule_of_outcome
from outreach.rules.phones import is_erased
from outreach.rules.settlement import (
    LIMITED,
    NOT_REACHED,
    TRANSIENT_FAILURES,
    Backoff,
    apply_late_analysis,
    earlier_acceptance,
    end_by_verdict,
    end_call,
    ended_recipient,
    fail_attempt,
    is_authoritative,
    is_earlier_acceptance,
    may_continue,
    recipient_after_receipt,
    settle_call_recipient,
    settle_recipient,
    wait_for_limit,
)
from outreach.storage.unit_of_work import Transaction


def settle(
    tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome, backoff: Backoff, now: datetime, *, by: TrailRule
) -> None:
    """Merge a dispatch's outcome into its recipient; `by` is the source."""
    found = _recipient_if_authoritative(tx, dispatch)
    if found is None:
        return
    recipient, campaign = found
    standing = _earlier_acceptance(tx, dispatch, outcome)
    if standing is not None:
        dispatch, outcome = standing, DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=standing.provider_id)
    # One that was given up but reached the provider has spent its attempt and its leg.
    heard = outcome.state in {DispatchState.ACCEPTED, DispatchState.REFUSED}
    spent = max(recipient.attempts, dispatch.attempt)
    before = recipient
    if heard and (recipient.attempts, recipient.leg) != (spent, dispatch.leg):
        before = attrs.evolve(recipient, attempts=spent, leg=dispatch.leg)
    if dispatch.channel == "call":
        after = settle_call_recipient(
            before,
            outcome,
            campaign=campaign.status,
            settings=call_settings_of(tx, dispatch.workspace_id),
            backoff=backoff,
            now=now,
        )
    else:
        after = settle_recipient(
            before,
            outcome,
            campaign=campaign.status,
            settings=settings_of(tx, dispatch.workspace_id),
            backoff=backoff,
            now=now,
        )
    steps = steps_of(tx, campaign)
    if steps is not None and outcome.state is DispatchState.ACCEPTED and may_continue(recipient, campaign.status):
        # The last message of a flow waits for its receipt like any other.
        after = _next_step(tx, campaign, before, steps, now) or after
    rule = rule_of_outcome(outcome.state, outcome.reason, by)
    update_recipient(tx, recipient, after, campaign, rule=rule, now=now, dispatch=dispatch)
    if standing is not None:
        _replay_reports(tx, standing, now)


def may_have_succeeded(dispatch: Dispatch, outcome: DispatchOutcome) -> bool:
    """Return whether an earlier dispatch of the recipient may stand after this outcome, so that all are looked at."""
    return outcome.state in NOT_REACHED and (dispatch.attempt, dispatch.try_number) != (1, 1)


def apply_receipt(
    tx: Transaction, dispatch: Dispatch, event: MessageReport, *, backoff: Backoff, now: datetime
) -> None:
    """Merge a delivery receipt that moved the status up; only the latest dispatch counts."""
    found = _recipient_if_authoritative(tx, dispatch) or _recipient_past_step(tx, dispatch)
    if found is None:
        return
    if event.status is MessageStatus.FAILED and event.reason == LIMITED:
        recipient, campaign = found
        after = _waiting_for_limit(tx, recipient, campaign, dispatch, backoff, now)
        if after is not None:
            update_recipient(tx, recipient, after, campaign, rule=TrailRule.PROVIDER_REPORT, now=now, dispatch=dispatch)
            return
    _merge_receipt(tx, *found, dispatch, event, now)


def _waiting_for_limit(
    tx: Transaction, recipient: Recipient, campaign: Campaign, dispatch: Dispatch, backoff: Backoff, now: datetime
) -> Recipient | None:
    """Return a recipient that waits for another try of a dispatch that ended at a limit; None if it may not."""
    if recipient.status is RecipientStatus.WAITING and recipient.step <= dispatch.step:
        # Another try of the step is due already.
        return None
    if is_erased(dispatch.to):
        return None
    # A short list may be sent completely before its first receipt comes.
    reopens = may_reopen(tx, campaign, within=backoff.receipt, now=now) and not quarantine_reason(tx, dispatch.epoch)
    return wait_for_limit(
        attrs.evolve(recipient, step=dispatch.step),
        dispatch,
        _siblings(tx, dispatch),
        campaign=CampaignStatus.ACTIVE if reopens else campaign.status,
        backoff=backoff,
        now=now,
    )


def _merge_receipt(
    tx: Transaction, recipient: Recipient, campaign: Campaign, dispatch: Dispatch, event: MessageReport, now: datetime
) -> None:
    settings = settings_of(tx, dispatch.workspace_id)
    steps = steps_of(tx, campaign)
    after = None
    if recipient.status is RecipientStatus.WAITING and recipient.step > dispatch.step:
        if event.status is not MessageStatus.FAILED:
            return
        # The last step failed while the next one is due: back to it, for another attempt or the end.
        back = attrs.evolve(recipient, step=dispatch.step, attempts=dispatch.attempt, tries=0)
        reason = event.reason or "rejected"
        after = fail_attempt(back, reason, campaign=campaign.status, settings=settings, now=now)
    elif event.status is MessageStatus.DELIVERED and steps is not None:
        failed = recipient.status is RecipientStatus.FAILED and not (campaign.is_terminal or is_erased(dispatch.to))
        if failed or recipient.status is RecipientStatus.WAITING:
            # The step that waits for a retry, or has failed, has succeeded after all.
            after = _next_step(tx, campaign, recipient, steps, now)
    if after is None:
        after = recipient_after_receipt(
            recipient, event.status, event.reason, campaign=campaign.status, settings=settings, now=now
        )
    if after != recipient:
        update_recipient(tx, recipient, after, campaign, rule=TrailRule.PROVIDER_REPORT, now=now, dispatch=dispatch)


def call_ended(
    tx: Transaction,
    dispatch: Dispatch,
    call: Call,
    now: datetime,
    *,
    backoff: Backoff | None = None,
    message_left: bool | None = None,
) -> None:
    """Merge the end of a call into its recipient; with `backoff`, one that ended at a limit is tried again.

    `message_left` is `CallReport.message_left`.
    """
    found = _recipient_if_authoritative(tx, dispatch)
    if found is None:
        return
    recipient, campaign = found
    limited = call.outcome == "failed" and dispatch.leg == 1 and _failure_reason(dispatch, call) == LIMITED
    again = _waiting_for_limit(tx, recipient, campaign, dispatch, backoff, now) if limited and backoff else None
    if again is not None:
        update_recipient(tx, recipient, again, campaign, rule=TrailRule.PROVIDER_REPORT, now=now, dispatch=dispatch)
        return
    # A recipient put back meanwhile has spent its attempt after all.
    spent = attrs.evolve(recipient, attempts=max(recipient.attempts, dispatch.attempt))
    if call.status is CallStatus.UNCONFIRMED:
        after = ended_recipient(attrs.evolve(spent, tries=0), RecipientStatus.UNCONFIRMED, call.error, now)
    elif call.status is CallStatus.CANCELED:
        # Cancelled at the provider: nobody was called, and this opens no new call.
        taken_back = attrs.evolve(spent, dispatched=True, successful=False, tries=0)
        after = ended_recipient(taken_back, RecipientStatus.FAILED, "canceled_at_provider", now)
    else:
        after = end_call(
            spent,
            call.outcome,
            campaign=campaign.status,
            double_dial=bool(campaign.double_dial),
            settings=call_settings_of(tx, dispatch.workspace_id),
            ended_at=call.ended_at or now,
            now=now,
            reason=_failure_reason(dispatch, call),
            message_ends=not campaign.retry_voicemail and _has_message(tx, call, message_left),
        )
    update_recipient(tx, recipient, after, campaign, rule=TrailRule.PROVIDER_REPORT, now=now, dispatch=dispatch)


def call_analysed(tx: Transaction, dispatch: Dispatch, call: Call, now: datetime) -> None:
    """Merge an analysis that came after the end of the call."""
    found = _recipient_if_authoritative(tx, dispatch)
    if found is not None:
        after = apply_late_analysis(found[0], call.outcome)
        _update_if_changed(tx, *found, after, rule=TrailRule.PROVIDER_REPORT, now=now, dispatch=dispatch)


def call_judged(
    tx: Transaction, dispatch: Dispatch, known: CallOutcome | None, verdict: CallVerdict, now: datetime
) -> None:
    """Merge a verdict of `calls.set_outcome`; `known` is the outcome that it replaces."""
    found = _recipient_if_authoritative(tx, dispatch)
    if found is not None:
        if known == "voicemail":
            after = end_by_verdict(found[0], verdict, now)
        else:
            after = apply_late_analysis(found[0], verdict)
        _update_if_changed(tx, *found, after, rule=TrailRule.OPERATOR, now=now, dispatch=dispatch)


def _update_if_changed(
    tx: Transaction,
    before: Recipient,
    campaign: Campaign,
    after: Recipient,
    *,
    rule: TrailRule,
    now: datetime,
    dispatch: Dispatch,
) -> None:
    if after != before:
        update_recipient(tx, before, after, campaign, rule=rule, now=now, dispatch=dispatch)


def update_recipient(
    tx: Transaction,
    before: Recipient,
    after: Recipient,
    campaign: Campaign,
    *,
    rule: TrailRule,
    now: datetime,
    dispatch: Dispatch | None = None,
) -> None:
    """Write a recipient and its counters, and wake, complete or reopen its campaign.

    A recipient that has opted out is skipped instead of waiting.
    """
    waits = after.status is RecipientStatus.WAITING and after.phone is not None
    if waits and tx.register.stopped(campaign.workspace_id, campaign.channel, {after.phone or ""}):
        after, rule = ended_recipient(after, RecipientStatus.SKIPPED, "opted_out", now), TrailRule.REGISTER
    change = put_recipient(tx, campaign.workspace_id, before, after, rule=rule, now=now, dispatch=dispatch)
    counters = tx.campaigns.add_counters(campaign.workspace_id, campaign.id, change)
    left = before.status in IN_FLIGHT_RECIPIENT_STATUSES and after.status not in IN_FLIGHT_RECIPIENT_STATUSES
    # Any freed place may be used by another recipient.
    if not campaign.is_terminal and (after.status is RecipientStatus.WAITING or (campaign.channel == "call" and left)):
        tx.work.schedule(campaign_unit(campaign), now)
    if counters.open == 0:
        complete_if_done(tx, attrs.evolve(campaign, counters=counters), now=now)
    elif campaign.status is CampaignStatus.COMPLETED:
        reopen_if_open(tx, attrs.evolve(campaign, counters=counters), now=now)


def _failure_reason(dispatch: Dispatch, call: Call) -> str | None:
    """Return why a call failed; None if somebody answered before a transient fault, which allows no retry."""
    passes = dispatch.reason in TRANSIENT_FAILURES
    answered = call.answered_at is not None or call.answered_by is not None
    return None if dispatch.reason == ASSUMED_SENT or (passes and answered) else dispatch.reason


def _has_message(tx: Transaction, call: Call, message_left: bool | None) -> bool:
    """Return whether a machine that answered a call got a message: as reported, else as its agent is set."""
    if message_left is not None:
        return message_left
    agent = tx.agents.get(call.workspace_id, call.agent_id)
    return agent is not None and agent.voicemail == "leave_message"


def _next_step(
    tx: Transaction, campaign: Campaign, recipient: Recipient, steps: tuple[FlowStep, ...], now: datetime
) -> Recipient | None:
    """Return a recipient after a sent step; None if it was the flow's last."""
    sent = attrs.evolve(recipient, dispatched=True, successful=True)
    after = advance_in_flow(tx, campaign, sent, recipient.step + 1, steps, now)
    return None if after.status is RecipientStatus.COMPLETED and after.reason is None else after


def _recipient_past_step(tx: Transaction, dispatch: Dispatch) -> tuple[Recipient, Campaign] | None:
    """Return a recipient that has passed a dispatch's step without being sent anything since."""
    found = _recipient_of(tx, dispatch)
    if found is None or found[0].step <= dispatch.step or found[0].status in IN_FLIGHT_RECIPIENT_STATUSES:
        return None
    others = tx.dispatches.of_recipient(dispatch.workspace_id, dispatch.campaign_id or "", dispatch.position or 0)
    behind = [other for other in others if other.step > dispatch.step]
    if any(other.state not in NOT_REACHED for other in behind):
        return None
    if found[0].status is RecipientStatus.FAILED:
        # It failed in a later step, which the delivery of an earlier one does not change.
        return None
    return found if is_authoritative(dispatch, [other for other in others if other.step == dispatch.step]) else None


def _replay_reports(tx: Transaction, dispatch: Dispatch, now: datetime) -> None:
    """Merge the reports of a dispatch that counts again after later ones reached nobody."""
    found = _recipient_of(tx, dispatch)
    if found is not None and found[0].step != dispatch.step:
        found = _recipient_past_step(tx, dispatch)
    if dispatch.report is not None and found is not None:
        event = MessageReport(
            workspace_id=dispatch.workspace_id,
            provider=dispatch.provider,
            dispatch_id=dispatch.id,
            provider_id=dispatch.provider_id,
            status=dispatch.report,
            at=now,
        )
        _merge_receipt(tx, *found, dispatch, event, now)
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id) if dispatch.call_id is not None else None
    if call is not None and not call.is_open:
        call_ended(tx, dispatch, call, now)


def _recipient_if_authoritative(tx: Transaction, dispatch: Dispatch) -> tuple[Recipient, Campaign] | None:
    """Return the recipient and its campaign if this dispatch is authoritative for it."""
    found = _recipient_of(tx, dispatch)
    if found is None or found[0].step != dispatch.step:
        return None
    recipient, campaign = found
    # Shortcut for nearly every outcome: the dispatch under way is authoritative.
    under_way = (recipient.attempts, recipient.leg, recipient.tries) == (
        dispatch.attempt,
        dispatch.leg,
        dispatch.try_number,
    )
    if (
        under_way
        or is_authoritative(dispatch, siblings := _siblings(tx, dispatch))
        or is_earlier_acceptance(dispatch, siblings)
    ):
        return recipient, campaign
    return None


def _recipient_of(tx: Transaction, dispatch: Dispatch) -> tuple[Recipient, Campaign] | None:
    if dispatch.campaign_id is None or dispatch.position is None:
        return None
    recipient = tx.recipients.get(dispatch.workspace_id, dispatch.campaign_id, dispatch.position)
    campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id)
    return None if recipient is None or campaign is None else (recipient, campaign)


def _earlier_acceptance(tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome) -> Dispatch | None:
    return earlier_acceptance(dispatch, _siblings(tx, dispatch)) if may_have_succeeded(dispatch, outcome) else None


def _siblings(tx: Transaction, dispatch: Dispatch) -> list[Dispatch]:
    others = tx.dispatches.of_recipient(dispatch.workspace_id, dispatch.campaign_id or "", dispatch.position or 0)
    return [other for other in others if other.step == dispatch.step]
