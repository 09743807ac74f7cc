from __future__ import annotations

import attrs
import pytest

from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState, MessageStatus
from outreach.rules.settlement import earlier_acceptance, is_authoritative, is_earlier_acceptance
from outreach.testing.builders import make_dispatch

MAY_HAVE_REACHED = {
    DispatchState.DISPATCHING,
    DispatchState.ACCEPTED,
    DispatchState.UNKNOWN,
    DispatchState.UNCONFIRMED,
}


def at(attempt: int, leg: int, try_number: int, state: DispatchState = DispatchState.ACCEPTED) -> Dispatch:
    """Return a dispatch at a place in its sequence."""
    return make_dispatch(attempt=attempt, leg=leg, try_number=try_number, state=state)


@pytest.mark.parametrize("state", DispatchState)
@pytest.mark.parametrize("later", [(1, 1, 2), (1, 2, 1), (2, 1, 1)])
def test_a_later_one_that_may_have_reached_somebody_speaks_alone(
    state: DispatchState, later: tuple[int, int, int]
) -> None:
    """docs/delivery-contract.md#rule-6: evidence after the second request is kept beside it; before it, it counts."""
    first, second = at(1, 1, 1), at(*later, state)
    assert is_authoritative(first, [first, second]) is (state not in MAY_HAVE_REACHED)
    assert is_authoritative(second, [first, second])


@pytest.mark.parametrize("state", DispatchState)
def test_an_earlier_one_stands_only_when_it_was_accepted(state: DispatchState) -> None:
    """A later request of the same attempt that reached nobody gives way to one that did."""
    first, second = at(1, 1, 1, state), at(1, 1, 2, DispatchState.DEFERRED)
    wanted = first if state is DispatchState.ACCEPTED else None
    assert earlier_acceptance(second, [first, second]) is wanted


@pytest.mark.parametrize("other", [(1, 1, 3), (2, 1, 1), (1, 2, 1)])
def test_what_comes_later_does_not_stand_before(other: tuple[int, int, int]) -> None:
    """It speaks for itself."""
    dispatch = at(1, 1, 2, DispatchState.REFUSED)
    assert earlier_acceptance(dispatch, [at(*other), dispatch]) is None


@pytest.mark.parametrize("report", [None, *MessageStatus])
def test_a_message_of_an_earlier_attempt_stands_unless_it_has_failed(report: MessageStatus | None) -> None:
    """Delivered outranks failed: what was said to have failed may have arrived when the next attempt is under way."""
    first = attrs.evolve(at(1, 1, 1), report=report)
    second = at(2, 1, 1, DispatchState.DEFERRED)
    assert earlier_acceptance(second, [first, second]) is (None if report is MessageStatus.FAILED else first)


def test_a_call_of_an_earlier_attempt_does_not_stand() -> None:
    """It was accepted, and nobody was talked to: that is why there is another attempt."""
    first, second = (attrs.evolve(one, channel="call") for one in (at(1, 1, 1), at(2, 1, 1, DispatchState.DEFERRED)))
    assert earlier_acceptance(second, [first, second]) is None


def test_what_stands_behind_a_refusal_stands_past_one_that_has_failed() -> None:
    """The first arrived after all, the second failed, the third reached nobody: the contact has the first."""
    first = attrs.evolve(at(1, 1, 1), report=MessageStatus.DELIVERED)
    second = attrs.evolve(at(2, 1, 1), report=MessageStatus.FAILED)
    third = at(3, 1, 1, DispatchState.REFUSED)
    assert [is_earlier_acceptance(one, [first, second, third]) for one in (first, second, third)] == [
        True,
        False,
        False,
    ]
    assert not is_earlier_acceptance(first, [first, second])
    assert not is_earlier_acceptance(first, [])
