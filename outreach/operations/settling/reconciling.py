"""Dispatches of which nobody knows what became: evidence, the deadline, the operator's decision."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal

import attrs

from outreach.errors import Conflict, NotFound
from outreach.models.dispatch import ASSUMED_SENT, Dispatch, DispatchOutcome
from outreach.models.states import DispatchState
from outreach.models.trail import TrailRule
from outreach.operations.common import record_audit
from outreach.operations.settling.ledger import belongs_to_another, settle
from outreach.policy.settlement import Backoff
from outreach.working_set import Transaction

OperatorDecision = Literal["assume_sent", "retry"]

_NEAR: Final = timedelta(minutes=10)
"""How far apart two requests are at the least of which a record's time says which it belongs to."""

_MAY_BE_THERE: Final = frozenset(
    {
        DispatchState.DISPATCHING,
        DispatchState.UNKNOWN,
        DispatchState.UNCONFIRMED,
        DispatchState.GIVEN_UP,
        DispatchState.ACCEPTED,
    }
)
"""What a provider may have a record of."""

_EVIDENCE: Final = frozenset({DispatchState.ACCEPTED, DispatchState.REFUSED, DispatchState.NOT_SENT})
"""What a look-up can prove; anything else is as good as no answer."""


@attrs.frozen(kw_only=True)
class Deadlines:
    """When what may be done about an unknown dispatch, counted from its commit.

    Attributes:
        retry_after: An operator may have it tried again, and that a provider has none of it is believed: until then
            its request may still be on its way. By a clock that has not been set since.
        unconfirmed_after: It ends as unconfirmed.
    """

    retry_after: timedelta
    unconfirmed_after: timedelta


def reconcile(
    tx: Transaction,
    dispatch: Dispatch,
    evidence: DispatchOutcome | None,
    *,
    asked_at: datetime,
    overdue: bool,
    deadlines: Deadlines,
    backoff: Backoff,
    now: datetime,
) -> Dispatch | None:
    """Settle an unknown dispatch by what a look-up told, or by its deadline; return it as it is then.

    Args:
        tx: The transaction.
        dispatch: The unknown one.
        evidence: What the look-up told; None for nothing. What the ledger knows to be another request's is nothing, and
            so is what goes by numbers, text and time alone where another request could be meant, of whatever
            workspace: workspaces may share an account, and whoever shares an account shares its numbers.
        asked_at: When the look-up began. A provider that had nothing by then may have got the request since, as long
            as it could still be on its way.
        overdue: It has been unknown for longer than the deadline, whatever the wall clock shows.
        deadlines: When what may be done.
        backoff: How long one that was not sent waits.
        now: The present moment.
    """
    if (
        evidence is not None
        and evidence.state is DispatchState.NOT_SENT
        and _left(tx, dispatch, deadlines.retry_after, asked_at)
    ):
        evidence = None
    if evidence is None or evidence.state not in _EVIDENCE or _is_anothers(tx, dispatch, evidence):
        if not overdue and _left(tx, dispatch, deadlines.unconfirmed_after, now):
            return dispatch
        evidence = DispatchOutcome(state=DispatchState.UNCONFIRMED, reason="no_evidence")
    return settle(
        tx,
        dispatch.workspace_id,
        dispatch.id,
        evidence,
        backoff=backoff,
        now=now,
        by=TrailRule.RECONCILIATION,
        # The provider has it, whatever it may have answered while it was looked up.
        proven=not evidence.circumstantial,
    )


def _is_anothers(tx: Transaction, dispatch: Dispatch, evidence: DispatchOutcome) -> bool:
    """Return whether what was found is, or may be, another dispatch's of the database."""
    if evidence.circumstantial:
        rivals = tx.dispatches.similar(
            dispatch, since=dispatch.created_at - _NEAR, until=dispatch.valid_until + _NEAR, states=_MAY_BE_THERE
        )
        if any(rival.provider_id is None for rival in rivals):
            return True
    return evidence.provider_id is not None and belongs_to_another(tx, dispatch, evidence.provider_id)


def _left(tx: Transaction, dispatch: Dispatch, wait: timedelta, moment: datetime) -> timedelta:
    """Return how much of a wait since the commit was left at a moment; nothing when it was over for sure.

    By the wall clock alone nobody knows: it may have been set forth since the commit. Whoever dispatches vouches for it
    from one heartbeat to the next.
    """
    lease = tx.leases.current()
    if lease is None or lease.steady_since is None or lease.steady_until is None:
        return wait
    over_at = max(dispatch.created_at, lease.steady_since) + wait
    return max(over_at - min(moment, lease.steady_until), timedelta())


def resolve(
    tx: Transaction,
    workspace_id: str,
    dispatch_id: str,
    decision: OperatorDecision,
    *,
    deadlines: Deadlines,
    backoff: Backoff,
    now: datetime,
    actor: str,
) -> Dispatch:
    """Decide about an unknown dispatch, as an operator (docs/delivery-contract.md#rule-6).

    `assume_sent` takes it as accepted. `retry` gives it up and lets its message or call be tried again: evidence
    that arrives before the second request cancels that one; evidence that arrives later is kept beside it.

    Raises:
        NotFound: The workspace has no such dispatch.
        Conflict: It is not unknown, or its request may still be on its way.
    """
    dispatch = tx.dispatches.get(workspace_id, dispatch_id)
    if dispatch is None:
        raise NotFound("dispatch", dispatch_id)
    if dispatch.state is not DispatchState.UNKNOWN:
        raise Conflict(f"The dispatch is {dispatch.state}, not unknown: there is nothing to decide.")
    left = _left(tx, dispatch, deadlines.retry_after, now)
    if decision == "retry" and left:
        raise Conflict(
            f"The request may still be on its way. It can be tried again in {int(left.total_seconds()) + 1} s, when a "
            "server has dispatched for so long from now on; evidence that arrives meanwhile settles it."
        )
    if decision == "assume_sent":
        outcome = DispatchOutcome(state=DispatchState.ACCEPTED, reason=ASSUMED_SENT)
    else:
        outcome = DispatchOutcome(state=DispatchState.GIVEN_UP, reason="operator_retry")
    settled = settle(tx, workspace_id, dispatch_id, outcome, backoff=backoff, now=now, by=TrailRule.OPERATOR)
    record_audit(
        tx,
        now=now,
        workspace_id=workspace_id,
        actor=actor,
        action=f"dispatch.{decision}",
        subject=dispatch_id,
    )
    return settled or dispatch
