from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.deciding import MAX_AHEAD, first_slot, next_slot, spacing
from outreach.testing.builders import NOW

SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)

_steps = st.timedeltas(min_value=timedelta(days=-4000), max_value=timedelta(days=4000))
_rates = st.integers(1, 600)


@pytest.mark.parametrize("ahead", [-timedelta(hours=1), timedelta(), 6 * SECOND, 6 * SECOND + MAX_AHEAD])
def test_a_slot_that_can_have_been_taken_stands(ahead: timedelta) -> None:
    """It lies no farther ahead than a spacing after the last one that a wave could take."""
    assert next_slot(NOW + ahead, NOW, 6 * SECOND) == NOW + ahead
    assert next_slot(None, NOW, 6 * SECOND) is None


@pytest.mark.parametrize("ahead", [6 * SECOND + MAX_AHEAD + MICROSECOND, timedelta(hours=1), timedelta(days=4000)])
def test_a_slot_of_a_clock_that_was_set_back_holds_nobody_up(ahead: timedelta) -> None:
    """Nothing is reckoned from now: what is would recede at each look."""
    assert next_slot(NOW + ahead, NOW, 6 * SECOND) is None


@given(rate=_rates, step=_steps)
def test_a_step_of_the_clock_costs_one_spacing_at_the_most(rate: int, step: timedelta) -> None:
    """However far the clock is set back or forth: looking again and again, the slot comes when it was said to."""
    apart = spacing(rate)
    noted = NOW + apart + MAX_AHEAD
    now = NOW + step
    first = next_slot(noted, now, apart) or now
    assert first - now <= apart + MAX_AHEAD
    # Half the way there it is the same moment: it does not recede.
    halfway = now + max(first - now, timedelta()) / 2
    assert next_slot(noted, halfway, apart) in {noted, None}
    assert (next_slot(noted, halfway, apart) or halfway) <= max(first, halfway)


@given(rate=_rates, step=_steps)
def test_who_takes_over_waits_one_spacing_whatever_the_clock_was(rate: int, step: timedelta) -> None:
    """What was begun before lies before now; more than a spacing and what can be taken ahead is never waited for."""
    apart = spacing(rate)
    slot = first_slot(NOW + step, NOW, apart)
    assert NOW + apart <= slot <= NOW + apart + MAX_AHEAD
    assert first_slot(None, NOW, apart) == NOW + apart
