"""This machine's clock against the `Date` of providers' answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import attrs

from outreach.core.clock import Clock
from outreach.errors import Problem

if TYPE_CHECKING:
    import httpx

TOLERANCE: Final = timedelta(seconds=5)

FAR: Final = timedelta(seconds=300)
"""Providers' signatures are refused when they are older, so that by then no callback is taken."""

_SECOND: Final = timedelta(seconds=1)
"""The header has whole seconds."""

_NONE: Final = timedelta(0)


@attrs.frozen
class ClockSample:
    """How far the clock is ahead of a provider's at least; negative if it is behind, zero within the precision."""

    host: str
    ahead: timedelta


class DateWatch:
    """Compares the clock with every answer of a client.

    Attributes:
        samples: One for each answer with a usable date.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: dict[int, datetime] = {}
        self.samples: list[ClockSample] = []

    def __call__(self, request: httpx.Request, response: httpx.Response | None) -> None:
        """Note when a request was sent, and compare when its response has come."""
        now = self._clock.now()
        if response is None:
            self._sent[id(request)] = now
            return
        sent = self._sent.pop(id(request), now)
        date = _date_of(response)
        if date is not None:
            self.samples.append(ClockSample(request.url.host, ahead_of(date, sent=sent, received=now)))


def ahead_of(date: datetime, *, sent: datetime, received: datetime) -> timedelta:
    """Return how far a clock is at least ahead of the server that wrote a date between two of its moments."""
    if sent > date + _SECOND:
        return sent - date - _SECOND
    return min(received - date, _NONE)


def of_clock(samples: Sequence[ClockSample]) -> Sequence[Problem]:
    """Return whether the clock is wrong; where providers disagree, the nearest one counts."""
    nearest = min(samples, key=lambda sample: abs(sample.ahead), default=None)
    if nearest is None or abs(nearest.ahead) <= TOLERANCE:
        return []
    seconds = abs(nearest.ahead).total_seconds()
    way = "ahead of" if nearest.ahead > _NONE else "behind"
    return [
        Problem(
            code="clock_wrong",
            severity="critical" if abs(nearest.ahead) >= FAR else "warning",
            message=(
                f"The clock is {seconds:,.0f} s {way} that of {nearest.host}: hours, expiries and the age of callbacks "
                "are judged by it. Synchronize it."
            ),
            path="the clock of this machine, or of the database's server",
            commands=["sudo timedatectl set-ntp true"],
            looks=["timedatectl timesync-status"],
        )
    ]


def _date_of(response: httpx.Response) -> datetime | None:
    """Return when an answer was written; None if it does not say, or comes from a cache."""
    if "age" in response.headers:
        return None
    try:
        date = parsedate_to_datetime(response.headers.get("date", ""))
    except ValueError:
        return None
    return date if date.tzinfo is not None else None
