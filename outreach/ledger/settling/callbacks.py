"""Provider callbacks: each event is processed once, in one transaction with its effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, TypeGuard

import attrs

from outreach.core.ids import IdSource
from outreach.ledger.common import workspace_of
from outreach.ledger.opt_out import inbound
from outreach.ledger.settling import ledger
from outreach.models.account import CallbackRecord, CallbackResult, Misdirection, StoredAccount
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.trail import TrailRule
from outreach.protocols.adapter import CallbackEvent, InboundMessageEvent
from outreach.protocols.voice import Analyser
from outreach.providers.registry import Adapters
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


MISDIRECTIONS: Final[Mapping[Misdirection, str]] = MappingProxyType(
    {
        "method": "it did not come by POST",
        "path": "its path is not the one of the account's callback URL",
    }
)
"""What is wrong with the address of a callback, as a part of a sentence."""

LATELY_DAYS: Final = 7
"""For how many days a misdirected callback is reported: a STOP may be rare."""


def record_misdirection(tx: Transaction, account: StoredAccount, how: Misdirection, *, now: datetime) -> None:
    """Record that a callback was misdirected: the first of an account, a kind and a day."""
    event_id = _misdirection_id(how, now)
    if tx.callbacks.get(account.workspace_id, account.id, event_id) is None:
        tx.callbacks.insert(
            CallbackRecord(
                workspace_id=account.workspace_id,
                account_id=account.id,
                event_id=event_id,
                result="misdirected",
                body=b"",
                received_at=now,
            )
        )


def misdirected_lately(tx: Transaction, account: StoredAccount, now: datetime) -> Iterator[CallbackRecord]:
    """Yield the latest recorded misdirected callback of each kind within the last days."""
    for how in MISDIRECTIONS:
        days = (_misdirection_id(how, now - timedelta(days=ago)) for ago in range(LATELY_DAYS))
        found = (tx.callbacks.get(account.workspace_id, account.id, event_id) for event_id in days)
        latest = next((record for record in found if record is not None), None)
        if latest is not None:
            yield latest


def misdirection_of(record: CallbackRecord) -> str:
    """Return what is wrong with the address of a misdirected callback, as a part of a sentence."""
    return next(words for how, words in MISDIRECTIONS.items() if record.event_id.startswith(f"misdirected:{how}:"))


def _misdirection_id(how: Misdirection, at: datetime) -> str:
    return f"misdirected:{how}:{at:%Y-%m-%d}"


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
