"""The effects of outcomes and reports on call records."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from outreach.ledger import provider_throttles
from outreach.ledger.campaigns import trail
from outreach.ledger.common import quarantine_reason, time_left
from outreach.models.call import Call
from outreach.models.dispatch import ASSUMED_SENT, Dispatch, DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import CALL_STATUS_RANK, ENDED_CALL_STATUSES, CallStatus, DispatchState, TrailRule
from outreach.models.work import WorkUnit
from outreach.protocols.voice import Analyser
from outreach.rules.deciding import rule_of_outcome
from outreach.rules.phones import is_erased
from outreach.rules.settlement import NOT_REACHED, earlier_acceptance, is_authoritative
from outreach.storage.unit_of_work import Transaction

_SEEN: Final = timedelta(hours=1)
"""How much of a silence must have passed without a clock step: longer than most calls last."""

_RINGING: Final = timedelta(minutes=5)
"""How much longer than its agent allows a call may last: providers count from the answer, and report the end later."""

_CLOCK_DIFFERENCE: Final = timedelta(minutes=15)
"""How far a provider's clock may be from ours."""


def settle(tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome, now: datetime, *, by: TrailRule) -> None:
    """Merge a dispatch's outcome into its call; `by` is the source."""
    call = _call_if_authoritative(tx, dispatch)
    if call is None:
        return
    unit = WorkUnit("call", call.workspace_id, call.id)
    standing = _earlier_acceptance(tx, dispatch, outcome)
    if standing is not None:
        dispatch, outcome = standing, DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=standing.provider_id)
    match outcome.state:
        case DispatchState.ACCEPTED if outcome.reason == ASSUMED_SENT:
            # No known call can be followed until one reports.
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
        # A single call that credentials replaced since were refused for is placed again, as a campaign's contact is.
        case DispatchState.REFUSED if (
            call.campaign_id is not None
            or not provider_throttles.is_refusal_of_old_credentials(tx, dispatch, outcome, now)
        ):
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
            # The next attempt has its own record; reports on this one still go here.
            after = _unconfirmed(call, outcome, now)
        case _ if call.campaign_id is not None:
            # The recipient waits for another call with its own record.
            after = attrs.evolve(call, status=CallStatus.CANCELED, error=outcome.reason, ended_at=now)
        case state if (
            state is not DispatchState.GIVEN_UP and (held := quarantine_reason(tx, dispatch.epoch)) is not None
        ):
            # The original of this database may place the call as well.
            after = attrs.evolve(call, status=CallStatus.CANCELED, error=held, ended_at=now)
            tx.calls.update(after)
            tx.work.schedule(unit, None)
            trail.record_call(tx, dispatch, after, rule=TrailRule.COPIED_FILE, now=now)
            return
        case _:
            tx.calls.update(attrs.evolve(call, status=CallStatus.QUEUED, error=outcome.reason))
            # The backoff and the expiry are decided at the next commit.
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
    """Merge a call event; return the call, None if the event changed nothing."""
    call = _call_if_authoritative(tx, dispatch)
    if call is None or CALL_STATUS_RANK[event.status] <= CALL_STATUS_RANK[call.status]:
        return None
    ended = event.status in ENDED_CALL_STATUSES
    answered = call.answered_at
    if answered is None and event.status is CallStatus.IN_PROGRESS:
        answered = _moment(call, event, now)
    # The end of a call need not repeat who answered.
    known = attrs.evolve(event, answered_by=event.answered_by or call.answered_by)
    after: Call = attrs.evolve(
        call,
        status=event.status,
        answered_at=answered,
        answered_by=known.answered_by,
        summary=_told(call, event.summary) or call.summary,
        error=_told(call, event.error),
        outcome=analyser.outcome(known) if ended else None,
        ended_at=_moment(call, event, now) if ended else None,
        **_cost(call, event),
    )
    tx.calls.update(after)
    _keep_transcript(tx, call, event)
    # The event with the analysis may never come, so that a call without one is polled.
    tx.work.schedule(WorkUnit("call", call.workspace_id, call.id), None if ended and not event.lacks_analysis else now)
    return after


def apply_analysis(
    tx: Transaction, dispatch: Dispatch, event: CallReport, analyser: Analyser, now: datetime
) -> Call | None:
    """Fill in what the end of a call left open, such as its outcome; return the call, None if only its cost is new."""
    call = _call_if_authoritative(tx, dispatch)
    if call is None or call.is_open or call.status is CallStatus.UNCONFIRMED:
        return None
    if event.status is CallStatus.IN_PROGRESS and call.status is CallStatus.COMPLETED and call.answered_at is None:
        # The event that somebody answered was overtaken by the end.
        after: Call = attrs.evolve(call, answered_at=min(_moment(call, event, now), call.ended_at or now))
        tx.calls.update(after)
        return after
    if event.status is not call.status:
        return None
    if not event.lacks_analysis:
        stop_polling(tx, call)
    _keep_transcript(tx, call, event)
    known = attrs.evolve(event, answered_by=call.answered_by or event.answered_by)
    after = attrs.evolve(
        call,
        outcome=call.outcome or analyser.outcome(known),
        answered_by=known.answered_by,
        summary=call.summary or _told(call, event.summary),
        **_cost(call, event),
    )
    if after == call:
        return None
    tx.calls.update(after)
    return None if after == attrs.evolve(call, **_cost(call, event)) else after


