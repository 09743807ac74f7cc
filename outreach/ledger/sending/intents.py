"""Intents: dispatches, committed before their requests start (docs/delivery-contract.md#rule-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import attrs

from outreach.core.copying import copy_with
from outreach.ledger import provider_throttles
from outreach.ledger.campaigns.recipients import put_recipient, unchanged_recipient
from outreach.ledger.opt_out.entries import block_reason, is_number_held
from outreach.models.call import Call
from outreach.models.campaign import Campaign, Counters
from outreach.models.dispatch import Dispatch
from outreach.models.message import Message
from outreach.models.plans import Intent, Wave
from outreach.models.recipient import Recipient
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, RecipientStatus, WorkspaceStatus
from outreach.models.trail import TrailRule
from outreach.models.work import CampaignRunState
from outreach.rules.call_settlement import second_leg_deadline
from outreach.rules.deciding import next_caller_id
from outreach.rules.holding import UNCLEAR_REPLY
from outreach.storage.unit_of_work import Transaction


@attrs.frozen(kw_only=True)
class IntentDraft:
    """An intent to be written, with what changes by it.

    Attributes:
        dispatch: The intent.
        before: The recipient of a campaign before; None for a single message or call.
        after: The recipient, or the single message or call, once the intent is written.
        call: The new call record of a recipient; None for a message, and for a single call, which has one.
    """

    dispatch: Dispatch
    before: Recipient | None = None
    after: Recipient | Message | Call
    call: Call | None = None


def draft_intent(
    tx: Transaction,
    wave: Wave,
    campaign: Campaign,
    run: CampaignRunState,
    intent: Intent,
    sender: str | None,
    slot: datetime,
    now: datetime,
) -> tuple[IntentDraft, CampaignRunState] | None:
    """Return an unwritten intent and the new state of the run; None if the recipient has changed or is not due.

    `sender` is what a message is sent from.
    """
    current = unchanged_recipient(tx, wave.workspace_id, intent.recipient, now)
    if current is None:
        return None
    # The second call of a double dial belongs to the first one's attempt.
    attempt = current.attempts + 1 if current.leg == 1 else current.attempts
    caller, run = (sender, run) if campaign.channel == "sms" else _caller(campaign, run, current, intent)
    bounds = (wave.latest, now + wave.intent_lifetime, intent.latest, second_leg_deadline(current))
    dispatch = Dispatch(
        id=intent.dispatch_id,
        workspace_id=wave.workspace_id,
        channel=campaign.channel,
        campaign_id=wave.campaign_id,
        position=current.position,
        call_id=intent.call_id,
        step=current.step,
        attempt=attempt,
        leg=current.leg,
        try_number=current.tries + 1,
        provider=intent.provider,
        from_number=caller,
        to=intent.to,
        body=intent.body,
        segments=intent.segments,
        slot_at=slot,
        valid_until=min(bound for bound in bounds if bound is not None),
        epoch=wave.epoch,
        created_at=now,
    )
    after = copy_with(
        current,
        status=RecipientStatus.DISPATCHING,
        reason=None,
        due_at=None,
        attempts=attempt,
        tries=current.tries + 1,
        caller_id=caller if campaign.cli_mode == "group" or campaign.from_numbers else current.caller_id,
    )
    call = None if intent.call_id is None or campaign.agent_id is None else _call(dispatch, campaign.agent_id, intent)
    return IntentDraft(dispatch=dispatch, before=current, after=after, call=call), run


def commit_intents(tx: Transaction, drafts: Sequence[IntentDraft]) -> Mapping[str, Counters]:
    """Write many intents at once, of campaigns or of single messages and calls, and what changes by them.

    The ledger refuses a second open dispatch; the slot of a refused one is lost.

    Returns:
        The change of the campaign's counters for each intent that was written, by its identifier.
    """
    for one in drafts:
        if one.call is not None:
            tx.calls.insert(one.call)
    opened = frozenset(dispatch.id for dispatch in tx.dispatches.open([one.dispatch for one in drafts]))
    for one in drafts:
        if one.call is not None and one.dispatch.id not in opened:
            at = one.dispatch.created_at
            tx.calls.update(attrs.evolve(one.call, status=CallStatus.CANCELED, error="dispatch_open", ended_at=at))
    return {one.dispatch.id: _mark_dispatching(tx, one) for one in drafts if one.dispatch.id in opened}


def _mark_dispatching(tx: Transaction, opened: IntentDraft) -> Counters:
    """Update what a written intent is for; return the change of the campaign's counters."""
    dispatch, after = opened.dispatch, opened.after
    if isinstance(after, Message):
        tx.messages.update(after)
    elif isinstance(after, Call):
        tx.calls.update(after)
    elif opened.before is not None:
        rule = TrailRule.PACE if dispatch.channel == "sms" else TrailRule.CONCURRENCY
        return put_recipient(
            tx, dispatch.workspace_id, opened.before, after, rule=rule, now=dispatch.created_at, dispatch=dispatch
        )
    return Counters()


