"""The data that the deliveries of webhooks read from the database, and store in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import attrs

from outreach.core.clock import Clock, IdSource
from outreach.dispatch.webhook_endpoint import LEASE, OpenedEndpoint, Progress, Stretch
from outreach.dispatch.webhooks import EndpointPlace
from outreach.errors import StorageError
from outreach.ledger import webhooks
from outreach.ledger.webhooks import EventBody
from outreach.models.webhook import MAX_ANSWER, Webhook, WebhookAttempt, WebhookCursor, WebhookHold
from outreach.protocols.storage import OneQuery, Storage, Within
from outreach.rules.webhook_queue import EndpointHealth, QueuedEvent
from outreach.storage.unit_of_work import Transaction

Secrets = Callable[[WebhookCursor, datetime], Sequence[bytes]]
"""Returns the raw bytes of the secrets that sign now, the newest first."""

_PAGE = 500
_PASSED_OVER = 1_000
"""The position is stored after this many numbers without an event for an endpoint."""


@attrs.define
class _Seen:
    """The state of an endpoint for which nothing is due, as this process has seen it.

    Attributes:
        version: When it and its cursor were last changed.
        until: No event up to this number is for it.
        next_at: When a held event is due.
    """

    version: tuple[datetime, datetime]
    until: int
    next_at: datetime | None


class StoredWebhooks:
    """The endpoints of a database; implements `webhooks.WebhookRecords`.

    Args:
        storage: The database.
        clock: The source of time.
        ids: The source of the attempts' identifiers.
        secrets: Decrypts.
    """

    def __init__(self, *, storage: Storage, clock: Clock, ids: IdSource, secrets: Secrets) -> None:
        self.storage = storage
        self.clock = clock
        self.ids = ids
        self.secrets = secrets
        self.holder = ids()
        self._seen: dict[EndpointPlace, _Seen] = {}
        self._opened: dict[EndpointPlace, _Seen] = {}

    async def due(self, running: frozenset[EndpointPlace]) -> Sequence[EndpointPlace]:
        """Return endpoints for which something may be due; see the protocol."""
        return await self.storage.read(lambda tx: self._due(tx, running))

    def of(self, place: EndpointPlace) -> StoredEndpoint:
        """Return the records of one endpoint."""
        return StoredEndpoint(self, place)

    def ended(self, place: EndpointPlace, next_at: datetime | None) -> None:
        """Take note of when the next event is due."""
        if (seen := self._opened.pop(place, None)) is not None:
            seen.next_at = next_at
            self._seen[place] = seen

    def note(self, place: EndpointPlace, webhook: Webhook, cursor: WebhookCursor) -> None:
        """Take note of what was stored of an endpoint."""
        self._opened[place] = _Seen((webhook.updated_at, cursor.updated_at), cursor.position, None)

    def _due(self, tx: Transaction, running: frozenset[EndpointPlace]) -> list[EndpointPlace]:
        now, found, after = self.clock.now(), list[EndpointPlace](), ""
        known = set[EndpointPlace]()
        while page := tx.webhooks.active(after=after, limit=_PAGE):
            for webhook in page:
                place = EndpointPlace(webhook.workspace_id, webhook.id)
                known.add(place)
                if place not in running and self._is_due(tx, place, webhook, now):
                    found.append(place)
            after = page[-1].id
        for place in self._seen.keys() - known:
            del self._seen[place]
        return found

    def _is_due(self, tx: Transaction, place: EndpointPlace, webhook: Webhook, now: datetime) -> bool:
        cursor = tx.webhook_cursors.get(webhook.workspace_id, webhook.id)
        if cursor is None or not webhooks.is_free(cursor, self.holder, lease=LEASE, now=now):
            return False
        seen = self._seen.get(place)
        if seen is None or seen.version != (webhook.updated_at, cursor.updated_at):
            return True
        if seen.next_at is not None and seen.next_at <= now:
            return True
        if cursor.probe_at is not None and cursor.probe_at > now:
            return False
        events, until, _ = webhooks.wanted_after(tx, webhook, max(seen.until, cursor.position))
        if events or until - cursor.position >= _PASSED_OVER:
            return True
        seen.until = until
        return False


class StoredEndpoint:
    """One endpoint of a database; implements `webhook_endpoint.EndpointRecords`."""

    def __init__(self, stored: StoredWebhooks, place: EndpointPlace) -> None:
        self._stored = stored
        self._place = place
        self._webhook: Webhook | None = None
        self._cursor: WebhookCursor | None = None
        self._gaps: list[tuple[int, int]] = []
        """The number in whose place each notice of a gap stands, and up to which number events are gone."""

    async def open(self) -> OpenedEndpoint | None:
        """Take the lease; see the protocol."""
        stored, place = self._stored, self._place
        taken = await stored.storage.write(
            Within(
                [place.workspace_id],
                lambda tx: webhooks.take(
                    tx, place.workspace_id, place.id, stored.holder, lease=LEASE, now=stored.clock.now()
                ),
            )
        )
        if taken is None:
            return None
        webhook, cursor, holds = taken
        self._webhook, self._cursor = webhook, cursor
        return OpenedEndpoint(
            id=webhook.id,
            url=webhook.url,
            concurrency=webhook.concurrency,
            secrets=stored.secrets(cursor, stored.clock.now()),
            position=cursor.position,
            health=EndpointHealth(
                consecutive_failures=cursor.failures, failing_since=cursor.failing_since, next_probe_at=cursor.probe_at
            ),
            held=[
                QueuedEvent(
                    number=hold.number,
                    key=hold.key,
                    attempts=hold.attempts,
                    next_at=hold.next_at,
                    first_at=hold.first_at,
                    held=True,
                )
                for hold in holds
            ],
        )

    async def read(self, after: int) -> Stretch:
        """Return a stretch of the feed; see the protocol."""
        webhook, cursor = self._known()
        reported = max([cursor.gap_until, *(last for _, last in self._gaps)])
        now = self._stored.clock.now()
        bodies, until, at_end, gap_until = await self._stored.storage.read(
            lambda tx: webhooks.read(tx, webhook, after, gap_until=reported, now=now)
        )
        if gap_until > reported:
            notice = next(body for body in bodies if body.type == "events.gap")
            self._gaps.append((notice.number, gap_until))
        return Stretch(events=bodies, until=until, at_end=at_end)

    async def ready(self, event: QueuedEvent) -> EventBody | None:
        """Return a held event as it is now; see the protocol."""
        webhook, _ = self._known()
        hold = self._hold(event, self._stored.clock.now())
        return await self._stored.storage.read(lambda tx: webhooks.body_now(tx, webhook, hold))

    async def is_same(self) -> bool:
        """Return whether the endpoint is as it was opened; see the protocol."""
        webhook, _ = self._known()
        read = OneQuery[Webhook | None](lambda tx: tx.webhooks.get(webhook.workspace_id, webhook.id))
        return await self._stored.storage.read(read) == webhook

    async def store(self, progress: Progress) -> bool:
        """Store progress; see the protocol."""
        (webhook, cursor), now = self._known(), self._stored.clock.now()
        reported = max([cursor.gap_until, *(last for number, last in self._gaps if number <= progress.position)])
        moved = attrs.evolve(
            cursor,
            position=progress.position,
            gap_until=reported,
            failures=progress.health.consecutive_failures,
            failing_since=progress.health.failing_since,
            probe_at=progress.health.next_probe_at,
            holder=None if progress.release else cursor.holder,
            held_until=None if progress.release else now + LEASE,
            updated_at=now if progress.position > cursor.position else cursor.updated_at,
        )
        holds = [self._hold(event, now) for event in progress.changed.values() if event is not None]
        done = [number for number, event in progress.changed.items() if event is None]
        attempts = [
            WebhookAttempt(
                id=self._stored.ids(),
                workspace_id=webhook.workspace_id,
                webhook_id=webhook.id,
                number=one.number,
                type=one.type,
                at=one.at,
                duration_ms=round(one.answer.seconds * 1000),
                status=one.answer.status,
                error=one.answer.error,
                answer=one.answer.text.decode("utf-8", "replace").replace("\0", "")[:MAX_ANSWER],
            )
            for one in progress.attempts
        ]
        kept = await self._stored.storage.write(
            Within(
                [webhook.workspace_id],
                lambda tx: webhooks.advance(
                    tx,
                    (webhook, cursor),
                    moved,
                    holds=holds,
                    done=done,
                    attempts=attempts,
                    disabled=progress.disabled,
                    now=now,
                ),
            )
        )
        if kept:
            self._cursor = moved
            self._stored.note(self._place, webhook, moved)
        return kept

    def _known(self) -> tuple[Webhook, WebhookCursor]:
        if self._webhook is None or self._cursor is None:
            raise StorageError("The endpoint is not opened.")
        return self._webhook, self._cursor

    def _hold(self, event: QueuedEvent, now: datetime) -> WebhookHold:
        return WebhookHold(
            workspace_id=self._place.workspace_id,
            webhook_id=self._place.id,
            number=event.number,
            key=event.key,
            attempts=event.attempts,
            next_at=event.next_at or now,
            first_at=event.first_at or now,
        )
