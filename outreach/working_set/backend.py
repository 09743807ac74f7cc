"""What a database does for a working set: load rows by key, run named queries, write rows by the set."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from outreach.convert.columns import Value
from outreach.working_set.kinds import Kind

Row = Sequence[Any]
"""The values of a row, in the order of its kind's columns."""

Change = Literal["insert", "update", "put", "delete"]
"""What is done with rows: `insert` them where none has their key, write over those that are there, `put` them in
either case, delete those with these keys."""


class Backend(Protocol):
    """One connection to a database, within a transaction that somebody else begins and ends.

    Queries are named: `campaigns.leftovers` is the query `leftovers` of the aggregate `campaigns`. What a query
    returns of whole rows comes in the order of the kind's columns.
    """

    def version(self) -> int:
        """Return a number that differs from an earlier one when somebody else has committed in between."""
        ...

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Iterable[Row]:
        """Return the rows of a kind that have these keys, in any order."""
        ...

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        """Run a named query that reads."""
        ...

    def execute(self, name: str, values: Mapping[str, Value]) -> int:
        """Run a named statement that writes at once; return how many rows it wrote."""
        ...

    def write(self, kind: Kind[Any], change: Change, rows: Sequence[Sequence[Value]]) -> int:
        """Write rows of a kind (for `delete`: their keys); return how many were written.

        A row that is in the way of an `insert`, by its key or by a rule that rows are unique by, is left as it is and
        the new one is left out: the number returned tells. Rows that `update` does not find are left out as well.
        """
        ...

    def is_row_error(self, error: Exception) -> bool:
        """Return whether an error is about a row, and not about the database as a whole."""
        ...

    def run_many(self, name: str, rows: Iterable[Sequence[Value]]) -> int:
        """Run a named statement once for each of many rows of values; return how many rows it wrote."""
        ...