def _moment(call: Call, event: CallReport, now: datetime) -> datetime:
    """Return when an event happened; now if its provider names a time before the call or still to come.

    Figures of minutes and cost come from it, and a provider's clock, or its zone, may be wrong.
    """
    return event.at if _dialed_at(call) - _CLOCK_DIFFERENCE <= event.at <= now + _CLOCK_DIFFERENCE else now


def _cost(call: Call, event: CallReport) -> dict[str, Any]:
    """Return the fields of a call's cost after an event: the highest amount counts, whichever event comes last."""
    if event.cost is None or (
        call.cost is not None and (event.cost_currency != call.cost_currency or event.cost <= call.cost)
    ):
        return {}
    return {"cost": event.cost, "cost_currency": event.cost_currency}


def _keep_transcript(tx: Transaction, call: Call, event: CallReport) -> None:
    content = _told(call, event.transcript)
    if content:
        tx.calls.put_transcript(call, content)


def _told(call: Call, words: str | None) -> str | None:
    """Return a provider's words on a call; None if the person was erased, because they may name that person."""
    return None if is_erased(call.to) else words


def stop_polling(tx: Transaction, call: Call) -> None:
    """Stop polling a call that has ended."""
    unit = WorkUnit("call", call.workspace_id, call.id)
    work = tx.work.get(unit)
    if work is not None and work.due_at is not None:
        tx.work.schedule(unit, None)


def is_silence_due(tx: Transaction, call: Call, silence: timedelta, now: datetime) -> bool:
    """Return whether `end_if_silent` would change an open call."""
    return call.is_open and (_dialed_at(call) > now or _is_silence_over(tx, call, silence, now))


def end_if_silent(tx: Transaction, workspace_id: str, call_id: str, silence: timedelta, now: datetime) -> Call | None:
    """End a placed call that has not ended `silence` after it was dialed; return it, None if it goes on.

    A call may last as long as its agent allows. One that was dialed after now, by a clock that was set back since,
    counts as dialed now.
    """
    call = tx.calls.get(workspace_id, call_id)
    if call is None or not call.is_open:
        return None
    if _dialed_at(call) > now:
        tx.calls.update(attrs.evolve(call, dialed_at=now))
        return None
    if not _is_silence_over(tx, call, silence, now):
        return None
    after = attrs.evolve(call, status=CallStatus.UNCONFIRMED, error="no_news", ended_at=now)
    tx.calls.update(after)
    tx.work.schedule(WorkUnit("call", workspace_id, call_id), None)
    return after


def _is_silence_over(tx: Transaction, call: Call, silence: timedelta, now: datetime) -> bool:
    # After a clock step, or a pause without a worker, the provider has some time to report first.
    since = _dialed_at(call)
    if now < since + silence or time_left(tx, since, min(silence, _SEEN), now):
        return False
    agent = tx.agents.get(call.workspace_id, call.agent_id)
    longest = agent.max_call_seconds if agent is not None else None
    return longest is None or now >= since + timedelta(seconds=longest) + _RINGING


def _dialed_at(call: Call) -> datetime:
    return call.dialed_at or call.created_at


def _call_if_authoritative(tx: Transaction, dispatch: Dispatch) -> Call | None:
    """Return the call if this dispatch is authoritative for it."""
    call = tx.calls.get(dispatch.workspace_id, dispatch.call_id or "")
    if call is None or call.campaign_id is not None or dispatch.try_number == call.tries:
        return call
    return call if is_authoritative(dispatch, tx.dispatches.of_call(call.workspace_id, call.id)) else None


def _earlier_acceptance(tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome) -> Dispatch | None:
    if outcome.state not in NOT_REACHED or dispatch.try_number == 1 or dispatch.campaign_id is not None:
        return None
    return earlier_acceptance(dispatch, tx.dispatches.of_call(dispatch.workspace_id, dispatch.call_id or ""))


def _unconfirmed(call: Call, outcome: DispatchOutcome, now: datetime) -> Call:
    return attrs.evolve(call, status=CallStatus.UNCONFIRMED, error=outcome.reason, ended_at=now)


def _placed(known: CallStatus) -> CallStatus:
    """Return the status of a call that was accepted; one that had been cancelled here was placed all the same."""
    higher = CALL_STATUS_RANK[known] > CALL_STATUS_RANK[CallStatus.INITIATED] and known is not CallStatus.CANCELED
    return known if higher else CallStatus.INITIATED
