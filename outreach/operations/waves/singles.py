"""Single calls and messages: creating them and committing their intents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import attrs

from outreach.errors import AgentInactive, AgentNotOutbound, CallInProgress, RecipientUnsubscribed
from outreach.models.base import Channel
from outreach.models.call import Call
from outreach.models.dispatch import Dispatch
from outreach.models.message import Message, Purpose
from outreach.models.resources import Agent
from outreach.models.states import CallStatus, DispatchState, MessageStatus, WorkspaceStatus
from outreach.models.trail import TrailRule
from outreach.models.work import WorkUnit
from outreach.models.workspace import Workspace
from outreach.operations.campaigns import trail
from outreach.operations.common import require_worker
from outreach.operations.register.entries import block_reason
from outreach.operations.waves import claims, provider_throttles
from outreach.operations.waves.pace import pace_of_number
from outreach.policy.dispatch_history import NOT_REACHED
from outreach.policy.settlement import Backoff
from outreach.working_set import AlreadyExists, Transaction

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


def commit_message(
    tx: Transaction, workspace_id: str, message_id: str, terms: IntentTerms, *, clock_now: Callable[[], datetime]
) -> Dispatch | None:
    """Commit the intent of a queued message, or raise `LeaseLost` or `NotClaimed`; None if not to be sent now."""
    require_worker(tx, terms.epoch)
    now = clock_now()
    message = tx.messages.get(workspace_id, message_id)
    if message is None or message.status is not MessageStatus.QUEUED:
        return None
    unit = WorkUnit("message", workspace_id, message_id)
    before = tx.dispatches.of_message(workspace_id, message_id)
    stale_at = message.send_until
    if stale_at is None:
        stale_at = terms.stale_after + _waiting_since(message.created_at, before)
    reason = _cancel_reason(tx, workspace_id, "sms", message.to, message.purpose, stale_at, now)
    if reason is not None:
        _cancel_message(tx, message, reason, now)
        return None
    retry_at = _blocked_until(tx, workspace_id, message.carrier, now) or _backoff_until(before, terms.backoff, now)
    if retry_at is not None:
        tx.work.schedule(unit, min(stale_at, retry_at))
        return None
    pace = pace_of_number(tx, workspace_id, message.from_number, now)
    claims.require(tx, workspace_id, claims.subjects_of(None, pace), terms.epoch)
    slot = now if pace is None else max(now, pace.next_slot_at or now, terms.not_before or now)
    ahead = min(SLOT_LEAD_TIME, terms.lifetime / 2)
    if slot > now + ahead:
        tx.work.schedule(unit, min(stale_at, slot - ahead))
        return None
    valid_until = min(terms.latest, now + terms.lifetime, message.send_until or terms.latest)
    if slot >= valid_until:
        # The lease or the time for a reply ends before the slot: the slot would be used up for nothing.
        tx.work.schedule(unit, min(stale_at, slot))
        return None
    dispatch = Dispatch(
        id=terms.dispatch_id,
        workspace_id=workspace_id,
        channel="sms",
        message_id=message_id,
        attempt=message.attempts + 1,
        try_number=message.tries + 1,
        provider=message.carrier,
        from_number=message.from_number,
        to=message.to,
        body=message.body,
        segments=message.segments,
        slot_at=slot,
        valid_until=valid_until,
        epoch=terms.epoch,
        created_at=now,
    )
    if not _insert(tx, dispatch):
        return None
    if pace is not None:
        tx.runs.put_sender_slot(workspace_id, pace.phone, slot + pace.spacing)
    tx.messages.update(
        attrs.evolve(message, status=MessageStatus.DISPATCHING, attempts=message.attempts + 1, tries=message.tries + 1)
    )
    return dispatch


def commit_call(
    tx: Transaction, workspace_id: str, call_id: str, terms: IntentTerms, *, clock_now: Callable[[], datetime]
) -> tuple[Dispatch, Agent] | None:
    """Commit the intent of a queued call, or raise `LeaseLost` or `NotClaimed`; None if not to be placed now."""
    require_worker(tx, terms.epoch)
    now = clock_now()
    call = tx.calls.get(workspace_id, call_id)
    if call is None or call.status is not CallStatus.QUEUED:
        return None
    unit = WorkUnit("call", workspace_id, call_id)
    agent = tx.agents.get(workspace_id, call.agent_id)
    before = tx.dispatches.of_call(workspace_id, call_id)
    stale_at = terms.stale_after + _waiting_since(call.created_at, before)
    reason = _cancel_reason(tx, workspace_id, "call", call.to, "message", stale_at, now)
    if reason is None and (agent is None or not agent.is_active or not agent.can_place_calls):
        reason = "agent_unavailable"
    if reason is not None or agent is None:
        _cancel_call(tx, call, reason or "agent_unavailable", now)
        return None
    retry_at = _blocked_until(tx, workspace_id, call.provider, now) or _backoff_until(before, terms.backoff, now)
    if retry_at is not None:
        tx.work.schedule(unit, min(stale_at, retry_at))
        return None
    claims.require(tx, workspace_id, claims.subjects_of(None, None), terms.epoch)
    dispatch = Dispatch(
        id=terms.dispatch_id,
        workspace_id=workspace_id,
        channel="call",
        call_id=call_id,
        attempt=call.attempt,
        try_number=call.tries + 1,
        provider=call.provider,
        from_number=call.from_number,
        to=call.to,
        slot_at=now,
        valid_until=min(terms.latest, now + terms.lifetime),
        epoch=terms.epoch,
        created_at=now,
    )
    if not _insert(tx, dispatch):
        return None
    tx.calls.update(attrs.evolve(call, status=CallStatus.DISPATCHING, tries=call.tries + 1))
    return dispatch, agent


def cancel_queued_singles(tx: Transaction, *, reason: str, now: datetime) -> int:
    """Cancel every queued single call and message of a quarantined database; return how many."""
    canceled = 0
    for work in tx.work.due():
        if work.unit.kind == "message":
            message = tx.messages.get(work.unit.workspace_id, work.unit.id)
            if message is not None and message.status is MessageStatus.QUEUED:
                _cancel_message(tx, message, reason, now)
                canceled += 1
        elif work.unit.kind == "call":
            call = tx.calls.get(work.unit.workspace_id, work.unit.id)
            if call is not None and call.status is CallStatus.QUEUED:
                _cancel_call(tx, call, reason, now)
                canceled += 1
    return canceled


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


def _cancel_reason(
    tx: Transaction, workspace_id: str, channel: Channel, to: str, purpose: Purpose, stale_at: datetime, now: datetime
) -> str | None:
    return "stale" if now >= stale_at else block_reason(tx, workspace_id, channel, to, purpose)


def _waiting_since(created_at: datetime, dispatches: Sequence[Dispatch]) -> datetime:
    """Return when the wait began: at creation, or at an operator's latest decision to try again."""
    given_up = (one.settled_at for one in dispatches if one.state is DispatchState.GIVEN_UP and one.settled_at)
    return max((created_at, *given_up))


def _insert(tx: Transaction, dispatch: Dispatch) -> bool:
    try:
        tx.dispatches.insert(dispatch)
    except AlreadyExists:
        return False
    return True


def _cancel_message(tx: Transaction, message: Message, reason: str, now: datetime) -> None:
    tx.messages.update(attrs.evolve(message, status=MessageStatus.CANCELED, reason=reason, ended_at=now))
    tx.work.schedule(WorkUnit("message", message.workspace_id, message.id), None)


def _cancel_call(tx: Transaction, call: Call, reason: str, now: datetime) -> None:
    canceled = attrs.evolve(call, status=CallStatus.CANCELED, error=reason, ended_at=now)
    tx.calls.update(canceled)
    trail.record_call(tx, None, canceled, rule=_CANCELED_BY.get(reason, TrailRule.STOP), now=now)
    tx.work.schedule(WorkUnit("call", call.workspace_id, call.id), None)
