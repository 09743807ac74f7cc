from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from benchmarks.sides.counting import count_statements


def test_a_statement_for_many_rows_is_one_that_runs_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a cursor and of a connection; a commit is one where something was written."""
    monkeypatch.setattr(sqlite3, "connect", sqlite3.connect)  # put back at the end
    counts = count_statements()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE numbers (number INTEGER)")
        connection.cursor().executemany("INSERT INTO numbers VALUES (?)", [(1,), (2,), (3,)])
        assert (counts.statements, counts.runs, counts.commits) == (2, 4, 0)
        connection.commit()
        connection.commit()
        assert connection.execute("SELECT  COUNT(*)\nFROM numbers").fetchone() == (3,)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("COMMIT")
    assert (counts.statements, counts.runs, counts.commits) == (5, 7, 2)
    assert counts.texts["SELECT COUNT(*) FROM numbers"] == 1
