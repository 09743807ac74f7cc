"""The steps of time by which a campaign's progress is shown, and what the outcomes of its requests add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from outreach.models.live import ProgressPoint
from outreach.models.states import DispatchState, MessageStatus

MAX_POINTS: Final = 1440

STEPS: Final[Sequence[timedelta]] = (
    timedelta(minutes=1),
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(days=1),
)
"""Each is as long as a beginning of stored times tells apart, so that a database groups by it."""

_FIGURES: Final[Mapping[DispatchState, str]] = MappingProxyType(
    {
        DispatchState.DISPATCHING: "in_flight",
        DispatchState.ACCEPTED: "accepted",
        DispatchState.REFUSED: "refused",
        DispatchState.NOT_SENT: "not_sent",
        DispatchState.WITHDRAWN: "not_sent",
        DispatchState.DEFERRED: "not_sent",
        DispatchState.UNKNOWN: "uncertain",
        DispatchState.UNCONFIRMED: "uncertain",
        DispatchState.GIVEN_UP: "uncertain",
    }
)
_REPORTS: Final[Mapping[MessageStatus, str]] = MappingProxyType(
    {
        MessageStatus.DELIVERED: "delivered",
        MessageStatus.FAILED: "undelivered",
        MessageStatus.CANCELED: "undelivered",
    }
)


def steps_between(first: datetime, last: datetime) -> tuple[datetime, timedelta]:
    """Return the first step of a stretch of time, and the shortest length of step that needs at most `MAX_POINTS`.

    Of a stretch that is too long for days, only the latest ones are kept.
    """
    for step in STEPS:
        begin = beginning(first, step)
        if (beginning(last, step) - begin) / step < MAX_POINTS:
            return begin, step
    longest = STEPS[-1]
    return beginning(last, longest) - (MAX_POINTS - 1) * longest, longest


def beginning(moment: datetime, step: timedelta) -> datetime:
    """Return the beginning of the step that holds a moment in UTC."""
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (moment - midnight) // step * step


def points_of(
    rows: Iterable[tuple[datetime, DispatchState, MessageStatus | None, int]],
) -> Sequence[ProgressPoint]:
    """Return the steps of requests by their beginning, state, report and number."""
    figures: dict[datetime, Counter[str]] = {}
    for at, state, report, count in rows:
        found = figures.setdefault(at, Counter())
        found["requests"] += count
        found[_FIGURES[state]] += count
        later = None if report is None else _REPORTS.get(report)
        if state is DispatchState.ACCEPTED and later is not None:
            found[later] += count
    return [ProgressPoint(at=at, **found) for at, found in sorted(figures.items())]
