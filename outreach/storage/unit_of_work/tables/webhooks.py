"""Endpoints of webhooks, their cursors, the events that they hold, and attempts."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.models.webhook import Webhook, WebhookAttempt, WebhookCursor, WebhookHold
from outreach.storage.unit_of_work.kinds import WEBHOOK_ATTEMPTS, WEBHOOK_CURSORS, WEBHOOK_HOLDS, WEBHOOKS
from outreach.storage.unit_of_work.tables.base import LAST, Table, WorkspaceTable
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork


class Webhooks(WorkspaceTable[Webhook]):
    """Endpoints of all workspaces."""

    def __init__(self, rows: UnitOfWork) -> None:
        super().__init__(rows, WEBHOOKS)

    def prefetch(self, workspace_id: str, webhook_ids: Sequence[str]) -> None:
        """Read endpoints of a workspace with their cursors in one go, for `get`."""
        keys = [(workspace_id, webhook_id) for webhook_id in webhook_ids]
        self._rows.prefetch(WEBHOOKS, keys)
        self._rows.prefetch(WEBHOOK_CURSORS, keys)

    def active(self, *, after: str = "", limit: int) -> Sequence[Webhook]:
        """Return active endpoints of all workspaces with greater identifiers, in their order."""
        return self._list(WEBHOOKS, "webhooks.active", after=after, limit=limit)

    def disabled(self, workspace_id: str | None, *, limit: int) -> Sequence[Webhook]:
        """Return endpoints of a workspace, or of all, that the engine has disabled."""
        return self._list(WEBHOOKS, "webhooks.disabled", workspace_id=workspace_id, limit=limit)


class WebhookCursors(Table):
    """How far the deliveries to each endpoint have come."""

    def get(self, workspace_id: str, webhook_id: str) -> WebhookCursor | None:
        """Return the cursor of an endpoint."""
        return self._rows.get(WEBHOOK_CURSORS, (workspace_id, webhook_id))

    def put(self, one: WebhookCursor) -> None:
        """Insert or replace a cursor."""
        self._rows.put(WEBHOOK_CURSORS, WEBHOOK_CURSORS.key_of(one), one)


class WebhookHolds(Table):
    """Events that wait for another delivery."""

    def list(self, workspace_id: str, webhook_id: str, *, limit: int) -> Sequence[WebhookHold]:
        """Return what an endpoint holds, by number."""
        return self._list(
            WEBHOOK_HOLDS, "webhooks.holds", workspace_id=workspace_id, webhook_id=webhook_id, limit=limit
        )

    def put(self, one: WebhookHold) -> None:
        """Insert or replace an event."""
        self._rows.put(WEBHOOK_HOLDS, WEBHOOK_HOLDS.key_of(one), one)

    def delete(self, workspace_id: str, webhook_id: str, number: int) -> bool:
        """Delete an event; return whether it was there."""
        return self._rows.delete(WEBHOOK_HOLDS, (workspace_id, webhook_id, number))

    def forget_key(self, workspace_id: str, key: str) -> int:
        """Replace a key that has a number, at all endpoints of a workspace; return for how many events."""
        return self._rows.execute_on(WEBHOOK_HOLDS, "webhooks.forget_key", workspace_id=workspace_id, key=key)

    def delete_all(self, workspace_id: str, webhook_id: str) -> int:
        """Delete what an endpoint holds; return how many events."""
        return self._rows.execute_on(
            WEBHOOK_HOLDS, "webhooks.delete_holds", workspace_id=workspace_id, webhook_id=webhook_id
        )


class WebhookAttempts(Table):
    """What became of deliveries; their identifiers grow with time."""

    def insert(self, one: WebhookAttempt) -> None:
        """Write a new attempt."""
        self._rows.insert(WEBHOOK_ATTEMPTS, WEBHOOK_ATTEMPTS.key_of(one), one)

    def page(
        self, workspace_id: str, webhook_id: str, *, before: str | None = None, limit: int
    ) -> Sequence[WebhookAttempt]:
        """Return attempts of an endpoint before an identifier, the latest first."""
        return self._list(
            WEBHOOK_ATTEMPTS,
            "webhooks.attempts",
            workspace_id=workspace_id,
            webhook_id=webhook_id,
            before=LAST if before is None else before,
            limit=limit,
        )

    def delete_before(self, workspace_id: str, webhook_id: str, before: str) -> int:
        """Delete attempts of an endpoint before an identifier; return how many."""
        return self._rows.execute_on(
            WEBHOOK_ATTEMPTS,
            "webhooks.delete_attempts",
            workspace_id=workspace_id,
            webhook_id=webhook_id,
            before=before,
        )
