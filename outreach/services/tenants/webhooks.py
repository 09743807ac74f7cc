"""Webhooks: endpoints that the events of a workspace are delivered to."""

from __future__ import annotations

import base64
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

import attrs

from outreach.core.vault import WEBHOOKS, PreviousCredentials, Vault
from outreach.errors import Conflict, InvalidRequest, NotFound
from outreach.ledger.common import workspace_of
from outreach.ledger.subscriptions import first_since
from outreach.ledger.webhooks import UnreadFeed, wanted_after
from outreach.models.base import Page
from outreach.models.webhook import (
    CreatedWebhook,
    NewWebhook,
    Webhook,
    WebhookAttempt,
    WebhookCursor,
    WebhookHold,
    WebhookProgress,
    WebhookReplay,
    WebhookRotation,
    WebhookState,
    WebhookUpdate,
)
from outreach.models.work import IdempotencyKey
from outreach.models.workspace import Workspace
from outreach.protocols.storage import Within
from outreach.rules.webhook_targets import Allowed, check_url
from outreach.serialization.webhook_bodies import WEBHOOK_TYPES, key_of
from outreach.services.context import check_kind
from outreach.services.idempotency import IdempotencyGuard, finishing
from outreach.services.lists import PageRequest, iterate
from outreach.services.resource import EVERY_OPERATION, Resource
from outreach.storage.unit_of_work import Transaction

SECRET_BYTES: Final = 32

_PREFIX: Final = "whsec_"
_KEY: Final = "signing_key"


