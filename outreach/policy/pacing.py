"""Pace: slots so far apart that no minute exceeds the rate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.models.campaign import CallerIdAllocation

MAX_AHEAD: Final = timedelta(seconds=5)
"""How far a slot may lie ahead of its commit, which is the lifetime of an intent (docs/delivery-contract.md#rule-4)."""

_MINUTE_IN_MICROSECONDS: Final = 60_000_000


def spacing(rate_per_minute: int) -> timedelta:
    """Return the time between two slots, in microseconds rounded up; raise `ValueError` for a rate below 1.

    Rounded up, every half-open window of 60 s holds at most `rate_per_minute` slots.
    """
    if rate_per_minute < 1:
        raise ValueError(f"A rate is at least 1 a minute, not {rate_per_minute}.")
    return timedelta(microseconds=-(-_MINUTE_IN_MICROSECONDS // rate_per_minute))


def next_slot(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime | None:
    """Return the next slot if it is plausible; None for any time.

    A slot too far ahead dates from before a clock step and is ignored. The pace holds all the same, by the monotonic
    clock within a process, and by `first_slot` after a takeover.
    """
    return noted if noted is None or noted <= now + spacing + MAX_AHEAD else None


def first_slot(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime:
    """Return the first slot after a takeover: at least one spacing from now, because earlier starts lie before now."""
    floor = now + spacing
    return max(next_slot(noted, now, spacing) or floor, floor)


def next_caller_id(group: Sequence[CallerIdAllocation], assigned: int) -> str:
    """Return the number for the next recipient; raise `ValueError` if the group has no place.

    Each entry allocates `count` recipients to its number in turn, and the last is followed by the first. `assigned` is
    the number of earlier recipients.
    """
    total = sum(entry.count for entry in group)
    if not total:
        raise ValueError("A caller-ID group needs at least one entry with a count of at least 1.")
    # Not expanded, because counts may be a million.
    turn = assigned % total
    for entry in group[:-1]:
        if turn < entry.count:
            return entry.phone
        turn -= entry.count
    return group[-1].phone
