"""Callbacks of the simulators: reports that come later."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta

import anyio

from outreach.clock import Clock
from outreach.models.reports import Report
from outreach.protocols.carrier import ReportSink


class Callbacks:
    """Reports that are handed in at their time, in the order of their times."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._queue: list[tuple[datetime, int, Callable[[], Report]]] = []
        self._changed = anyio.Event()

    def schedule(self, delay: timedelta, make: Callable[[], Report]) -> None:
        """Have a report made and handed in after a delay."""
        heapq.heappush(self._queue, (self._clock.now() + delay, next(self._order), make))
        self._changed.set()

    async def listen(self, sink: ReportSink) -> None:
        """Hand in reports as they fall due, until it is cancelled."""
        while True:
            self._changed = anyio.Event()
            now = self._clock.now()
            if self._queue and self._queue[0][0] <= now:
                due = heapq.heappop(self._queue)
                try:
                    await sink(due[2]())
                except BaseException:
                    # It was not taken in, so it is told again.
                    heapq.heappush(self._queue, due)
                    raise
                continue
            wait = (self._queue[0][0] - now).total_seconds() if self._queue else None
            with anyio.move_on_after(wait):
                await self._changed.wait()
