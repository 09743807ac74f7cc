"""Jobs: operations on their way to a thread and back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import attrs

from outreach.protocols.storage import Operation
from outreach.storage.unit_of_work import Transaction


@attrs.define(eq=False, kw_only=True)
class Job:
    """One operation with its caller and its outcome.

    Attributes:
        bulk: Whether it is part of bulk work.
        since: When it was queued, in real seconds.
        dropped: Whether its caller has gone, so that it is not started.
    """

    operation: Operation[Any]
    bulk: bool
    done: asyncio.Future[None]
    since: float = attrs.field(factory=time.monotonic)
    dropped: bool = False
    result: Any = None
    error: BaseException | None = None

    def run(self, transaction: Transaction) -> None:
        """Run the operation, or raise its error."""
        self.result = self.operation(transaction)

    def fail(self, error: BaseException) -> None:
        """Set the caller's error."""
        self.result = None
        self.error = error

    def forget_outcome(self) -> None:
        """Forget what came of a run that was undone."""
        self.result = self.error = None

    async def outcome(self) -> Any:
        """Wait for the job; return the operation's result or raise its error."""
        try:
            await self.done
        except asyncio.CancelledError:
            self.dropped = True
            raise
        error = self.error
        if error is None:
            return self.result
        # The error's traceback refers to this frame: this breaks the cycle.
        self.error = None
        try:
            raise error
        finally:
            del error


def deliver(jobs: Sequence[Job]) -> None:
    """Wake the callers of these jobs, from any thread."""
    if not jobs:
        return
    # All jobs of a storage come from one loop; a closed one has no callers.
    with suppress(RuntimeError):
        jobs[0].done.get_loop().call_soon_threadsafe(_wake, jobs)


def _wake(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if not job.done.done():
            job.done.set_result(None)


class Queue:
    """Jobs in two lanes, and the workers that sleep while there are none.

    A worker is a function that wakes a thread. Each new job wakes one sleeping worker. Finding no job and falling
    asleep are one step under the lock, so that no job is missed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent: deque[Job] = deque()
        self._bulk: deque[Job] = deque()
        self._asleep: list[Callable[[], None]] = []

    def add(self, worker: Callable[[], None]) -> None:
        """Add a worker, while nothing is queued."""
        self._asleep.append(worker)

    def submit(self, operation: Operation[Any], *, bulk: bool = False) -> Job:
        """Queue an operation and wake a sleeping worker."""
        job = Job(operation=operation, bulk=bulk, done=asyncio.get_running_loop().create_future())
        with self._lock:
            (self._bulk if bulk else self._urgent).append(job)
            wake = self._asleep.pop(0) if self._asleep else None
        if wake is not None:
            wake()
        return job

    @property
    def waiting(self) -> int:
        """How many jobs are queued."""
        return len(self._urgent) + len(self._bulk)

    @property
    def bulk_waits(self) -> bool:
        """Whether bulk work is queued."""
        return bool(self._bulk)

    def take(self, *, bulk_first: bool = False) -> Job | None:
        """Return the next job, an urgent one first unless `bulk_first`."""
        lanes = (self._bulk, self._urgent) if bulk_first else (self._urgent, self._bulk)
        with self._lock:
            return self._next(lanes[0]) or self._next(lanes[1])

    def take_or_sleep(self, worker: Callable[[], None]) -> Job | None:
        """Return the next job; without one the worker sleeps."""
        with self._lock:
            job = self._next(self._urgent) or self._next(self._bulk)
            if job is None:
                self._asleep.append(worker)
            return job

    def take_all(self, *, bulk_since: float = float("inf")) -> Sequence[Job]:
        """Return all jobs, bulk ones only if they were queued until `bulk_since`."""
        with self._lock:
            left = [job for job in self._bulk if job.since > bulk_since]
            jobs = [*self._urgent, *(job for job in self._bulk if job.since <= bulk_since)]
            self._urgent.clear()
            self._bulk = deque(left)
            return [job for job in jobs if not job.dropped]

    def sleep(self, worker: Callable[[], None]) -> bool:
        """Let a worker sleep if there is no job; return whether it does."""
        with self._lock:
            if self._urgent or self._bulk:
                return False
            self._asleep.append(worker)
            return True

    @staticmethod
    def _next(lane: deque[Job]) -> Job | None:
        while lane:
            job = lane.popleft()
            if not job.dropped:
                return job
        return None
