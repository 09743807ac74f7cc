"""A SQLite file from or to which all rows are copied."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

from outreach.core.clock import SystemClock
from outreach.errors import DatabaseMissing, StorageError
from outreach.models.work import DatabaseHome
from outreach.storage.base.transfer import UNFINISHED, Row, Table
from outreach.storage.sqlite.copying import identity_of
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.lock import SqliteDispatchLock
from outreach.storage.sqlite.memory import empty_database, open_image
from outreach.storage.sqlite.schema import MIGRATION_SET, apply_migrations, only_user, transaction, version_of
from outreach.storage.sqlite.storage import BUSY_SECONDS, create_private
from outreach.storage.sqlite.watch import FileWatch

_OWN: Final = ("sqlite_", "_sqlite_", "campaign_names", "copy_notes")
"""How tables are called that only this kind of database has."""

_LEFT_OUT: Final = ("workers", "claims", "home", "upload_chunks", "uploads")
"""State of dispatching processes: none dispatches while a database is copied, and another server has another clock.
And uploads, which are gone after a day."""


@cache
def copied_tables() -> Sequence[Table]:
    """Return the tables of a database of this version, each after those that it refers to."""
    with closing(open_image(empty_database())) as raw:
        names = [
            str(name)
            for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")
            if not name.startswith(_OWN) and name not in _LEFT_OUT
        ]
        parents = {name: [row[2] for row in raw.execute(f"PRAGMA foreign_key_list({name})")] for name in names}
        # No foreign key shows this: the triggers of campaigns read the rows of campaign_lists.
        parents["campaigns"].append("campaign_lists")
        return [_table(raw, name) for name in TopologicalSorter(parents).static_order()]


def _table(raw: sqlite3.Connection, name: str) -> Table:
    found = raw.execute(f"PRAGMA table_info({name})").fetchall()
    columns = [row[1] for row in found]
    key = [row[1] for row in sorted((row for row in found if row[5]), key=lambda row: int(row[5]))]
    if name == "dispatches":
        # The order of writing, which is the number of the row here.
        columns, key = [*columns, "number"], ["number"]
    is_seeded = raw.execute(f"SELECT 1 FROM {name}").fetchone() is not None  # noqa: S608 - a name of the schema
    return Table(name=name, columns=columns, key=key, is_seeded=is_seeded)


@contextmanager
def sqlite_endpoint(path: Path, *, create: bool) -> Iterator[SqliteEndpoint]:
    """Open a file that no other process has open.

    Raises:
        DatabaseMissing: There is none, and `create` is false.
        DatabaseInUse: A process has it open.
        DatabaseOlder: It needs a migration.
        DatabaseReplaced: The log beside it belongs to another file.
        StorageError: It cannot be used.
    """
    # Before a file is made: SQLite would delete a log beside an empty one.
    SqliteDispatchLock(path, watch=FileWatch(path, clock=SystemClock())).check_before_opening()
    if create and not path.exists():
        create_private(path)
    if not path.is_file():
        raise DatabaseMissing(f"There is no database at {str(path.absolute())!r}.")
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)) as raw:
            raw.execute("PRAGMA foreign_keys = ON")
            if not (create and UNFINISHED in version_of(raw).newer):
                apply_migrations(raw, migrate=False)
            with only_user(raw):
                yield SqliteEndpoint(raw)
    except sqlite3.Error as error:
        raise StorageError(f"The database {str(path)!r} cannot be used. {translate(error).message}") from error


class SqliteEndpoint:
    """See `storage.base.transfer.Endpoint`; over the only connection to a file."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    def identity(self) -> str:
        """Return the identifier given to the database at its creation."""
        return identity_of(self._raw)

    def home(self) -> DatabaseHome | None:
        """Return where the database was when the last worker began, or the mark of a copy."""
        found = self._raw.execute("SELECT host, path FROM home").fetchone()
        return None if found is None else DatabaseHome(host=found[0], path=found[1])

    def set_home(self, home: DatabaseHome) -> None:
        """Write where the database is, or the mark of a copy."""
        self._raw.execute("INSERT OR REPLACE INTO home (id, host, path) VALUES (1, ?, ?)", (home.host, home.path))

    def rows(self, table: Table, after: Row | None) -> Generator[Row, None, None]:
        """Return the rows of a table in the order of its key."""
        key = ", ".join(_column(table, name) for name in table.key)
        places = ", ".join("?" * len(table.key))
        where = "" if after is None else f"WHERE ({key}) > ({places})"
        columns = ", ".join(_column(table, name) for name in table.columns)
        query = f"SELECT {columns} FROM {table.name} {where} ORDER BY {key}"  # noqa: S608 - names of the schema
        with closing(self._raw.execute(query, after or ())) as rows:
            yield from rows

    def last_trail_number(self) -> int:
        """Return the highest number that the trail has given."""
        found = self._raw.execute("SELECT seq FROM sqlite_sequence WHERE name = 'trail'").fetchone()
        return 0 if found is None else int(found[0])

    def transaction(self) -> AbstractContextManager[object]:
        """Run the block in a transaction, or within the present one."""
        return nullcontext() if self._raw.in_transaction else transaction(self._raw)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Write rows."""
        columns = ", ".join(_column(table, name) for name in table.columns)
        places = ", ".join("?" * len(table.columns))
        self._raw.executemany(f"INSERT INTO {table.name} ({columns}) VALUES ({places})", rows)  # noqa: S608

    def clear(self, table: Table) -> None:
        """Delete all rows of a table."""
        self._raw.execute(f"DELETE FROM {table.name}")  # noqa: S608 - a name of the schema

    def copied_until(self) -> Mapping[str, Row | None] | None:
        """Return how far the unfinished copy into it has come."""
        if self._raw.execute("SELECT 1 FROM sqlite_schema WHERE name = 'copy_notes'").fetchone() is None:
            return None
        return {name: json.loads(after) for name, after in self._raw.execute("SELECT name, after FROM copy_notes")}

    def note(self, name: str, after: Row | None) -> None:
        """Note how far a table has come."""
        if self.copied_until() is None:
            self._raw.execute("CREATE TABLE copy_notes (name TEXT PRIMARY KEY, after TEXT NOT NULL)")
            self._raw.execute(
                "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES (?, ?, datetime('now'))",
                (MIGRATION_SET, UNFINISHED),
            )
        self._raw.execute("INSERT OR REPLACE INTO copy_notes VALUES (?, ?)", (name, json.dumps(after)))

    def finish(self, last_trail_number: int) -> None:
        """Go on with the numbers of what was copied, and remove the notes."""
        self._raw.execute("DELETE FROM sqlite_sequence WHERE name = 'trail'")
        if last_trail_number:
            self._raw.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('trail', ?)", (last_trail_number,))
        self._raw.execute("DROP TABLE copy_notes")
        self._raw.execute("DELETE FROM _sqlite_migrations WHERE name = ?", (UNFINISHED,))


def _column(table: Table, name: str) -> str:
    return "rowid" if table.name == "dispatches" and name == "number" else name
