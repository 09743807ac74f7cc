"""The readers: operations on snapshots, in parallel with the writer and each other."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import PoolTimeout

from outreach.protocols.storage import OneQuery, Operation
from outreach.storage.base.threads import Worker
from outreach.storage.base.writer import Job, Queue, deliver
from outreach.storage.postgres.backend import Session
from outreach.storage.postgres.connect import LONGEST_READ_SECONDS, PostgresConnection
from outreach.storage.postgres.errors import as_caller_error, is_passing
from outreach.storage.postgres.pool import Pool
from outreach.storage.postgres.sql import Types

_ATTEMPTS: Final = 3
"""How often a read is run whose connection is lost."""


class Readers:
    """Runs operations on snapshots, in parallel with the writer and each other."""

    def __init__(self, pool: Pool, types: Types, *, count: int) -> None:
        self._queue = Queue()
        self.readers = [_Reader(self._queue, pool, types, number) for number in range(count)]

    async def run(self, operation: Operation[Any]) -> Any:
        """Queue an operation; return its result, or raise its error."""
        return await self._queue.submit(operation).outcome()


class _Reader:
    def __init__(self, jobs: Queue, pool: Pool, types: Types, number: int) -> None:
        self.worker = Worker(f"outreach-postgres-reader-{number}")
        self.connection: PostgresConnection | None = None
        self._pool = pool
        self._session = Session(types, read_only=True)
        self._jobs = jobs
        jobs.add(self._wake)

    def cancel(self) -> None:
        """Have the server end the running query, if there is one."""
        connection = self.connection
        if connection is not None:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=1)

    def _wake(self) -> None:
        self.worker.post(self._work)

    def _work(self) -> None:
        while (job := self._jobs.take_or_sleep(self._wake)) is not None:
            self._run(job)

    def _run(self, job: Job) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._read(job)
            except BaseException as error:  # whatever it is, it is the caller's
                if attempt < _ATTEMPTS and is_passing(error):
                    self._pool.find_live(error)
                    continue
                # Without a connection everybody else would wait as long in vain.
                failed = [job, *self._jobs.take_all()] if isinstance(error, PoolTimeout) else [job]
                for one in failed:
                    one.fail(as_caller_error(error))
                deliver(failed)
            return

    def _read(self, job: Job) -> None:
        """Run one operation on the snapshot that its first query takes, and deliver its result."""
        # Rows cached before may be outdated, and belong to their callers.
        self._session.rows.forget()
        connection = self._pool.getconn()
        try:
            self.connection = self._session.backend.connection = connection
            connection.longest_seconds = LONGEST_READ_SECONDS
            if not isinstance(job.operation, OneQuery):
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            job.run(self._session.transaction)
            # Its caller need not wait for the end of the transaction.
            deliver([job])
        finally:
            self.connection = None
            with suppress(psycopg.Error):
                if connection.info.transaction_status != TransactionStatus.IDLE:
                    connection.execute("ROLLBACK")
            self._pool.putconn(connection)
