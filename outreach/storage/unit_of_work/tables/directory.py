"""Workspaces, their keys and requests, numbers and settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Generic, TypeVar

from outreach.core.clock import format_timestamp
from outreach.models.prices import PriceTable
from outreach.models.resources import Number
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.work import IdempotencyRecord, RequestWindow
from outreach.models.workspace import ApiKey, Workspace
from outreach.rules.spellings import spellings
from outreach.storage.unit_of_work.kinds import (
    CALL_SETTINGS,
    IDEMPOTENCY_KEYS,
    KEYS,
    NUMBERS,
    PRICE_TABLES,
    REPLY_SETTINGS,
    REQUEST_WINDOWS,
    SMS_SETTINGS,
    WORKSPACES,
    Kind,
)
from outreach.storage.unit_of_work.tables.base import Table, WorkspaceTable
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork

S = TypeVar("S")

_BY_PHONE: Final = "numbers.by_phone"


class Workspaces(Table):
    """Workspaces; the only table outside workspaces."""

    def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace."""
        return self._rows.get(WORKSPACES, (workspace_id,))

    def prefetch(self, workspace_ids: Iterable[str]) -> None:
        """Read many workspaces in one go, for `get`."""
        self._rows.prefetch(WORKSPACES, ((workspace_id,) for workspace_id in workspace_ids))

    def insert(self, workspace: Workspace) -> None:
        """Write a new workspace."""
        self._rows.insert_now(WORKSPACES, (workspace.id,), workspace)

    def update(self, workspace: Workspace) -> None:
        """Replace a workspace; any change counts as a stop."""
        self._rows.count_stop(workspace.id)
        self._rows.update(WORKSPACES, (workspace.id,), workspace)

    def list(self) -> Sequence[Workspace]:
        """Return all, oldest first by (created_at, id)."""
        return self._list(WORKSPACES, "workspaces.list")


class Keys(Table):
    """API keys; the digest is unique."""

    def by_digest(self, digest: str) -> ApiKey | None:
        """Return the key with this digest, of any workspace, revoked or not."""
        return self._one(KEYS, "keys.by_digest", digest=digest)

    def get(self, key_id: str) -> ApiKey | None:
        """Return a key of any workspace, for operators' commands."""
        return self._one(KEYS, "keys.get", key_id=key_id)

    def insert(self, key: ApiKey) -> None:
        """Write a new key."""
        self._rows.insert_now(KEYS, KEYS.key_of(key), key)

    def update(self, key: ApiKey) -> None:
        """Replace a key."""
        self._rows.update(KEYS, KEYS.key_of(key), key)

    def list(self, workspace_id: str) -> Sequence[ApiKey]:
        """Return a workspace's keys, oldest first by (created_at, id)."""
        return self._list(KEYS, "keys.list", workspace_id=workspace_id)


