"""Deferring and looking after jobs, by Procrastinate's connections."""

from __future__ import annotations

import socket
import time
from collections.abc import Collection, Generator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, TypeVar

import attrs
import procrastinate
import psycopg
from procrastinate.connector import BaseAsyncConnector
from psycopg.pq import TransactionStatus

from outreach.integrations.procrastinate.schema import conninfo_of
from outreach.models.work import WorkUnit

T = TypeVar("T")

QUEUE: Final = "outreach"
"""The queue of jobs that any worker may take."""

SLICE: Final = "outreach.slice"
LOOK_AFTER: Final = "outreach.look_after"

FREE_ORPHANS: Final = "SELECT free_orphans()"

_CONNECTIONS: Final = 4
"""Of one worker; one more listens."""

_RECONNECT_SECONDS: Final = 30.0
"""How long the pool retries a connection with a doubling backoff; after that, the next caller retries at once."""

_ANSWER_SECONDS: Final = 20.0
"""A connection that gives no answer for this long counts as lost; transactions lock a job for less time."""

# The unit may have ended before its slice defers the next job: a receipt has completed its campaign, say.
_DEFER: Final = """
    SELECT defer_units(ARRAY[
        ROW(
            %(kind)s::text, %(workspace_id)s::text, %(unit_id)s::text, %(due)s::timestamptz, %(queue)s::text
        )::unit_of_work
    ], false)
    WHERE NOT EXISTS (
        SELECT FROM outreach.work
        WHERE kind = %(kind)s AND workspace_id = %(workspace_id)s AND unit_id = %(unit_id)s AND due_at IS NULL
    )
"""


class JobsConnection(psycopg.AsyncConnection[Any]):
    """A connection that does not wait for its server for ever.

    Attributes:
        answer_seconds: How long it waits for an answer before it is closed.
    """

    answer_seconds: float = _ANSWER_SECONDS

    async def wait(self, gen: Generator[Any, Any, T], *given: Any, **more: Any) -> T:
        """Wait for the server's answer; the driver calls it for every request.

        Raises:
            psycopg.OperationalError: It said nothing for too long.
        """
        return await super().wait(self._watched(gen), *given, **more)

    def _watched(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Run the driver's wait generator, and resume it every 0.1 s while nothing has arrived."""
        until: float | None = None
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                # A connection that only listens waits until a notification arrives.
                if ready or self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                    until = None
                elif until is None:
                    until = time.monotonic() + self.answer_seconds
                elif time.monotonic() >= until:
                    # Before the library says goodbye to a server that does not read.
                    with suppress(OSError), socket.fromfd(self.fileno(), socket.AF_INET, socket.SOCK_STREAM) as plug:
                        plug.shutdown(socket.SHUT_RDWR)
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {self.answer_seconds:.0f} s")
                wanted = gen.send(ready)
        except StopIteration as ended:
            value: T = ended.value
            return value


@attrs.frozen(kw_only=True)
class Deferral:
    """When and to whom a unit's next job goes.

    Attributes:
        queue: The queue; None for that of the worker that drives it.
    """

    unit: WorkUnit
    due: datetime
    queue: str | None = None


def queue_of(epoch: int) -> str:
    """Return the queue of what the worker of an epoch drives."""
    return f"{QUEUE}-{epoch}"


def key_of(unit: WorkUnit) -> str:
    """Return the lock of a unit's jobs."""
    return f"{unit.kind}:{unit.workspace_id}:{unit.id}"


def connector_of(url: str) -> procrastinate.PsycopgConnector:
    """Return a connector to the jobs of a database.

    Raises:
        ConfigError: It is no URL of PostgreSQL.
    """
    return procrastinate.PsycopgConnector(
        conninfo=conninfo_of(url),
        connection_class=JobsConnection,
        configure=_configure,
        min_size=1,
        max_size=_CONNECTIONS,
        timeout=5,
        reconnect_timeout=_RECONNECT_SECONDS,
        name="outreach-jobs",
    )


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    # Each statement is its own transaction, which ends at the server even while this process is suspended.
    await connection.set_autocommit(True)
    # The driver reads times in one form only, and PGDATESTYLE overrides `options`.
    await connection.execute("SET datestyle = ISO")


class Jobs:
    """The jobs of units."""

    def __init__(self, connector: BaseAsyncConnector) -> None:
        self._connector = connector

    async def defer(self, deferral: Deferral) -> None:
        """Have a unit worked on, unless its state says that nothing is left to do.

        Where a job waits already, it comes no later than this.
        """
        unit = deferral.unit
        await self._connector.execute_query_async(
            _DEFER,
            kind=unit.kind,
            workspace_id=unit.workspace_id,
            unit_id=unit.id,
            due=deferral.due,
            queue=deferral.queue,
        )

    async def without_jobs(self, units: Collection[WorkUnit]) -> Sequence[WorkUnit]:
        """Return those units that have no job that waits or runs."""
        if not units:
            return ()
        rows = await self._connector.execute_query_all_async(
            "SELECT keys_with_jobs(%(keys)s::text[]) AS key", keys=[key_of(unit) for unit in units]
        )
        known = {row["key"] for row in rows}
        return [unit for unit in units if key_of(unit) not in known]

    async def free_orphans(self) -> None:
        """Give to all workers the jobs that wait for one whose lease has ended."""
        await self._connector.execute_query_async(FREE_ORPHANS)
