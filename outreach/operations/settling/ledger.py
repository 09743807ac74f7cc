"""Outcomes and reports: what is known of a dispatch, merged into the ledger whoever reports it, and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs

from outreach.models.dispatch import OPTED_OUT, Dispatch, DispatchOutcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.states import MESSAGE_STATUS_RANK, DispatchState, MessageStatus
from outreach.models.trail import TrailRule
from outreach.operations.campaigns import trail
from outreach.operations.register import entries
from outreach.operations.settling import (
    call_outcomes,
    error_budget,
    message_outcomes,
    recipient_outcomes,
)
from outreach.operations.waves.clock_steps import corrected_created_at
from outreach.policy.dispatch_history import LOCAL_INTERRUPTIONS, REACHED_NOBODY
from outreach.policy.settlement import Backoff, may_settle
from outreach.protocols.voice import Analyser
from outreach.working_set import Transaction


def settle(
    tx: Transaction,
    workspace_id: str,
    dispatch_id: str,
    outcome: DispatchOutcome,
    *,
    backoff: Backoff,
    now: datetime,
    by: TrailRule = TrailRule.PROVIDER_ANSWER,
    proven: bool = False,
) -> Dispatch | None:
    """Merge the outcome of a dispatch; return it as it is then, or None when the ledger has no such dispatch.

    A dispatch takes one outcome; a later one changes it only where it was unknown, or where it proves that the provider
    has taken what it had said no to: then what waits to be tried again has been done. The lease does not matter:
    what happened is recorded whoever saw it (docs/delivery-contract.md#rule-8).

    Args:
        tx: The transaction.
        workspace_id: Whose dispatch.
        dispatch_id: Which one.
        outcome: What became of it.
        backoff: How long one that was deferred waits.
        now: When.
        by: Who told, for the decision trail: the provider's answer, its report, a look-up, an operator.
        proven: Whether an acceptance is shown by what came of it, and not only said.
    """
    dispatch = tx.dispatches.get(workspace_id, dispatch_id)
    if dispatch is None:
        return None
    taken_after_all = proven and outcome.state is DispatchState.ACCEPTED and dispatch.state in REACHED_NOBODY
    if not may_settle(dispatch.state, outcome.state) and not taken_after_all:
        if dispatch.provider_id is None and outcome.provider_id is not None:
            dispatch = attrs.evolve(dispatch, provider_id=outcome.provider_id)
            tx.dispatches.update(dispatch)
            _learn_provider_id(tx, dispatch)
        return dispatch
    # That it was we who went away stays known when the doubt ends without an answer: it says nothing of the provider.
    ours = (
        outcome.state in {DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP} and dispatch.reason in LOCAL_INTERRUPTIONS
    )
    settled = attrs.evolve(
        dispatch,
        state=outcome.state,
        provider_id=outcome.provider_id or dispatch.provider_id,
        reason=dispatch.reason if ours else outcome.reason,
        error_code=outcome.error_code,
        error_message=outcome.error_message,
        settled_at=now,
        created_at=corrected_created_at(tx, dispatch, now)
        if outcome.state is DispatchState.UNKNOWN
        else dispatch.created_at,
    )
    if dispatch.state is DispatchState.DISPATCHING and by is not TrailRule.PROVIDER_ANSWER:
        # Somebody else than who was to ask knows what became of it: it must not be asked any more.
        tx.stops.increment()
    tx.dispatches.update(settled)
    trail.record_outcome(tx, dispatch, settled, by=by, now=now)
    if outcome.state is DispatchState.REFUSED and outcome.reason == OPTED_OUT:
        entries.record_carrier_opt_out(tx, settled, outcome.error_code, now)
    if settled.message_id is not None:
        message_outcomes.settle(tx, settled, outcome, now)
    if settled.call_id is not None:
        call_outcomes.settle(tx, settled, outcome, now, by=by)
    if settled.campaign_id is not None:
        recipient_outcomes.settle(tx, settled, outcome, backoff, now, by=by)
    error_budget.charge(tx, settled, now)
    return settled


def prefetch_for_reports(tx: Transaction, events: Sequence[Report]) -> None:
    """Read what these reports concern, all at once."""
    tx.dispatches.prefetch((event.workspace_id, event.dispatch_id) for event in events if event.dispatch_id is not None)
    nameless = [event for event in events if _ours(tx, event) is None]
    tx.dispatches.prefetch_by_provider_id(
        (event.workspace_id, event.provider, name) for event in nameless for name in provider_ids_of(event)
    )
    found = [dispatch for dispatch in (dispatch_of(tx, event) for event in events) if dispatch is not None]
    prefetch_for_dispatches(tx, found)
    tx.dispatches.prefetch_of_recipients(_recipients_of(found))


def prefetch_for_dispatches(tx: Transaction, dispatches: Sequence[Dispatch]) -> None:
    """Read what the outcomes of these dispatches concern, all at once."""
    tx.dispatches.prefetch((dispatch.workspace_id, dispatch.id) for dispatch in dispatches)
    recipients = _recipients_of(dispatches)
    tx.campaigns.prefetch((workspace_id, campaign_id) for workspace_id, campaign_id, _ in recipients)
    tx.recipients.prefetch(recipients)


def _recipients_of(dispatches: Sequence[Dispatch]) -> Sequence[tuple[str, str, int]]:
    return [
        (dispatch.workspace_id, dispatch.campaign_id, dispatch.position)
        for dispatch in dispatches
        if dispatch.campaign_id is not None and dispatch.position is not None
    ]


def apply_report(tx: Transaction, event: Report, *, backoff: Backoff, analyser: Analyser, now: datetime) -> bool:
    """Merge what a provider tells of something it accepted; return whether it changed anything.

    A report that carries our dispatch id is evidence that the provider has it, so that an unknown dispatch
    settles by it. Statuses only move up; what arrives late, twice or for nothing we know changes nothing.
    """
    dispatch = dispatch_of(tx, event)
    if dispatch is None:
        return False
    # Whatever the call's status is by now: an event that comes after the end may be the one that says it.
    no_more = isinstance(event, CallReport) and event.do_not_call
    opted_out = no_more and entries.record_opt_out_in_call(tx, dispatch, event.at, event.provider_id, now)
    if dispatch.state is not DispatchState.ACCEPTED:
        if dispatch.state in REACHED_NOBODY and not _proves_that_it_was_taken(dispatch, event):
            return opted_out
        # What the answer named stays: what is told later may name that alone.
        accepted = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=dispatch.provider_id or event.provider_id)
        settled = settle(
            tx,
            dispatch.workspace_id,
            dispatch.id,
            accepted,
            backoff=backoff,
            now=now,
            by=TrailRule.PROVIDER_REPORT,
            proven=True,
        )
        if settled is None or settled.state is not DispatchState.ACCEPTED:
            return opted_out
        dispatch = settled
    if dispatch.provider_id is None and event.provider_id is not None:
        dispatch = attrs.evolve(dispatch, provider_id=event.provider_id)
        tx.dispatches.update(dispatch)
        _learn_provider_id(tx, dispatch)
    if isinstance(event, CallReport):
        return _report_call(tx, dispatch, event, analyser, now) or opted_out
    return _report_message(tx, dispatch, event, now)


def end_silent_call(tx: Transaction, dispatch: Dispatch, *, silence: timedelta, now: datetime) -> bool:
    """End the call of a dispatch of which nothing has been heard for so long; return whether it has ended.

    What is heard later still counts.
    """
    call = call_outcomes.end_if_silent(tx, dispatch.workspace_id, dispatch.call_id or "", silence, now)
    if call is None:
        return False
    trail.record_call(tx, dispatch, call, rule=TrailRule.CALL_SILENCE, now=now)
    if dispatch.campaign_id is not None:
        recipient_outcomes.call_ended(tx, dispatch, call, now)
    return True


def mark_abandoned(tx: Transaction, *, epoch: int, backoff: Backoff, now: datetime, limit: int) -> int:
    """Mark dispatches that an earlier worker left without an outcome as unknown; return how many."""
    left = tx.dispatches.abandoned(epoch, limit=limit)
    lost = DispatchOutcome(state=DispatchState.UNKNOWN, reason="worker_lost")
    for dispatch in left:
        settle(tx, dispatch.workspace_id, dispatch.id, lost, backoff=backoff, now=now)
    return len(left)


def belongs_to_another(tx: Transaction, dispatch: Dispatch, provider_id: str) -> bool:
    """Return whether an identifier of the provider's belongs to another dispatch, of whatever workspace.

    Each belongs to one dispatch of the database: workspaces may share an account.
    """
    holders = (
        tx.dispatches.by_provider_id(workspace.id, dispatch.provider, provider_id) for workspace in tx.workspaces.list()
    )
    return any(holder is not None and holder.id != dispatch.id for holder in holders)


def dispatch_of(tx: Transaction, event: Report) -> Dispatch | None:
    """Return the dispatch that a report is about, by our identifier, else by one of the provider's; None for none."""
    dispatch = _ours(tx, event)
    if dispatch is not None:
        return dispatch
    for name in provider_ids_of(event):
        dispatch = tx.dispatches.by_provider_id(event.workspace_id, event.provider, name)
        if dispatch is not None:
            return dispatch
    return None


def _ours(tx: Transaction, event: Report) -> Dispatch | None:
    """Return the dispatch that a report names by our identifier."""
    return tx.dispatches.get(event.workspace_id, event.dispatch_id) if event.dispatch_id is not None else None


def provider_ids_of(event: Report) -> Sequence[str]:
    """Return the identifiers by which a provider names what a report is about; each may be that of its answer."""
    names = (event.provider_id, event.telephony_id if isinstance(event, CallReport) else None)
    return [name for name in names if name is not None]


def _proves_that_it_was_taken(dispatch: Dispatch, event: Report) -> bool:
    """Return whether a report about a request that the provider had said no to shows that it took it all the same.

    Of one that it only put off it has nothing to report otherwise, not even a failure. After a refusal a failure says
    only no once more; and a call that was refused has ended, and is left so.
    """
    if dispatch.state is not DispatchState.REFUSED:
        return True
    return isinstance(event, MessageReport) and event.status in {MessageStatus.SENT, MessageStatus.DELIVERED}


def _learn_provider_id(tx: Transaction, dispatch: Dispatch) -> None:
    if dispatch.call_id is not None:
        call = tx.calls.get(dispatch.workspace_id, dispatch.call_id)
        if call is not None and call.provider_call_id is None:
            tx.calls.update(attrs.evolve(call, provider_call_id=dispatch.provider_id))
    if dispatch.message_id is not None:
        message = tx.messages.get(dispatch.workspace_id, dispatch.message_id)
        if message is not None and message.provider_id is None:
            tx.messages.update(attrs.evolve(message, provider_id=dispatch.provider_id))


def _report_call(tx: Transaction, dispatch: Dispatch, event: CallReport, analyser: Analyser, now: datetime) -> bool:
    call = call_outcomes.apply_report(tx, dispatch, event, analyser, now)
    if call is None:
        return _judge_call(tx, dispatch, event, analyser, now)
    trail.record_call(tx, dispatch, call, rule=TrailRule.PROVIDER_REPORT, now=now)
    if call.is_open:
        return True
    if event.reason is not None:
        dispatch = attrs.evolve(dispatch, reason=event.reason)
        tx.dispatches.update(dispatch)
    if dispatch.campaign_id is not None:
        recipient_outcomes.call_ended(tx, dispatch, call, now)
    error_budget.charge(tx, dispatch, now)
    return True


def _judge_call(tx: Transaction, dispatch: Dispatch, event: CallReport, analyser: Analyser, now: datetime) -> bool:
    call = call_outcomes.apply_analysis(tx, dispatch, event, analyser)
    if call is not None:
        trail.record_call(tx, dispatch, call, rule=TrailRule.PROVIDER_REPORT, now=now)
    if call is not None and dispatch.campaign_id is not None:
        recipient_outcomes.call_analysed(tx, dispatch, call, now)
    return call is not None


def _report_message(tx: Transaction, dispatch: Dispatch, event: MessageReport, now: datetime) -> bool:
    known = dispatch.report or MessageStatus.ACCEPTED
    if MESSAGE_STATUS_RANK[event.status] <= MESSAGE_STATUS_RANK[known]:
        return False
    failed = event.status is MessageStatus.FAILED
    # One that is delivered in the end was in no trouble, whatever was said of it before.
    reason = event.reason if failed else None if known is MessageStatus.FAILED else dispatch.reason
    reported = attrs.evolve(
        dispatch, report=event.status, reason=reason, error_code=event.error_code or dispatch.error_code
    )
    tx.dispatches.update(reported)
    trail.record_message_report(tx, dispatch, event, now)
    if failed and event.reason == OPTED_OUT:
        entries.record_carrier_opt_out(tx, dispatch, event.error_code, now)
    if dispatch.message_id is not None:
        message_outcomes.apply_receipt(tx, dispatch, event)
    else:
        recipient_outcomes.apply_receipt(tx, dispatch, event, now)
    error_budget.charge(tx, reported, now)
    return True
