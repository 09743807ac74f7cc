"""Single calls and messages: creating them and committing their intents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Final

import attrs

from outreach.errors import AgentInactive, AgentNotOutbound, CallInProgress, RecipientUnsubscribed
from outreach.ledger import provider_throttles
from outreach.ledger.campaigns import trail
from outreach.ledger.common import record_audit, require_worker
from outreach.ledger.leases import leases
from outreach.ledger.opt_out.entries import block_reason
from outreach.ledger.sending.intents import IntentDraft, commit_intents, pace_of_number
from outreach.models.call import Call
from outreach.models.dispatch import Dispatch
from outreach.models.message import Message
from outreach.models.resources import Agent
from outreach.models.states import CallStatus, DispatchState, MessageStatus, TrailRule, WorkspaceStatus
from outreach.models.work import WorkUnit
from outreach.models.workspace import Workspace
from outreach.rules.readiness import is_person
from outreach.rules.settlement import NOT_REACHED, Backoff
from outreach.storage.unit_of_work import Transaction

_CANCELED_BY: Final[Mapping[str, TrailRule]] = MappingProxyType(
    {
        "stale": TrailRule.STALE,
        "opted_out": TrailRule.REGISTER,
        "agent_unavailable": TrailRule.AGENT,
        "moved": TrailRule.COPIED_FILE,
        "restored": TrailRule.COPIED_FILE,
    }
)
"""The trail rule for each reason that cancels a queued call."""

SLOT_LEAD_TIME: Final = timedelta(seconds=2)
"""A single message reserves its slot this early, ahead of campaigns, so that at most one slot is before it."""

_RECHECK_AFTER: Final = timedelta(seconds=5)
"""How often singles are checked while their workspace is not active."""


@attrs.frozen(kw_only=True)
class IntentTerms:
    """The terms of a commit.

    Attributes:
        dispatch_id: The identifier of the new dispatch.
        epoch: The worker's epoch.
        latest: No request may start later.
        lifetime: How long after the commit the request may start.
        stale_after: One that has waited longer is cancelled.
        backoff: The delay after a deferral.
        not_before: The sending number may not start another request earlier; None for no limit.
    """

    dispatch_id: str
    epoch: int
    latest: datetime
    lifetime: timedelta
    stale_after: timedelta
    backoff: Backoff
    not_before: datetime | None = None


def require_outbound_agent(agent: Agent) -> None:
    """Raise `AgentInactive` or `AgentNotOutbound` unless an agent may place calls now."""
    if not agent.is_active:
        raise AgentInactive(f"Agent {agent.name!r} is inactive. Activate it, or choose another one.")
    if not agent.can_place_calls:
        raise AgentNotOutbound(f"Agent {agent.name!r} is an inbound agent and allow_outbound is not set.")


def note_person(tx: Transaction, made: Call | Message, action: str, *, now: datetime, actor: str) -> None:
    """Record in the audit trail who has made a call or message, if it is a person; programs make any number."""
    if is_person(actor):
        record_audit(tx, made.workspace_id, action, made.id, actor=actor, now=now)


def create_call(tx: Transaction, call: Call, *, now: datetime) -> Call:
    """Queue a call.

    Raises:
        RecipientUnsubscribed: The number is on the register for calls.
        CallInProgress: The agent has an open call to this number.
    """
    if tx.register.stopped(call.workspace_id, "call", {call.to}):
        raise RecipientUnsubscribed("The number is on the workspace's unsubscribe register for calls.")
    if tx.calls.open_call_between(call.workspace_id, call.agent_id, call.to) is not None:
        raise CallInProgress("This agent already has an open call to this number. Wait for it to end.")
    tx.calls.insert(call)
    tx.work.schedule(WorkUnit("call", call.workspace_id, call.id), now)
    return call


def create_message(tx: Transaction, message: Message, *, now: datetime) -> Message:
    """Queue a message, or raise `RecipientUnsubscribed` if the register blocks it."""
    if block_reason(tx, message.workspace_id, "sms", message.to, message.purpose) is not None:
        raise RecipientUnsubscribed("The number is on the workspace's unsubscribe register for SMS.")
    tx.messages.insert(message)
    tx.work.schedule(WorkUnit("message", message.workspace_id, message.id), now)
    return message


def commit_single(
    tx: Transaction, unit: WorkUnit, terms: IntentTerms, *, clock_now: Callable[[], datetime]
) -> Dispatch | None:
    """Commit the intent of a queued message or call, or raise `LeaseLost` or `NotClaimed`; None if not to start now."""
    require_worker(tx, terms.epoch)
    now = clock_now()
    single = _queued(tx, unit)
    if single is None:
        return None
    if isinstance(single, Message):
        provider, send_until = single.carrier, single.send_until
        before = tx.dispatches.of_message(single.workspace_id, single.id)
    else:
        provider, send_until = single.provider, None
        before = tx.dispatches.of_call(single.workspace_id, single.id)
    stale_at = send_until or terms.stale_after + _waiting_since(single.created_at, before)
    reason = _cancel_reason(tx, single, stale_at, now)
    if reason is not None:
        _cancel(tx, single, reason, now)
        return None
    retry_at = _blocked_until(tx, unit.workspace_id, provider, now) or _backoff_until(before, terms.backoff, now)
    if retry_at is not None:
        tx.work.schedule(unit, min(stale_at, retry_at))
        return None
    pace = pace_of_number(tx, unit.workspace_id, single.from_number, now) if isinstance(single, Message) else None
    leases.require_claims(tx, unit.workspace_id, leases.subjects_of(None, [pace]), terms.epoch)
    slot = now if pace is None else max(now, pace.next_slot_at or now, terms.not_before or now)
    ahead = min(SLOT_LEAD_TIME, terms.lifetime / 2)
    if slot > now + ahead:
        tx.work.schedule(unit, min(stale_at, slot - ahead))
        return None
    valid_until = min(terms.latest, now + terms.lifetime, send_until or terms.latest)
    if slot >= valid_until:
        # The lease or the time for a reply ends before the slot: the slot would be used up for nothing.
        tx.work.schedule(unit, min(stale_at, slot))
        return None
    draft = _draft(single, terms, slot, valid_until, now)
    if not commit_intents(tx, [draft]):
        return None
    if pace is not None:
        tx.runs.put_sender_slot(unit.workspace_id, pace.phone, slot + pace.spacing)
    return draft.dispatch


def cancel_queued_singles(tx: Transaction, *, reason: str, now: datetime) -> int:
    """Cancel every queued single call and message of a quarantined database; return how many."""
    queued = [single for work in tx.work.due() if (single := _queued(tx, work.unit)) is not None]
    for single in queued:
        _cancel(tx, single, reason, now)
    return len(queued)


def _queued(tx: Transaction, unit: WorkUnit) -> Message | Call | None:
    """Return the single message or call of a unit; None if it is not queued any more, or is neither."""
    message = tx.messages.get(unit.workspace_id, unit.id) if unit.kind == "message" else None
    if message is not None and message.status is MessageStatus.QUEUED:
        return message
    call = tx.calls.get(unit.workspace_id, unit.id) if unit.kind == "call" else None
    return call if call is not None and call.status is CallStatus.QUEUED else None


def _draft(
    single: Message | Call, terms: IntentTerms, slot: datetime, valid_until: datetime, now: datetime
) -> IntentDraft:
    """Return the intent of a single message or call, with what that becomes by it."""
    common = partial(
        Dispatch,
        id=terms.dispatch_id,
        workspace_id=single.workspace_id,
        try_number=single.tries + 1,
        from_number=single.from_number,
        to=single.to,
        slot_at=slot,
        valid_until=valid_until,
        epoch=terms.epoch,
        created_at=now,
    )
    if isinstance(single, Call):
        placed = attrs.evolve(single, status=CallStatus.DISPATCHING, tries=single.tries + 1)
        dispatch = common(channel="call", call_id=single.id, attempt=single.attempt, provider=single.provider)
        return IntentDraft(dispatch=dispatch, after=placed)
    attempt = single.attempts + 1
    sent = attrs.evolve(single, status=MessageStatus.DISPATCHING, attempts=attempt, tries=single.tries + 1)
    dispatch = common(
        channel="sms",
        message_id=single.id,
        attempt=attempt,
        provider=single.carrier,
        body=single.body,
        segments=single.segments,
    )
    return IntentDraft(dispatch=dispatch, after=sent)


def _blocked_until(tx: Transaction, workspace_id: str, provider: str, now: datetime) -> datetime | None:
    """Return when to try again because of the workspace or a throttle; None if it may go now."""
    workspace: Workspace | None = tx.workspaces.get(workspace_id)
    if workspace is None or workspace.status is not WorkspaceStatus.ACTIVE:
        return now + _RECHECK_AFTER
    throttle = provider_throttles.active_throttle(tx, workspace_id, provider, now)
    return throttle.until if throttle is not None else None


def _backoff_until(before: Sequence[Dispatch], backoff: Backoff, now: datetime) -> datetime | None:
    """Return the end of the backoff after the latest request; None if there is none.

    A time that the provider named is the throttle of its account instead.
    """
    # Not by their times: earlier requests may lie ahead of later ones if the clock was set back.
    last = max(before, key=lambda one: one.try_number, default=None)
    if last is None or last.settled_at is None or last.state not in NOT_REACHED:
        return None
    until = last.settled_at + backoff.delay(last.try_number, None)
    # After a clock step backwards the rest of the backoff is unknown.
    return until if last.settled_at <= now < until else None


def _cancel_reason(tx: Transaction, single: Message | Call, stale_at: datetime, now: datetime) -> str | None:
    """Return why a queued message or call is cancelled; None if it is not."""
    if now >= stale_at:
        return "stale"
    if isinstance(single, Message):
        return block_reason(tx, single.workspace_id, "sms", single.to, single.purpose)
    blocked = block_reason(tx, single.workspace_id, "call", single.to, "message")
    if blocked is not None:
        return blocked
    agent = tx.agents.get(single.workspace_id, single.agent_id)
    return None if agent is not None and agent.is_active and agent.can_place_calls else "agent_unavailable"


def _waiting_since(created_at: datetime, dispatches: Sequence[Dispatch]) -> datetime:
    """Return when the wait began: at creation, or at an operator's latest decision to try again."""
    given_up = (one.settled_at for one in dispatches if one.state is DispatchState.GIVEN_UP and one.settled_at)
    return max((created_at, *given_up))


def _cancel(tx: Transaction, single: Message | Call, reason: str, now: datetime) -> None:
    if isinstance(single, Message):
        tx.messages.update(attrs.evolve(single, status=MessageStatus.CANCELED, reason=reason, ended_at=now))
        tx.work.schedule(WorkUnit("message", single.workspace_id, single.id), None)
        return
    canceled = attrs.evolve(single, status=CallStatus.CANCELED, error=reason, ended_at=now)
    tx.calls.update(canceled)
    trail.record_call(tx, None, canceled, rule=_CANCELED_BY.get(reason, TrailRule.STOP), now=now)
    tx.work.schedule(WorkUnit("call", single.workspace_id, single.id), None)
