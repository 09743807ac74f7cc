"""Pace: the moments at which messages may start, so that no minute holds more than the rate."""

from __future__ import annotations

from datetime import datetime, timedelta
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


def spacing_seconds(rate_per_minute: int) -> float:
    """Return the time between two slots in seconds."""
    return spacing(rate_per_minute).total_seconds()


def next_slot(now: datetime, last_slot: datetime | None, rate_per_minute: int) -> datetime:
    """Return the next slot: one spacing after the last one that was taken, and never in the past.

    Time in which no slot was taken is gone: a pause is not followed by a burst. A change of the rate takes
    effect with the next slot.

    Args:
        now: The present moment.
        last_slot: The slot that was taken last, used or not; None before the first.
        rate_per_minute: How many slots a minute may hold.
    """
    if last_slot is None:
        return now
    return max(now, last_slot + spacing(rate_per_minute))


def slots_until(
    now: datetime, last_slot: datetime | None, rate_per_minute: int, *, until: datetime, most: int
) -> tuple[datetime, ...]:
    """Return the next slots, no more than `most`, that come before `until`."""
    slots: list[datetime] = []
    slot = next_slot(now, last_slot, rate_per_minute)
    while len(slots) < most and slot < until:
        slots.append(slot)
        slot = next_slot(now, slot, rate_per_minute)
    return tuple(slots)
