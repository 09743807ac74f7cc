"""Provider callbacks: each event is processed once, in one transaction with its effects.

Also receipts and ends of calls that somebody simulates in a sandbox.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, TypeGuard

import attrs

from outreach.core.clock import IdSource
from outreach.ledger.common import workspace_of
from outreach.ledger.opt_out import inbound
from outreach.ledger.settling import ledger
from outreach.models.account import CallbackResult, StoredAccount
from outreach.models.base import Channel
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallbackRecord, CallReport, MessageReport, Report
from outreach.models.simulation import NewSimulation
from outreach.models.states import CallStatus, DispatchState, MessageStatus, TrailRule
from outreach.models.work import IdempotencyRecord
from outreach.protocols.adapter import CallbackEvent, InboundMessageEvent
from outreach.protocols.voice import Analyser
from outreach.providers.registry import Adapters
from outreach.rules.numbering import person_key
from outreach.rules.phones import is_erased
from outreach.rules.receipts import NOTED_EVERY
from outreach.rules.settlement import Backoff
from outreach.storage.unit_of_work import Transaction

_NOT_PROCESSED: Final = frozenset({"unmatched", "mismatched"})
"""Events that matched no dispatch: they are processed again if they are repeated."""


MAX_EVENT_AGE: Final = timedelta(days=7)
"""An older event, by its provider's clock, changes nothing but an opt-out: no provider repeats one that late."""


@attrs.frozen(kw_only=True)
class CallbackContext:
    """The collaborators that processing events needs."""

    ids: IdSource
    backoff: Backoff
    analyser: Analyser
    adapters: Adapters


def prefetch_for_events(tx: Transaction, calls: Sequence[tuple[StoredAccount, Sequence[CallbackEvent]]]) -> None:
    """Read the rows that these callbacks concern, in one go."""
    all_events = [(account, event) for account, events in calls for event in events]
    tx.callbacks.prefetch((account.workspace_id, account.id, event.event_id) for account, event in all_events)
    tx.accounts.prefetch((account.workspace_id, account.id) for account, _ in calls)
    contents = (event.content for _, event in all_events)
    ledger.prefetch_for_reports(tx, [it for it in contents if isinstance(it, MessageReport | CallReport)])


def process_events(
    tx: Transaction,
    account: StoredAccount,
    events: Sequence[CallbackEvent],
    body: bytes,
    *,
    context: CallbackContext,
    now: datetime,
) -> Sequence[CallbackRecord]:
    """Process and store a verified callback; return the events that were new, or matched only now.

    A repeated event changes nothing. An unmatched one is tried again, because its dispatch may be known by now
    (docs/delivery-contract.md#rule-12). The body of a callback about somebody who was erased is not stored.
    """
    kept = b"" if any(_is_of_erased(tx, event.content) for event in events) else body
    new = []
    for event in events:
        known = tx.callbacks.get(account.workspace_id, account.id, event.event_id)
        if known is not None and known.result not in _NOT_PROCESSED:
            continue
        result = _process(tx, account, event, context, now)
        early = event.content if result == "unmatched" and _has_provider_id(event.content) else None
        if known is None:
            record = CallbackRecord(
                workspace_id=account.workspace_id,
                account_id=account.id,
                event_id=event.event_id,
                result=result,
                body=kept,
                received_at=now,
                report=early,
            )
            tx.callbacks.insert(record)
            new.append(record)
        elif result != known.result:
            record = attrs.evolve(known, result=result, report=early)
            tx.callbacks.update(record)
            new.append(record)
    if any(isinstance(event.content, MessageReport | CallReport) for event in events):
        _note_report(tx, account, now)
    return new


def _note_report(tx: Transaction, account: StoredAccount, now: datetime) -> None:
    """Record when an account last got a report, unless it did so a short time ago."""
    known = tx.accounts.get(account.workspace_id, account.id)
    if known is None:
        # It was removed meanwhile.
        return
    # After a clock was set back, the recorded time may lie in the future.
    if known.last_report_at is None or abs(now - known.last_report_at) >= NOTED_EVERY:
        tx.accounts.note_report(attrs.evolve(known, last_report_at=now))


def _is_of_erased(tx: Transaction, content: object) -> bool:
    dispatch = ledger.dispatch_of(tx, content) if isinstance(content, MessageReport | CallReport) else None
    return dispatch is not None and is_erased(dispatch.to)


def _has_provider_id(content: object) -> TypeGuard[Report]:
    return isinstance(content, MessageReport | CallReport) and bool(ledger.provider_ids_of(content))


def _process(
    tx: Transaction, account: StoredAccount, event: CallbackEvent, context: CallbackContext, now: datetime
) -> CallbackResult:
    adapters = context.adapters
    match event.content:
        case None:
            return "ignored"
        case InboundMessageEvent() as text if now - text.at > MAX_EVENT_AGE and not inbound.may_opt_out(text):
            return "outdated"
        case InboundMessageEvent() as text:
            stored = inbound.receive(
                tx,
                workspace_of(tx, account.workspace_id),
                text,
                provider=account.provider,
                answers_by=account.provider if adapters.kind(account.provider) == "carrier" else None,
                carrier_start_words=adapters.carrier_start_words(account.provider, text.to)
                if account.replies_to_keywords
                else None,
                ids=context.ids,
                now=now,
            )
            return "received" if stored is not None else "unchanged"
        case report:
            return merge_event(
                tx,
                report,
                to=event.to,
                provider_id_may_differ=event.provider_id_may_differ,
                backoff=context.backoff,
                analyser=context.analyser,
                now=now,
            )


_MAX_EARLY_EVENTS: Final = 50
"""How many early events of one dispatch are merged in one transaction; providers send some ten at most."""


