"""Outcomes and reports: what is known of a dispatch, merged into the ledger whoever reports it, and when."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.models.call import Call
from outreach.models.dispatch import Dispatch, Outcome
from outreach.models.message import Message
from outreach.models.recipient import Recipient
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.states import (
    CALL_STATUS_RANK,
    ENDED_CALL_STATUSES,
    MESSAGE_STATUS_RANK,
    CallStatus,
    DispatchState,
    MessageStatus,
    RecipientStatus,
)
from outreach.models.work import Unit
from outreach.operations.campaign_moves import complete_if_done
from outreach.operations.common import campaign_unit, settings_of
from outreach.operations.waves import put_recipient
from outreach.policy.settlement import Backoff, may_settle, receipt_for_recipient, settle_recipient
from outreach.protocols.analyser import Analyser
from outreach.protocols.storage import Transaction


def settle(
    tx: Transaction, workspace_id: str, dispatch_id: str, outcome: Outcome, *, backoff: Backoff, now: datetime
) -> Dispatch | None:
    """Merge the outcome of a dispatch; return it as it is then, or None when the ledger has no such dispatch.

    A dispatch takes one outcome; a later one changes it only where it was unknown. The lease does not matter:
    what happened is recorded whoever saw it (design, section 5, rule 8).
    """
    dispatch = tx.dispatches.get(workspace_id, dispatch_id)
    if dispatch is None:
        return None
    if not may_settle(dispatch.state, outcome.state):
        if dispatch.provider_id is None and outcome.provider_id is not None:
            dispatch = attrs.evolve(dispatch, provider_id=outcome.provider_id)
            tx.dispatches.update(dispatch)
            _learn_provider_id(tx, dispatch)
        return dispatch
    settled = attrs.evolve(
        dispatch,
        state=outcome.state,
        provider_id=outcome.provider_id or dispatch.provider_id,
        reason=outcome.reason,
        error_code=outcome.error_code,
        error_message=outcome.error_message,
        settled_at=now,
    )
    tx.dispatches.update(settled)
    if settled.message_id is not None:
        _settle_message(tx, settled, outcome, backoff, now)
    elif settled.call_id is not None:
        _settle_call(tx, settled, outcome, backoff, now)
    else:
        _settle_recipient(tx, settled, outcome, backoff, now)
    return settled


def report(tx: Transaction, event: Report, *, backoff: Backoff, analyser: Analyser, now: datetime) -> bool:
    """Merge what a provider tells of something it accepted; return whether it changed anything.

    A report that carries our dispatch id is evidence that the provider has it, so that an unknown dispatch
    settles by it. Statuses only move up; what arrives late, twice or for nothing we know changes nothing.
    """
    dispatch = _find(tx, event)
    if dispatch is None:
        return False
    if dispatch.state is not DispatchState.ACCEPTED:
        accepted = Outcome(state=DispatchState.ACCEPTED, provider_id=event.provider_id)
        settled = settle(tx, dispatch.workspace_id, dispatch.id, accepted, backoff=backoff, now=now)
        if settled is None or settled.state is not DispatchState.ACCEPTED:
            return False
        dispatch = settled
    if isinstance(event, CallReport):
        return _report_call(tx, dispatch, event, analyser, now)
    return _report_message(tx, dispatch, event, now)


def abandon(tx: Transaction, *, epoch: int, backoff: Backoff, now: datetime, limit: int) -> int:
    """Mark dispatches that an earlier worker left without an outcome as unknown; return how many."""
    left = tx.dispatches.abandoned(epoch, limit=limit)
    lost = Outcome(state=DispatchState.UNKNOWN, reason="worker_lost")
    for dispatch in left:
        settle(tx, dispatch.workspace_id, dispatch.id, lost, backoff=backoff, now=now)
    return len(left)


def _find(tx: Transaction, event: Report) -> Dispatch | None:
    if event.dispatch_id is not None:
        dispatch = tx.dispatches.get(event.workspace_id, event.dispatch_id)
        if dispatch is not None:
            return dispatch
    if event.provider_id is not None:
        return tx.dispatches.by_provider_id(event.workspace_id, event.provider, event.provider_id)
    return None


def _settle_recipient(tx: Transaction, dispatch: Dispatch, outcome: Outcome, backoff: Backoff, now: datetime) -> None:
    found = _recipient_of(tx, dispatch)
    if found is None:
        return
    campaign = tx.campaigns.get(dispatch.workspace_id, found.campaign_id)
    if campaign is None:
        return
    after = settle_recipient(
        found,
        outcome,
        campaign=campaign.status,
        settings=settings_of(tx, dispatch.workspace_id),
        backoff=backoff,
        now=now,
    )
    _store_recipient(tx, dispatch.workspace_id, found, after, now)


def _recipient_of(tx: Transaction, dispatch: Dispatch) -> Recipient | None:
    if dispatch.campaign_id is None or dispatch.position is None:
        return None
    return tx.recipients.get(dispatch.workspace_id, dispatch.campaign_id, dispatch.position)


def _store_recipient(tx: Transaction, workspace_id: str, before: Recipient, after: Recipient, now: datetime) -> None:
    change = put_recipient(tx, workspace_id, before, after)
    counters = tx.campaigns.add_counters(workspace_id, before.campaign_id, change)
    campaign = tx.campaigns.get(workspace_id, before.campaign_id)
    if campaign is None:
        return
    if after.status is RecipientStatus.WAITING:
        tx.work.touch(campaign_unit(campaign), now)
    complete_if_done(tx, attrs.evolve(campaign, counters=counters), now=now)


def _settle_message(tx: Transaction, dispatch: Dispatch, outcome: Outcome, backoff: Backoff, now: datetime) -> None:
    message = tx.messages.get(dispatch.workspace_id, dispatch.message_id or "")
    if message is None:
        return
    unit = Unit("message", message.workspace_id, message.id)
    match outcome.state:
        case DispatchState.ACCEPTED:
            after = attrs.evolve(
                message, status=MessageStatus.ACCEPTED, reason=None, provider_id=dispatch.provider_id, ended_at=now
            )
        case DispatchState.REFUSED:
            after = attrs.evolve(
                message, status=MessageStatus.FAILED, reason=outcome.reason or "rejected", ended_at=now
            )
        case DispatchState.UNKNOWN:
            after = attrs.evolve(message, status=MessageStatus.UNKNOWN, reason=outcome.reason)
        case DispatchState.UNCONFIRMED:
            after = attrs.evolve(message, status=MessageStatus.UNCONFIRMED, reason=outcome.reason, ended_at=now)
        case _:
            tx.messages.update(
                attrs.evolve(message, status=MessageStatus.QUEUED, reason=outcome.reason, attempts=message.attempts - 1)
            )
            tx.work.touch(unit, now + backoff.delay(message.tries, outcome.retry_after_seconds))
            return
    tx.messages.update(after)
    tx.work.touch(unit, None)


def _settle_call(tx: Transaction, dispatch: Dispatch, outcome: Outcome, backoff: Backoff, now: datetime) -> None:
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id or "")
    if call is None:
        return
    unit = Unit("call", call.workspace_id, call.id)
    match outcome.state:
        case DispatchState.ACCEPTED:
            after = attrs.evolve(
                call,
                status=_higher(call.status, CallStatus.INITIATED),
                provider_call_id=dispatch.provider_id,
                dialed_at=call.dialed_at or now,
                error=None,
            )
            tx.calls.update(after)
            tx.work.touch(unit, now)
            return
        case DispatchState.REFUSED:
            after = attrs.evolve(
                call,
                status=CallStatus.FAILED,
                outcome="failed",
                error=outcome.error_message or outcome.reason or "rejected",
                ended_at=now,
            )
        case DispatchState.UNKNOWN:
            after = attrs.evolve(call, status=CallStatus.UNKNOWN, error=outcome.reason)
        case DispatchState.UNCONFIRMED:
            after = attrs.evolve(call, status=CallStatus.UNCONFIRMED, error=outcome.reason, ended_at=now)
        case _:
            tx.calls.update(attrs.evolve(call, status=CallStatus.QUEUED, error=outcome.reason))
            tx.work.touch(unit, now + backoff.delay(call.tries, outcome.retry_after_seconds))
            return
    tx.calls.update(after)
    tx.work.touch(unit, None)


def _learn_provider_id(tx: Transaction, dispatch: Dispatch) -> None:
    if dispatch.call_id is not None:
        call = tx.calls.get(dispatch.workspace_id, dispatch.call_id)
        if call is not None and call.provider_call_id is None:
            tx.calls.update(attrs.evolve(call, provider_call_id=dispatch.provider_id))
    if dispatch.message_id is not None:
        message = tx.messages.get(dispatch.workspace_id, dispatch.message_id)
        if message is not None and message.provider_id is None:
            tx.messages.update(attrs.evolve(message, provider_id=dispatch.provider_id))


def _report_message(tx: Transaction, dispatch: Dispatch, event: MessageReport, now: datetime) -> bool:
    known = dispatch.report or MessageStatus.ACCEPTED
    if MESSAGE_STATUS_RANK[event.status] <= MESSAGE_STATUS_RANK[known]:
        return False
    tx.dispatches.update(
        attrs.evolve(dispatch, report=event.status, error_code=event.error_code or dispatch.error_code)
    )
    if dispatch.message_id is not None:
        message = tx.messages.get(dispatch.workspace_id, dispatch.message_id)
        if message is not None:
            tx.messages.update(_reported(message, event))
        return True
    found = _recipient_of(tx, dispatch)
    # Only the latest dispatch speaks for its recipient: a receipt of an earlier attempt is kept with that one.
    if found is None or (found.step, found.attempts) != (dispatch.step, dispatch.attempt):
        return True
    campaign = tx.campaigns.get(dispatch.workspace_id, found.campaign_id)
    if campaign is not None:
        settings = settings_of(tx, dispatch.workspace_id)
        after = receipt_for_recipient(
            found, event.status, event.reason, campaign=campaign.status, settings=settings, now=now
        )
        if after != found:
            _store_recipient(tx, dispatch.workspace_id, found, after, now)
    return True


def _reported(message: Message, event: MessageReport) -> Message:
    reason = (event.reason or "rejected") if event.status is MessageStatus.FAILED else None
    return attrs.evolve(message, status=event.status, reason=reason)


def _report_call(tx: Transaction, dispatch: Dispatch, event: CallReport, analyser: Analyser, now: datetime) -> bool:
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id or "")
    if call is None or CALL_STATUS_RANK[event.status] <= CALL_STATUS_RANK[call.status]:
        return False
    ended = event.status in ENDED_CALL_STATUSES
    answered = call.answered_at
    if answered is None and event.status is CallStatus.IN_PROGRESS:
        answered = event.at
    after: Call = attrs.evolve(
        call,
        status=event.status,
        answered_at=answered,
        answered_by=event.answered_by or call.answered_by,
        summary=event.summary or call.summary,
        error=event.error,
        outcome=analyser.outcome(event) if ended else None,
        ended_at=event.at if ended else None,
    )
    tx.calls.update(after)
    tx.work.touch(Unit("call", call.workspace_id, call.id), None if ended else now)
    return True


def _higher(known: CallStatus, heard: CallStatus) -> CallStatus:
    return heard if CALL_STATUS_RANK[heard] > CALL_STATUS_RANK[known] else known
