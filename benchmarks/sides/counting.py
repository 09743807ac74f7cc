"""Counting what a process asks of SQLite."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Self

import attrs


@attrs.define
class Counts:
    """What was asked of SQLite.

    Attributes:
        statements: Calls with a statement: one that is run for many rows is one, as a round trip would be.
        runs: How often statements were run: one that is run for many rows is many.
        commits: Transactions that were written.
        texts: The statements, with how often each was called.
    """

    statements: int = 0
    runs: int = 0
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
