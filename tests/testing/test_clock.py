from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from outreach.core.clock import Clock, SystemClock
from outreach.testing.builders import NOW
from outreach.testing.clock import ManualClock, ShiftedClock


def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    """Both of its clocks move together, and only when they are told to."""
    clock = ManualClock(NOW)
    assert (clock.now(), clock.now(), clock.monotonic()) == (NOW, NOW, 0.0)
    clock.advance(1.5)
    assert (clock.now(), clock.monotonic()) == (NOW + timedelta(seconds=1.5), 1.5)


@pytest.mark.parametrize("how", ["start", "set"])
def test_a_manual_clock_of_a_zone_keeps_to_the_true_time(how: str) -> None:
    """Over a change of summer time too: sixteen hours after 20:00 it is 13:00 in New York that night."""
    evening = datetime(2026, 3, 7, 20, 0, tzinfo=ZoneInfo("America/New_York"))
    clock = ManualClock(evening) if how == "start" else ManualClock()
    clock.set(evening)
    clock.advance(16 * 3600)
    assert clock.now() == datetime(2026, 3, 8, 17, 0, tzinfo=UTC)


def test_a_wall_clock_may_be_put_back_and_monotonic_never_goes_back() -> None:
    """`now` may jump; `monotonic` never goes back: that is what `Clock` promises."""
    clock = ManualClock(NOW)
    clock.advance(5)
    clock.set(NOW - timedelta(days=1))
    assert (clock.now(), clock.monotonic()) == (NOW - timedelta(days=1), 5)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def test_a_shifted_clock_runs_on_from_where_it_was_put() -> None:
    """Its wall clock is shifted, its monotonic clock is the one that makes it run."""
    base = ManualClock(NOW)
    clock = ShiftedClock(NOW + timedelta(days=1), clock=base)
    base.advance(2)
    clock.shift(timedelta(hours=-1))
    assert clock.now() == NOW + timedelta(days=1, hours=-1, seconds=2)
    assert clock.monotonic() == base.monotonic()


def test_a_shifted_clock_shows_the_present_when_nothing_is_said() -> None:
    """Without a start it begins at the system's time."""
    clock: Clock = ShiftedClock()
    before = SystemClock().now()
    assert clock.now() - before < timedelta(seconds=10)
