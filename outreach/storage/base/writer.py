"""The writer: operations queue up as jobs, and are committed in groups, each undone by itself if it fails.

A disk syncs fifty operations as fast as one, so that the operations that queue up during a commit form the next group:
one transaction, one unit of work, one commit, then the answers.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final, Protocol

import attrs

from outreach.core.clock import Clock
from outreach.core.logged_errors import log_error
from outreach.errors import DatabaseReplaced, StorageError
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import Operation, Within
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.unit_of_work import RollbackRequired, TransactionControl, UnitOfWork

_log = logging.getLogger("outreach")


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

    @property
    def workspace_ids(self) -> frozenset[str] | None:
        """The workspaces that it writes in; None for all."""
        return self.operation.workspace_ids if isinstance(self.operation, Within) else None

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


def _turn_of(job: Job) -> Hashable:
    """Return what shares a turn with a job: operations within the same workspaces do."""
    return job if job.workspace_ids is None else job.workspace_ids


class Queue:
    """Jobs in two lanes, and the workers that sleep while there are none.

    In the urgent lane workspaces take turns, so that one that has much to write delays another by one operation.
    An operation for all workspaces has a turn of its own.

    A worker is a function that wakes a thread. Each new job wakes one sleeping worker. Finding no job and falling
    asleep are one step under the lock, so that no job is missed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent: dict[Hashable, deque[Job]] = {}
        self._bulk: deque[Job] = deque()
        self._asleep: list[Callable[[], None]] = []

    def add(self, worker: Callable[[], None]) -> None:
        """Add a worker, while nothing is queued."""
        self._asleep.append(worker)

    def submit(self, operation: Operation[Any], *, bulk: bool = False) -> Job:
        """Queue an operation and wake a sleeping worker."""
        job = Job(operation=operation, bulk=bulk, done=asyncio.get_running_loop().create_future())
        with self._lock:
            (self._bulk if bulk else self._urgent.setdefault(_turn_of(job), deque())).append(job)
            wake = self._asleep.pop(0) if self._asleep else None
        if wake is not None:
            wake()
        return job

    @property
    def waiting(self) -> int:
        """How many jobs are queued."""
        with self._lock:
            return sum(map(len, self._urgent.values())) + len(self._bulk)

    @property
    def bulk_waits(self) -> bool:
        """Whether bulk work is queued."""
        return bool(self._bulk)

    def take(self, *, bulk_first: bool = False) -> Job | None:
        """Return the next job, an urgent one first unless `bulk_first`."""
        with self._lock:
            first = self._next(self._bulk) if bulk_first else None
            return first or self._next_urgent() or self._next(self._bulk)

    def put_back(self, job: Job) -> None:
        """Queue a job again that was taken last, before all others."""
        with self._lock:
            if job.bulk:
                self._bulk.appendleft(job)
            else:
                lane = self._urgent.pop(_turn_of(job), deque())
                lane.appendleft(job)
                self._urgent = {_turn_of(job): lane, **self._urgent}

    def take_or_sleep(self, worker: Callable[[], None]) -> Job | None:
        """Return the next job; without one the worker sleeps."""
        with self._lock:
            job = self._next_urgent() or self._next(self._bulk)
            if job is None:
                self._asleep.append(worker)
            return job

    def take_all(self, which: Callable[[Job], bool] = lambda _: True) -> Sequence[Job]:
        """Return all jobs, or some of them."""
        with self._lock:
            jobs = [job for job in (*chain(*self._urgent.values()), *self._bulk) if which(job)]
            taken = set(jobs)
            left = {turn: deque(job for job in lane if job not in taken) for turn, lane in self._urgent.items()}
            self._urgent = {turn: lane for turn, lane in left.items() if lane}
            self._bulk = deque(job for job in self._bulk if job not in taken)
            return [job for job in jobs if not job.dropped]

    def sleep(self, worker: Callable[[], None]) -> bool:
        """Let a worker sleep if there is no job; return whether it does."""
        with self._lock:
            if self._urgent or self._bulk:
                return False
            self._asleep.append(worker)
            return True

    def _next_urgent(self) -> Job | None:
        while self._urgent:
            turn = next(iter(self._urgent))
            lane = self._urgent.pop(turn)
            job = self._next(lane)
            if lane:
                self._urgent[turn] = lane
            if job is not None:
                return job
        return None

    @staticmethod
    def _next(lane: deque[Job]) -> Job | None:
        while lane:
            job = lane.popleft()
            if not job.dropped:
                return job
        return None


class CommitUnknown(StorageError):
    """It could not be found out whether a transaction was committed."""


class Session(Protocol):
    """A connection's unit of work and tables."""

    rows: UnitOfWork
    transaction: Transaction


