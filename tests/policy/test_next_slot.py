from __future__ import annotations

from datetime import timedelta

import pytest

from outreach.policy.pacing import MOST_AHEAD, next_slot
from outreach.testing.builders import NOW

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("ahead", [-timedelta(hours=1), timedelta(), 6 * SECOND, 6 * SECOND + MOST_AHEAD])
def test_a_slot_that_can_have_been_taken_stands(ahead: timedelta) -> None:
    """It lies no farther ahead than a spacing after the last one that a wave could take."""
    assert next_slot(NOW + ahead, NOW, 6 * SECOND) == NOW + ahead
    assert next_slot(None, NOW, 6 * SECOND) is None


@pytest.mark.parametrize("ahead", [timedelta(seconds=12), timedelta(hours=1), timedelta(days=4000)])
def test_a_slot_of_a_clock_that_was_set_back_holds_nobody_up(ahead: timedelta) -> None:
    """One spacing from now on keeps the pace."""
    assert next_slot(NOW + ahead, NOW, 6 * SECOND) == NOW + 6 * SECOND
