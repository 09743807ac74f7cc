"""Verdicts on calls that the library's caller gives after their end (docs/own-carrier.md#a-voice-provider)."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.errors import Conflict
from outreach.ledger.campaigns import trail
from outreach.ledger.common import campaign_of, record_audit
from outreach.ledger.settling import recipient_outcomes
from outreach.models.call import Call, NewCallOutcome
from outreach.models.dispatch import Dispatch
from outreach.models.states import CallStatus, DispatchState, TrailRule
from outreach.rules.phones import is_erased
from outreach.rules.settlement import PROVISIONAL_OUTCOMES
from outreach.storage.unit_of_work import Transaction


def set_outcome(tx: Transaction, call: Call, verdict: NewCallOutcome, *, now: datetime, actor: str) -> Call:
    """Give an answered call that has ended its outcome; return the call.

    Its contact follows as after a late report: an ended one changes its result and the campaign's counters, in every
    state of the campaign, but is not called again. One that waits because a machine answered ends, if the verdict says
    that a person did. One that was called again since keeps the result of that call.
    A second verdict with the same outcome changes the summary alone.

    Raises:
        Conflict: Nobody answered, it has not ended, its outcome is final, or its campaign was erased.
    """
    summary = call.summary if verdict.summary is None or is_erased(call.to) else verdict.summary
    if call.judged_at is not None and call.outcome == verdict.outcome:
        after = attrs.evolve(call, summary=summary)
        if after != call:
            tx.calls.update(after)
        return after
    _require_open_verdict(tx, call)
    after = attrs.evolve(call, outcome=verdict.outcome, summary=summary, judged_at=now)
    tx.calls.update(after)
    dispatch = _accepted_dispatch(tx, call)
    if after.outcome != call.outcome:
        trail.record_call(tx, dispatch, after, rule=TrailRule.OPERATOR, now=now)
        if dispatch is not None and call.campaign_id is not None:
            recipient_outcomes.call_judged(tx, dispatch, call.outcome, verdict.outcome, now)
    detail = f"{call.outcome or 'unknown'} to {after.outcome}"
    record_audit(tx, call.workspace_id, "call.set_outcome", call.id, actor=actor, now=now, detail=detail)
    return after


def _require_open_verdict(tx: Transaction, call: Call) -> None:
    if call.is_open:
        raise Conflict(f"The call is {call.status} and has not ended: set its outcome afterwards.")
    if call.status is not CallStatus.COMPLETED:
        raise Conflict(f"The call ended as {call.status}: only one that was answered takes an outcome.")
    if call.judged_at is not None or call.outcome not in {*PROVISIONAL_OUTCOMES, "voicemail"}:
        raise Conflict(f"The outcome of the call is {call.outcome}, and final: nothing was changed.")
    if call.campaign_id is not None and campaign_of(tx, call.workspace_id, call.campaign_id).erased_at is not None:
        raise Conflict("The campaign of the call was erased, and its figures stay as they are.")


def _accepted_dispatch(tx: Transaction, call: Call) -> Dispatch | None:
    found = [one for one in tx.dispatches.of_call(call.workspace_id, call.id) if one.state is DispatchState.ACCEPTED]
    return found[-1] if found else None
