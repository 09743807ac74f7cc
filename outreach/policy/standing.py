"""Which of several requests for one contact, message or call speaks for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState

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
    """Return the latest earlier one of the same attempt that has been accepted after all.

    Where it stands, a later one that reached nobody must not be tried again: the contact has been reached.
    """
    accepted = (
        other
        for other in others
        if other.state is DispatchState.ACCEPTED
        and (other.attempt, other.leg) == (dispatch.attempt, dispatch.leg)
        and _place(other) < _place(dispatch)
    )
    return max(accepted, key=_place, default=None)


def _place(dispatch: Dispatch) -> tuple[int, int, int]:
    return dispatch.attempt, dispatch.leg, dispatch.try_number
