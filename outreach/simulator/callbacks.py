"""Callbacks of the simulators: reports that come later."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import anyio

from outreach.clock import Clock
from outreach.models.reports import Report
from outreach.protocols.carrier import ReportSink

_MOST_AT_ONCE: Final = 200
"""Reports that are handed in together."""

_Due = tuple[datetime, int, Callable[[], Report]]


class Callbacks:
    """Reports that are handed in at their time, in the order of their times; those that are due at once together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._queue: list[_Due] = []
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
            due: list[_Due] = []
            while self._queue and self._queue[0][0] <= now and len(due) < _MOST_AT_ONCE:
                due.append(heapq.heappop(self._queue))
            if due:
                await self._hand_in(due, sink)
                continue
            wait = (self._queue[0][0] - now).total_seconds() if self._queue else None
            with anyio.move_on_after(wait):
                await self._changed.wait()

    async def _hand_in(self, due: Sequence[_Due], sink: ReportSink) -> None:
        """Hand in some reports, as by as many connections; what was not taken in is told again."""
        left = {order: (at, order, make) for at, order, make in due}
        errors: list[Exception] = []

        async def hand_in(order: int, make: Callable[[], Report]) -> None:
            try:
                await sink(make())
            except Exception as error:
                errors.append(error)
            else:
                del left[order]

        try:
            async with anyio.create_task_group() as tasks:
                for _, order, make in due:
                    tasks.start_soon(hand_in, order, make)
        finally:
            for one in left.values():
                heapq.heappush(self._queue, one)
        if errors:
            raise errors[0]
