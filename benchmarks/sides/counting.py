"""Counting what a process asks of its database."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Self

import attrs


@attrs.define
class Counts:
    """What was asked of a database.

    Attributes:
        statements: Calls with a statement: one that is run for many rows is one, as a round trip would be.
        runs: How often statements were run: one that is run for many rows is many.
        round_trips: How often an answer of a server was waited for.
        commits: Transactions that were written.
        texts: The statements, with how often each was called.
    """

    statements: int = 0
    runs: int = 0
    round_trips: int = 0
    commits: int = 0
    texts: Counter[str] = attrs.field(factory=Counter)

    def call(self, text: str) -> None:
        """Count a call."""
        self.statements += 1
        self.texts[" ".join(text.split())] += 1
        self.commits += text.lstrip().upper().startswith("COMMIT")

    def each(self, rows: Iterable[Any]) -> Iterator[Any]:
        """Count a run for each row that is taken."""
        for row in rows:
            self.runs += 1
            yield row


def count_statements() -> Counts:
    """Have all connections counted that are opened from now on in this process."""
    counts = Counts()
    connect = sqlite3.connect

    class CountingCursor(sqlite3.Cursor):
        def execute(self, sql: str, parameters: Any = (), /) -> Self:
            counts.call(sql)
            counts.runs += 1
            return super().execute(sql, parameters)

        def executemany(self, sql: str, parameters: Iterable[Any], /) -> Self:
            counts.call(sql)
            return super().executemany(sql, counts.each(parameters))

    class CountingConnection(sqlite3.Connection):
        def cursor(self, factory: Any = None) -> Any:
            return super().cursor(factory or CountingCursor)

        def commit(self) -> None:
            counts.commits += self.in_transaction
            super().commit()

        def execute(self, sql: str, parameters: Any = (), /) -> Any:
            return self.cursor().execute(sql, parameters)

        def executemany(self, sql: str, parameters: Iterable[Any], /) -> Any:
            return self.cursor().executemany(sql, parameters)

    def counting(*args: Any, **options: Any) -> sqlite3.Connection:
        options.setdefault("factory", CountingConnection)
        connection: sqlite3.Connection = connect(*args, **options)
        return connection

    sqlite3.connect = counting  # type: ignore[assignment]
    return counts


def count_round_trips() -> Counts:
    """Have all that is asked of PostgreSQL counted from now on in this process, the answers waited for beside it."""
    import psycopg

    from outreach.storage.postgres.pipelined_reader import PipelinedReader

    counts = Counts()
    execute, copy, leave = psycopg.Cursor.execute, psycopg.Cursor.copy, psycopg.Pipeline.__exit__
    send = PipelinedReader._send_one

    def counted_execute(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        text = str(query)
        counts.call(text)
        # One text may hold several statements, which share a round trip.
        counts.statements += text.rstrip("; \n").count(";")
        counts.runs += 1
        counts.round_trips += self.connection.info.pipeline_status == psycopg.pq.PipelineStatus.OFF
        return execute(self, query, *args, **options)

    def counted_copy(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        counts.call(str(query))
        counts.runs += 1
        # Begun, and ended.
        counts.round_trips += 2
        return copy(self, query, *args, **options)

    def counted_leave(self: Any, *args: Any) -> None:
        # What was sent together is answered together.
        counts.round_trips += 1
        leave(self, *args)

    def counted_send(self: PipelinedReader, connection: Any, query: Any) -> bool:
        # Past psycopg's cursors; some of them share a round trip.
        counts.call(query.statement)
        counts.runs += 1
        counts.round_trips += 1
        return send(self, connection, query)

    PipelinedReader._send_one = counted_send  # type: ignore[method-assign]
    psycopg.Pipeline.__exit__ = counted_leave  # type: ignore[method-assign]
    psycopg.Cursor.execute = counted_execute  # type: ignore[method-assign]
    psycopg.Cursor.copy = counted_copy  # type: ignore[method-assign, assignment]
    return counts
