"""Receipts and ends of calls that somebody simulates in a sandbox, now or for the next request to a number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.ledger.settling import ledger
from outreach.models.base import Channel
from outreach.models.dispatch import Dispatch
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.simulation import NewSimulation
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.models.work import IdempotencyRecord
from outreach.rules.spellings import person_key
from outreach.storage.unit_of_work import Transaction

SIMULATOR: Final = "simulator"
"""The name of the simulators in the ledger."""

KEPT_FOR: Final = timedelta(days=1)

_CODE: Final = "simulated"
_OPERATION: Final = "simulate"
_FINAL: Final = frozenset({MessageStatus.FAILED, MessageStatus.DELIVERED})
_REACHED: Final = frozenset({DispatchState.ACCEPTED, DispatchState.UNKNOWN})
_PLAYED: Final = frozenset({CallStatus.BUSY, CallStatus.NO_ANSWER})
_CALL_ENDS: Final = {"busy": CallStatus.BUSY, "voicemail": CallStatus.COMPLETED, "no_answer": CallStatus.NO_ANSWER}


def open_request(tx: Transaction, workspace_id: str, phone: str, event: NewSimulation) -> Dispatch | None:
    """Return the newest request to a number if the event can be reported for it; None if not."""
    if event.event in _CALL_ENDS:
        calls = tx.calls.to_person(workspace_id, phone, limit=1)
        if not calls or not calls[0].is_open:
            return None
        found = tx.dispatches.of_call(workspace_id, calls[0].id)
        return next((one for one in reversed(found) if one.state in _REACHED), None)
    dispatch = _newest_message(tx, workspace_id, phone)
    if dispatch is None or dispatch.state not in _REACHED:
        return None
    # A delivery clears a failure; a failure after a delivery changes nothing.
    ended = dispatch.report is MessageStatus.DELIVERED if event.status == "delivered" else dispatch.report in _FINAL
    return None if ended else dispatch


def newest_sender(tx: Transaction, workspace_id: str, phone: str) -> str | None:
    """Return the number that the newest message to a number was sent from."""
    dispatch = _newest_message(tx, workspace_id, phone)
    return None if dispatch is None else dispatch.from_number


def report_of(event: NewSimulation, dispatch: Dispatch, now: datetime) -> Report:
    """Return the report of a simulated event on a request."""
    if event.event in _CALL_ENDS:
        machine = event.event == "voicemail"
        return CallReport(
            workspace_id=dispatch.workspace_id,
            provider=dispatch.provider,
            dispatch_id=dispatch.id,
            provider_id=dispatch.provider_id,
            status=_CALL_ENDS[event.event],
            at=now,
            answered_by="machine" if machine else None,
            summary="Simulated call: a machine answered." if machine else None,
        )
    failed = event.status == "failed"
    return MessageReport(
        workspace_id=dispatch.workspace_id,
        provider=dispatch.provider,
        dispatch_id=dispatch.id,
        provider_id=dispatch.provider_id,
        status=MessageStatus.FAILED if failed else MessageStatus.DELIVERED,
        at=now,
        reason=(event.reason or "unreachable") if failed else None,
        error_code=_CODE if failed else None,
    )


def keep(tx: Transaction, workspace_id: str, phone: str, event: NewSimulation, now: datetime) -> None:
    """Keep an event for the next request to a number, in the place of one that is kept already."""
    operation, key = _kept_as(phone, "call" if event.event in _CALL_ENDS else "sms")
    tx.requests.put_stored(
        IdempotencyRecord(
            workspace_id=workspace_id,
            operation=operation,
            key=key,
            fingerprint=key,
            token="",
            # Without the number: an erasure does not look here.
            answer=json.dumps({"event": event.event, "status": event.status, "reason": event.reason}).encode(),
            location=None,
            locked_until=now,
            expires_at=now + KEPT_FOR,
        )
    )


def prefetch(tx: Transaction, reports: Sequence[Report]) -> None:
    """Read the events that are kept for the requests of these reports, in one go."""
    dispatches = [ledger.dispatch_of(tx, one) for one in reports if one.provider == SIMULATOR]
    tx.requests.prefetch_stored(
        (one.workspace_id, *_kept_as(one.to, one.channel)) for one in dispatches if one is not None
    )


def as_simulated(tx: Transaction, report: Report, *, now: datetime) -> Report | None:
    """Return a report as somebody wants it, if it is the simulator's; None if a simulated event has overruled it."""
    dispatch = ledger.dispatch_of(tx, report) if report.provider == SIMULATOR else None
    if dispatch is None:
        return report
    if _is_overruled(tx, dispatch):
        return None
    kept = _take(tx, dispatch, now)
    return report if kept is None else report_of(kept, dispatch, now)


def _is_overruled(tx: Transaction, dispatch: Dispatch) -> bool:
    """Return whether a simulated event ended the request: the simulators report none of these by themselves."""
    if dispatch.report is MessageStatus.FAILED:
        return True
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id) if dispatch.call_id is not None else None
    return call is not None and not call.is_open and (call.status in _PLAYED or call.answered_by == "machine")


def _take(tx: Transaction, dispatch: Dispatch, now: datetime) -> NewSimulation | None:
    operation, key = _kept_as(dispatch.to, dispatch.channel)
    kept = tx.requests.stored(dispatch.workspace_id, operation, key)
    if kept is None or kept.answer is None or kept.expires_at <= now:
        return None
    tx.requests.delete_stored(dispatch.workspace_id, operation, key)
    return NewSimulation(phone_number=dispatch.to, **json.loads(kept.answer))


def _newest_message(tx: Transaction, workspace_id: str, phone: str) -> Dispatch | None:
    found = list(tx.dispatches.to_person(workspace_id, phone, limit=1))
    for message in tx.messages.to_person(workspace_id, phone, limit=1):
        found += tx.dispatches.of_message(workspace_id, message.id)
    return max(found, key=lambda one: (one.created_at, one.id), default=None)


def _kept_as(phone: str, channel: Channel) -> tuple[str, str]:
    return f"{_OPERATION}.{channel}", hashlib.sha256(person_key(phone).encode()).hexdigest()
