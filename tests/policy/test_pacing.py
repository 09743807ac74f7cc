"""Pace: no minute holds more than the rate, and lost time stays lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outreach.policy.pacing import next_slot, slots_until, spacing, spacing_seconds

_NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_RATES = st.integers(1, 600)
_PAUSES = st.lists(st.integers(0, 90_000_000).map(lambda us: timedelta(microseconds=us)), min_size=1, max_size=50)


@pytest.mark.parametrize(
    ("rate", "microseconds"), [(1, 60_000_000), (60, 1_000_000), (600, 100_000), (7, 8_571_429), (599, 100_167)]
)
def test_spacing_is_a_minute_by_the_rate_rounded_up(rate: int, microseconds: int) -> None:
    """Whole microseconds, so that nothing is lost to floating point."""
    assert spacing(rate) == timedelta(microseconds=microseconds)
    assert spacing_seconds(rate) == microseconds / 1_000_000


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_is_positive(rate: int) -> None:
    """No spacing sends nothing."""
    with pytest.raises(ValueError, match="at least 1"):
        spacing(rate)


@settings(deadline=None, max_examples=50)
@given(rate=_RATES)
def test_a_full_run_holds_the_rate_in_every_minute(rate: int) -> None:
    """With slots taken as fast as they come, a window that starts at any of them holds exactly the rate or less."""
    slots = slots_until(_NOW, None, rate, until=_NOW + 3 * _MINUTE, most=10_000)
    for first, later in zip(slots, slots[rate:], strict=False):
        assert later >= first + _MINUTE
    assert len([slot for slot in slots if slot < _NOW + _MINUTE]) == rate


@given(rate=_RATES, pauses=_PAUSES, changes=st.data())
def test_no_window_holds_more_than_the_rate(rate: int, pauses: list[timedelta], changes: st.DataObject) -> None:
    """Whenever slots are asked for, and however many at once, any half-open minute holds at most the rate."""
    now, last = _NOW, None
    slots: list[datetime] = []
    for pause in pauses:
        now += pause
        for _ in range(changes.draw(st.integers(1, 4))):
            last = next_slot(now, last, rate)
            assert last >= now
            slots.append(last)
    for index, slot in enumerate(slots):
        beyond = slots[index + rate : index + rate + 1]
        assert all(later >= slot + _MINUTE for later in beyond)


def test_unused_slots_are_not_made_up_for() -> None:
    """After an hour of silence the next two messages are a spacing apart."""
    later = _NOW + timedelta(hours=1)
    first = next_slot(later, _NOW, 60)
    assert first == later
    assert next_slot(later, first, 60) == later + timedelta(seconds=1)


def test_the_first_slot_is_now() -> None:
    """Nothing was taken, nothing is waited for."""
    assert next_slot(_NOW, None, 1) == _NOW


def test_a_changed_rate_takes_effect_with_the_next_slot() -> None:
    """The last slot is remembered, not the next, so that a slower rate is slower at once."""
    last = next_slot(_NOW, None, 600)
    assert next_slot(_NOW, last, 1) == _NOW + _MINUTE


@pytest.mark.parametrize(("most", "expected"), [(0, 0), (2, 2), (10, 3)])
def test_slots_are_taken_up_to_a_moment_and_a_number(most: int, expected: int) -> None:
    """The end is exclusive."""
    slots = slots_until(_NOW, None, 60, until=_NOW + timedelta(seconds=3), most=most)
    assert slots == tuple(_NOW + timedelta(seconds=index) for index in range(expected))


def test_no_slot_comes_after_the_end() -> None:
    """A slot that is not due in time is left for later."""
    assert slots_until(_NOW, _NOW, 60, until=_NOW + timedelta(seconds=1), most=5) == ()
