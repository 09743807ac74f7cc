"""The base classes of tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from outreach.core.clock import format_timestamp
from outreach.errors import NotFound
from outreach.rules.phones import stored_forms
from outreach.serialization.documents import Value, json_text
from outreach.storage.unit_of_work.kinds import WORKSPACES, Kind, Row
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork

M = TypeVar("M")

Place = tuple[datetime, str, int]
"""A place in a list that is ordered by time, descending, then by a text and by a number, both descending."""

LAST: Final = "~"
"""Sorts behind every time that is written as text."""

# Not for loads, which read each number once.
_stored_forms: Final = lru_cache(maxsize=4096)(stored_forms)


class Table:
    """Some tables within a transaction, over its unit of work."""

    def __init__(self, rows: UnitOfWork) -> None:
        self._rows = rows

    def _list(self, kind: Kind[M], name: str, **values: Value) -> list[M]:
        """Return the models that a named query of whole rows returns."""
        return self._rows.cache_rows(kind, self._rows.query(name, kind, **values))

    def _entries(self, kind: Kind[M], name: str, **values: Value) -> list[M]:
        """Return the models that a named query of rows without a key returns."""
        return self._rows.models(kind, self._rows.query(name, kind, **values))

    def _campaign_rows(
        self, name: str, workspace_id: str, campaign_id: str, *kinds: Kind[Any], **values: Value
    ) -> Sequence[Row]:
        """Return the rows of a query about a campaign, which has its number as the parameter `number`."""
        return self._rows.query(name, *kinds, number=self._rows.number(workspace_id, campaign_id), **values)

    def _forms(self, workspace_id: str, phone: str) -> tuple[str, ...]:
        """Return all forms in which the number of a person may stand in the tables of a workspace, itself first."""
        return _stored_forms(phone, self._region(workspace_id))

    def _region(self, workspace_id: str) -> str | None:
        workspace = self._rows.get(WORKSPACES, (workspace_id,))
        return None if workspace is None else workspace.default_region

    def _query_forms(self, name: str, kind: Kind[Any], workspace_id: str, phone: str, **values: Value) -> list[Row]:
        """Return the rows of a query by the parameter `phone`, for each form of a number."""
        return [
            row
            for form in self._forms(workspace_id, phone)
            for row in self._rows.query(name, kind, workspace_id=workspace_id, phone=form, **values)
        ]

    def _persons_among(
        self, name: str, *kinds: Kind[Any], workspace_id: str, phones: Collection[str], **values: Value
    ) -> frozenset[str]:
        """Return those of the numbers of which a query by the parameter `phones` returns any form."""
        forms = {phone: self._forms(workspace_id, phone) for phone in phones}
        wanted = json_list({form for each in forms.values() for form in each})
        found = {row[0] for row in self._rows.query(name, *kinds, workspace_id=workspace_id, phones=wanted, **values)}
        return frozenset(phone for phone, each in forms.items() if not found.isdisjoint(each))

    def _rows_of_person(
        self, name: str, kind: Kind[Any], workspace_id: str, phone: str, *, after: Place | None, limit: int
    ) -> list[Row]:
        """Return the newest rows of a query behind a place, `limit` for each form of a number."""
        place = page_begin(after, after_at=LAST, after_id="", after_number=0)
        return self._query_forms(name, kind, workspace_id, phone, **place, limit=limit)

    def _one(self, kind: Kind[M], name: str, **values: Value) -> M | None:
        found = self._list(kind, name, **values)
        return found[0] if found else None


class KindTable(Table, Generic[M]):
    """The rows of one kind."""

    def __init__(self, rows: UnitOfWork, kind: Kind[M]) -> None:
        super().__init__(rows)
        self._kind = kind

    def insert(self, row: M) -> None:
        """Write a new row, or raise `AlreadyExists`."""
        self._rows.insert_now(self._kind, self._kind.key_of(row), row)

    def update(self, row: M) -> None:
        """Replace a row."""
        self._rows.update(self._kind, self._kind.key_of(row), row)


class IdentifiedTable(KindTable[M]):
    """Rows of workspaces with identifiers."""

    def get(self, workspace_id: str, identifier: str) -> M | None:
        """Return a row by its identifier, removed or not."""
        return self._rows.get(self._kind, (workspace_id, identifier))

    def existing(self, workspace_id: str, identifier: str) -> M:
        """Return a row that was not removed, or raise `NotFound`."""
        row = self.get(workspace_id, identifier)
        if row is None or _is_removed(row):
            raise NotFound(self._kind.noun, identifier)
        return row


class WorkspaceTable(IdentifiedTable[M]):
    """Rows that a workspace's owner sets up: few, so that a list reads all of them.

    The query `TABLE.list` returns those of a workspace.
    """

    def list(self, workspace_id: str) -> Sequence[M]:
        """Return a workspace's rows, removed ones included, oldest first by (created_at, id)."""
        return self._list(self._kind, f"{self._kind.table}.list", workspace_id=workspace_id)

    def list_existing(self, workspace_id: str) -> Sequence[M]:
        """Return a workspace's rows that were not removed, oldest first by (created_at, id)."""
        return [row for row in self.list(workspace_id) if not _is_removed(row)]


def _is_removed(row: object) -> bool:
    return getattr(row, "removed_at", None) is not None


def page_begin(after: Sequence[datetime | str | int] | None, **first: Value) -> dict[str, Value]:
    """Return the parameters of the place behind which a page begins; without `after` they are those of `first`."""
    if after is None:
        return first
    values = (format_timestamp(one) if isinstance(one, datetime) else one for one in after)
    return dict(zip(first, values, strict=True))


def json_list(values: Collection[str]) -> str:
    """Return texts as a JSON array for a query."""
    return json_text(list(values))