def prefetch_for_outcomes(tx: Transaction, outcomes: Sequence[tuple[Dispatch, DispatchOutcome]]) -> None:
    """Read the rows that these outcomes concern, in one go."""
    ledger.prefetch_for_outcomes(tx, outcomes)
    names = [
        (dispatch.workspace_id, dispatch.provider, outcome.provider_id)
        for dispatch, outcome in outcomes
        if outcome.provider_id is not None
    ]
    tx.dispatches.prefetch_with_provider_id((provider, provider_id) for _, provider, provider_id in names)
    tx.callbacks.prefetch_waiting(names)


def merge_outcome(
    tx: Transaction,
    workspace_id: str,
    dispatch_id: str,
    outcome: DispatchOutcome,
    *,
    backoff: Backoff,
    analyser: Analyser,
    now: datetime,
    by: TrailRule = TrailRule.PROVIDER_ANSWER,
) -> Dispatch | None:
    """Merge the outcome of a dispatch (`ledger.settle`), then the events that came before its identifier."""
    settled = ledger.settle(tx, workspace_id, dispatch_id, outcome, backoff=backoff, now=now, by=by)
    return merge_early_events(tx, settled, backoff=backoff, analyser=analyser, now=now)


def merge_report(tx: Transaction, report: Report, *, backoff: Backoff, analyser: Analyser, now: datetime) -> bool:
    """Merge a report (`ledger.apply_report`), then earlier events; return whether the report changed anything."""
    before = ledger.dispatch_of(tx, report)
    changed = ledger.apply_report(tx, report, backoff=backoff, analyser=analyser, now=now)
    if before is not None and before.provider_id is None and report.provider_id is not None:
        after = tx.dispatches.get(before.workspace_id, before.id)
        merge_early_events(tx, after, backoff=backoff, analyser=analyser, now=now)
    return changed


def merge_event(
    tx: Transaction,
    report: Report,
    *,
    to: str | None = None,
    provider_id_may_differ: bool = False,
    backoff: Backoff,
    analyser: Analyser,
    now: datetime,
) -> CallbackResult:
    """Merge a callback's report if it belongs to a dispatch; return the result.

    `to` is the signed number, if the dispatch id is not signed. With `provider_id_may_differ` the provider's answer may
    have had another identifier (`CallbackEvent`).
    """
    dispatch = ledger.dispatch_of(tx, report)
    if dispatch is None:
        return "unmatched"
    if to is not None and to != dispatch.to:
        # The dispatch id was not signed, and the signed number is another one.
        return "mismatched"
    if report.provider != dispatch.provider or isinstance(report, CallReport) is not (dispatch.channel == "call"):
        # Signed by a provider that was never asked for it.
        return "mismatched"
    named = ledger.provider_ids_of(report)
    if named and dispatch.provider_id not in {None, *named} and not provider_id_may_differ:
        # Our identifier names one dispatch and the provider's another, as if somebody mixed two messages.
        return "mismatched"
    if dispatch.provider_id is None and any(ledger.belongs_to_another(tx, dispatch, name) for name in named):
        # The identifier already belongs to another dispatch.
        return "mismatched"
    if now - report.at > MAX_EVENT_AGE:
        return "merged" if ledger.apply_opt_out(tx, dispatch, report, now) else "outdated"
    changed = merge_report(tx, report, backoff=backoff, analyser=analyser, now=now)
    return "merged" if changed else "unchanged"


def merge_early_events(
    tx: Transaction, dispatch: Dispatch | None, *, backoff: Backoff, analyser: Analyser, now: datetime
) -> Dispatch | None:
    """Merge the events that arrived before a dispatch's identifier was known; return the dispatch.

    The provider signed its own identifier, so that this alone is matched.
    """
    if dispatch is None or dispatch.provider_id is None:
        return dispatch
    early = tx.callbacks.waiting(
        dispatch.workspace_id, dispatch.provider, dispatch.provider_id, limit=_MAX_EARLY_EVENTS
    )
    for record in early:
        if record.report is not None:
            report = attrs.evolve(record.report, dispatch_id=None)
            result = merge_event(tx, report, backoff=backoff, analyser=analyser, now=now)
            tx.callbacks.update(attrs.evolve(record, result=result, report=None))
    return tx.dispatches.get(dispatch.workspace_id, dispatch.id) if early else dispatch


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


def simulated_report_of(event: NewSimulation, dispatch: Dispatch, now: datetime) -> Report:
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


def take_answer_back(tx: Transaction, dispatch: Dispatch) -> None:
    """Forget that a call was answered, before it is reported as busy or without an answer."""
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id) if dispatch.call_id is not None else None
    if call is not None:
        tx.calls.update(attrs.evolve(call, answered_at=None, answered_by=None))


def keep_simulated(tx: Transaction, workspace_id: str, phone: str, event: NewSimulation, now: datetime) -> None:
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


def prefetch_simulated(tx: Transaction, reports: Sequence[Report]) -> None:
    """Read the events that are kept for the requests of these reports, in one go."""
    dispatches = [ledger.dispatch_of(tx, one) for one in reports if one.provider == SIMULATOR]
    tx.requests.prefetch_stored(
        (one.workspace_id, *_kept_as(one.to, one.channel)) for one in dispatches if one is not None
    )


def as_simulated(tx: Transaction, report: Report, *, now: datetime) -> Report | None:
    """Return a simulator's report as somebody has simulated it; None if a simulated event has overruled it."""
    dispatch = ledger.dispatch_of(tx, report) if report.provider == SIMULATOR else None
    if dispatch is None:
        return report
    if _is_overruled(tx, dispatch):
        return None
    kept = _take(tx, dispatch, now)
    return report if kept is None else attrs.evolve(simulated_report_of(kept, dispatch, now), provider=SIMULATOR)


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
