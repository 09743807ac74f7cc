"""Equal steps of a stretch of time, for charts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

_HOUR: Final = timedelta(hours=1)
_DAYS: Final = (1, 7, 28, 364)
MAX_STEPS: Final = 120
"""More than a chart can show."""

_HOURLY: Final = timedelta(days=3)


def bounds(first: datetime, last: datetime, timezone: str) -> Sequence[datetime]:
    """Return the bounds of the steps that hold both moments: one more than there are steps, at most `MAX_STEPS`.

    A step is an hour where the stretch is at most three days, else one or more whole days of the zone, from midnight to
    midnight by its clocks.
    """
    zone = ZoneInfo(timezone)
    if last - first <= _HOURLY:
        start = first.replace(minute=0, second=0, microsecond=0)
        count = int((last - start) / _HOUR) + 1
        return [start + _HOUR * index for index in range(count + 1)]
    midnight = first.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    days = (last.astimezone(zone).date() - midnight.date()).days + 1
    each = next((size for size in _DAYS if days / size <= MAX_STEPS), -(-days // MAX_STEPS))
    count = -(-days // each)
    # Of aware times Python adds to the wall clock, so that days of 23 and 25 hours are days.
    moments = [midnight + timedelta(days=each * index) for index in range(count + 1)]
    return [moment.astimezone(first.tzinfo) for moment in moments]
