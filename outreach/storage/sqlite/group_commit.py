"""Committing operations by the group: all in one transaction, each undone by itself when it fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from outreach.errors import DatabaseReplaced, StorageError
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.jobs import Job
from outreach.working_set.journal import RollbackRequired


class TransactionControl(Protocol):
    """How a transaction begins and ends."""

    def begin(self, raw: sqlite3.Connection) -> None:
        """Begin it."""
        ...

    def commit(self, raw: sqlite3.Connection) -> None:
        """Commit it."""
        ...


class PlainTransactions:
    """A database that nobody else has, and that nobody can put another one in the place of."""

    def begin(self, raw: sqlite3.Connection) -> None:
        """Begin a transaction."""
        raw.execute("BEGIN IMMEDIATE")

    def commit(self, raw: sqlite3.Connection) -> None:
        """Commit it."""
        raw.execute("COMMIT")


PLAIN_TRANSACTIONS: Final = PlainTransactions()


def commit_group(
    session: Session,
    take: Callable[[], Job | None],
    group: list[Job],
    *,
    control: TransactionControl = PLAIN_TRANSACTIONS,
) -> None:
    """Run jobs in one transaction until none is left to take, and commit it; each job has its outcome then.

    A job that fails is undone, and nothing else. Where that cannot be done because its rows have gone to the database,
    the transaction is rolled back and every other job runs again, in a transaction of its own.

    Args:
        session: The connection.
        take: Returns the next job; None to commit.
        group: Gets the jobs, in order.
        control: How transactions begin and end.

    Raises:
        sqlite3.Error: The group was lost: the disk is full, or the file is locked, or worse.
    """
    raw, rows = session.connection, session.rows
    try:
        control.begin(raw)
        rows.begin()
        while (job := take()) is not None:
            group.append(job)
            _run(session, job)
        rows.flush()
    except RollbackRequired:
        _roll_back(session)
        for job in group:
            if job.error is None:
                _commit_alone(session, job, control)
        return
    except BaseException:
        _roll_back(session)
        raise
    _commit(session, control)


def _run(session: Session, job: Job) -> None:
    """Run a job within the group's transaction.

    Raises:
        RollbackRequired: It has failed and cannot be undone by itself, or a row of the group was refused.
        sqlite3.Error: SQLite has undone the whole group by itself: the disk is full, or worse.
    """
    mark = session.rows.savepoint()
    try:
        job.run(session.transaction)
    except RollbackRequired:
        raise
    except BaseException as error:  # whatever it is, it is the caller's
        job.fail(error)
        if not session.connection.in_transaction:
            raise error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error)) from error
        session.rows.rollback_to(mark)


def _commit_alone(session: Session, job: Job, control: TransactionControl) -> None:
    """Run a job again, in a transaction of its own.

    Raises:
        sqlite3.Error: The file is locked, or worse.
    """
    try:
        control.begin(session.connection)
        session.rows.begin()
        session.rows.savepoint()
        job.run(session.transaction)
        session.rows.flush()
    except BaseException as error:  # whatever it is, it is the caller's
        _roll_back(session)
        job.fail(error.__cause__ if isinstance(error, RollbackRequired) and error.__cause__ is not None else error)
        return
    _commit(session, control)


def _commit(session: Session, control: TransactionControl) -> None:
    try:
        control.commit(session.connection)
    except BaseException:
        _roll_back(session)
        raise
    session.rows.commit()


def _roll_back(session: Session) -> None:
    session.rows.forget()
    with suppress(sqlite3.Error):
        session.connection.execute("ROLLBACK")


def fail_jobs(jobs: Sequence[Job], error: Exception) -> None:
    """Tell those who have no error of their own that nothing was written."""
    if isinstance(error, sqlite3.Error):
        translated = translate(error)
        kind, why = type(translated), translated.message
    else:
        kind, why = StorageError, f"{type(error).__name__}: {error}"
    for job in jobs:
        if job.error is None and isinstance(error, DatabaseReplaced):
            job.fail(DatabaseReplaced(error.message))
        elif job.error is None:
            told = kind(f"Nothing was written. {why}")
            told.__cause__ = error
            job.fail(told)
