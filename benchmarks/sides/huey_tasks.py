"""One Huey task a message, which writes the same ledger: new rows before its request, changed rows after it.

Told: `before`, `after` and `database` as the ledger floor is; `received`, the state after the receipts, or null: with
it a third transaction writes what the receipt of the message has changed; `messages`; `latency_ms` of the carrier;
`workers`, threads of the consumer; `most_seconds`. All tasks are in the queue before the time begins.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from huey import SqliteHuey

from benchmarks.ledger import Changes, changes, copy, drop_triggers, opened, slice_of
from benchmarks.sides.telling import tell, told


class Ledger:
    """Writes what belongs to a message; threads take turns, which is faster here than waiting for SQLite's lock."""

    def __init__(
        self, connection: sqlite3.Connection, todo: list[Changes], receipts: list[Changes], messages: int
    ) -> None:
        self._connection, self._todo, self._receipts, self._messages = connection, todo, receipts, messages
        self._turn = threading.Lock()
        self.done = 0

    def delete(self) -> None:
        """Delete the rows that are gone in the end: which message each belongs to cannot be told."""
        for change in self._todo:
            self._connection.executemany(*change.deleted)

    def intend(self, number: int) -> None:
        """Commit the new rows of a message."""
        self._write(number, [change.inserted for change in self._todo])

    def settle(self, number: int) -> None:
        """Commit the changed rows of a message, and merge its receipt if there are some."""
        self._write(number, [change.updated for change in self._todo])
        if self._receipts:
            self._write(number, [rows for change in self._receipts for rows in (change.inserted, change.updated)])
        self.done += 1

    def _write(self, number: int, all_rows: list[tuple[str, Any]]) -> None:
        with self._turn:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("PRAGMA defer_foreign_keys = ON")
            for statement, rows in all_rows:
                if some := slice_of(rows, number, self._messages):
                    self._connection.executemany(statement, some)
            self._connection.execute("COMMIT")


def main() -> None:
    """Run all tasks."""
    logging.disable(logging.CRITICAL)
    arguments = told()
    before, after, database = (Path(arguments[name]) for name in ("before", "after", "database"))
    copy(before, database)
    drop_triggers(database)
    messages, latency = arguments["messages"], arguments["latency_ms"] / 1000
    queue = SqliteHuey(filename=str(database.with_suffix(".huey")), results=False, timeout=60)
    # Opened here, and used by the threads of the consumer in turn.
    with opened(database, any_thread=True) as connection:
        receipts = changes(after, Path(arguments["received"])) if arguments["received"] else []
        ledger = Ledger(connection, changes(before, after), receipts, messages)
        ledger.delete()

        @queue.task()
        def send(number: int) -> None:
            ledger.intend(number)
            if latency:
                time.sleep(latency)
            ledger.settle(number)

        for number in range(messages):
            send(number)
        consumer = queue.create_consumer(workers=arguments["workers"], periodic=False, check_worker_health=False)
        begun, computing = time.perf_counter(), time.process_time()
        ends = begun + arguments["most_seconds"]
        consumer.start()
        while ledger.done < messages and time.perf_counter() < ends:
            time.sleep(0.005)
        done, seconds = ledger.done, time.perf_counter() - begun
        used = time.process_time() - computing
        consumer.stop(graceful=True)
    tell({"messages a second": done / seconds, "CPU ms a message": used / max(done, 1) * 1000, "messages": done})


if __name__ == "__main__":
    main()