def _caller(
    campaign: Campaign, run: CampaignRunState, recipient: Recipient, intent: Intent
) -> tuple[str | None, CampaignRunState]:
    """Return the number to call from; one of a group is assigned at the first dispatch and kept for retries."""
    if campaign.cli_mode != "group" or not campaign.cli_group:
        return intent.from_number, run
    if recipient.caller_id is not None:
        return recipient.caller_id, run
    return next_caller_id(campaign.cli_group, run.assigned), attrs.evolve(run, assigned=run.assigned + 1)


def _call(dispatch: Dispatch, agent_id: str, intent: Intent) -> Call:
    return Call(
        id=intent.call_id or "",
        workspace_id=dispatch.workspace_id,
        agent_id=agent_id,
        campaign_id=dispatch.campaign_id,
        position=dispatch.position,
        provider=dispatch.provider,
        to=dispatch.to,
        from_number=dispatch.from_number,
        status=CallStatus.DISPATCHING,
        variables=intent.variables,
        attempt=dispatch.attempt,
        tries=1,
        created_at=dispatch.created_at,
    )


class CommittedIntent(NamedTuple):
    """A committed intent whose request is about to start.

    Attributes:
        stops: The stop count at its commit; None if unknown.
        revision: The revision of the campaign that it was decided on; None for a single message or call.
    """

    dispatch: Dispatch
    stops: int | None
    revision: int | None


def withdrawal_reasons(tx: Transaction, intents: Sequence[CommittedIntent], now: datetime) -> Sequence[str | None]:
    """Return for each committed intent why it must not be sent after all, or None.

    If no stop was counted since its commit, nothing needs to be read.
    """
    stops = tx.stops.count()
    doubtful = [one.dispatch for one in intents if one.stops != stops]
    prefetch_for_last_check(tx, doubtful)
    changed = provider_throttles.of_changed_accounts(tx, doubtful, now)
    return [
        None
        if one.stops == stops
        else withdrawal_reason(tx, one.dispatch)
        or _change_reason(tx, one, now)
        or provider_throttles.throttle_reason(tx, one.dispatch, now)
        or (provider_throttles.ACCOUNT_CHANGED if one.dispatch.id in changed else None)
        for one in intents
    ]


def _change_reason(tx: Transaction, intent: CommittedIntent, now: datetime) -> str | None:
    """Return why an intent must be decided again: its campaign has other texts or hours since; else None."""
    of = intent.dispatch
    if of.created_at > now:
        # The clock was set back, which gives campaigns new revisions; its slot lies ahead, and that withdraws it.
        return None
    campaign = None if of.campaign_id is None else tx.campaigns.get(of.workspace_id, of.campaign_id)
    changed = campaign is not None and intent.revision is not None and campaign.revision != intent.revision
    return "campaign_changed" if changed else None


def prefetch_for_last_check(tx: Transaction, dispatches: Sequence[Dispatch]) -> None:
    """Read the rows that `withdrawal_reason` needs for many dispatches, in one go."""
    tx.dispatches.prefetch((dispatch.workspace_id, dispatch.id) for dispatch in dispatches)
    tx.register.prefetch((dispatch.workspace_id, dispatch.to) for dispatch in dispatches)
    tx.workspaces.prefetch({dispatch.workspace_id for dispatch in dispatches})
    tx.campaigns.prefetch(
        {(dispatch.workspace_id, dispatch.campaign_id) for dispatch in dispatches if dispatch.campaign_id is not None}
    )


def withdrawal_reason(tx: Transaction, dispatch: Dispatch) -> str | None:
    """Return why a committed intent must not be sent after all, or None.

    This is read immediately before the request, so that stops since the commit count.
    """
    workspace = tx.workspaces.get(dispatch.workspace_id)
    if workspace is None or workspace.status is not WorkspaceStatus.ACTIVE:
        return "workspace_unavailable"
    message = tx.messages.get(dispatch.workspace_id, dispatch.message_id) if dispatch.message_id else None
    purpose = message.purpose if message is not None else "message"
    forbidden = block_reason(tx, dispatch.workspace_id, dispatch.channel, dispatch.to, purpose)
    if forbidden is not None:
        return forbidden
    if dispatch.campaign_id is not None:
        if is_number_held(tx, dispatch.workspace_id, dispatch.to):
            return UNCLEAR_REPLY.name
        campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id)
        if campaign is None or campaign.status is not CampaignStatus.ACTIVE:
            return "campaign_stopped"
    current = tx.dispatches.get(dispatch.workspace_id, dispatch.id)
    if current is None or current.state is not DispatchState.DISPATCHING:
        return "settled_elsewhere"
    if tx.workers.get(dispatch.epoch) is None:
        # Another worker has taken over, and goes by its own pace: the clock of the database was set forth.
        return "lease_over"
    return None
