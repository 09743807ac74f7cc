"""The database of a unit of work: load rows by key, run named queries, write sets of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, cast

from outreach.serialization.columns import Value
from outreach.storage.unit_of_work.kinds import Kind

Row = Sequence[Any]
"""The values of a row, in the order of its kind's columns."""

Change = Literal["insert", "update", "put", "delete"]
"""The kinds of writes: new rows, changed rows, either, deleted keys."""


class Write(NamedTuple):
    """Rows that are written by one statement.

    Attributes:
        kind: The kind whose rows they are; None for rows of values of a named statement.
        statement: What is done with rows of the kind, or the name of the statement.
        rows: The rows; for `delete` their keys.
    """

    kind: Kind[Any] | None
    statement: str
    rows: Sequence[Sequence[Value]]


class Backend(Protocol):
    """One connection to a database, within a transaction that its owner begins and ends.

    Queries are named: `campaigns.leftovers` is the query `leftovers` of the aggregate `campaigns`, and
    `campaigns.page?status` is `page` with a filter. Whole rows come in the order of their kind's columns.

    Attributes:
        own_clock: Whether the database may run on another machine, whose clock engines go by.
    """

    own_clock: bool

    def now(self) -> datetime:
        """Return the time by the clock of the database, aware, in UTC: one clock for all that open it."""
        ...

    def version(self) -> int:
        """Return a number that changes when another connection has committed."""
        ...

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Iterable[Row]:
        """Return the rows of a kind that have these keys, in any order."""
        ...

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        """Run a named query that reads; `work.draw_changes` also writes."""
        ...

    def execute(self, name: str, values: Mapping[str, Value]) -> int:
        """Run a named statement that writes at once; return how many rows it wrote."""
        ...

    def write(self, kind: Kind[Any], change: Change, rows: Sequence[Sequence[Value]]) -> int:
        """Write rows of a kind (for `delete`: their keys); return how many were written.

        `insert` leaves out rows that violate a key or unique rule, and `update` rows that do not exist.
        """
        ...

    def is_row_error(self, error: Exception) -> bool:
        """Return whether an error is about a row rather than the database."""
        ...

    def run_many(self, name: str, rows: Iterable[Sequence[Value]]) -> int:
        """Run a named statement for each of many rows of values; return how many rows it wrote."""
        ...

    def write_all(self, writes: Sequence[Write]) -> Sequence[int]:
        """Make writes in this order, on a server in one round trip; return how many rows each wrote.

        `write_one_by_one` does it where there is no round trip to save.
        """
        ...


def filtered(name: str, filters: Collection[str]) -> str:
    """Return the name of a query with the conditions of these filters, such as `campaigns.page?channel,status`."""
    return f"{name}?{','.join(sorted(filters))}" if filters else name


def write_one_by_one(backend: Backend, writes: Sequence[Write]) -> Sequence[int]:
    """Make writes one after the other; return how many rows each wrote."""
    return [
        backend.run_many(statement, rows) if kind is None else backend.write(kind, cast("Change", statement), rows)
        for kind, statement, rows in writes
    ]
