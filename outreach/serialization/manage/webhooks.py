"""Webhooks and the attempts of their deliveries."""

from __future__ import annotations

from typing import Any, Final

from outreach.models.webhook import (
    CreatedWebhook,
    NewWebhook,
    WebhookAttempt,
    WebhookProgress,
    WebhookReplay,
    WebhookRotation,
    WebhookUpdate,
)
from outreach.serialization.documents import document_of, to_json
from outreach.serialization.field_rules import make_request_converter, read_object
from outreach.serialization.manage.resources import ResourceBodies

_read_new: Final = make_request_converter(NewWebhook, closed="a webhook")
_read_update: Final = make_request_converter(WebhookUpdate, closed="a webhook's update")

_read_replay: Final = make_request_converter(WebhookReplay, closed="a replay")
_read_rotation: Final = make_request_converter(WebhookRotation, closed="a rotation")


def read_webhook_replay(data: object) -> WebhookReplay:
    """Return from where events are delivered again; raise `InvalidRequest`, whose details name each place."""
    return read_object(_read_replay, data)


def read_webhook_rotation(data: object) -> WebhookRotation:
    """Return how a secret is replaced, of a body; raise `InvalidRequest`, whose details name each place."""
    return read_object(_read_rotation, data)


class _WebhookBodies(ResourceBodies[NewWebhook, WebhookUpdate]):
    """Reads and writes the bodies of webhooks."""

    def write(self, item: object) -> dict[str, Any]:
        """Return a webhook as JSON; one that was just made, or has a new secret, with this."""
        if isinstance(item, CreatedWebhook):
            return {**self.write(item.webhook), "secret": item.secret}
        return ResourceBodies.write(self, item)

    def repeated(self, item: Any) -> Any:
        """Return an endpoint without its secret."""
        return item.without_secret()


WEBHOOK_BODIES: Final[ResourceBodies[NewWebhook, WebhookUpdate]] = _WebhookBodies(
    lambda data: read_object(_read_new, data), lambda data: read_object(_read_update, data)
)


def write_webhook_attempt(one: WebhookAttempt) -> dict[str, Any]:
    """Return an attempt as JSON."""
    return document_of(one, "id", "workspace_id", "webhook_id")


def write_webhook_progress(progress: WebhookProgress) -> dict[str, Any]:
    """Return how the deliveries to an endpoint go, as JSON."""
    cursor = progress.cursor
    written: dict[str, Any] = to_json(
        {
            "position": cursor.position,
            "waiting": progress.waiting,
            "is_all": progress.is_all,
            "waiting_since": progress.waiting_since,
            "failures": cursor.failures,
            "failing_since": cursor.failing_since,
            "probe_at": cursor.probe_at,
            "last": None if progress.last is None else write_webhook_attempt(progress.last),
        }
    )
    return written
