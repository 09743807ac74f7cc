"""Unknown dispatches: evidence from look-ups, the deadline, the operator's decision."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import Conflict
from outreach.ledger import provider_throttles
from outreach.ledger.common import record_audit, time_left
from outreach.ledger.settling.ledger import belongs_to_another, settle
from outreach.models.dispatch import ASSUMED_SENT, Dispatch, DispatchOutcome, OperatorDecision
from outreach.models.states import DispatchState, TrailRule
from outreach.rules.settlement import Backoff
from outreach.storage.unit_of_work import Transaction

_AMBIGUITY_WINDOW: Final = timedelta(minutes=10)
"""Requests less than this apart cannot be told apart by a record's time."""

_POSSIBLY_RECORDED: Final = frozenset(
    {
        DispatchState.DISPATCHING,
        DispatchState.UNKNOWN,
        DispatchState.UNCONFIRMED,
        DispatchState.GIVEN_UP,
        DispatchState.ACCEPTED,
    }
)
"""States in which a provider may have a record of a dispatch."""

_EVIDENCE: Final = frozenset({DispatchState.ACCEPTED, DispatchState.REFUSED, DispatchState.NOT_SENT})
"""The outcomes that a look-up can prove."""


@attrs.frozen(kw_only=True)
class Deadlines:
    """Time limits of an unknown dispatch, counted from its commit.

    Attributes:
        retry_after: Until then the request may still be on its way: no operator retry, and no proof that it was not
            sent.
        unconfirmed_after: The dispatch ends as unconfirmed.
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
    """Settle an unknown dispatch by a look-up or its deadline; return it.

    Args:
        tx: The transaction.
        dispatch: The unknown dispatch.
        evidence: The result of the look-up; None for nothing. It is ignored if it belongs, or may belong, to another
            dispatch of any workspace: workspaces may share an account and its numbers.
        asked_at: When the look-up began. The provider may have received the request since.
        overdue: The deadline has passed by the monotonic clock.
        deadlines: The time limits.
        backoff: The delay of a dispatch that was not sent.
        now: The time.
    """
    if (
        evidence is not None
        and evidence.state is DispatchState.NOT_SENT
        and (
            time_left(tx, dispatch.created_at, deadlines.retry_after, asked_at)
            # An account does not know what the one before it has taken.
            or provider_throttles.may_be_at_another_account(tx, dispatch)
        )
    ):
        evidence = None
    if evidence is None or evidence.state not in _EVIDENCE or _may_be_another_dispatch(tx, dispatch, evidence):
        if not overdue and time_left(tx, dispatch.created_at, deadlines.unconfirmed_after, now):
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
        # Direct evidence outweighs a deferral that arrived during the look-up.
        proven=not evidence.circumstantial,
    )


def _may_be_another_dispatch(tx: Transaction, dispatch: Dispatch, evidence: DispatchOutcome) -> bool:
    """Return whether the evidence belongs, or may belong, to another dispatch."""
    if evidence.circumstantial:
        rivals = tx.dispatches.similar(
            dispatch,
            since=dispatch.created_at - _AMBIGUITY_WINDOW,
            until=dispatch.valid_until + _AMBIGUITY_WINDOW,
            states=_POSSIBLY_RECORDED,
        )
        if any(rival.provider_id is None for rival in rivals):
            return True
    return evidence.provider_id is not None and belongs_to_another(tx, dispatch, evidence.provider_id)


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
    """Settle an unknown dispatch by an operator's decision (docs/delivery-contract.md#rule-6).

    `assume_sent` counts it as accepted. `retry` gives it up and tries its message or call again, unless evidence
    arrives first.

    Raises:
        NotFound: The workspace has no such dispatch.
        Conflict: It is not unknown, or its request may still be on its way.
    """
    dispatch = tx.dispatches.existing(workspace_id, dispatch_id)
    if dispatch.state is not DispatchState.UNKNOWN:
        raise Conflict(f"The dispatch is {dispatch.state}, not unknown: there is nothing to decide.")
    left = time_left(tx, dispatch.created_at, deadlines.retry_after, now)
    if decision == "retry" and left:
        raise Conflict(
            f"The request may still be on its way. Try again in {int(left.total_seconds()) + 1} s, if a server "
            "dispatches until then; evidence that arrives earlier settles it."
        )
    if decision == "assume_sent":
        outcome = DispatchOutcome(state=DispatchState.ACCEPTED, reason=ASSUMED_SENT)
    else:
        outcome = DispatchOutcome(state=DispatchState.GIVEN_UP, reason="operator_retry")
    settled = settle(tx, workspace_id, dispatch_id, outcome, backoff=backoff, now=now, by=TrailRule.OPERATOR)
    record_audit(tx, workspace_id, f"dispatch.{decision}", dispatch_id, actor=actor, now=now)
    return settled or dispatch
