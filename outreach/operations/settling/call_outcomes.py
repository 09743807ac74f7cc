"""What outcomes and reports do to call records."""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs

from outreach.models.call import Call
from outreach.models.dispatch import ASSUMED_SENT, Dispatch, DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import CALL_STATUS_RANK, ENDED_CALL_STATUSES, CallStatus, DispatchState
from outreach.models.trail import TrailRule
from outreach.models.work import WorkUnit
from outreach.operations.campaigns import trail
from outreach.operations.common import quarantine_reason
from outreach.policy.dispatch_history import REACHED_NOBODY, earlier_acceptance, is_authoritative
from outreach.policy.trail_rules import rule_of_outcome
from outreach.protocols.voice import Analyser
from outreach.working_set import Transaction


def settle(tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome, now: datetime, *, by: TrailRule) -> None:
    """Merge the outcome of a dispatch into its call; `by` is who told it."""
    call = _spoken_for(tx, dispatch)
    if call is None:
        return
    unit = WorkUnit("call", call.workspace_id, call.id)
    standing = _standing(tx, dispatch, outcome)
    if standing is not None:
        dispatch, outcome = standing, DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=standing.provider_id)
    match outcome.state:
        case DispatchState.ACCEPTED if outcome.reason == ASSUMED_SENT:
            # Nobody knows of a call that could be followed; one that reports after all is followed then.
            after = _unconfirmed(call, outcome, now)
        case DispatchState.ACCEPTED:
            after = attrs.evolve(
                call,
                status=_placed(call.status),
                provider_call_id=dispatch.provider_id,
                dialed_at=call.dialed_at or now,
                ended_at=None,
                error=None,
            )
            tx.calls.update(after)
            tx.work.schedule(unit, now)
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
            after = _unconfirmed(call, outcome, now)
        case DispatchState.GIVEN_UP if call.campaign_id is not None:
            # The next one has a record of its own; what is heard of this one still goes into this one.
            after = _unconfirmed(call, outcome, now)
        case _ if call.campaign_id is not None:
            # Its recipient waits for another call, which will have a record of its own.
            after = attrs.evolve(call, status=CallStatus.CANCELED, error=outcome.reason, ended_at=now)
        case state if (
            state is not DispatchState.GIVEN_UP and (held := quarantine_reason(tx, dispatch.epoch)) is not None
        ):
            # Where the database was before it may be placed again too.
            after = attrs.evolve(call, status=CallStatus.CANCELED, error=held, ended_at=now)
            tx.calls.update(after)
            tx.work.schedule(unit, None)
            trail.record_call(tx, dispatch, after, rule=TrailRule.COPIED_FILE, now=now)
            return
        case _:
            tx.calls.update(attrs.evolve(call, status=CallStatus.QUEUED, error=outcome.reason))
            # How long it waits is decided where it would be committed again: no longer than until it is stale.
            tx.work.schedule(unit, now)
            return
    tx.calls.update(after)
    tx.work.schedule(unit, None)
    if not after.is_open:
        rule = rule_of_outcome(outcome.state, outcome.reason, by)
        trail.record_call(tx, dispatch, after, rule=rule, now=now)


def apply_report(
    tx: Transaction, dispatch: Dispatch, event: CallReport, analyser: Analyser, now: datetime
) -> Call | None:
    """Merge an event of a call; return the call as it is then, None when the event changed nothing."""
    call = _spoken_for(tx, dispatch)
    if call is None or CALL_STATUS_RANK[event.status] <= CALL_STATUS_RANK[call.status]:
        return None
    ended = event.status in ENDED_CALL_STATUSES
    answered = call.answered_at
    if answered is None and event.status is CallStatus.IN_PROGRESS:
        answered = event.at
    # An earlier event may have told who answered; the end of the call need not say it again.
    known = attrs.evolve(event, answered_by=event.answered_by or call.answered_by)
    after: Call = attrs.evolve(
        call,
        status=event.status,
        answered_at=answered,
        answered_by=known.answered_by,
        summary=event.summary or call.summary,
        error=event.error,
        outcome=analyser.outcome(known) if ended else None,
        ended_at=event.at if ended else None,
    )
    tx.calls.update(after)
    # What an analysis says of it comes later, and the event that tells it may never come: it is asked for then.
    tx.work.schedule(WorkUnit("call", call.workspace_id, call.id), None if ended and not event.lacks_analysis else now)
    return after


