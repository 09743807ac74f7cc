"""What the tables of things that belong to a workspace and have an identifier share."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, TypeVar

from outreach.storage.memory.journal import Journal
from outreach.storage.memory.table import Place, Table


class Aged(Protocol):
    """A model with an identifier and a moment at which it was made."""

    @property
    def id(self) -> str:
        """Its identifier."""
        ...

    @property
    def created_at(self) -> datetime:
        """When it was made."""
        ...


class Owned(Aged, Protocol):
    """A model that belongs to a workspace."""

    @property
    def workspace_id(self) -> str:
        """The identifier of its workspace."""
        ...


M = TypeVar("M", bound=Owned)


class OwnedRows(Table[str, M]):
    """Rows under their identifiers, indexed by workspace, oldest first by (created_at, id)."""

    def __init__(self, journal: Journal, kind: str) -> None:
        super().__init__(journal, kind)
        self.by_workspace = self.index(_by_workspace)

    def within(self, workspace_id: str, key: str) -> M | None:
        """Return a row of this workspace; None when it has no such row."""
        row = self.get(key)
        return row if row is not None and row.workspace_id == workspace_id else None

    def overwrite(self, row: M) -> None:
        """Write over the row with the same identifier in the same workspace.

        Raises:
            LookupError: The workspace has no such row.
        """
        if self.within(row.workspace_id, row.id) is None:
            raise self.missing(row.id)
        self.put(row.id, row)


def _by_workspace(row: Owned) -> Place:
    return row.workspace_id, by_age(row)


def by_age(row: Aged) -> tuple[datetime, str]:
    """Return the order that most lists have: oldest first by (created_at, id)."""
    return row.created_at, row.id
