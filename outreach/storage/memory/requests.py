"""Request windows, idempotency keys and the audit trail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from outreach.models.work import AuditEntry, RequestWindow, StoredRequest
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.table import Table


class Requests:
    """Request windows and idempotency keys."""

    def __init__(self, journal: Journal) -> None:
        self._windows = Table[str, RequestWindow](journal, "request window")
        self._stored = Table[tuple[str, str, str], StoredRequest](journal, "stored request")
        self._by_expiry = self._stored.index(lambda row: (None, (row.expires_at, 0, _key(row))))

    def window(self, workspace_id: str) -> RequestWindow | None:
        """Return a workspace's window."""
        return self._windows.get(workspace_id)

    def put_window(self, window: RequestWindow) -> None:
        """Write a workspace's window."""
        self._windows.put(window.workspace_id, window)

    def stored(self, workspace_id: str, operation: str, key: str) -> StoredRequest | None:
        """Return what is stored under an idempotency key."""
        return self._stored.get((workspace_id, operation, key))

    def put_stored(self, request: StoredRequest) -> None:
        """Write what is stored under an idempotency key."""
        self._stored.put(_key(request), request)

    def delete_stored(self, workspace_id: str, operation: str, key: str) -> None:
        """Forget a key; nothing happens when it is not there."""
        if (workspace_id, operation, key) in self._stored:
            self._stored.delete((workspace_id, operation, key))

    def sweep(self, now: datetime, *, limit: int) -> int:
        """Delete up to `limit` keys that have expired; return how many."""
        keys = self._by_expiry.keys(None, until=(now, math.inf), limit=limit)
        for key in keys:
            self._stored.delete(key)
        return len(keys)


def _key(row: StoredRequest) -> tuple[str, str, str]:
    return row.workspace_id, row.operation, row.key


class Audit:
    """The audit trail; append only."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[int, AuditEntry](journal, "audit entry")

    def append(self, entry: AuditEntry) -> None:
        """Write an entry."""
        self._rows.insert(len(self._rows), entry)

    def list(self, workspace_id: str | None, *, limit: int = 1000) -> Sequence[AuditEntry]:
        """Return the newest entries of a workspace, or of all, the last appended first."""
        entries = self._rows.rows(range(len(self._rows) - 1, -1, -1))
        return [entry for entry in entries if workspace_id in {None, entry.workspace_id}][:limit]