def apply_analysis(tx: Transaction, dispatch: Dispatch, event: CallReport, analyser: Analyser) -> Call | None:
    """Fill in what the end of a call did not tell yet, such as its outcome or a summary. What is known stays.

    Returns:
        The call as it is then; None when the event tells nothing new of how it ended.
    """
    call = _spoken_for(tx, dispatch)
    if call is None or call.is_open or call.status is CallStatus.UNCONFIRMED:
        return None
    if event.status is CallStatus.IN_PROGRESS and call.status is CallStatus.COMPLETED and call.answered_at is None:
        # The news that somebody answered was overtaken by the news of the end.
        after: Call = attrs.evolve(call, answered_at=event.at)
        tx.calls.update(after)
        return after
    if event.status is not call.status:
        return None
    if not event.lacks_analysis:
        stop_polling(tx, call)
    known = attrs.evolve(event, answered_by=call.answered_by or event.answered_by)
    after = attrs.evolve(
        call,
        outcome=call.outcome or analyser.outcome(known),
        answered_by=known.answered_by,
        summary=call.summary or event.summary,
    )
    if after == call:
        return None
    tx.calls.update(after)
    return after


def stop_polling(tx: Transaction, call: Call) -> None:
    """Have a call that has ended not be asked about any more."""
    unit = WorkUnit("call", call.workspace_id, call.id)
    work = tx.work.get(unit)
    if work is not None and work.due_at is not None:
        tx.work.schedule(unit, None)


def end_if_silent(tx: Transaction, workspace_id: str, call_id: str, silence: timedelta, now: datetime) -> Call | None:
    """End a placed call of which nothing has been heard for so long; return it, None when it has not to end."""
    call = tx.calls.get(workspace_id, call_id)
    if call is None or not call.is_open or now < (call.dialed_at or call.created_at) + silence:
        return None
    after = attrs.evolve(call, status=CallStatus.UNCONFIRMED, error="no_news", ended_at=now)
    tx.calls.update(after)
    tx.work.schedule(WorkUnit("call", workspace_id, call_id), None)
    return after


def restart_silence_timeout(tx: Transaction, workspace_id: str, call_id: str, now: datetime) -> None:
    """Have the silence of a placed call begin now, where the clock was set back since it was dialed.

    It would last until the time from before comes again otherwise.
    """
    call = tx.calls.get(workspace_id, call_id)
    if call is not None and call.is_open and (call.dialed_at or call.created_at) > now:
        tx.calls.update(attrs.evolve(call, dialed_at=now))


def _spoken_for(tx: Transaction, dispatch: Dispatch) -> Call | None:
    """Return the call, when this dispatch speaks for it; each of a campaign's has a record of its own."""
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id or "")
    if call is None or call.campaign_id is not None or dispatch.try_number == call.tries:
        return call
    return call if is_authoritative(dispatch, tx.dispatches.of_call(call.workspace_id, call.id)) else None


def _standing(tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome) -> Dispatch | None:
    if outcome.state not in REACHED_NOBODY or dispatch.try_number == 1 or dispatch.campaign_id is not None:
        return None
    return earlier_acceptance(dispatch, tx.dispatches.of_call(dispatch.workspace_id, dispatch.call_id or ""))


def _unconfirmed(call: Call, outcome: DispatchOutcome, now: datetime) -> Call:
    return attrs.evolve(call, status=CallStatus.UNCONFIRMED, error=outcome.reason, ended_at=now)


def _placed(known: CallStatus) -> CallStatus:
    """Return the status of a call that a provider has accepted; one that we had canceled was placed all the same."""
    higher = CALL_STATUS_RANK[known] > CALL_STATUS_RANK[CallStatus.INITIATED] and known is not CallStatus.CANCELED
    return known if higher else CallStatus.INITIATED
