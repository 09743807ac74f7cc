from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.ledger import assert_same, copy, opened
from benchmarks.writes import forget, record, recorded, replay
from tests.bench.test_ledger import change, made


@pytest.mark.parametrize("parts", [1, 3, 20])
def test_all_writes_are_made_again(tmp_path: Path, parts: int) -> None:
    """In their order, each of them, so that the same rows are there in the end."""
    database = made(tmp_path / "engine.db")
    before = copy(database, tmp_path / "again.db")
    record(database)
    change(database)
    with closing(sqlite3.connect(database)) as connection, connection:
        # A row that is written twice, as an intent and its outcome are.
        connection.execute("INSERT INTO aaa_children VALUES ('a', 2, NULL, 'dispatching')")
        connection.execute("UPDATE aaa_children SET state = 'accepted', note = '7' WHERE position = 2")
    noted = copy(database, tmp_path / "noted.db")
    forget(database)
    writes = recorded(noted)
    assert [(write.statement, write.values) for write in writes[-2:]] == [
        (
            'INSERT OR REPLACE INTO "aaa_children" ("parent_id", "position", "note", "state") VALUES (?, ?, ?, ?)',
            ("a", 2, None, "dispatching"),
        ),
        (
            'UPDATE "aaa_children" SET "note" = ?, "state" = ? WHERE "parent_id" IS ? AND "position" IS ?',
            ("7", "accepted", "a", 2),
        ),
    ]
    with opened(before) as connection:
        for part in range(parts):
            replay(connection, writes, part, parts)
    assert_same(before, database)
