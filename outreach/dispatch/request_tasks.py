"""Requests that wait for their slots, and the tasks of those that have started."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextvars import Context
from itertools import count
from types import TracebackType
from typing import Final, NamedTuple

from outreach.providers.pool import ProviderRequest

_FINAL_RECORD_SECONDS: Final = 0.7
"""How long recording the outcomes known at a lease's end may take, before they are kept for later: a process that stops
does not wait longer."""

_START_APART_SECONDS: Final = 0.004
"""The least time between two looks at the requests whose slots have come: those of one look share their last check."""

CANCEL_AGAIN_SECONDS: Final = 0.1
"""How often a request is cancelled whose adapter goes on all the same."""

_MOST_CANCELLATIONS: Final = 50
"""After so many its task is left behind."""


class WaitingRequest(NamedTuple):
    """A request that waits for its slot.

    Attributes:
        waits_until: The moment on the monotonic clock at which it waits no longer, whatever the wall clock says.
        context: The context variables that everything of the request sees.
    """

    request: ProviderRequest
    waits_until: float
    context: Context


class SlotQueue:
    """Requests by the moments of their slots, with one timer for all of them.

    Args:
        start: Starts a request.
    """

    def __init__(self, start: Callable[[WaitingRequest], None]) -> None:
        self._start = start
        self._waiting: list[tuple[float, int, WaitingRequest]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._last_look = float("-inf")

    def put(self, waiting: WaitingRequest, seconds: float) -> None:
        """Start a request in so many seconds, or now."""
        if seconds <= 0:
            self._start(waiting)
            return
        at = asyncio.get_running_loop().time() + seconds
        heapq.heappush(self._waiting, (at, next(self._numbers), waiting))
        if self._waiting[0][2] is waiting:
            self._set_timer()

    def start_all(self) -> None:
        """Start all requests now."""
        for _, _, waiting in sorted(self._waiting):
            self._start(waiting)
        self._waiting.clear()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._waiting:
            at = max(self._waiting[0][0], self._last_look + _START_APART_SECONDS)
            self._timer = asyncio.get_running_loop().call_at(at, self._start_due)

    def _start_due(self) -> None:
        self._last_look = asyncio.get_running_loop().time()
        while self._waiting and self._waiting[0][0] <= self._last_look:
            self._start(heapq.heappop(self._waiting)[2])
        self._set_timer()


class StartedRequest:
    """A request whose slot has come, in a task of its own.

    Attributes:
        task: Its task.
        records: Whether its outcome is being recorded: it is not cancelled any more, unless that takes too long.
        leave: Has its outcome recorded by another task; None until the adapter is called.
        is_left: Whether its task is left behind, because the adapter ignores each cancellation.
    """

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.records = False
        self.leave: Callable[[], None] | None = None
        self.is_left = False
        self._cancellations = 0
        self._has_begun = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Note that its task runs: one that is cancelled before would not record its outcome."""
        self._has_begun = True

    def cancel(self) -> None:
        """Cancel it, unless its outcome is being recorded."""
        if self._has_begun and not self.records:
            self.cancel_or_leave()

    def cancel_or_leave(self) -> None:
        """Cancel its task; leave it behind if its adapter has ignored that for seconds."""
        self.task.cancel()
        if self.leave is not None and not self.is_left:
            self._cancellations += 1
            if self._cancellations == _MOST_CANCELLATIONS:
                self.is_left = True
                self.leave()

    def time_limit(self, seconds: float) -> _TimeLimit:
        """Return a block that is cancelled if it takes longer than this; it ends then, as if nothing was raised."""
        return _TimeLimit(self, seconds)

    def give_up_later(self) -> None:
        """Cancel its recording in a moment."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FINAL_RECORD_SECONDS, self.task.cancel)

    def recorded(self) -> None:
        """Note that its recording has ended."""
        self.records = False
        if self._timer is not None:
            self._timer.cancel()


class _TimeLimit:
    """Cancels a block of a request at the end of a time, again until the block ends or the task is left behind."""

    def __init__(self, started: StartedRequest, seconds: float) -> None:
        self._started = started
        self._seconds = seconds
        self._cancelled = 0

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._cancel)

    def _cancel(self) -> None:
        self._cancelled += 1
        self._started.cancel_or_leave()
        if self._started.is_left:
            return
        self._timer = asyncio.get_running_loop().call_later(CANCEL_AGAIN_SECONDS, self._cancel)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._timer.cancel()
        if not self._cancelled:
            return False
        # Somebody else may have cancelled the task, too.
        task = self._started.task
        ours = task.cancelling() <= self._cancelled
        for _ in range(self._cancelled):
            task.uncancel()
        return ours and isinstance(error, asyncio.CancelledError)
