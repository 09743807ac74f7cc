"""What all tables share: run a named query, turn rows into models."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from outreach.convert.rows import Value, from_row, json_text
from outreach.storage.sqlite.errors import refused_row

T = TypeVar("T")


class Table:
    """A table within the transaction that its connection is in.

    Attributes:
        queries: The named queries of the aggregate.
        what: What one row is, for messages.
    """

    queries: ClassVar[Mapping[str, str]]
    what: ClassVar[str]

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _rows(self, name: str, **values: Value) -> Sequence[dict[str, Any]]:
        return [dict(row) for row in self._connection.execute(self.queries[name], values)]

    def _row(self, name: str, **values: Value) -> dict[str, Any] | None:
        row = self._connection.execute(self.queries[name], values).fetchone()
        return None if row is None else dict(row)

    def _all(self, model: type[T], name: str, **values: Value) -> Sequence[T]:
        return [from_row(model, row) for row in self._rows(name, **values)]

    def _one(self, model: type[T], name: str, **values: Value) -> T | None:
        row = self._row(name, **values)
        return None if row is None else from_row(model, row)

    def _change(self, name: str, values: Mapping[str, Value]) -> int:
        """Run a query that writes; return how many rows it wrote.

        Raises:
            AlreadyThere: A row with this identity is there.
            LookupError: It refers to something that is not there.
        """
        try:
            return self._connection.execute(self.queries[name], values).rowcount
        except sqlite3.IntegrityError as error:
            raise refused_row(error, self.what) from error

    def _change_one(self, name: str, values: Mapping[str, Value]) -> None:
        """Run a query that writes one row.

        Raises:
            LookupError: There is no such row in the workspace.
        """
        if self._change(name, values) != 1:
            raise LookupError(f"There is no such {self.what}.")


def as_list(values: Collection[str]) -> str:
    """Return texts as the JSON array that `json_each` takes apart."""
    return json_text(list(values))
