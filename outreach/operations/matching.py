"""Which dispatch an event is about, also when it came before anybody knew the provider's identifier.

A provider may call back before it has answered the request. Most carry our identifier back; a callback with the
provider's alone belongs to nothing until the answer, or a look-up, has told that identifier. Such an event is kept,
and merged in the transaction in which its dispatch learns the identifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach.models.account import CallbackResult
from outreach.models.dispatch import Dispatch, Outcome
from outreach.models.reports import CallReport, Report
from outreach.models.trail import Rule
from outreach.operations import settling
from outreach.policy.settlement import Backoff
from outreach.protocols.analyser import Analyser
from outreach.working_set import Transaction

_AT_ONCE: Final = 50
"""Events of one message or call that are caught up with in one transaction; a provider tells some ten at the most."""


def load_outcomes(tx: Transaction, outcomes: Sequence[tuple[Dispatch, Outcome]]) -> None:
    """Read what these outcomes concern, all at once."""
    settling.load(tx, [dispatch for dispatch, _ in outcomes])
    tx.callbacks.load_waiting(
        (dispatch.workspace_id, dispatch.provider, outcome.provider_id)
        for dispatch, outcome in outcomes
        if outcome.provider_id is not None
    )


def take_outcome(
    tx: Transaction,
    workspace_id: str,
    dispatch_id: str,
    outcome: Outcome,
    *,
    backoff: Backoff,
    analyser: Analyser,
    now: datetime,
    by: Rule = Rule.PROVIDER_ANSWER,
) -> Dispatch | None:
    """Merge the outcome of a dispatch (`settling.settle`), then what its provider has told of it before."""
    settled = settling.settle(tx, workspace_id, dispatch_id, outcome, backoff=backoff, now=now, by=by)
    return catch_up(tx, settled, backoff=backoff, analyser=analyser, now=now)


def take_report(tx: Transaction, report: Report, *, backoff: Backoff, analyser: Analyser, now: datetime) -> bool:
    """Merge a report (`settling.report`), then what came before its dispatch's identifier was known by it.

    Returns:
        Whether the report changed anything.
    """
    before = settling.dispatch_of(tx, report)
    changed = settling.report(tx, report, backoff=backoff, analyser=analyser, now=now)
    if before is not None and before.provider_id is None and report.provider_id is not None:
        after = tx.dispatches.get(before.workspace_id, before.id)
        catch_up(tx, after, backoff=backoff, analyser=analyser, now=now)
    return changed


def take_event(
    tx: Transaction,
    report: Report,
    *,
    to: str | None = None,
    other_id: bool = False,
    backoff: Backoff,
    analyser: Analyser,
    now: datetime,
) -> CallbackResult:
    """Merge what a callback reports, where it belongs to a dispatch; return what it did.

    Args:
        tx: The transaction.
        report: What the callback tells.
        to: The number that is signed, where what names the dispatch is not (`CallbackEvent.to`).
        other_id: Whether the provider may have answered with another identifier (`CallbackEvent.other_id`).
        backoff: How long a dispatch that turns out to be deferred waits.
        analyser: Decides what came of a call that has ended.
        now: The present moment.
    """
    dispatch = settling.dispatch_of(tx, report)
    if dispatch is None:
        return "unmatched"
    if to is not None and to != dispatch.to:
        # What names the dispatch was not signed, and the number that was signed is another one.
        return "mismatched"
    if report.provider != dispatch.provider or isinstance(report, CallReport) is not (dispatch.channel == "call"):
        # Signed by a provider that was never asked for it.
        return "mismatched"
    named = settling.names_of(report)
    if named and dispatch.provider_id not in {None, *named} and not other_id:
        # It names one dispatch by our identifier and another by the provider's, as of somebody with two messages.
        return "mismatched"
    if dispatch.provider_id is None and any(settling.is_held(tx, dispatch, name) for name in named):
        # It would give the dispatch an identifier that is known to be another one's.
        return "mismatched"
    changed = take_report(tx, report, backoff=backoff, analyser=analyser, now=now)
    return "merged" if changed else "unchanged"


def catch_up(
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
            result = take_event(tx, report, backoff=backoff, analyser=analyser, now=now)
            tx.callbacks.update(attrs.evolve(record, result=result, report=None))
    return tx.dispatches.get(dispatch.workspace_id, dispatch.id) if early else dispatch
