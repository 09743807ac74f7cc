"""Opening dispatches: intents, committed before a provider hears of them (design, section 5, rule 1)."""

from __future__ import annotations

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
from outreach.working_set import AlreadyThere, Transaction


def open_dispatch(
    tx: Transaction, wave: Wave, campaign: Campaign, run: Run, intent: Intent, slot: datetime, now: datetime
) -> tuple[Dispatch, Run, Counters] | None:
    """Write the intent of one message or call.

    Returns:
        The dispatch, what the run remembers then, and the change of the counters; None when the recipient is not
        as it was when it was decided on.
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
    call = None if intent.call_id is None or campaign.agent_id is None else _call(dispatch, campaign.agent_id, intent)
    if call is not None:
        tx.calls.insert(call)
    try:
        tx.dispatches.insert(dispatch)
    except AlreadyThere:
        # The ledger itself forbids a second open dispatch; the recipient's state is behind, and is left alone.
        if call is not None:
            tx.calls.update(attrs.evolve(call, status=CallStatus.CANCELED, error="dispatch_open", ended_at=now))
        return None
    opened = attrs.evolve(
        current,
        status=RecipientStatus.DISPATCHING,
        reason=None,
        due_at=None,
        attempts=attempt,
        tries=current.tries + 1,
        caller_id=caller if campaign.cli_mode == "group" else None,
    )
    rule = Rule.PACE if campaign.channel == "sms" else Rule.CONCURRENCY
    change = put_recipient(tx, wave.workspace_id, current, opened, rule=rule, now=now, dispatch=dispatch)
    return dispatch, run, change


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
