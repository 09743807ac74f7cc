"""The writer: operations queue up and are committed in groups.

A disk syncs fifty operations as fast as one, so that the operations that queue up during a commit form the next group:
one transaction, one unit of work, one commit, then the answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from outreach.core.clock import Clock
from outreach.errors import StorageError
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import Operation
from outreach.storage.base.group_commit import GroupControl, Session, commit_group, fail_jobs
from outreach.storage.base.jobs import Job, Queue, deliver

GROUP_SECONDS: Final = 0.025
"""After this long a group takes no further operation."""

BULK_AFTER_GROUPS: Final = 8
"""Bulk work goes first after waiting for so many groups."""

PAUSE_FRACTION: Final = 1 / 8
"""The pause between groups, as a fraction of the last one, in which another process can take the lock."""

BULK_SECONDS: Final = 30.0
"""How long bulk work waits for another process's lock, because a failure would lose a long load."""


class GroupWriter:
    """Commits operations in groups.

    Args:
        session: The unit of work and tables.
        control: How transactions begin and end.
        wake: Has the writer's thread call `work`; may be called from any thread.
        clock: Measures the length of groups.
        bulk_waits_for: Returns whether bulk work goes on waiting after this error.
        instrumentation: Observes each group.
    """

    def __init__(
        self,
        session: Session,
        *,
        control: GroupControl,
        wake: Callable[[], None],
        clock: Clock,
        bulk_waits_for: Callable[[Exception], bool],
        instrumentation: Instrumentation | None = None,
    ) -> None:
        self._session = session
        self._control = control
        self._wake = wake
        self._clock = clock
        self._bulk_waits_for = bulk_waits_for
        self._instrumentation = instrumentation or Instrumentation()
        self._queue = Queue()
        self._queue.add(wake)
        self._groups_since_bulk = 0

    async def run(self, operation: Operation[Any], *, bulk: bool) -> Any:
        """Queue an operation; return its result, or raise its error, after the commit."""
        return await self._queue.submit(operation, bulk=bulk).outcome()

    def work(self) -> None:
        """Commit groups until nothing is queued; runs in the writer's thread."""
        while True:
            begun = self._clock.monotonic()
            deliver(self._commit_group())
            if self._queue.sleep(self._wake):
                return
            # Bounded, so that a jumping clock (sleep, tests) does not stop writing.
            time.sleep(min(self._clock.monotonic() - begun, 10 * GROUP_SECONDS) * PAUSE_FRACTION)

    def _commit_group(self) -> Sequence[Job]:
        """Run and commit one group; return its jobs."""
        group: list[Job] = []
        begun = self._clock.monotonic()
        until = begun + GROUP_SECONDS

        def take() -> Job | None:
            if not group:
                return self._queue.take(bulk_first=self._groups_since_bulk >= BULK_AFTER_GROUPS)
            full = group[-1].bulk or self._clock.monotonic() >= until
            return None if full else self._queue.take()

        try:
            commit_group(self._session, take, group, control=self._control)
        except Exception as error:
            # If no transaction began, everybody else would wait as long in vain.
            failed = group or self._queue.take_all(bulk_since=self._bulk_since(error))
            fail_jobs(failed, error, control=self._control)
            self._instrumentation.transaction_failed(operations=len(failed), error=self._control.name_of(error))
            return failed
        for job in group:
            # The others ran again without it.
            if isinstance(job.error, StorageError) and (cause := job.error.__cause__) is not None:
                self._instrumentation.transaction_failed(operations=1, error=self._control.name_of(cause))
        self._instrumentation.transaction_committed(
            operations=len(group), seconds=self._clock.monotonic() - begun, queued=self._queue.waiting
        )
        had_bulk = bool(group) and group[-1].bulk
        self._groups_since_bulk = 0 if had_bulk or not self._queue.bulk_waits else self._groups_since_bulk + 1
        return group

    def _bulk_since(self, error: Exception) -> float:
        """Return how old bulk work must be to fail by an error."""
        return time.monotonic() - BULK_SECONDS if self._bulk_waits_for(error) else float("inf")
