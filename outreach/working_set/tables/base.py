"""The base classes of tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Generic, TypeVar

from outreach.convert.columns import Value, json_text
from outreach.working_set.kinds import Kind
from outreach.working_set.working_set import WorkingSet

M = TypeVar("M")

LAST: Final = "~"
"""Sorts behind every time that is written as text."""


class Table:
    """Some tables within a transaction, over its working set."""

    def __init__(self, rows: WorkingSet) -> None:
        self._rows = rows

    def _list(self, kind: Kind[M], name: str, **values: Value) -> list[M]:
        """Return the models that a named query of whole rows returns."""
        return self._rows.cache_rows(kind, self._rows.query(name, kind, **values))

    def _entries(self, kind: Kind[M], name: str, **values: Value) -> list[M]:
        """Return the models that a named query of rows without a key returns."""
        return self._rows.models(kind, self._rows.query(name, kind, **values))

    def _one(self, kind: Kind[M], name: str, **values: Value) -> M | None:
        found = self._list(kind, name, **values)
        return found[0] if found else None


class WorkspaceTable(Table, Generic[M]):
    """Rows that a workspace's owner sets up: few, and unique by more than their identifier."""

    _kind: Kind[M]
    _query: str

    def get(self, workspace_id: str, identifier: str) -> M | None:
        """Return a row by its identifier."""
        return self._rows.get(self._kind, (workspace_id, identifier))

    def insert(self, row: M) -> None:
        """Write a new row."""
        self._rows.insert_now(self._kind, self._kind.key_of(row), row)

    def update(self, row: M) -> None:
        """Replace a row."""
        self._rows.update(self._kind, self._kind.key_of(row), row)

    def list(self, workspace_id: str) -> Sequence[M]:
        """Return a workspace's rows, oldest first by (created_at, id)."""
        return self._list(self._kind, f"{self._query}.list", workspace_id=workspace_id)


def json_list(values: Collection[str]) -> str:
    """Return texts as a JSON array for a query."""
    return json_text(list(values))
