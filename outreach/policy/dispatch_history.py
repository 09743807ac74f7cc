"""When a campaign stops by itself: too many requests in trouble that is not the contacts'.

docs/rules.md#error-budget.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState, MessageStatus

JUDGED_DISPATCHES: Final = 20
"""How many of a campaign's latest dispatches are judged."""

READ_DISPATCHES: Final = 3 * JUDGED_DISPATCHES
"""How many are read for that: some of them say nothing."""

MAX_CONSECUTIVE_FAILURES: Final = 5
MAX_FAILURES: Final = 10

PROVIDER_FAILURES: Final = frozenset({"provider_auth", "provider_funds", "provider_error", "bad_sender", "rejected"})
"""Failures that say something of the provider or our account; invalid, busy or opted-out contacts do not."""

LOCAL_INTERRUPTIONS: Final = frozenset({"worker_lost", "interrupted"})
"""Why a dispatch is unknown that says nothing of the provider: it was we who went away."""


_NO_PROVIDER_ANSWER: Final = frozenset({DispatchState.WITHDRAWN, DispatchState.DEFERRED, DispatchState.NOT_SENT})
"""Outcomes that are neither trouble nor its end: nobody was asked, or told us to come again later."""


def counts_against_budget(dispatch: Dispatch) -> bool:
    """Return whether a dispatch is in trouble that counts against its campaign's budget."""
    if dispatch.state in {DispatchState.UNKNOWN, DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP}:
        return dispatch.reason not in LOCAL_INTERRUPTIONS
    # Of those accepted, only a call that was placed and then failed has such a reason, or a message by its receipt.
    answered = dispatch.state in {DispatchState.REFUSED, DispatchState.ACCEPTED}
    return answered and dispatch.reason in PROVIDER_FAILURES


def is_spent(history: Sequence[Dispatch]) -> bool:
    """Return whether the budget is spent: five in a row, or half of the last twenty.

    Args:
        history: The campaign's latest dispatches that have an outcome, newest first.
    """
    telling = [
        dispatch
        for dispatch in history
        if dispatch.state not in _NO_PROVIDER_ANSWER and dispatch.reason not in LOCAL_INTERRUPTIONS
    ]
    troubles = [counts_against_budget(dispatch) for dispatch in telling[:JUDGED_DISPATCHES]]
    in_a_row = len(troubles) >= MAX_CONSECUTIVE_FAILURES and all(troubles[:MAX_CONSECUTIVE_FAILURES])
    return in_a_row or (len(troubles) == JUDGED_DISPATCHES and sum(troubles) >= MAX_FAILURES)


REACHED_NOBODY: Final = frozenset(
    {DispatchState.REFUSED, DispatchState.NOT_SENT, DispatchState.WITHDRAWN, DispatchState.DEFERRED}
)
"""Outcomes after which it is certain that a request reached nobody."""

_INCONCLUSIVE: Final = REACHED_NOBODY | {DispatchState.GIVEN_UP}


def is_authoritative(dispatch: Dispatch, others: Iterable[Dispatch]) -> bool:
    """Return whether what becomes of a dispatch is what becomes of the thing that it was opened for.

    An operator may have had an unknown one tried again. Evidence about it that comes while no later one may have
    reached anybody counts, and cancels the next; evidence that comes afterwards is kept with its own dispatch.

    Args:
        dispatch: The one in question.
        others: All of the same recipient and step, of the same message or of the same call; itself or not.
    """
    return not any(_order(other) > _order(dispatch) and other.state not in _INCONCLUSIVE for other in others)


def earlier_acceptance(dispatch: Dispatch, others: Iterable[Dispatch]) -> Dispatch | None:
    """Return the latest earlier one that stands: the contact has been reached by it after all.

    Then a later one that reached nobody must not be tried again. Within one attempt an acceptance stands, whatever came
    of it. Of a message it does in an earlier attempt too, unless its receipt still says that it failed: what was said
    to have failed, or to be refused, may turn out to have arrived while the next attempt is under way. A call of an
    earlier attempt was accepted and has ended with nobody to talk to: that is why there is another attempt.
    """
    accepted = (
        other
        for other in others
        if other.state is DispatchState.ACCEPTED and _order(other) < _order(dispatch) and _still_counts(other, dispatch)
    )
    return max(accepted, key=_order, default=None)


def is_earlier_acceptance(dispatch: Dispatch, others: Collection[Dispatch]) -> bool:
    """Return whether the latest of all has reached nobody, and this is the one that stands after all.

    Args:
        dispatch: The one in question.
        others: As of `is_authoritative`, each as it stands in the ledger now.
    """
    latest = max(others, key=_order, default=dispatch)
    standing = earlier_acceptance(latest, others) if latest.state in REACHED_NOBODY else None
    return standing is not None and standing.id == dispatch.id


def _still_counts(other: Dispatch, dispatch: Dispatch) -> bool:
    if (other.attempt, other.leg) == (dispatch.attempt, dispatch.leg):
        return True
    return dispatch.channel == "sms" and other.report is not MessageStatus.FAILED


def _order(dispatch: Dispatch) -> tuple[int, int, int]:
    return dispatch.attempt, dispatch.leg, dispatch.try_number
