"""One Procrastinate job a message, which writes the same ledger: new rows before its request, changed rows after it.

Told: `before` and `after`, URLs of databases as they were before and after a run of the engine; `url`, a copy of the
first, in which Procrastinate's tables are made; `received`, the database after the receipts, or null: with it a third
transaction writes what the receipt of the message has changed; `messages`; `latency_ms` of the carrier; `concurrency`,
how many jobs the worker runs at a time; `most_seconds`. All jobs are deferred before the time begins.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Any, Final

import psycopg
from procrastinate import App, PsycopgConnector
from psycopg_pool import AsyncConnectionPool

from benchmarks.ledger import Changes, slice_of
from benchmarks.postgres import changes, without_triggers
from benchmarks.sides.telling import tell, told

_DEFERRED_AT_ONCE: Final = 1000
_LOOK_AGAIN_SECONDS: Final = 0.005


class Ledger:
    """Writes what belongs to a message, in two transactions or three."""

    def __init__(self, pool: AsyncConnectionPool, todo: list[Changes], receipts: list[Changes], messages: int) -> None:
        self._pool, self._todo, self._receipts, self._messages = pool, todo, receipts, messages
        self.done = 0

    async def intend(self, number: int) -> None:
        """Commit the new rows of a message."""
        await self._write(number, [change.inserted for change in self._todo])

    async def settle(self, number: int) -> None:
        """Commit the changed rows of a message, and merge its receipt if there are some."""
        await self._write(number, [change.updated for change in self._todo])
        if self._receipts:
            await self._write(number, [rows for change in self._receipts for rows in (change.inserted, change.updated)])
        self.done += 1

    async def _write(self, number: int, all_rows: list[tuple[str, Any]]) -> None:
        async with self._pool.connection() as connection:
            for statement, rows in all_rows:
                for row in slice_of(rows, number, self._messages):
                    await connection.execute(statement, row)


async def run(task: dict[str, Any]) -> dict[str, Any]:
    """Run the jobs for as long as may be."""
    messages, latency, concurrency = task["messages"], task["latency_ms"] / 1000, task["concurrency"]
    todo = await asyncio.to_thread(changes, task["before"], task["after"])
    receipts = await asyncio.to_thread(changes, task["after"], task["received"]) if task["received"] else []
    with psycopg.connect(task["url"]) as connection:
        without_triggers(connection)
        for change in todo:
            # Which message each belongs to cannot be told.
            connection.cursor().executemany(*change.deleted)
    app = App(connector=PsycopgConnector(conninfo=task["url"], min_size=4, max_size=4))
    pool = AsyncConnectionPool(task["url"], min_size=concurrency, max_size=concurrency, open=False)
    async with pool, app.open_async():
        await app.schema_manager.apply_schema_async()
        ledger = Ledger(pool, todo, receipts, messages)

        @app.task(name="send")
        async def send(number: int) -> None:
            await ledger.intend(number)
            if latency:
                await asyncio.sleep(latency)
            await ledger.settle(number)

        for first in range(0, messages, _DEFERRED_AT_ONCE):
            some = range(first, min(first + _DEFERRED_AT_ONCE, messages))
            jobs: list[dict[str, Any]] = [{"number": number} for number in some]
            await send.batch_defer_async(*jobs)
        begun, computing = time.perf_counter(), time.process_time()
        ends = begun + task["most_seconds"]
        worker = asyncio.create_task(
            app.run_worker_async(concurrency=concurrency, wait=False, install_signal_handlers=False)
        )
        while ledger.done < messages and time.perf_counter() < ends and not worker.done():  # noqa: ASYNC110 - its count
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        done, seconds, used = ledger.done, time.perf_counter() - begun, time.process_time() - computing
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker
    return {"messages a second": done / seconds, "CPU ms a message": used / max(done, 1) * 1000, "messages": done}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    tell(asyncio.run(run(told())))
