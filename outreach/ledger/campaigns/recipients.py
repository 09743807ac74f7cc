"""Writing recipients with their counters and trail entries."""

from __future__ import annotations

from datetime import datetime
from functools import cache

import attrs

from outreach.ledger.campaigns import trail
from outreach.ledger.common import call_settings_of
from outreach.models.campaign import Campaign, Counters, contribution
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Advance, Ending, Postponement
from outreach.models.recipient import Recipient
from outreach.models.resources import FlowStep
from outreach.models.states import RecipientStatus
from outreach.models.trail import TrailRule
from outreach.rules.call_settlement import drop_second_leg
from outreach.rules.flows import enter_step
from outreach.rules.settlement import ended_recipient, waiting
from outreach.storage.unit_of_work import Transaction


def put_recipient(
    tx: Transaction,
    workspace_id: str,
    before: Recipient,
    after: Recipient,
    *,
    rule: TrailRule,
    now: datetime,
    dispatch: Dispatch | None = None,
    actor: str = trail.ENGINE,
) -> Counters:
    """Write a recipient and its trail entry; return the change of the counters.

    Every change of a loaded recipient that its trail shows goes through here. `rule` is the trail rule unless the new
    reason implies another (`policy.trail_rules`).
    """
    tx.recipients.put(workspace_id, after)
    trail.record_recipient(tx, workspace_id, before, after, rule=rule, now=now, dispatch=dispatch, actor=actor)
    return _difference(counted(after), counted(before))


def keep_sender(tx: Transaction, workspace_id: str, recipient: Recipient, number: str) -> None:
    """Write the number that sends to a recipient; neither its trail nor the counters change by it."""
    tx.recipients.put(workspace_id, attrs.evolve(recipient, caller_id=number))


@cache
def _difference(after: Counters, before: Counters) -> Counters:
    # Called at every change, with few distinct values.
    return after - before


def counted(recipient: Recipient) -> Counters:
    """Return what a recipient adds to its campaign's counters."""
    return contribution(
        recipient.status, attempts=recipient.attempts, dispatched=recipient.dispatched, successful=recipient.successful
    )


def unchanged_recipient(tx: Transaction, workspace_id: str, recipient: Recipient, now: datetime) -> Recipient | None:
    """Return a recipient if it is due and has not changed since the decision, else None."""
    current = tx.recipients.get(workspace_id, recipient.campaign_id, recipient.position)
    if current is None or current.status not in {RecipientStatus.PENDING, RecipientStatus.WAITING}:
        return None
    if current.due_at is not None and current.due_at > now:
        # It was due by a clock that was set back since.
        return None
    # A postponement since the decision is a change, too.
    return current if _decision_fields(current) == _decision_fields(recipient) else None


def _decision_fields(recipient: Recipient) -> tuple[object, ...]:
    return (recipient.step, recipient.attempts, recipient.tries, recipient.reason, recipient.due_at)


def end_recipient(tx: Transaction, workspace_id: str, ending: Ending, now: datetime) -> Counters:
    """End a recipient that is not contacted; return the change of the counters."""
    current = unchanged_recipient(tx, workspace_id, ending.recipient, now)
    if current is None:
        return Counters()
    # A failure in a later step of a flow is no success, even if an earlier step was accepted.
    successful = current.successful and ending.status is not RecipientStatus.FAILED
    ended = attrs.evolve(
        current, status=ending.status, reason=ending.reason, successful=successful, due_at=None, ended_at=now
    )
    return put_recipient(tx, workspace_id, current, ended, rule=ending.rule, now=now)


def postpone_recipient(tx: Transaction, workspace_id: str, held: Postponement, now: datetime) -> Counters:
    """Postpone a recipient; return the change of the counters."""
    current = unchanged_recipient(tx, workspace_id, held.recipient, now)
    if current is None:
        return Counters()
    after = waiting(current, held.reason, held.due_at)
    return put_recipient(tx, workspace_id, current, after, rule=held.rule, now=now)


def advance_without_sending(tx: Transaction, campaign: Campaign, advance: Advance, now: datetime) -> Counters:
    """Advance a recipient; return the change of the counters."""
    current = unchanged_recipient(tx, campaign.workspace_id, advance.recipient, now)
    if current is None:
        return Counters()
    if advance.kind == "next_step":
        after = advance_in_flow(tx, campaign, current, current.step, steps_of(tx, campaign) or (), now)
        rule = TrailRule.FLOW
    else:
        settings = call_settings_of(tx, campaign.workspace_id)
        after = drop_second_leg(current, campaign=campaign.status, settings=settings, now=now)
        rule = TrailRule.DOUBLE_DIAL
    return put_recipient(tx, campaign.workspace_id, current, after, rule=rule, now=now)


def steps_of(tx: Transaction, campaign: Campaign) -> tuple[FlowStep, ...] | None:
    """Return the steps of a campaign's flow; None without a flow."""
    if campaign.message_source != "flow" or campaign.flow_id is None:
        return None
    flow = tx.flows.get(campaign.workspace_id, campaign.flow_id)
    return flow.steps if flow is not None else ()


def advance_in_flow(
    tx: Transaction, campaign: Campaign, recipient: Recipient, index: int, steps: tuple[FlowStep, ...], now: datetime
) -> Recipient:
    """Return a recipient after it enters a step."""
    after = enter_step(recipient, index, steps, replied=lambda: _replied(tx, campaign, recipient), now=now)
    phone = recipient.phone
    goes_on = after.is_open or after.reason == "replied"
    if goes_on and phone is not None and tx.register.stopped(campaign.workspace_id, campaign.channel, {phone}):
        # Otherwise it would wait for its next step only to be skipped. An opt-out outranks a reply.
        return ended_recipient(recipient, RecipientStatus.SKIPPED, "opted_out", now)
    return after


def is_stopped_by_reply(tx: Transaction, campaign: Campaign, recipient: Recipient, steps: tuple[FlowStep, ...]) -> bool:
    """Return whether a reply stops a recipient that is due for the step after a `stop_if_replied`.

    The reply may have come since the recipient entered the step.
    """
    before = recipient.step - 1
    return 0 <= before < len(steps) and steps[before].kind == "stop_if_replied" and _replied(tx, campaign, recipient)


def _replied(tx: Transaction, campaign: Campaign, recipient: Recipient) -> bool:
    since = campaign.started_at or campaign.created_at
    phone = recipient.phone
    return phone is not None and tx.inbound.replied_since(campaign.workspace_id, phone, since)