class Webhooks(Resource[Webhook, NewWebhook, WebhookUpdate]):
    """The webhooks of workspaces.

    An endpoint is a position in the workspace's events: while it is paused, or disabled because it failed, its position
    stays, so that nothing is lost.
    """

    remove_advice = ""
    title = "url"
    managed = EVERY_OPERATION

    async def create(  # type: ignore[override]
        self,
        workspace_id: str,
        new: NewWebhook,
        *,
        idempotency_key: IdempotencyKey[CreatedWebhook] = None,
        actor: str = "library",
    ) -> CreatedWebhook:
        """Create an endpoint, which gets the events from now on; return it with its secret, which is shown once.

        Args:
            workspace_id: The workspace.
            new: The endpoint.
            idempotency_key: A name for it, such as `order-42`: for a day, the same key returns the same one, without
                its secret.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A value is invalid, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
            ConfigError: No usable encryption key.
        """
        check_kind("new", new, NewWebhook)
        context = self._context
        identifier, now, secret = context.ids(), context.now(), _new_secret()
        sealed = self._vault.encrypt(identifier, {_KEY: secret})

        def operation(tx: Transaction) -> CreatedWebhook:
            workspace = workspace_of(tx, workspace_id)
            values = self._begun(self._stored(tx, workspace, attrs.asdict(new, recurse=False)), now)
            made = Webhook(id=identifier, workspace_id=workspace_id, created_at=now, **values)
            tx.webhooks.insert(made)
            cursor = WebhookCursor(
                workspace_id=workspace_id,
                webhook_id=identifier,
                sealed=sealed,
                position=tx.trail.last_number(),
                gap_until=tx.trail.purged_until(),
                updated_at=now,
            )
            tx.webhook_cursors.put(cursor)
            self._record(tx, self.created, made, now, actor)
            return CreatedWebhook(webhook=made, secret=secret)

        return await self._once("create", workspace_id, idempotency_key, operation, content=new)

    async def pause(self, workspace_id: str, webhook_id: str, *, actor: str = "library") -> Webhook:
        """Deliver nothing to an endpoint until it is enabled; its position stays.

        Raises:
            NotFound: The workspace has no such endpoint.
        """
        return await self._move("pause", workspace_id, webhook_id, actor, state="paused", reason="operator")

    async def enable(self, workspace_id: str, webhook_id: str, *, actor: str = "library") -> Webhook:
        """Go on with the deliveries to an endpoint that is paused or disabled, from its position; try at once.

        Raises:
            NotFound: The workspace has no such endpoint.
        """
        return await self._move("enable", workspace_id, webhook_id, actor, state="active", reason=None)

    async def rotate(
        self,
        workspace_id: str,
        webhook_id: str,
        how: WebhookRotation | None = None,
        *,
        idempotency_key: IdempotencyKey[CreatedWebhook] = None,
        actor: str = "library",
    ) -> CreatedWebhook:
        """Give an endpoint a new secret, and return it; deliveries are signed with the one before too for a while.

        Args:
            workspace_id: The workspace.
            webhook_id: The endpoint.
            how: How long the one before signs too; 24 hours by default.
            idempotency_key: A name for it, such as `order-42`: for a day, the same key changes nothing more, and
                returns the endpoint without its secret.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such endpoint.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
            ConfigError: No usable encryption key.
        """
        chosen = WebhookRotation() if how is None else how
        check_kind("how", chosen, WebhookRotation)
        overlap = timedelta(hours=chosen.overlap_hours)
        now, secret = self._context.now(), _new_secret()

        def operation(tx: Transaction) -> CreatedWebhook:
            webhook = tx.webhooks.existing(workspace_id, webhook_id)
            cursor = _cursor_of(tx, webhook)
            kept = [
                PreviousCredentials(values={_KEY: one}, until=min(until, now + overlap))
                for one, until in signing_secrets(self._vault, cursor, now)
            ]
            previous = [one for one in kept if one.until > now]
            sealed = self._vault.encrypt(webhook.id, {_KEY: secret}, previous=previous)
            tx.webhook_cursors.put(attrs.evolve(cursor, sealed=sealed, updated_at=now))
            self._record(tx, "rotate", webhook, now, actor)
            return CreatedWebhook(webhook=webhook, secret=secret)

        return await self._once("rotate", workspace_id, idempotency_key, operation, content=(webhook_id, chosen))

    async def test(self, workspace_id: str, webhook_id: str, *, actor: str = "library") -> Webhook:
        """Have a `webhook.test` delivered to an endpoint, beside its events; `list_attempts` shows what came of it.

        Raises:
            NotFound: The workspace has no such endpoint.
            Conflict: It is paused or disabled, so that nothing is delivered to it.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> Webhook:
            webhook = tx.webhooks.existing(workspace_id, webhook_id)
            if webhook.state != "active":
                raise Conflict(f"The webhook is {webhook.state}: enable it first.")
            lowest = tx.webhook_holds.list(workspace_id, webhook_id, limit=1)
            test = WebhookHold(
                workspace_id=workspace_id,
                webhook_id=webhook_id,
                # Below those of all events.
                number=min([0, *(one.number for one in lowest)]) - 1,
                key=f"webhook:{webhook_id}",
                attempts=0,
                next_at=now,
                first_at=now,
            )
            tx.webhook_holds.put(test)
            cursor = _cursor_of(tx, webhook)
            # An endpoint that is down may have been mended: the test is its next probe.
            probe_at = None if cursor.probe_at is None else min(cursor.probe_at, now)
            # By which the processes that deliver see that there is something.
            tx.webhook_cursors.put(attrs.evolve(cursor, probe_at=probe_at, updated_at=now))
            self._record(tx, "test", webhook, now, actor)
            return webhook

        return await self._context.storage.write(Within([workspace_id], operation))

    async def replay(
        self, workspace_id: str, webhook_id: str, start: WebhookReplay, *, actor: str = "library"
    ) -> Webhook:
        """Deliver events again, from a number or a time on or a single one, with the ids that they had; begin at once.

        Args:
            workspace_id: The workspace.
            webhook_id: The endpoint.
            start: Which events. A single one is delivered before later ones with its key.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such endpoint.
            InvalidRequest: The number is ahead of the events; or a single event is gone, is of no type of the
                endpoint, or is still to be delivered.
        """
        check_kind("start", start, WebhookReplay)
        now = self._context.now()

        def operation(tx: Transaction) -> Webhook:
            webhook = tx.webhooks.existing(workspace_id, webhook_id)
            if start.only and start.number is not None:
                _hold_again(tx, webhook, start.number, now)
                self._record(tx, "replay", webhook, now, actor)
                return webhook
            begin = first_since(tx, start.at) if start.at is not None else checked_first(tx, start.number)
            cursor = _forget_failures(tx, webhook, now)
            # Held events before `begin` stay held: they are still delivered. If the position stays, those after it stay
            # held too, because a process that delivers skips them in the feed.
            if begin <= cursor.position:
                tx.webhook_holds.delete_from(workspace_id, webhook_id, begin)
            position, gap = min(cursor.position, begin - 1), min(cursor.gap_until, begin - 1)
            tx.webhook_cursors.put(attrs.evolve(cursor, position=position, gap_until=gap))
            self._record(tx, "replay", webhook, now, actor)
            return webhook

        return await self._context.storage.write(Within([workspace_id], operation))

    async def cursor(self, workspace_id: str, webhook_id: str) -> WebhookCursor:
        """Return how far the deliveries to an endpoint have come.

        Raises:
            NotFound: The workspace has no such endpoint.
        """
        return await self._context.storage.read(
            lambda tx: _cursor_of(tx, tx.webhooks.existing(workspace_id, webhook_id))
        )

    async def progress(self, workspace_id: str, *webhook_ids: str) -> Sequence[WebhookProgress]:
        """Return how the deliveries to some endpoints go, in the order of their identifiers here; without any, to all.

        Raises:
            NotFound: The workspace does not exist, or has no such endpoint.
        """

        def operation(tx: Transaction) -> Sequence[WebhookProgress]:
            wanted = webhook_ids or [one.id for one in tx.webhooks.list_existing(workspace_of(tx, workspace_id).id)]
            tx.webhooks.prefetch(workspace_id, wanted)
            feed = UnreadFeed(tx, workspace_id)
            return [_progress_of(tx, feed, tx.webhooks.existing(workspace_id, one)) for one in wanted]

        return await self._context.storage.read(operation)

    async def list_attempts(
        self,
        workspace_id: str,
        webhook_id: str,
        *,
        failed: bool | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[WebhookAttempt]:
        """Return a page of the attempts of an endpoint, the latest first.

        Args:
            workspace_id: The workspace.
            webhook_id: The endpoint.
            failed: Only those that failed, or only those that succeeded; None for all.
            after: The `next` of the page before.
            limit: At most so many, 1 to 1,000.

        Raises:
            NotFound: The workspace has no such endpoint.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("webhook attempts", workspace_id, webhook_id, failed, after=after, limit=limit)
        before = page_request.cursor

        def operation(tx: Transaction) -> Sequence[WebhookAttempt]:
            webhook = tx.webhooks.existing(workspace_id, webhook_id)
            return tx.webhook_attempts.page(workspace_id, webhook.id, failed=failed, before=before, limit=limit + 1)

        return page_request.page(await self._context.storage.read(operation), lambda one: one.id)

    def iter_attempts(
        self, workspace_id: str, webhook_id: str, *, failed: bool | None = None
    ) -> AsyncIterator[WebhookAttempt]:
        """Iterate over the attempts of an endpoint, the latest first; see `list_attempts`."""
        return iterate(partial(self.list_attempts, workspace_id, webhook_id, failed=failed))

    def _signing_keys(self, cursor: WebhookCursor, now: datetime) -> Sequence[bytes]:
        """Return the raw bytes of the secrets that sign now, the newest first."""
        return [
            base64.b64decode(secret.removeprefix(_PREFIX)) for secret, _ in signing_secrets(self._vault, cursor, now)
        ]

    async def _once(
        self,
        action: str,
        workspace_id: str,
        idempotency_key: IdempotencyKey[CreatedWebhook],
        operation: Callable[[Transaction], CreatedWebhook],
        *,
        content: object,
    ) -> CreatedWebhook:
        """Make a secret once for each key: a repeated call returns the endpoint without it."""

        async def make(once: IdempotencyGuard[CreatedWebhook]) -> CreatedWebhook:
            return await self._context.storage.write(finishing(Within([workspace_id], operation), once))

        async def recall(stored: bytes) -> CreatedWebhook:
            return CreatedWebhook(webhook=await self.get(workspace_id, stored.decode()), secret=None)

        return await self._keys.once(
            workspace_id,
            f"webhooks.{action}",
            idempotency_key,
            content=content,
            make=make,
            remember=lambda made: made.webhook.id.encode(),
            recall=recall,
        )

    async def _move(
        self, action: str, workspace_id: str, webhook_id: str, actor: str, *, state: WebhookState, reason: str | None
    ) -> Webhook:
        now = self._context.now()

        def operation(tx: Transaction) -> Webhook:
            before = tx.webhooks.existing(workspace_id, webhook_id)
            after = attrs.evolve(before, state=state, reason=reason, updated_at=now)
            tx.webhooks.update(after)
            if state == "active":
                _forget_failures(tx, after, now)
            self._record(tx, action, after, now, actor)
            return after

        return await self._context.storage.write(Within([workspace_id], operation))

    # How the set-up differs from that of other resources.

    def _name(self, one: Webhook) -> str:
        return f"Webhook {one.id}"

    def _used_by(self, tx: Transaction, one: Webhook) -> Sequence[str]:
        return ()

    def _stored(self, tx: Transaction, workspace: Workspace, values: dict[str, Any]) -> dict[str, Any]:
        if "url" in values:
            config = self._context.config
            allowed = Allowed.from_settings(config.webhook_allow, http=config.webhook_allow_http)
            check_url(values["url"], allowed)
        if "types" not in values:
            return values
        check_types(values["types"])
        return {**values, "types": tuple(values["types"])}

    def _begun(self, values: dict[str, Any], now: datetime) -> dict[str, Any]:
        return {**values, "state": "active", "reason": None, "updated_at": now}

    def _replace(self, tx: Transaction, before: Webhook, after: Webhook, now: datetime, actor: str) -> Webhook:
        changed = attrs.evolve(after, updated_at=now)
        tx.webhooks.update(changed)
        if changed.url != before.url:
            # The new one may be up.
            _forget_failures(tx, changed, now)
        elif changed.types != before.types:
            # Held events of other types are dropped, and hold back no others with their keys.
            tx.webhook_holds.hasten(changed.workspace_id, changed.id, now)
        return changed

    def _remove(self, tx: Transaction, one: Webhook, now: datetime, actor: str) -> Webhook:
        tx.webhook_holds.delete_from(one.workspace_id, one.id, None)
        cursor = attrs.evolve(_cursor_of(tx, one), sealed="", holder=None, held_until=None, updated_at=now)
        tx.webhook_cursors.put(cursor)
        return super()._remove(tx, one, now, actor)


