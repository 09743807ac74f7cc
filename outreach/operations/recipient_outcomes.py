"""What outcomes and reports do to the recipients of campaigns."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.models.call import Call
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, Outcome
from outreach.models.recipient import Recipient
from outreach.models.reports import MessageReport
from outreach.models.states import DispatchState, RecipientStatus
from outreach.operations.campaign_moves import complete_if_done
from outreach.operations.common import call_settings_of, campaign_unit, settings_of
from outreach.operations.flows import go_on, steps_of
from outreach.operations.recipients import put_recipient
from outreach.policy.call_settlement import end_call, settle_call_recipient
from outreach.policy.settlement import Backoff, may_go_on, receipt_for_recipient, settle_recipient, speaks_for
from outreach.protocols.storage import Transaction


def settle(tx: Transaction, dispatch: Dispatch, outcome: Outcome, backoff: Backoff, now: datetime) -> None:
    """Merge the outcome of a dispatch into its recipient."""
    found = _latest(tx, dispatch)
    if found is None:
        return
    recipient, campaign = found
    # One that was given up and now is known to have been heard has spent its attempt after all.
    heard = outcome.state in {DispatchState.ACCEPTED, DispatchState.REFUSED}
    before = attrs.evolve(recipient, attempts=max(recipient.attempts, dispatch.attempt)) if heard else recipient
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
    if steps is not None and outcome.state is DispatchState.ACCEPTED and may_go_on(recipient, campaign.status):
        sent = attrs.evolve(before, dispatched=True, successful=True)
        after = go_on(tx, campaign, sent, before.step + 1, steps, now)
    store(tx, recipient, after, campaign, now)


def receipt(tx: Transaction, dispatch: Dispatch, event: MessageReport, now: datetime) -> None:
    """Merge a delivery receipt that moved the status up; only the latest dispatch speaks for its recipient."""
    found = _latest(tx, dispatch)
    if found is None:
        return
    recipient, campaign = found
    settings = settings_of(tx, dispatch.workspace_id)
    after = receipt_for_recipient(
        recipient, event.status, event.reason, campaign=campaign.status, settings=settings, now=now
    )
    if after != recipient:
        store(tx, recipient, after, campaign, now)


def call_ended(tx: Transaction, dispatch: Dispatch, call: Call, now: datetime) -> None:
    """Merge the end of a call into its recipient, and let the next call have its place."""
    found = _latest(tx, dispatch)
    if found is None:
        return
    recipient, campaign = found
    after = end_call(
        recipient,
        call.outcome,
        campaign=campaign.status,
        double_dial=bool(campaign.double_dial),
        settings=call_settings_of(tx, dispatch.workspace_id),
        now=now,
    )
    store(tx, recipient, after, campaign, now)
    tx.work.touch(campaign_unit(campaign), now)


def store(tx: Transaction, before: Recipient, after: Recipient, campaign: Campaign, now: datetime) -> None:
    """Write a recipient, the counters with it, and what follows for its campaign."""
    change = put_recipient(tx, campaign.workspace_id, before, after)
    counters = tx.campaigns.add_counters(campaign.workspace_id, campaign.id, change)
    if after.status is RecipientStatus.WAITING:
        tx.work.touch(campaign_unit(campaign), now)
    complete_if_done(tx, attrs.evolve(campaign, counters=counters), now=now)


def _latest(tx: Transaction, dispatch: Dispatch) -> tuple[Recipient, Campaign] | None:
    if dispatch.campaign_id is None or dispatch.position is None:
        return None
    recipient = tx.recipients.get(dispatch.workspace_id, dispatch.campaign_id, dispatch.position)
    campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id)
    if recipient is None or campaign is None or not speaks_for(dispatch, recipient):
        return None
    return recipient, campaign
