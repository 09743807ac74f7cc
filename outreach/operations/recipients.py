"""Writing recipients, the counters and the decision trail with them."""

from __future__ import annotations

from datetime import datetime
from functools import cache

import attrs

from outreach.models.campaign import Campaign, Counters, contribution
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient
from outreach.models.states import RecipientStatus
from outreach.models.trail import Rule
from outreach.operations import trail
from outreach.operations.common import call_settings_of
from outreach.operations.flows import go_on, steps_of
from outreach.operations.wave import Ending, Hold, Move
from outreach.policy.call_settlement import drop_second_leg
from outreach.policy.settlement import waiting
from outreach.working_set import Transaction


def put_recipient(
    tx: Transaction,
    workspace_id: str,
    before: Recipient,
    after: Recipient,
    *,
    rule: Rule,
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
        rule: What decided, unless the new state's reason says it better (`policy.deciding`).
        now: When.
        dispatch: The request by which it came to this; None where none did.
    """
    tx.recipients.put(workspace_id, after)
    trail.recipient_moved(tx, workspace_id, before, after, rule=rule, now=now, dispatch=dispatch)
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


def untouched(tx: Transaction, workspace_id: str, recipient: Recipient) -> Recipient | None:
    """Return a recipient as it is when nothing has happened to it since the decision; None otherwise."""
    current = tx.recipients.get(workspace_id, recipient.campaign_id, recipient.position)
    if current is None or current.status not in {RecipientStatus.PENDING, RecipientStatus.WAITING}:
        return None
    # When it is due counts too: it may have been put off since, and is not to be contacted before.
    return current if _stands(current) == _stands(recipient) else None


def _stands(recipient: Recipient) -> tuple[object, ...]:
    return (recipient.step, recipient.attempts, recipient.tries, recipient.reason, recipient.due_at)


def end(tx: Transaction, workspace_id: str, ending: Ending, now: datetime) -> Counters:
    """End a recipient that is not contacted; return what that changes in the counters."""
    current = untouched(tx, workspace_id, ending.recipient)
    if current is None:
        return Counters()
    # Of a flow an earlier step may have been accepted; who fails with a later one is no success any more.
    successful = current.successful and ending.status is not RecipientStatus.FAILED
    ended = attrs.evolve(
        current, status=ending.status, reason=ending.reason, successful=successful, due_at=None, ended_at=now
    )
    return put_recipient(tx, workspace_id, current, ended, rule=ending.rule, now=now)


def hold(tx: Transaction, workspace_id: str, held: Hold, now: datetime) -> Counters:
    """Let a recipient wait; return what that changes in the counters."""
    current = untouched(tx, workspace_id, held.recipient)
    if current is None:
        return Counters()
    after = waiting(current, held.reason, held.due_at)
    return put_recipient(tx, workspace_id, current, after, rule=held.rule, now=now)


def go_on_without_request(tx: Transaction, campaign: Campaign, going: Move, now: datetime) -> Counters:
    """Let a recipient go on to the next thing; return what that changes in the counters."""
    current = untouched(tx, campaign.workspace_id, going.recipient)
    if current is None:
        return Counters()
    if going.kind == "next_step":
        after = go_on(tx, campaign, current, current.step, steps_of(tx, campaign) or (), now)
        rule = Rule.FLOW
    else:
        settings = call_settings_of(tx, campaign.workspace_id)
        after = drop_second_leg(current, campaign=campaign.status, settings=settings, now=now)
        rule = Rule.DOUBLE_DIAL
    return put_recipient(tx, campaign.workspace_id, current, after, rule=rule, now=now)
