"""What outcomes and reports do to call records."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.models.call import Call
from outreach.models.dispatch import Dispatch, Outcome
from outreach.models.reports import CallReport
from outreach.models.states import CALL_STATUS_RANK, ENDED_CALL_STATUSES, CallStatus, DispatchState
from outreach.models.work import Unit
from outreach.policy.settlement import Backoff
from outreach.protocols.analyser import Analyser
from outreach.protocols.storage import Transaction


def settle(tx: Transaction, dispatch: Dispatch, outcome: Outcome, backoff: Backoff, now: datetime) -> None:
    """Merge the outcome of a dispatch into its call."""
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
                ended_at=None,
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
        case _ if call.campaign_id is not None:
            # Its recipient waits for another call, which will have a record of its own.
            after = attrs.evolve(call, status=CallStatus.CANCELED, error=outcome.reason, ended_at=now)
        case _:
            tx.calls.update(attrs.evolve(call, status=CallStatus.QUEUED, error=outcome.reason))
            tx.work.touch(unit, now + backoff.delay(call.tries, outcome.retry_after_seconds))
            return
    tx.calls.update(after)
    tx.work.touch(unit, None)


def report(tx: Transaction, dispatch: Dispatch, event: CallReport, analyser: Analyser, now: datetime) -> Call | None:
    """Merge an event of a call; return the call as it is then, None when the event changed nothing."""
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id or "")
    if call is None or CALL_STATUS_RANK[event.status] <= CALL_STATUS_RANK[call.status]:
        return None
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
    return after


def _higher(known: CallStatus, heard: CallStatus) -> CallStatus:
    return heard if CALL_STATUS_RANK[heard] > CALL_STATUS_RANK[known] else known