class GroupControl(TransactionControl, Protocol):
    """How transactions of groups begin and end; a commit raises `CommitUnknown` if it may or may not have happened."""

    def cover(self, workspace_ids: frozenset[str] | None) -> bool:
        """Have the transaction write in these workspaces too, None for all, unless it would have to wait for others.

        Returns:
            Whether it may write in all of them.
        """
        ...

    def check_open(self, error: BaseException) -> None:
        """Raise if the transaction cannot go on after a job's error.

        Raises:
            RollbackRequired: The others have to run again, each alone.
            Exception: The database's error: the whole group has failed.
        """
        ...

    def fails_too(self, error: BaseException, first: Job, other: Job) -> bool:
        """Return whether an error that kept the first job's transaction from beginning fails another job too."""
        ...

    def may_run_again(self, error: BaseException) -> bool:
        """Return whether what failed by this error may be run again, after waiting for a moment."""
        ...

    def as_caller_error(self, error: BaseException) -> BaseException:
        """Return an operation's error for its caller: the driver's translated, any other as it is."""
        ...

    def as_storage_error(self, error: BaseException) -> StorageError | None:
        """Return a driver's error translated; None for any other."""
        ...

    def name_of(self, error: BaseException) -> str:
        """Return an error's short name: the database's own, such as `SQLITE_FULL`, or that of its class."""
        ...


def commit_group(
    session: Session, first: Job, take: Callable[[], Job | None], group: list[Job], *, control: GroupControl
) -> None:
    """Run jobs in one transaction until none is left, and commit; each job then has its outcome.

    A failed job is undone alone. If its rows have reached the database, the transaction is rolled back and every other
    job runs again in a transaction of its own. A transaction that was lost on the way is run again.

    Args:
        session: The connection.
        first: The first job.
        take: Returns the next job, in workspaces that the transaction covers; None to commit.
        group: Receives the jobs in order. It stays empty if no transaction could begin.
        control: How transactions begin and end.

    Raises:
        Exception: The group failed: the disk is full, the database is locked or away, or worse.
    """
    again, has_begun = deque([first]), False

    def next_job() -> Job | None:
        return again.popleft() if again else take()

    while True:
        try:
            _run_group(session, next_job, group, control, workspaces_of(again))
        except RollbackRequired:
            _roll_back(session, control)
            group.extend(again)
            for job in group:
                if job.error is None:
                    _commit_alone(session, job, control)
            return
        except BaseException as error:
            _roll_back(session, control)
            has_begun = has_begun or bool(group)
            # A job that was to run again, and has not yet, gets the group's outcome.
            again.extendleft(reversed(group))
            group.clear()
            if not control.may_run_again(error):
                if has_begun:
                    group.extend(again)
                raise
            left = [job for job in again if not job.dropped]
            if not left:
                return
            again.clear()
            again.extend(left)
            for job in left:
                job.forget_outcome()
        else:
            return


def workspaces_of(jobs: Iterable[Job]) -> frozenset[str] | None:
    """Return the workspaces that jobs write in; None for all."""
    within: frozenset[str] = frozenset()
    for job in jobs:
        if job.workspace_ids is None:
            return None
        within |= job.workspace_ids
    return within


def _run_group(
    session: Session,
    take: Callable[[], Job | None],
    group: list[Job],
    control: GroupControl,
    within: frozenset[str] | None,
) -> None:
    control.begin(within)
    session.rows.read_only = False
    session.rows.begin()
    while (job := take()) is not None:
        group.append(job)
        _run(session, job, control)
    session.rows.flush_at_commit()
    control.commit()
    session.rows.commit()


def _run(session: Session, job: Job, control: GroupControl) -> None:
    """Run a job in the group's transaction.

    Raises:
        RollbackRequired: It failed and cannot be undone alone, or a row of the group was refused.
        Exception: The database has lost the whole transaction, as on a full disk.
    """
    savepoint = session.rows.savepoint()
    try:
        job.run(session.transaction)
    except RollbackRequired:
        raise
    except BaseException as error:  # whatever it is, it is the caller's
        job.fail(control.as_caller_error(error))
        control.check_open(error)
        session.rows.rollback_to(savepoint)


def _commit_alone(session: Session, job: Job, control: GroupControl) -> None:
    """Run a job again in its own transaction."""
    while True:
        try:
            session.rows.run_writing(control, lambda: job.run(session.transaction), workspace_ids=job.workspace_ids)
        except BaseException as error:  # whatever it is, it is the caller's
            if control.may_run_again(error):
                continue
            job.fail(control.as_caller_error(error))
        return


def _roll_back(session: Session, control: GroupControl) -> None:
    session.rows.forget()
    control.roll_back()