def signing_secrets(vault: Vault, cursor: WebhookCursor, now: datetime) -> Sequence[tuple[str, datetime]]:
    """Return the secrets that sign deliveries now, the newest first, each with its end.

    Raises:
        ConfigError: No usable key, or another one than they were encrypted with; the message says what to do.
    """
    opened = vault.open(cursor.webhook_id, cursor.sealed, provider=WEBHOOKS)
    before = vault.previous(cursor.webhook_id, cursor.sealed, provider=WEBHOOKS)
    newest = (opened[_KEY], datetime.max.replace(tzinfo=UTC))
    return [newest, *((one.values[_KEY], one.until) for one in before if one.until > now)]


def _new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")


def _cursor_of(tx: Transaction, webhook: Webhook) -> WebhookCursor:
    cursor = tx.webhook_cursors.get(webhook.workspace_id, webhook.id)
    if cursor is None:
        raise NotFound("webhook", webhook.id)
    return cursor


def check_types(types: Sequence[str]) -> None:
    """Raise `InvalidRequest` where a pattern is that of no type."""
    for number, pattern in enumerate(types):
        if not any(fnmatchcase(name, pattern) for name in WEBHOOK_TYPES):
            known = ", ".join(WEBHOOK_TYPES)
            raise InvalidRequest.at(f"types[{number}]", f"must be a type of events, or a pattern of some: {known}")


