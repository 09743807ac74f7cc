from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.ledger import apply, assert_same, changes, copy, drop_triggers, most_grown, opened, slice_of

SCHEMA = """
    CREATE TABLE parents (id TEXT NOT NULL PRIMARY KEY, name TEXT, loud TEXT AS (upper(name)) STORED) STRICT;
    CREATE TABLE aaa_children (
        parent_id TEXT NOT NULL REFERENCES parents (id), position INTEGER NOT NULL, note TEXT, state TEXT,
        PRIMARY KEY (parent_id, position)
    ) WITHOUT ROWID;
    CREATE INDEX by_state ON aaa_children (state);
    CREATE TABLE without_key (text TEXT);
"""


def made(path: Path) -> Path:
    """Make a file with two parents and three children."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        connection.executemany("INSERT INTO parents (id, name) VALUES (?, ?)", [("a", "Ada"), ("b", "Bob")])
        connection.executemany(
            "INSERT INTO aaa_children VALUES (?, ?, ?, ?)",
            [("a", 0, None, "new"), ("a", 1, "x", "new"), ("b", 0, None, "new")],
        )
        connection.execute("INSERT INTO without_key VALUES ('one')")
    return path


def change(path: Path) -> None:
    """Insert, update and delete rows."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO parents (id, name) VALUES ('c', NULL)")
        connection.execute("INSERT INTO aaa_children VALUES ('c', 0, 'mine', 'new')")
        connection.execute("UPDATE aaa_children SET state = 'done' WHERE parent_id <> 'c'")
        connection.execute("UPDATE aaa_children SET note = NULL WHERE position = 1")
        connection.execute("DELETE FROM aaa_children WHERE parent_id = 'b'")
        connection.execute("DELETE FROM parents WHERE id = 'b'")
        connection.execute("INSERT INTO without_key VALUES ('two')")


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """A state of a file."""
    return made(tmp_path / "before.db")


@pytest.fixture
def after(tmp_path: Path, before: Path) -> Path:
    """A later state of the same file."""
    later = copy(before, tmp_path / "after.db")
    change(later)
    return later


def test_changes_name_every_row_that_differs_and_no_other(before: Path, after: Path) -> None:
    """Inserted, updated and deleted rows of each table are found; only columns that differ are written."""
    found = {one.table: one for one in changes(before, after)}
    assert {name: one.rows for name, one in found.items()} == {"parents": 2, "aaa_children": 4, "without_key": 1}
    statement, rows = found["aaa_children"].updated
    assert statement == 'UPDATE "aaa_children" SET "note" = ?, "state" = ? WHERE "parent_id" IS ? AND "position" IS ?'
    assert rows == [(None, "done", "a", 0), (None, "done", "a", 1)]
    assert most_grown(before, after) in found


def test_parents_come_before_what_refers_to_them(before: Path, after: Path) -> None:
    """Whatever tables are called, rows are written in an order that their references allow."""
    names = [one.table for one in changes(before, after)]
    assert names.index("parents") < names.index("aaa_children")


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_what_was_changed_is_changed_again(before: Path, after: Path, tmp_path: Path, parts: int) -> None:
    """The floor leaves the very rows of the run that it copies, in however many transactions."""
    again = copy(before, tmp_path / "again.db")
    with pytest.raises(RuntimeError, match="aaa_children"):
        assert_same(again, after)
    todo = changes(before, after)
    with opened(again) as connection:
        for part in range(parts):
            apply(connection, todo, part, parts)
    assert_same(again, after)
    assert_same(after, again)


def test_triggers_can_be_dropped(before: Path) -> None:
    """What they would write is among the rows that are copied."""
    with closing(sqlite3.connect(before)) as connection, connection:
        connection.execute("CREATE TRIGGER more AFTER INSERT ON parents BEGIN DELETE FROM without_key; END")
        drop_triggers(before)
        connection.execute("INSERT INTO parents (id) VALUES ('d')")
        assert connection.execute("SELECT COUNT(*) FROM without_key").fetchone() == (1,)


def test_slices_are_even_and_leave_nothing_out() -> None:
    """Every row is in one slice, and slices differ by one row at the most."""
    rows = [(number,) for number in range(11)]
    slices = [slice_of(rows, part, 4) for part in range(4)]
    assert [row for some in slices for row in some] == rows
    assert {len(some) for some in slices} == {2, 3}
