"""Decisions of an operator about many requests at once, and taking them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach.errors import Conflict
from outreach.ledger.campaigns import trail
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.campaigns.transitions import reopen_if_open
from outreach.ledger.common import campaign_of, record_audit
from outreach.ledger.settling.ledger import prefetch_for_dispatches, recipients_of
from outreach.ledger.settling.reconciling import Deadlines, resolve
from outreach.ledger.settling.skipping import BY_OPERATOR
from outreach.models.campaign import Recipient
from outreach.models.dispatch import DECISION_UNDONE, DecisionResult, Dispatch, OperatorDecision
from outreach.models.states import CallStatus, DispatchState, MessageStatus, RecipientStatus, TrailRule
from outreach.models.work import WorkUnit
from outreach.rules.phones import is_erased
from outreach.rules.settlement import LOCAL_INTERRUPTIONS, Backoff
from outreach.storage.unit_of_work import Transaction

_UNREPORTED: Final = frozenset({CallStatus.UNCONFIRMED, CallStatus.QUEUED, CallStatus.CANCELED})
"""The states of a call after a decision, as long as its provider has not reported on it."""


def add(one: DecisionResult, other: DecisionResult) -> DecisionResult:
    """Return the sum of two results."""
    return DecisionResult(
        changed=one.changed + other.changed,
        kept=one.kept + other.kept,
        becomes=dict(Counter(one.becomes) + Counter(other.becomes)),
    )


def resolve_many(
    tx: Transaction,
    found: Sequence[Dispatch],
    decision: OperatorDecision,
    *,
    deadlines: Deadlines,
    backoff: Backoff,
    now: datetime,
    actor: str,
) -> DecisionResult:
    """Settle unknown dispatches by an operator's decision (docs/delivery-contract.md#rule-6)."""
    prefetch_for_dispatches(tx, found)
    becomes: Counter[str] = Counter()
    for dispatch in found:
        try:
            resolve(
                tx,
                dispatch.workspace_id,
                dispatch.id,
                decision,
                deadlines=deadlines,
                backoff=backoff,
                now=now,
                actor=actor,
            )
        except Conflict:
            # Its request may still be on its way, or evidence was faster.
            continue
        becomes[_state_of(tx, dispatch)] += 1
    return _result(found, becomes)


def undo_many(tx: Transaction, found: Sequence[Dispatch], *, now: datetime, actor: str) -> DecisionResult:
    """Make dispatches unknown again that an operator has decided about, where nothing was sent since."""
    prefetch_for_dispatches(tx, found)
    tx.dispatches.prefetch_of_recipients(recipients_of(found))
    becomes: Counter[str] = Counter()
    for dispatch in found:
        if _undo(tx, dispatch, now=now, actor=actor):
            becomes[_state_of(tx, dispatch)] += 1
    return _result(found, becomes)


def _result(found: Sequence[Dispatch], becomes: Counter[str]) -> DecisionResult:
    return DecisionResult(changed=becomes.total(), kept=len(found) - becomes.total(), becomes=dict(becomes))


def _state_of(tx: Transaction, dispatch: Dispatch) -> str:
    """Return the state of the contact of a dispatch, or of its single message or call."""
    if dispatch.campaign_id is not None and dispatch.position is not None:
        recipient = tx.recipients.get(dispatch.workspace_id, dispatch.campaign_id, dispatch.position)
        return "erased" if recipient is None else recipient.status.value
    if dispatch.message_id is not None:
        message = tx.messages.get(dispatch.workspace_id, dispatch.message_id)
        return "erased" if message is None else message.status.value
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id or "")
    return "erased" if call is None else call.status.value


def _undo(tx: Transaction, dispatch: Dispatch, *, now: datetime, actor: str) -> bool:
    """Make a dispatch and its contact unknown again; return whether that was possible."""
    if dispatch.provider_id is not None or dispatch.report is not None or is_erased(dispatch.to):
        return False
    reason = dispatch.reason if dispatch.reason in LOCAL_INTERRUPTIONS else DECISION_UNDONE
    undone = attrs.evolve(dispatch, state=DispatchState.UNKNOWN, reason=reason, settled_at=now)
    if dispatch.campaign_id is not None:
        restored = _restore_recipient(tx, undone, now=now, actor=actor)
    else:
        restored = _restore_single(tx, undone)
    if not restored:
        return False
    tx.dispatches.update(undone)
    trail.record_outcome(tx, dispatch, undone, by=TrailRule.OPERATOR, now=now)
    record_audit(tx, dispatch.workspace_id, "dispatch.undo", dispatch.id, actor=actor, now=now)
    return True


def _restore_recipient(tx: Transaction, dispatch: Dispatch, *, now: datetime, actor: str) -> bool:
    workspace_id, campaign_id, position = dispatch.workspace_id, dispatch.campaign_id or "", dispatch.position or 0
    recipient = tx.recipients.get(workspace_id, campaign_id, position)
    requests = tx.dispatches.of_recipient(workspace_id, campaign_id, position)
    if recipient is None or recipient.reason == BY_OPERATOR or requests[-1].id != dispatch.id:
        return False
    if not _restore_call(tx, dispatch):
        return False
    before = _before_decision(recipient, dispatch, requests)
    change = put_recipient(
        tx, workspace_id, recipient, before, rule=TrailRule.OPERATOR, now=now, dispatch=dispatch, actor=actor
    )
    counters = tx.campaigns.add_counters(workspace_id, campaign_id, change)
    campaign = attrs.evolve(campaign_of(tx, workspace_id, campaign_id), counters=counters)
    reopen_if_open(tx, campaign, now=now, detail=DECISION_UNDONE, actor=actor)
    return True


def _before_decision(recipient: Recipient, dispatch: Dispatch, requests: Sequence[Dispatch]) -> Recipient:
    """Return a recipient as it was while the outcome of its latest dispatch was unknown."""
    sent = any(one.step < dispatch.step and one.state is DispatchState.ACCEPTED for one in requests)
    return attrs.evolve(
        recipient,
        status=RecipientStatus.UNKNOWN,
        reason=dispatch.reason,
        step=dispatch.step,
        attempts=dispatch.attempt,
        leg=dispatch.leg,
        tries=dispatch.try_number,
        dispatched=True,
        successful=sent,
        due_at=None,
        ended_at=None,
    )


def _restore_single(tx: Transaction, dispatch: Dispatch) -> bool:
    if dispatch.call_id is not None:
        return _restore_call(tx, dispatch)
    message = tx.messages.get(dispatch.workspace_id, dispatch.message_id or "")
    if message is None or tx.dispatches.of_message(message.workspace_id, message.id)[-1].id != dispatch.id:
        return False
    unknown = attrs.evolve(
        message, status=MessageStatus.UNKNOWN, reason=dispatch.reason, attempts=dispatch.attempt, ended_at=None
    )
    tx.messages.update(unknown)
    tx.work.schedule(WorkUnit("message", message.workspace_id, message.id), None)
    return True


def _restore_call(tx: Transaction, dispatch: Dispatch) -> bool:
    """Make the call of a dispatch unknown again; return whether it was as the decision left it, or there is none."""
    if dispatch.call_id is None:
        return True
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id)
    if call is None or call.status not in _UNREPORTED:
        return False
    if tx.dispatches.of_call(call.workspace_id, call.id)[-1].id != dispatch.id:
        return False
    tx.calls.update(attrs.evolve(call, status=CallStatus.UNKNOWN, error=dispatch.reason, ended_at=None))
    tx.work.schedule(WorkUnit("call", call.workspace_id, call.id), None)
    return True