class Requests(Table):
    """Request windows and idempotency keys."""

    def window(self, workspace_id: str) -> RequestWindow | None:
        """Return a workspace's window."""
        return self._rows.get(REQUEST_WINDOWS, (workspace_id,))

    def put_window(self, window: RequestWindow) -> None:
        """Write a workspace's window."""
        self._rows.put(REQUEST_WINDOWS, (window.workspace_id,), window)

    def stored(self, workspace_id: str, operation: str, key: str) -> IdempotencyRecord | None:
        """Return the record of an idempotency key."""
        return self._rows.get(IDEMPOTENCY_KEYS, (workspace_id, operation, key))

    def prefetch_stored(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """Read the records of many keys (workspace, operation, key) in one go, for `stored`."""
        self._rows.prefetch(IDEMPOTENCY_KEYS, keys)

    def put_stored(self, request: IdempotencyRecord) -> None:
        """Write the record of an idempotency key."""
        self._rows.put(IDEMPOTENCY_KEYS, IDEMPOTENCY_KEYS.key_of(request), request)

    def delete_stored(self, workspace_id: str, operation: str, key: str) -> None:
        """Delete a key, if it exists."""
        self._rows.delete(IDEMPOTENCY_KEYS, (workspace_id, operation, key))

    def sweep(self, now: datetime, *, limit: int) -> int:
        """Delete up to `limit` keys that have expired (`expires_at` at or before now); return how many."""
        return self._rows.execute_on(IDEMPOTENCY_KEYS, "requests.sweep", now=format_timestamp(now), limit=limit)


class Numbers(WorkspaceTable[Number]):
    """Phone numbers that a workspace sends or calls from; (workspace, phone) is unique."""

    def __init__(self, rows: UnitOfWork) -> None:
        super().__init__(rows, NUMBERS)

    def by_phone(self, workspace_id: str, phone: str) -> Number | None:
        """Return a number by its phone number."""
        self.prefetch_by_phone([(workspace_id, phone)])
        found = self._rows.prefetched(NUMBERS, _BY_PHONE, (workspace_id, phone))
        return found[0] if found else None

    def of_line(self, workspace_id: str, phone: str) -> Number | None:
        """Return the number of a telephone line in any spelling; this spelling counts before the others."""
        forms = spellings(phone)
        self.prefetch_by_phone((workspace_id, form) for form in forms)
        return next((number for form in forms if (number := self.by_phone(workspace_id, form)) is not None), None)

    def prefetch_by_phone(self, workspace_and_phone: Iterable[tuple[str, str]]) -> None:
        """Read many numbers in one go, for `by_phone` and `of_line`."""
        wanted = {key: key for key in workspace_and_phone}
        self._rows.prefetch_lists(NUMBERS, _BY_PHONE, wanted, lambda number: [(number.workspace_id, number.phone)])

    def insert(self, row: Number) -> None:
        """Write a new number."""
        self._rows.prefetched_keys.pop(_BY_PHONE, None)
        super().insert(row)

    def delete(self, workspace_id: str, number_id: str) -> None:
        """Delete a number, or raise `LookupError`."""
        if not self._rows.delete(NUMBERS, (workspace_id, number_id)):
            raise LookupError("There is no such number.")


class WorkspaceSettings(Table, Generic[S]):
    """Settings of one kind, at most one row a workspace."""

    def __init__(self, rows: UnitOfWork, kind: Kind[S]) -> None:
        super().__init__(rows)
        self._kind = kind

    def get(self, workspace_id: str) -> S | None:
        """Return the settings; None before the first change."""
        return self._rows.get(self._kind, (workspace_id,))

    def prefetch(self, workspace_ids: Iterable[str]) -> None:
        """Read those of many workspaces in one go, for `get`."""
        self._rows.prefetch(self._kind, ((workspace_id,) for workspace_id in workspace_ids))

    def put(self, workspace_id: str, settings: S) -> None:
        """Write the settings."""
        self._rows.put(self._kind, (workspace_id,), settings)

    def delete(self, workspace_id: str) -> bool:
        """Remove the settings; return whether there were any."""
        return self._rows.delete(self._kind, (workspace_id,))


def sms_settings(rows: UnitOfWork) -> WorkspaceSettings[SmsSettings]:
    """Return the table of SMS settings."""
    return WorkspaceSettings(rows, SMS_SETTINGS)


def call_settings(rows: UnitOfWork) -> WorkspaceSettings[CallSettings]:
    """Return the table of call settings."""
    return WorkspaceSettings(rows, CALL_SETTINGS)


def reply_settings(rows: UnitOfWork) -> WorkspaceSettings[ReplySettings]:
    """Return the table of reply settings."""
    return WorkspaceSettings(rows, REPLY_SETTINGS)


def price_tables(rows: UnitOfWork) -> WorkspaceSettings[PriceTable]:
    """Return the table of price tables."""
    return WorkspaceSettings(rows, PRICE_TABLES)
