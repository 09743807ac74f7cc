"""Pace: how far apart messages start, so that no minute holds more than the rate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.models.campaign import CallerIdAllocation

MAX_AHEAD: Final = timedelta(seconds=5)
"""How far ahead of its commit a slot lies at the most: an intent lives no longer (docs/delivery-contract.md#rule-4)."""

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


def next_slot(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime | None:
    """Return the next slot, which lies no farther ahead than one can be taken; None for any.

    A slot beyond that was noted before the clock was set back, and holds nobody up: a moment that is reckoned from now
    would go on receding at each look. The pace is kept all the same: a process spaces its requests by its monotonic
    clock, those of the one before it included, and one that takes over notes a slot of its own (`first_slot`).
    """
    return noted if noted is None or noted <= now + spacing + MAX_AHEAD else None


def first_slot(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime:
    """Return the first slot of a worker that takes over: one spacing from now, for all that it began lies before."""
    floor = now + spacing
    return max(next_slot(noted, now, spacing) or floor, floor)


def next_caller_id(group: Sequence[CallerIdAllocation], assigned: int) -> str:
    """Return the number for the next recipient.

    Each entry allocates `count` recipients to its number in turn; after the last the first comes again.

    Args:
        group: At least one entry; counts are at least 1.
        assigned: How many recipients have got a number so far.

    Raises:
        ValueError: The group has no place to give.
    """
    total = sum(entry.count for entry in group)
    if not total:
        raise ValueError("A caller-ID group needs at least one entry with a count of at least 1.")
    # Counted and not laid out: counts may be a million, and this is asked for every call inside a transaction.
    turn = assigned % total
    for entry in group[:-1]:
        if turn < entry.count:
            return entry.phone
        turn -= entry.count
    return group[-1].phone
