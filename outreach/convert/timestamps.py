"""Timestamps of requests: RFC 3339, with an offset that may be left out."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))?"
)
_LEAP_SECOND: Final = 60
_FIRST_YEAR, _LAST_YEAR = 2, 9998
"""In the years outside, a moment may have no name in UTC that can be stored."""


def read_timestamp(text: str) -> datetime | None:
    """Return the moment in UTC that a text names, or None when it names none.

    Without an offset it is UTC. A leap second is the first moment of the next minute, as clocks that know no
    leap seconds show it; digits beyond microseconds are cut.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, _, sign, offset_hours, offset_minutes = match.groups()[6:]
    if not _FIRST_YEAR <= year <= _LAST_YEAR or int(offset_hours or 0) > 23 or int(offset_minutes or 0) > 59:
        return None
    is_leap = second == _LEAP_SECOND
    try:
        local = datetime(
            year,
            month,
            day,
            hour,
            minute,
            second - is_leap,
            0 if is_leap else int((fraction or "")[:6].ljust(6, "0")),
            tzinfo=_zone(sign, offset_hours, offset_minutes),
        )
    except ValueError:
        return None
    return local.astimezone(UTC) + timedelta(seconds=is_leap)


def _zone(sign: str | None, hours: str | None, minutes: str | None) -> timezone:
    if sign is None or hours is None or minutes is None:
        return UTC
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-offset if sign == "-" else offset)