def fail_jobs(jobs: Sequence[Job], error: Exception, *, control: GroupControl) -> None:
    """Fail the jobs without an error of their own: nothing was written, unless the error says that this is unknown."""
    translated = control.as_storage_error(error)
    kind = StorageError if translated is None else type(translated)
    # The words of another error may quote a value.
    reason = f"{type(error).__name__}." if translated is None else translated.message
    for job in jobs:
        if job.error is None and isinstance(error, DatabaseReplaced):
            job.fail(type(error)(error.message))
        elif job.error is None and isinstance(error, CommitUnknown):
            job.fail(CommitUnknown(error.message))
        elif job.error is None:
            failure = kind(f"Nothing was written. {reason}")
            failure.__cause__ = error
            job.fail(failure)


GROUP_SECONDS: Final = 0.025
"""After this long a group takes no further operation."""

BULK_AFTER_GROUPS: Final = 3
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
            group: list[Job] = []
            try:
                deliver(self._commit_group(group))
            except Exception as error:
                deliver(self._fail_all(group, error))
            if self._queue.sleep(self._wake):
                return
            # Bounded, so that a jumping clock (sleep, tests) does not stop writing.
            time.sleep(min(self._clock.monotonic() - begun, 10 * GROUP_SECONDS) * PAUSE_FRACTION)

    def _fail_all(self, group: Sequence[Job], error: Exception) -> Sequence[Job]:
        """Fail the jobs of a group, and those queued, after an error in this class: no caller may wait for ever."""
        what = "The writer of the database failed by a mistake in its code."
        log_error(_log, logging.ERROR, what, error=error, extra={"action": "writer_failed"})
        for job in group:
            if job.error is None:
                job.fail(CommitUnknown(f"It is unknown whether this was written. {what}"))
        queued = self._queue.take_all()
        for job in queued:
            job.fail(StorageError(f"Nothing was written. {what}"))
        return [*group, *queued]

    def _commit_group(self, group: list[Job]) -> Sequence[Job]:
        """Run and commit one group, to which its jobs are added; return those that have ended."""
        first = self._queue.take(bulk_first=self._groups_since_bulk >= BULK_AFTER_GROUPS)
        if first is None:
            return ()
        begun = self._clock.monotonic()
        until = begun + GROUP_SECONDS

        def take() -> Job | None:
            if group[-1].bulk or self._clock.monotonic() >= until:
                return None
            job, covered = self._queue.take(), False
            if job is None:
                return None
            try:
                covered = self._control.cover(job.workspace_ids)
            finally:
                if not covered:
                    self._queue.put_back(job)
            return job if covered else None

        try:
            commit_group(self._session, first, take, group, control=self._control)
        except Exception as error:
            # Bulk work that waits for another process's lock is not taken first again in the next group.
            self._groups_since_bulk = 0
            if not group:
                self._queue.put_back(first)
            failed = self._without_waiting_bulk(error, group) if group else self._take_failing(error, first)
            fail_jobs(failed, error, control=self._control)
            self._instrumentation.transaction_failed(operations=len(failed), error=self._control.name_of(error))
            return failed
        waiting = []
        for job in group:
            # The others ran again without it.
            if isinstance(job.error, StorageError) and isinstance(cause := job.error.__cause__, Exception):
                self._instrumentation.transaction_failed(operations=1, error=self._control.name_of(cause))
                if self._waits_longer(cause)(job):
                    waiting.append(job)
        self._instrumentation.transaction_committed(
            operations=len(group), seconds=self._clock.monotonic() - begun, queued=self._queue.waiting
        )
        had_bulk = bool(group) and group[-1].bulk
        self._groups_since_bulk = 0 if had_bulk or not self._queue.bulk_waits else self._groups_since_bulk + 1
        return self._queue_again(waiting, group)

    def _without_waiting_bulk(self, error: Exception, group: Sequence[Job]) -> Sequence[Job]:
        """Return the jobs of a group that an error fails; bulk work that waits for longer is queued again."""
        waits = self._waits_longer(error)
        return self._queue_again([job for job in group if job.error is None and waits(job)], group)

    def _queue_again(self, waiting: Sequence[Job], group: Sequence[Job]) -> Sequence[Job]:
        """Queue jobs of a group again; return the others."""
        for job in waiting:
            job.forget_outcome()
            self._queue.put_back(job)
        return [job for job in group if job not in waiting]

    def _take_failing(self, error: Exception, first: Job) -> Sequence[Job]:
        """Take the queued jobs that the same error fails, because no transaction began. Bulk work waits longer."""
        waits = self._waits_longer(error)
        return self._queue.take_all(lambda job: not waits(job) and self._control.fails_too(error, first, job))

    def _waits_longer(self, error: Exception) -> Callable[[Job], bool]:
        """Return a function that returns whether a job goes on waiting after this error: bulk work does for a time."""
        since = time.monotonic() - BULK_SECONDS if self._bulk_waits_for(error) else float("inf")
        return lambda job: job.bulk and job.since > since
