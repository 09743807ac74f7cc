"""When a campaign stops by itself: too many requests in trouble that is not the contacts' (design, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState

HISTORY: Final = 20
"""How many of a campaign's latest dispatches are judged."""

LOOK_BACK: Final = 3 * HISTORY
"""How many are read for that: some of them say nothing."""

IN_A_ROW: Final = 5
OUT_OF_HISTORY: Final = 10

PROVIDER_FAILURES: Final = frozenset({"provider_auth", "provider_funds", "provider_error", "bad_sender", "rejected"})
"""Failures that say something of the provider or our account; invalid, busy or opted-out contacts do not."""

OURS: Final = frozenset({"worker_lost", "interrupted"})
"""Why a dispatch is unknown that says nothing of the provider: it was we who went away."""


_UNHEARD: Final = frozenset({DispatchState.WITHDRAWN, DispatchState.DEFERRED, DispatchState.NOT_SENT})
"""Outcomes that are neither trouble nor its end: nobody was asked, or told us to come again later."""


def counts(dispatch: Dispatch) -> bool:
    """Return whether a dispatch is in trouble that counts against its campaign's budget."""
    if dispatch.state in {DispatchState.UNKNOWN, DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP}:
        return dispatch.reason not in OURS
    # Of those accepted, only a call that was placed and then failed has such a reason, or a message by its receipt.
    answered = dispatch.state in {DispatchState.REFUSED, DispatchState.ACCEPTED}
    return answered and dispatch.reason in PROVIDER_FAILURES


def is_spent(history: Sequence[Dispatch]) -> bool:
    """Return whether the budget is spent: five in a row, or half of the last twenty.

    Args:
        history: The campaign's latest dispatches that have an outcome, newest first.
    """
    telling = [dispatch for dispatch in history if dispatch.state not in _UNHEARD and dispatch.reason not in OURS]
    troubles = [counts(dispatch) for dispatch in telling[:HISTORY]]
    in_a_row = len(troubles) >= IN_A_ROW and all(troubles[:IN_A_ROW])
    return in_a_row or (len(troubles) == HISTORY and sum(troubles) >= OUT_OF_HISTORY)
