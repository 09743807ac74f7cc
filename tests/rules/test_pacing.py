"""Pace: no minute holds more than the rate."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.deciding import spacing

_MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("rate", "microseconds"), [(1, 60_000_000), (60, 1_000_000), (600, 100_000), (7, 8_571_429), (599, 100_167)]
)
def test_spacing_is_a_minute_by_the_rate_rounded_up(rate: int, microseconds: int) -> None:
    """Whole microseconds, so that nothing is lost to floating point."""
    assert spacing(rate) == timedelta(microseconds=microseconds)


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_is_positive(rate: int) -> None:
    """No spacing sends nothing."""
    with pytest.raises(ValueError, match="at least 1"):
        spacing(rate)


@given(rate=st.integers(1, 600))
def test_a_spacing_is_as_short_as_the_rate_allows(rate: int) -> None:
    """So many spacings are no shorter than a minute, and a microsecond less would be: no window holds one more."""
    assert rate * spacing(rate) >= _MINUTE
    assert rate * (spacing(rate) - timedelta(microseconds=1)) < _MINUTE
