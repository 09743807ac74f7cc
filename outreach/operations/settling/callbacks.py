"""What providers call back, taken in: each event once, in one transaction with all that it does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeGuard

import attrs

from outreach.ids import IdSource
from outreach.models.account import Account, CallbackRecord, CallbackResult
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.trail import TrailRule
from outreach.operations.common import workspace_of
from outreach.operations.register import inbound
from outreach.operations.settling import ledger
from outreach.policy.settlement import Backoff
from outreach.protocols.adapter import CallbackEvent, InboundMessageEvent
from outreach.protocols.voice import Analyser
from outreach.providers.registry import carrier_start_words
from outreach.working_set import Transaction

_NOWHERE: Final = frozenset({"unmatched", "mismatched"})
"""Results of events that belonged to nothing: they have not been processed."""


@attrs.frozen(kw_only=True)
class CallbackContext:
    """What the taking in of events works with."""

    ids: IdSource
    backoff: Backoff
    analyser: Analyser


def prefetch_for_events(tx: Transaction, calls: Sequence[tuple[Account, Sequence[CallbackEvent]]]) -> None:
    """Read what these callbacks concern, all at once."""
    all_events = [(account, event) for account, events in calls for event in events]
    tx.callbacks.prefetch((account.workspace_id, account.id, event.event_id) for account, event in all_events)
    contents = (event.content for _, event in all_events)
    ledger.prefetch_for_reports(tx, [it for it in contents if isinstance(it, MessageReport | CallReport)])


def process_events(
    tx: Transaction,
    account: Account,
    events: Sequence[CallbackEvent],
    body: bytes,
    *,
    context: CallbackContext,
    now: datetime,
) -> Sequence[CallbackRecord]:
    """Do what a verified callback says, and keep it; return the events that were new, or could be matched only now.

    An event that has come before changes nothing, however often it comes; but one that belonged to nothing then is
    tried again, because what it names may be known by now, and a repeat may name it better. What an event tells is
    merged by the rules of every report: statuses only move up (docs/delivery-contract.md#rule-12).
    """
    new = []
    for event in events:
        known = tx.callbacks.get(account.workspace_id, account.id, event.event_id)
        if known is not None and known.result not in _NOWHERE:
            continue
        result = _do(tx, account, event, context, now)
        early = event.content if result == "unmatched" and _names_something(event.content) else None
        if known is None:
            record = CallbackRecord(
                workspace_id=account.workspace_id,
                account_id=account.id,
                event_id=event.event_id,
                result=result,
                body=body,
                received_at=now,
                report=early,
            )
            tx.callbacks.insert(record)
            new.append(record)
        elif result != known.result:
            record = attrs.evolve(known, result=result, report=early)
            tx.callbacks.update(record)
            new.append(record)
    return new


def _names_something(content: object) -> TypeGuard[Report]:
    return isinstance(content, MessageReport | CallReport) and bool(ledger.provider_ids_of(content))


def _do(
    tx: Transaction, account: Account, event: CallbackEvent, context: CallbackContext, now: datetime
) -> CallbackResult:
    match event.content:
        case None:
            return "ignored"
        case InboundMessageEvent() as text:
            taken = inbound.receive(
                tx,
                workspace_of(tx, account.workspace_id),
                text,
                provider=account.provider,
                carrier_start_words=carrier_start_words(account.provider, text.to)
                if account.replies_to_keywords
                else None,
                ids=context.ids,
                now=now,
            )
            return "received" if taken is not None else "unchanged"
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


_AT_ONCE: Final = 50
"""Events of one message or call that are caught up with in one transaction; a provider tells some ten at the most."""


def prefetch_for_outcomes(tx: Transaction, outcomes: Sequence[tuple[Dispatch, DispatchOutcome]]) -> None:
    """Read what these outcomes concern, all at once."""
    ledger.prefetch_for_dispatches(tx, [dispatch for dispatch, _ in outcomes])
    tx.callbacks.prefetch_waiting(
        (dispatch.workspace_id, dispatch.provider, outcome.provider_id)
        for dispatch, outcome in outcomes
        if outcome.provider_id is not None
    )


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
    """Merge the outcome of a dispatch (`settling.settle`), then what its provider has told of it before."""
    settled = ledger.settle(tx, workspace_id, dispatch_id, outcome, backoff=backoff, now=now, by=by)
    return merge_early_events(tx, settled, backoff=backoff, analyser=analyser, now=now)


def merge_report(tx: Transaction, report: Report, *, backoff: Backoff, analyser: Analyser, now: datetime) -> bool:
    """Merge a report (`settling.apply_report`), then what came before its dispatch's identifier was known by it.

    Returns:
        Whether the report changed anything.
    """
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
    """Merge what a callback reports, where it belongs to a dispatch; return what it did.

    Args:
        tx: The transaction.
        report: What the callback tells.
        to: The number that is signed, where what names the dispatch is not (`CallbackEvent.to`).
        provider_id_may_differ: Whether the provider may have answered with another identifier
            (`CallbackEvent.provider_id_may_differ`).
        backoff: How long a dispatch that turns out to be deferred waits.
        analyser: Decides what came of a call that has ended.
        now: The present moment.
    """
    dispatch = ledger.dispatch_of(tx, report)
    if dispatch is None:
        return "unmatched"
    if to is not None and to != dispatch.to:
        # What names the dispatch was not signed, and the number that was signed is another one.
        return "mismatched"
    if report.provider != dispatch.provider or isinstance(report, CallReport) is not (dispatch.channel == "call"):
        # Signed by a provider that was never asked for it.
        return "mismatched"
    named = ledger.provider_ids_of(report)
    if named and dispatch.provider_id not in {None, *named} and not provider_id_may_differ:
        # It names one dispatch by our identifier and another by the provider's, as of somebody with two messages.
        return "mismatched"
    if dispatch.provider_id is None and any(ledger.belongs_to_another(tx, dispatch, name) for name in named):
        # It would give the dispatch an identifier that is known to be another one's.
        return "mismatched"
    changed = merge_report(tx, report, backoff=backoff, analyser=analyser, now=now)
    return "merged" if changed else "unchanged"


def merge_early_events(
    tx: Transaction, dispatch: Dispatch | None, *, backoff: Backoff, analyser: Analyser, now: datetime
) -> Dispatch | None:
    """Merge the events that came before a dispatch had the identifier that it has now; return it as it is then.

    The identifier is in what the provider has signed, so that it alone says which dispatch is meant. None stays None.
    """
    if dispatch is None or dispatch.provider_id is None:
        return dispatch
    early = tx.callbacks.waiting(dispatch.workspace_id, dispatch.provider, dispatch.provider_id, limit=_AT_ONCE)
    for record in early:
        if record.report is not None:
            report = attrs.evolve(record.report, dispatch_id=None)
            result = merge_event(tx, report, backoff=backoff, analyser=analyser, now=now)
            tx.callbacks.update(attrs.evolve(record, result=result, report=None))
    return tx.dispatches.get(dispatch.workspace_id, dispatch.id) if early else dispatch
