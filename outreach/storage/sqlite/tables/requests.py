"""Request windows, idempotency keys and the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.clock import to_text
from outreach.convert.rows import to_row
from outreach.models.work import AuditEntry, RequestWindow, StoredRequest
from outreach.storage.sqlite.sql import load
from outreach.storage.sqlite.tables.base import Table


class Requests(Table):
    """Request windows and idempotency keys."""

    queries = load("requests")
    what = "request"

    def window(self, workspace_id: str) -> RequestWindow | None:
        """Return a workspace's window."""
        return self._one(RequestWindow, "window", workspace_id=workspace_id)

    def put_window(self, window: RequestWindow) -> None:
        """Write a workspace's window."""
        self._change("put_window", to_row(window))

    def stored(self, workspace_id: str, operation: str, key: str) -> StoredRequest | None:
        """Return what is stored under an idempotency key."""
        return self._one(StoredRequest, "stored", workspace_id=workspace_id, operation=operation, key=key)

    def put_stored(self, request: StoredRequest) -> None:
        """Write what is stored under an idempotency key."""
        self._change("put_stored", to_row(request))

    def delete_stored(self, workspace_id: str, operation: str, key: str) -> None:
        """Forget a key; nothing happens when it is not there."""
        self._change("delete_stored", {"workspace_id": workspace_id, "operation": operation, "key": key})

    def sweep(self, now: datetime, *, limit: int) -> int:
        """Delete up to `limit` keys that have expired; return how many."""
        return self._change("sweep", {"now": to_text(now), "limit": limit})


class Audit(Table):
    """The audit trail."""

    queries = load("audit")
    what = "audit entry"

    def append(self, entry: AuditEntry) -> None:
        """Write an entry."""
        self._change("append", to_row(entry))

    def list(self, workspace_id: str | None, *, limit: int = 1000) -> Sequence[AuditEntry]:
        """Return the newest entries of a workspace, or of all, the last appended first."""
        if workspace_id is None:
            return self._all(AuditEntry, "list_all", limit=limit)
        return self._all(AuditEntry, "list", workspace_id=workspace_id, limit=limit)
