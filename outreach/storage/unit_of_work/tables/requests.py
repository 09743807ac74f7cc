"""Request windows, idempotency keys and the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from outreach.core.clock import format_timestamp
from outreach.models.work import AuditEntry, IdempotencyRecord, RequestWindow
from outreach.serialization.columns import Value
from outreach.storage.unit_of_work.kinds import AUDIT, IDEMPOTENCY_KEYS, REQUEST_WINDOWS
from outreach.storage.unit_of_work.tables.base import Table

_LAST_NUMBER: Final = 2**63 - 1


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


class Audit(Table):
    """The audit log; append only.

    An entry raises the change number: a database that lacks what somebody did, such as a revoked key, is behind its
    high-water mark.
    """

    def append(self, entry: AuditEntry) -> None:
        """Write an entry, under a new change number."""
        self._rows.next_change()
        self._rows.append("audit", "append", AUDIT.row((), entry))

    def list(self, workspace_id: str | None, *, limit: int = 1000) -> Sequence[AuditEntry]:
        """Return the newest entries of a workspace, or all, the last one first."""
        return [entry for _, entry in self.numbered(workspace_id, limit=limit)]

    def numbered(
        self, workspace_id: str | None, *, after: int | None = None, limit: int
    ) -> Sequence[tuple[int, AuditEntry]]:
        """Return what `list` does, each entry with its number, from below the number `after` on."""
        name = "audit.list_all" if workspace_id is None else "audit.list"
        values: dict[str, Value] = {} if workspace_id is None else {"workspace_id": workspace_id}
        rows = self._rows.query(name, AUDIT, **values, after=_LAST_NUMBER if after is None else after, limit=limit)
        return list(zip((row[0] for row in rows), self._rows.models(AUDIT, [row[1:] for row in rows]), strict=True))
