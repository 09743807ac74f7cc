"""Group commit: operations in one transaction, each undone by itself if it fails."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from outreach.errors import DatabaseReplaced, StorageError
from outreach.storage.base.jobs import Job
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.journal import RollbackRequired
from outreach.storage.unit_of_work.transaction import TransactionControl, run_writing
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork


class CommitUnknown(StorageError):
    """It could not be found out whether a transaction was committed."""


class Session(Protocol):
    """A connection's unit of work and tables."""

    rows: UnitOfWork
    transaction: Transaction


class GroupControl(TransactionControl, Protocol):
    """How transactions of groups begin and end; a commit raises `CommitUnknown` if it may or may not have happened."""

    def check_open(self, error: BaseException) -> None:
        """Raise if the transaction cannot go on after a job's error.

        Raises:
            RollbackRequired: The others have to run again, each alone.
            Exception: The database's error: the whole group has failed.
        """
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


def commit_group(session: Session, take: Callable[[], Job | None], group: list[Job], *, control: GroupControl) -> None:
    """Run jobs in one transaction until none is left, and commit; each job then has its outcome.

    A failed job is undone alone. If its rows have reached the database, the transaction is rolled back and every other
    job runs again in a transaction of its own. A transaction that was lost on the way is run again.

    Args:
        session: The connection.
        take: Returns the next job; None to commit.
        group: Receives the jobs in order.
        control: How transactions begin and end.

    Raises:
        Exception: The group failed: the disk is full, the database is locked or away, or worse.
    """
    again: deque[Job] = deque()
    while True:
        try:
            _run_group(session, lambda: again.popleft() if again else take(), group, control)
        except RollbackRequired:
            _roll_back(session, control)
            group.extend(again)
            for job in group:
                if job.error is None:
                    _commit_alone(session, job, control)
            return
        except BaseException as error:
            _roll_back(session, control)
            # A job that was to run again, and has not yet, gets the group's outcome.
            group.extend(again)
            again.clear()
            if not control.may_run_again(error):
                raise
            again.extend(job for job in group if not job.dropped)
            group.clear()
            for job in again:
                job.forget_outcome()
        else:
            return


def _run_group(session: Session, take: Callable[[], Job | None], group: list[Job], control: GroupControl) -> None:
    control.begin()
    session.rows.read_only = False
    session.rows.begin()
    while (job := take()) is not None:
        group.append(job)
        _run(session, job, control)
    session.rows.flush()
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
            run_writing(session.rows, session.transaction, control, job.run)
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