def checked_first(tx: Transaction, number: int | None) -> int:
    """Return the number of the first event that is delivered, by default that of the next one.

    Raises:
        InvalidRequest: It is ahead of the events.
    """
    end = tx.trail.last_number() + 1
    if number is not None and number > end:
        raise InvalidRequest.at("number", f"must be at most {end}, the number of the next event")
    return number or end


def _hold_again(tx: Transaction, webhook: Webhook, number: int, now: datetime) -> None:
    """Have an event delivered again that was delivered before."""
    cursor = _cursor_of(tx, webhook)
    if number > cursor.position:
        raise InvalidRequest.at("number", "is still to be delivered")
    event = next(iter(wanted_after(tx, webhook, number - 1, limit=1)[0]), None)
    if event is None:
        raise InvalidRequest.at("number", "is of no event that is there and of a type of this webhook")
    tx.webhook_holds.put(
        WebhookHold(
            workspace_id=webhook.workspace_id,
            webhook_id=webhook.id,
            number=number,
            key=key_of(event),
            attempts=0,
            next_at=now,
            first_at=now,
        )
    )
    _forget_failures(tx, webhook, now)


def _progress_of(tx: Transaction, feed: UnreadFeed, webhook: Webhook) -> WebhookProgress:
    cursor = _cursor_of(tx, webhook)
    waiting = feed.waiting(webhook, cursor)
    latest = tx.webhook_attempts.page(webhook.workspace_id, webhook.id, limit=1)
    return WebhookProgress(
        cursor=cursor,
        waiting=waiting.events,
        is_all=waiting.unread == 0,
        waiting_since=waiting.since,
        last=latest[0] if latest else None,
    )


def _forget_failures(tx: Transaction, webhook: Webhook, now: datetime) -> WebhookCursor:
    """Let an endpoint be tried at once, and return its cursor."""
    cursor = _cursor_of(tx, webhook)
    forgotten = attrs.evolve(cursor, failures=0, failing_since=None, probe_at=None, updated_at=now)
    tx.webhook_cursors.put(forgotten)
    tx.webhook_holds.hasten(webhook.workspace_id, webhook.id, now)
    return forgotten
