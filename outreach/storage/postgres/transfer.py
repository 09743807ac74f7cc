"""A PostgreSQL database from or to which all rows are copied."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import psycopg
from psycopg.sql import SQL, Composed, Identifier, Placeholder

from outreach.errors import DatabaseInUse, StorageError
from outreach.models.work import DatabaseHome
from outreach.storage.base.transfer import UNFINISHED, Row, Table
from outreach.storage.postgres.connect import OPEN_KEY, SCHEMA, PostgresConnection, connect, conninfo_of, name_of
from outreach.storage.postgres.errors import not_usable
from outreach.storage.postgres.schema import apply_migrations, version_of

_WAIT_SECONDS: Final = 3.0
"""How long the server may take to end the sessions of a process that has just gone."""

_PAUSE_SECONDS: Final = 0.05

_IDENTITIES = """
    SELECT table_name::text, column_name::text FROM information_schema.columns
    WHERE table_schema = %s AND is_identity = 'YES'
"""


@contextmanager
def postgres_endpoint(url: str, *, create: bool) -> Iterator[PostgresEndpoint]:
    """Connect to a database that no other process has open.

    Raises:
        DatabaseMissing: There is no schema, and `create` is false.
        DatabaseInUse: A process has it open.
        DatabaseOlder: It needs a migration.
        StorageError: It cannot be used.
    """
    conninfo = conninfo_of(url)
    try:
        with connect(conninfo, patient=True) as connection, connect(conninfo, patient=True) as reading:
            if not (create and UNFINISHED in version_of(connection).newer):
                apply_migrations(connection, create=create, migrate=False)
            if not _becomes_only_user(connection):
                raise DatabaseInUse(
                    f"The database {name_of(conninfo)} is open in another process. Nothing was changed. Stop the other "
                    "process first."
                )
            for one in (connection, reading):
                # Long sorts, and long waits for the other database.
                one.execute("SET idle_in_transaction_session_timeout = 0; SET enable_seqscan = on")
            yield PostgresEndpoint(connection, reading)
    except psycopg.Error as error:
        raise StorageError(not_usable(name_of(conninfo), error)) from error


def _becomes_only_user(connection: PostgresConnection) -> bool:
    """Take the lock that every open storage shares; return whether no other process has the database open."""
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        [(alone,)] = connection.execute("SELECT pg_try_advisory_lock(%s)", (OPEN_KEY,)).fetchall()
        if alone or time.monotonic() > until:
            return bool(alone)
        time.sleep(_PAUSE_SECONDS)


class PostgresEndpoint:
    """See `storage.base.transfer.Endpoint`.

    Args:
        connection: Writes, and reads what it has written.
        reading: Reads long results.
    """

    def __init__(self, connection: PostgresConnection, reading: PostgresConnection) -> None:
        self._connection = connection
        self._reading = reading

    def identity(self) -> str:
        """Return the identifier given to the database at its creation."""
        [(identity,)] = self._connection.execute("SELECT id FROM database_identity").fetchall()
        return str(identity)

    def home(self) -> DatabaseHome | None:
        """Return where the database was when the last worker began, or the mark of a copy."""
        found = self._connection.execute("SELECT host, path FROM home").fetchone()
        return None if found is None else DatabaseHome(host=found[0], path=found[1])

    def set_home(self, home: DatabaseHome) -> None:
        """Write where the database is, or the mark of a copy."""
        self._connection.execute(
            "INSERT INTO home (id, host, path) VALUES (1, %s, %s) "
            "ON CONFLICT (id) DO UPDATE SET host = excluded.host, path = excluded.path",
            (home.host, home.path),
        )

    def rows(self, table: Table, after: Row | None) -> Generator[Row, None, None]:
        """Return the rows of a table in the order of its key; within a transaction, as it has written them."""
        query = SQL("SELECT {} FROM {}").format(_names(table.columns), Identifier(table.name))
        if after is not None:
            places = SQL(", ").join(Placeholder() * len(after))
            query += SQL(" WHERE ({}) > ({})").format(_names(table.key), places)
        query += SQL(" ORDER BY {}").format(_names(table.key))
        writing = self._connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        connection = self._connection if writing else self._reading
        with connection.transaction(), connection.cursor(name="rows") as cursor:
            cursor.itersize = 5_000
            cursor.execute(query, after or ())
            yield from cursor

    def last_trail_number(self) -> int:
        """Return the highest number that the trail has given."""
        [(last,)] = self._connection.execute("SELECT last FROM trail_numbers").fetchall()
        return int(last)

    def transaction(self) -> AbstractContextManager[object]:
        """Run the block in a transaction, or within the present one."""
        return self._connection.transaction()

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Write rows."""
        statement = SQL("COPY {} ({}) FROM STDIN").format(Identifier(table.name), _names(table.columns))
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def clear(self, table: Table) -> None:
        """Delete all rows of a table."""
        self._connection.execute(SQL("DELETE FROM {}").format(Identifier(table.name)))

    def copied_until(self) -> Mapping[str, Row | None] | None:
        """Return how far the unfinished copy into it has come."""
        [(there,)] = self._connection.execute(
            "SELECT to_regclass(%s) IS NOT NULL", (f"{SCHEMA}.copy_notes",)
        ).fetchall()
        if not there:
            return None
        rows: Sequence[Any] = self._connection.execute("SELECT name, after FROM copy_notes").fetchall()
        return {name: json.loads(after) for name, after in rows}

    def note(self, name: str, after: Row | None) -> None:
        """Note how far a table has come."""
        if self.copied_until() is None:
            self._connection.execute("CREATE TABLE copy_notes (name TEXT PRIMARY KEY, after TEXT NOT NULL)")
            self._connection.execute("INSERT INTO migrations VALUES (%s, now())", (UNFINISHED,))
        self._connection.execute(
            "INSERT INTO copy_notes VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET after = excluded.after",
            (name, json.dumps(after)),
        )

    def finish(self, last_trail_number: int) -> None:
        """Go on with the numbers of what was copied, and remove the notes."""
        self._connection.execute("UPDATE trail_numbers SET last = %s", (last_trail_number,))
        for table, column in self._connection.execute(_IDENTITIES, (SCHEMA,)).fetchall():
            self._connection.execute(
                SQL("SELECT setval(pg_get_serial_sequence({}, {}), MAX({})) FROM {} HAVING MAX({}) IS NOT NULL").format(
                    f"{SCHEMA}.{table}", column, Identifier(column), Identifier(table), Identifier(column)
                )
            )
        self._connection.execute("DROP TABLE copy_notes")
        self._connection.execute("DELETE FROM migrations WHERE name = %s", (UNFINISHED,))


def _names(names: Sequence[str]) -> Composed:
    return SQL(", ").join(Identifier(name) for name in names)
