"""Which of several requests for one contact, message or call speaks for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState, MessageStatus

REACHED_NOBODY: Final = frozenset(
    {DispatchState.REFUSED, DispatchState.NOT_SENT, DispatchState.WITHDRAWN, DispatchState.DEFERRED}
)
"""Outcomes after which it is certain that a request reached nobody."""

_SAYS_NOTHING: Final = REACHED_NOBODY | {DispatchState.GIVEN_UP}


def speaks_for(dispatch: Dispatch, others: Iterable[Dispatch]) -> bool:
    """Return whether what becomes of a dispatch is what becomes of the thing that it was opened for.

    An operator may have had an unknown one tried again. Evidence about it that comes while no later one may have
    reached anybody counts, and cancels the next; evidence that comes afterwards is kept with its own dispatch.

    Args:
        dispatch: The one in question.
        others: All of the same recipient and step, of the same message or of the same call; itself or not.
    """
    return not any(_place(other) > _place(dispatch) and other.state not in _SAYS_NOTHING for other in others)


def accepted_before(dispatch: Dispatch, others: Iterable[Dispatch]) -> Dispatch | None:
    """Return the latest earlier one that stands: the contact has been reached by it after all.

    Then a later one that reached nobody must not be tried again. Within one attempt an acceptance stands, whatever came
    of it. Of a message it does in an earlier attempt too, unless its receipt still says that it failed: what was said
    to have failed, or to be refused, may turn out to have arrived while the next attempt is under way. A call of an
    earlier attempt was accepted and has ended with nobody to talk to: that is why there is another attempt.
    """
    accepted = (
        other
        for other in others
        if other.state is DispatchState.ACCEPTED and _place(other) < _place(dispatch) and _stands(other, dispatch)
    )
    return max(accepted, key=_place, default=None)


def stands_behind(dispatch: Dispatch, others: Collection[Dispatch]) -> bool:
    """Return whether the latest of all has reached nobody, and this is the one that stands after all.

    Args:
        dispatch: The one in question.
        others: As of `speaks_for`, each as it stands in the ledger now.
    """
    latest = max(others, key=_place, default=dispatch)
    standing = accepted_before(latest, others) if latest.state in REACHED_NOBODY else None
    return standing is not None and standing.id == dispatch.id


def _stands(other: Dispatch, dispatch: Dispatch) -> bool:
    if (other.attempt, other.leg) == (dispatch.attempt, dispatch.leg):
        return True
    return dispatch.channel == "sms" and other.report is not MessageStatus.FAILED


def _place(dispatch: Dispatch) -> tuple[int, int, int]:
    return dispatch.attempt, dispatch.leg, dispatch.try_number
