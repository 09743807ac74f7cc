"""Pace: how far apart messages start, so that no minute holds more than the rate."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

_MINUTE_IN_MICROSECONDS: Final = 60_000_000


def spacing(rate_per_minute: int) -> timedelta:
    """Return the time between two slots, in whole microseconds, rounded up.

    Rounded up, `rate_per_minute` spacings are never shorter than a minute, so that every half-open window of
    60 s holds at most `rate_per_minute` slots.

    Raises:
        ValueError: The rate is not positive.
    """
    if rate_per_minute < 1:
        raise ValueError(f"A rate is at least 1 a minute, not {rate_per_minute}.")
    return timedelta(microseconds=-(-_MINUTE_IN_MICROSECONDS // rate_per_minute))
