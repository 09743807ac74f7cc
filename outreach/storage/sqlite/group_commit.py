"""Group commit: operations in one transaction, each undone by itself if it fails."""

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
    """How a transaction begins and commits."""

    def begin(self, raw: sqlite3.Connection) -> None:
        """Begin a transaction."""
        ...

    def commit(self, raw: sqlite3.Connection) -> None:
        """Commit the transaction."""
        ...


class PlainTransactions:
    """Transactions of a database that no other process can write or replace."""

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
    """Run jobs in one transaction until none is left, and commit; each job then has its outcome.

    A failed job is undone alone. If its rows have reached the database, the transaction is rolled back and every other
    job runs again in a transaction of its own.

    Args:
        session: The connection.
        take: Returns the next job; None to commit.
        group: Receives the jobs in order.
        control: How transactions begin and commit.

    Raises:
        sqlite3.Error: The group failed: the disk is full, the file is locked, or worse.
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
    """Run a job in the group's transaction.

    Raises:
        RollbackRequired: It failed and cannot be undone alone, or a row of the group was refused.
        sqlite3.Error: SQLite has rolled back the whole group, as on a full disk.
    """
    savepoint = session.rows.savepoint()
    try:
        job.run(session.transaction)
    except RollbackRequired:
        raise
    except BaseException as error:  # whatever it is, it is the caller's
        job.fail(error)
        if not session.connection.in_transaction:
            raise error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error)) from error
        session.rows.rollback_to(savepoint)


def _commit_alone(session: Session, job: Job, control: TransactionControl) -> None:
    """Run a job again in its own transaction."""
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
    """Fail the jobs without an error of their own: nothing was written."""
    if isinstance(error, sqlite3.Error):
        translated = translate(error)
        kind, reason = type(translated), translated.message
    else:
        kind, reason = StorageError, f"{type(error).__name__}: {error}"
    for job in jobs:
        if job.error is None and isinstance(error, DatabaseReplaced):
            job.fail(DatabaseReplaced(error.message))
        elif job.error is None:
            failure = kind(f"Nothing was written. {reason}")
            failure.__cause__ = error
            job.fail(failure)
