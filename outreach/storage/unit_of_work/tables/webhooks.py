"""Endpoints of webhooks, their cursors, the events that they hold, and attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.models.webhook import Webhook, WebhookAttempt, WebhookCursor, WebhookHold
from outreach.storage.unit_of_work.kinds import WEBHOOK_ATTEMPTS, WEBHOOK_CURSORS, WEBHOOK_HOLDS, WEBHOOKS
from outreach.storage.unit_of_work.tables.base import LAST, Table, WorkspaceTable


class Webhooks(WorkspaceTable[Webhook]):
    """Endpoints of all workspaces."""

    def prefetch(self, workspace_id: str, webhook_ids: Sequence[str]) -> None:
        """Read endpoints of a workspace with their cursors in one go, for `get`."""
        keys = [(workspace_id, webhook_id) for webhook_id in webhook_ids]
        self._rows.prefetch(WEBHOOKS, keys)
        self._rows.prefetch(WEBHOOK_CURSORS, keys)

    def active(self, *, after: str = "", limit: int) -> Sequence[Webhook]:
        """Return active endpoints of all workspaces with greater identifiers, in their order."""
        return self._list(WEBHOOKS, "webhooks.active", after=after, limit=limit)

    def every(self, *, after: str = "", limit: int) -> Sequence[Webhook]:
        """Return endpoints of all workspaces with greater identifiers, removed ones too, in their order."""
        return self._list(WEBHOOKS, "webhooks.every", after=after, limit=limit)

    def disabled(self, workspace_id: str | None, *, limit: int) -> Sequence[Webhook]:
        """Return endpoints of a workspace, or of all, that the engine has disabled."""
        return self._list(WEBHOOKS, "webhooks.disabled", workspace_id=workspace_id, limit=limit)

    def failing(self, workspace_id: str | None, since: datetime, *, limit: int) -> Sequence[Webhook]:
        """Return active endpoints of a workspace, or of all, that have taken nothing since a moment."""
        return self._list(
            WEBHOOKS, "webhooks.failing", workspace_id=workspace_id, since=format_timestamp(since), limit=limit
        )


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

    def waiting(self, workspace_id: str, webhook_id: str, *, limit: int) -> tuple[int, tuple[int, datetime] | None]:
        """Return how many events an endpoint holds, up to `limit`; the first's number, and when one was tried first."""
        rows = self._rows.query(
            "webhooks.waiting", WEBHOOK_HOLDS, workspace_id=workspace_id, webhook_id=webhook_id, limit=limit
        )
        count, number, first_at = rows[0]
        return count, None if first_at is None else (number, parse_timestamp(first_at))

    def put(self, one: WebhookHold) -> None:
        """Insert or replace an event."""
        self._rows.put(WEBHOOK_HOLDS, WEBHOOK_HOLDS.key_of(one), one)

    def delete(self, workspace_id: str, webhook_id: str, number: int) -> bool:
        """Delete an event; return whether it was there."""
        return self._rows.delete(WEBHOOK_HOLDS, (workspace_id, webhook_id, number))

    def forget_key(self, workspace_id: str, key: str) -> int:
        """Replace a key that has a number, at all endpoints of a workspace; return for how many events."""
        return self._rows.execute_on(WEBHOOK_HOLDS, "webhooks.forget_key", workspace_id=workspace_id, key=key)

    def hasten(self, workspace_id: str, webhook_id: str, now: datetime) -> int:
        """Let what an endpoint holds be tried at once; return for how many events that is earlier."""
        return self._rows.execute_on(
            WEBHOOK_HOLDS,
            "webhooks.hasten_holds",
            workspace_id=workspace_id,
            webhook_id=webhook_id,
            now=format_timestamp(now),
        )

    def delete_from(self, workspace_id: str, webhook_id: str, first: int | None) -> int:
        """Delete what an endpoint holds, from a number on or all of it; return how many events."""
        return self._rows.execute_on(
            WEBHOOK_HOLDS, "webhooks.delete_holds", workspace_id=workspace_id, webhook_id=webhook_id, first=first
        )


class WebhookAttempts(Table):
    """The attempts of deliveries; their identifiers grow with time."""

    def insert(self, one: WebhookAttempt) -> None:
        """Write a new attempt."""
        self._rows.insert(WEBHOOK_ATTEMPTS, WEBHOOK_ATTEMPTS.key_of(one), one)

    def page(
        self,
        workspace_id: str,
        webhook_id: str,
        *,
        failed: bool | None = None,
        before: str | None = None,
        limit: int,
    ) -> Sequence[WebhookAttempt]:
        """Return attempts of an endpoint before an identifier, the latest first: all, or by whether they failed."""
        return self._list(
            WEBHOOK_ATTEMPTS,
            "webhooks.attempts",
            workspace_id=workspace_id,
            webhook_id=webhook_id,
            failed=None if failed is None else int(failed),
            before=LAST if before is None else before,
            limit=limit,
        )

    def first_kept(self, workspace_id: str, webhook_id: str, *, since: datetime | None, most: int) -> str | None:
        """Return the identifier before which attempts of an endpoint are old; None where none is.

        Args:
            workspace_id: The workspace.
            webhook_id: The endpoint.
            since: Those before this moment are old; None for none.
            most: So many of the latest are kept, at least 1.
        """
        place = {"workspace_id": workspace_id, "webhook_id": webhook_id}
        bounds = [
            row[0] for row in self._rows.query("webhooks.attempt_behind", WEBHOOK_ATTEMPTS, **place, later=most - 1)
        ]
        if since is not None:
            rows = self._rows.query(
                "webhooks.first_attempt_since", WEBHOOK_ATTEMPTS, **place, since=format_timestamp(since)
            )
            bounds.append(rows[0][0] if rows else LAST)
        first: str = max(bounds, default="")
        return first if self.page(workspace_id, webhook_id, before=first, limit=1) else None

    def delete_before(self, workspace_id: str, webhook_id: str, before: str, *, limit: int) -> int:
        """Delete attempts of an endpoint before an identifier, the oldest first; return how many."""
        return self._rows.execute_on(
            WEBHOOK_ATTEMPTS,
            "webhooks.delete_attempts",
            workspace_id=workspace_id,
            webhook_id=webhook_id,
            before=before,
            limit=limit,
        )
