"""Writing recipients, the counters and the decision trail with them."""

from __future__ import annotations

from datetime import datetime
from functools import cache

import attrs

from outreach.models.campaign import Campaign, Counters, contribution
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Advance, Ending, Postponement
from outreach.models.recipient import Recipient
from outreach.models.resources import FlowStep
from outreach.models.states import RecipientStatus
from outreach.models.trail import TrailRule
from outreach.operations.campaigns import trail
from outreach.operations.common import call_settings_of
from outreach.policy.call_settlement import drop_second_leg
from outreach.policy.flows import enter_step
from outreach.policy.settlement import ended_recipient, waiting
from outreach.working_set import Transaction


def put_recipient(
    tx: Transaction,
    workspace_id: str,
    before: Recipient,
    after: Recipient,
    *,
    rule: TrailRule,
    now: datetime,
    dispatch: Dispatch | None = None,
) -> Counters:
    """Write a recipient's new state and what the decision trail tells of it; return the change of the counters.

    This is the one place where recipients are changed once they are loaded.

    Args:
        tx: The transaction.
        workspace_id: Whose it is.
        before: The recipient as it is.
        after: The recipient as it will be.
        rule: What decided, unless the new state's reason says it better (`policy.trail_rules`).
        now: When.
        dispatch: The request by which it came to this; None where none did.
    """
    tx.recipients.put(workspace_id, after)
    trail.record_recipient(tx, workspace_id, before, after, rule=rule, now=now, dispatch=dispatch)
    return _difference(counted(after), counted(before))


@cache
def _difference(after: Counters, before: Counters) -> Counters:
    # There are few of them, and one is asked for with every change of a recipient.
    return after - before


def counted(recipient: Recipient) -> Counters:
    """Return what a recipient adds to its campaign's counters."""
    return contribution(
        recipient.status,
        attempts=recipient.attempts,
        dispatched=recipient.dispatched,
        successful=recipient.successful,
    )


def unchanged_recipient(tx: Transaction, workspace_id: str, recipient: Recipient) -> Recipient | None:
    """Return a recipient as it is when nothing has happened to it since the decision; None otherwise."""
    current = tx.recipients.get(workspace_id, recipient.campaign_id, recipient.position)
    if current is None or current.status not in {RecipientStatus.PENDING, RecipientStatus.WAITING}:
        return None
    # When it is due counts too: it may have been put off since, and is not to be contacted before.
    return current if _stands(current) == _stands(recipient) else None


def _stands(recipient: Recipient) -> tuple[object, ...]:
    return (recipient.step, recipient.attempts, recipient.tries, recipient.reason, recipient.due_at)


def end_recipient(tx: Transaction, workspace_id: str, ending: Ending, now: datetime) -> Counters:
    """End a recipient that is not contacted; return what that changes in the counters."""
    current = unchanged_recipient(tx, workspace_id, ending.recipient)
    if current is None:
        return Counters()
    # Of a flow an earlier step may have been accepted; who fails with a later one is no success any more.
    successful = current.successful and ending.status is not RecipientStatus.FAILED
    ended = attrs.evolve(
        current, status=ending.status, reason=ending.reason, successful=successful, due_at=None, ended_at=now
    )
    return put_recipient(tx, workspace_id, current, ended, rule=ending.rule, now=now)


def postpone_recipient(tx: Transaction, workspace_id: str, held: Postponement, now: datetime) -> Counters:
    """Let a recipient wait; return what that changes in the counters."""
    current = unchanged_recipient(tx, workspace_id, held.recipient)
    if current is None:
        return Counters()
    after = waiting(current, held.reason, held.due_at)
    return put_recipient(tx, workspace_id, current, after, rule=held.rule, now=now)


def advance_without_sending(tx: Transaction, campaign: Campaign, going: Advance, now: datetime) -> Counters:
    """Let a recipient go on to the next thing; return what that changes in the counters."""
    current = unchanged_recipient(tx, campaign.workspace_id, going.recipient)
    if current is None:
        return Counters()
    if going.kind == "next_step":
        after = advance_in_flow(tx, campaign, current, current.step, steps_of(tx, campaign) or (), now)
        rule = TrailRule.FLOW
    else:
        settings = call_settings_of(tx, campaign.workspace_id)
        after = drop_second_leg(current, campaign=campaign.status, settings=settings, now=now)
        rule = TrailRule.DOUBLE_DIAL
    return put_recipient(tx, campaign.workspace_id, current, after, rule=rule, now=now)


def steps_of(tx: Transaction, campaign: Campaign) -> tuple[FlowStep, ...] | None:
    """Return the steps that drive a campaign; None when no flow does."""
    if campaign.message_source != "flow" or campaign.flow_id is None:
        return None
    flow = tx.flows.get(campaign.workspace_id, campaign.flow_id)
    return flow.steps if flow is not None else ()


def advance_in_flow(
    tx: Transaction,
    campaign: Campaign,
    recipient: Recipient,
    index: int,
    steps: tuple[FlowStep, ...],
    now: datetime,
) -> Recipient:
    """Return a recipient after it has come to a step."""
    after = enter_step(recipient, index, steps, replied=lambda: _replied(tx, campaign, recipient), now=now)
    phone = recipient.phone
    goes_on = after.is_open or after.reason == "replied"
    if goes_on and phone is not None and tx.register.stopped(campaign.workspace_id, campaign.channel, {phone}):
        # Otherwise it would wait for its next step, perhaps for weeks, only to be skipped then. An opt-out is a reply
        # too, and is told as what it is.
        return ended_recipient(recipient, RecipientStatus.SKIPPED, "opted_out", now)
    return after


def is_stopped_by_reply(tx: Transaction, campaign: Campaign, recipient: Recipient, steps: tuple[FlowStep, ...]) -> bool:
    """Return whether a reply stops a recipient that is about to be sent the step after a `stop_if_replied`.

    It has been asked before, when the recipient came to that step; but then it may have waited for its hours, its
    slot or another attempt, and have written meanwhile.
    """
    before = recipient.step - 1
    return 0 <= before < len(steps) and steps[before].kind == "stop_if_replied" and _replied(tx, campaign, recipient)


def _replied(tx: Transaction, campaign: Campaign, recipient: Recipient) -> bool:
    since = campaign.started_at or campaign.created_at
    phone = recipient.phone
    return phone is not None and tx.inbound.replied_since(campaign.workspace_id, phone, since)
