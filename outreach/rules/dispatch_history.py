"""The error budget of campaigns (docs/rules.md#error-budget), and the authoritative dispatch of a recipient."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from outreach.models.dispatch import FAILURE_CLASSES, Dispatch
from outreach.models.states import DispatchState, MessageStatus
from outreach.rules.settlement import LIMITED

JUDGED_DISPATCHES: Final = 20
"""How many of a campaign's latest dispatches are judged."""

MAX_CONSECUTIVE_FAILURES: Final = 5
MAX_FAILURES: Final = 10

PROVIDER_FAILURES: Final = frozenset(name for name, traits in FAILURE_CLASSES.items() if traits.counts)
"""Failures of the provider or the account; invalid, busy or opted-out contacts are none."""

LOCAL_INTERRUPTIONS: Final = frozenset({"worker_lost", "interrupted"})
"""Reasons of unknown dispatches that are our own fault."""


def counts_against_budget(dispatch: Dispatch) -> bool:
    """Return whether a dispatch counts against its campaign's error budget."""
    if dispatch.state in {DispatchState.UNKNOWN, DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP}:
        return dispatch.reason not in LOCAL_INTERRUPTIONS
    # An accepted one has such a reason if its call failed later, or by its receipt.
    answered = dispatch.state in {DispatchState.REFUSED, DispatchState.ACCEPTED}
    return answered and dispatch.reason in PROVIDER_FAILURES


def is_spent(history: Sequence[Dispatch]) -> bool:
    """Return whether the budget is spent: five failures in a row, or half of the last twenty.

    `history` are the campaign's latest dispatches that tell something of its provider, newest first
    (`tx.dispatches.judged`).
    """
    troubles = [counts_against_budget(dispatch) for dispatch in history[:JUDGED_DISPATCHES]]
    in_a_row = len(troubles) >= MAX_CONSECUTIVE_FAILURES and all(troubles[:MAX_CONSECUTIVE_FAILURES])
    return in_a_row or (len(troubles) == JUDGED_DISPATCHES and sum(troubles) >= MAX_FAILURES)


NOT_REACHED: Final = frozenset(
    {DispatchState.REFUSED, DispatchState.NOT_SENT, DispatchState.WITHDRAWN, DispatchState.DEFERRED}
)
"""Outcomes that certainly reached nobody."""

_INCONCLUSIVE: Final = NOT_REACHED | {DispatchState.GIVEN_UP}


def is_authoritative(dispatch: Dispatch, others: Iterable[Dispatch]) -> bool:
    """Return whether a dispatch decides about its recipient, message or call.

    Evidence on a dispatch that an operator retried counts while no later one may have reached anybody; afterwards it
    only changes the dispatch itself. `others` are the dispatches of the same recipient and step, message or call.
    """
    return not any(_order(other) > _order(dispatch) and other.state not in _INCONCLUSIVE for other in others)


def earlier_acceptance(dispatch: Dispatch, others: Iterable[Dispatch]) -> Dispatch | None:
    """Return the latest earlier dispatch that has reached the contact after all; a later one must not be retried then.

    Within one attempt an acceptance stands, unless it ended at a limit of the provider. A message's acceptance also
    stands across attempts, unless its receipt says that it failed. A call of an earlier attempt was accepted and
    reached nobody: hence the later attempt.
    """
    accepted = (
        other
        for other in others
        if other.state is DispatchState.ACCEPTED
        and _order(other) < _order(dispatch)
        and _acceptance_stands(other, dispatch)
    )
    return max(accepted, key=_order, default=None)


def is_earlier_acceptance(dispatch: Dispatch, others: Collection[Dispatch]) -> bool:
    """Return whether the latest dispatch reached nobody, and this is the one that stands after all."""
    latest = max(others, key=_order, default=dispatch)
    standing = earlier_acceptance(latest, others) if latest.state in NOT_REACHED else None
    return standing is not None and standing.id == dispatch.id


def _acceptance_stands(other: Dispatch, dispatch: Dispatch) -> bool:
    if other.reason == LIMITED:
        return False
    if (other.attempt, other.leg) == (dispatch.attempt, dispatch.leg):
        return True
    return dispatch.channel == "sms" and other.report is not MessageStatus.FAILED


def _order(dispatch: Dispatch) -> tuple[int, int, int]:
    return dispatch.attempt, dispatch.leg, dispatch.try_number
