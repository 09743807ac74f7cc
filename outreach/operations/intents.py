"""Opening dispatches: intents, committed before a provider hears of them (design, section 5, rule 1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from outreach.models.call import Call
from outreach.models.campaign import Campaign, Counters
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient
from outreach.models.states import CallStatus, RecipientStatus
from outreach.models.trail import Rule
from outreach.models.work import Run
from outreach.operations.recipients import put_recipient, untouched
from outreach.operations.wave import Intent, Wave
from outreach.policy.call_settlement import second_leg_until
from outreach.policy.caller_ids import caller_id
from outreach.working_set import Transaction


@attrs.frozen(kw_only=True)
class Draft:
    """An intent that is about to be written.

    Attributes:
        before: The recipient as it is.
        after: The recipient once it is written.
        call: The record of a call; None for a message.
    """

    dispatch: Dispatch
    before: Recipient
    after: Recipient
    call: Call | None


def draft(
    tx: Transaction, wave: Wave, campaign: Campaign, run: Run, intent: Intent, slot: datetime, now: datetime
) -> tuple[Draft, Run] | None:
    """Return the intent of one message or call, and what the run remembers then; nothing is written.

    None when the recipient is not as it was when it was decided on.
    """
    current = untouched(tx, wave.workspace_id, intent.recipient)
    if current is None or (current.due_at is not None and current.due_at > now):
        # It was due by a clock that has been set back since.
        return None
    # The second call of a double dial belongs to the first one's attempt.
    attempt = current.attempts + 1 if current.leg == 1 else current.attempts
    caller, run = _caller(campaign, run, current, intent)
    bounds = (wave.latest, now + wave.intent_lifetime, intent.latest, second_leg_until(current))
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
        sender=caller,
        to=intent.to,
        body=intent.body,
        segments=intent.segments,
        slot_at=slot,
        valid_until=min(bound for bound in bounds if bound is not None),
        epoch=wave.epoch,
        created_at=now,
    )
    after = attrs.evolve(
        current,
        status=RecipientStatus.DISPATCHING,
        reason=None,
        due_at=None,
        attempts=attempt,
        tries=current.tries + 1,
        caller_id=caller if campaign.cli_mode == "group" else None,
    )
    call = None if intent.call_id is None or campaign.agent_id is None else _call(dispatch, campaign.agent_id, intent)
    return Draft(dispatch=dispatch, before=current, after=after, call=call), run


def open_all(tx: Transaction, drafts: Sequence[Draft]) -> frozenset[str]:
    """Write many intents at once; return the identifiers of those that went in.

    The ledger itself forbids a second open dispatch; the recipient's state is behind then, and is left alone. The slot
    that was meant for it is not made up for.
    """
    for one in drafts:
        if one.call is not None:
            tx.calls.insert(one.call)
    opened = frozenset(dispatch.id for dispatch in tx.dispatches.open([one.dispatch for one in drafts]))
    for one in drafts:
        if one.call is not None and one.dispatch.id not in opened:
            at = one.dispatch.created_at
            tx.calls.update(attrs.evolve(one.call, status=CallStatus.CANCELED, error="dispatch_open", ended_at=at))
    return opened


def enter(tx: Transaction, opened: Draft) -> Counters:
    """Note with its recipient that an intent was written; return the change of the counters."""
    dispatch = opened.dispatch
    rule = Rule.PACE if dispatch.channel == "sms" else Rule.CONCURRENCY
    return put_recipient(
        tx,
        dispatch.workspace_id,
        opened.before,
        opened.after,
        rule=rule,
        now=dispatch.created_at,
        dispatch=dispatch,
    )


def _caller(campaign: Campaign, run: Run, recipient: Recipient, intent: Intent) -> tuple[str | None, Run]:
    """Return the number to call from; one of a group is assigned at the first dispatch and kept for retries."""
    if campaign.cli_mode != "group" or not campaign.cli_group:
        return intent.sender, run
    if recipient.caller_id is not None:
        return recipient.caller_id, run
    return caller_id(campaign.cli_group, run.assigned), attrs.evolve(run, assigned=run.assigned + 1)


def _call(dispatch: Dispatch, agent_id: str, intent: Intent) -> Call:
    return Call(
        id=intent.call_id or "",
        workspace_id=dispatch.workspace_id,
        agent_id=agent_id,
        campaign_id=dispatch.campaign_id,
        position=dispatch.position,
        provider=dispatch.provider,
        to=dispatch.to,
        sender=dispatch.sender,
        status=CallStatus.DISPATCHING,
        variables=intent.variables,
        attempt=dispatch.attempt,
        tries=1,
        created_at=dispatch.created_at,
    )
