"""Telnyx's callbacks: https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks.

The signature covers time and body, not the URL: the dispatch id in the URL counts only together with the number in the
body, which is passed on for that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from outreach.models.reports import MessageReport
from outreach.models.states import MessageStatus
from outreach.protocols.adapter import (
    Callback,
    CallbackEvent,
    CallbackRefused,
    Connection,
    InboundMessageEvent,
)
from outreach.providers.carriers.base import DISPATCH_PARAMETER, KEYWORDS, seconds_to_reset
from outreach.providers.carriers.telnyx.carrier import NAME
from outreach.providers.carriers.telnyx.errors import LIMIT_RESETS, deciding_error, failure_class
from outreach.providers.http.callback_bodies import (
    first_in,
    json_event,
    media_links,
    moment_in,
    objects_in,
    require_id,
    text_in,
)
from outreach.providers.http.json_fields import object_at
from outreach.providers.http.signatures import from_base64, require_header, require_recent

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SIGNATURE: Final = "telnyx-signature-ed25519"
TIMESTAMP: Final = "telnyx-timestamp"

STATUSES: Final[Mapping[str, MessageStatus]] = {
    "queued": MessageStatus.ACCEPTED,
    "sending": MessageStatus.ACCEPTED,
    "sent": MessageStatus.SENT,
    # The network reports nothing more: the message was sent, and has not failed.
    "delivery_unconfirmed": MessageStatus.SENT,
    "delivered": MessageStatus.DELIVERED,
    "sending_failed": MessageStatus.FAILED,
    "delivery_failed": MessageStatus.FAILED,
    "expired": MessageStatus.FAILED,
}
"""Telnyx's statuses of outbound messages."""

_REPORTS: Final = frozenset({"message.sent", "message.finalized"})
_INBOUND: Final = "message.received"
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


def public_key(text: str) -> Ed25519PublicKey:
    """Return the account's public key.

    Raises:
        CallbackRefused: It is not 32 bytes in base64.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        return Ed25519PublicKey.from_public_bytes(from_base64(text))
    except ValueError:
        raise CallbackRefused("The account's public key is invalid.") from None


def read(connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
    """Verify a callback's signature and age, and read its one event.

    Raises:
        CallbackRefused: It is not from Telnyx, too old or unreadable.
    """
    _verify(connection, callback)
    event = object_at(json_event(callback.body), "data")
    event_id = require_id(event, "id")
    payload = object_at(event, "payload")
    kind = text_in(event, "event_type")
    if kind in _REPORTS:
        report = _report(connection, callback, event, payload)
        to = text_in(first_in(payload, "to"), "phone_number")
        # Without a number, a report cannot be matched safely.
        return [CallbackEvent(event_id=event_id, content=report if to is not None else None, to=to)]
    if kind == _INBOUND:
        text = _inbound(connection, event, payload)
        return [CallbackEvent(event_id=event_id, content=text, unreadable_kind=_INBOUND if text is None else None)]
    return [CallbackEvent(event_id=event_id, content=None)]


def _verify(connection: Connection, callback: Callback) -> None:
    from cryptography.exceptions import InvalidSignature

    signed_at = require_header(callback.headers, TIMESTAMP)
    signature = from_base64(require_header(callback.headers, SIGNATURE))
    if not _SECONDS.fullmatch(signed_at):
        raise CallbackRefused("The signed time cannot be read.")
    try:
        signed = signed_at.encode("ascii") + b"|" + callback.body
        public_key(connection.credentials["public_key"]).verify(signature, signed)
    except InvalidSignature:
        raise CallbackRefused("The signature does not match the body.") from None
    require_recent(int(signed_at), now=connection.clock.now())


def _report(
    connection: Connection, callback: Callback, event: Mapping[str, Any], payload: Mapping[str, Any]
) -> MessageReport | None:
    status = STATUSES.get(text_in(first_in(payload, "to"), "status") or "")
    provider_id = text_in(payload, "id")
    if status is None or provider_id is None:
        return None
    failed = status is MessageStatus.FAILED
    error = deciding_error(payload)
    code = text_in(error, "code")
    at = moment_in(event, "occurred_at", otherwise=connection.clock.now())
    return MessageReport(
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=callback.query.get(DISPATCH_PARAMETER) or None,
        provider_id=provider_id,
        status=status,
        at=at,
        from_number=text_in(first_in(payload, "from"), "phone_number"),
        reason=(failure_class(error) or "rejected") if failed else None,
        retry_after_seconds=seconds_to_reset(LIMIT_RESETS, code, at) if failed else None,
        error_code=code[:40] if code else None,
        raw=dict(event),
    )


def _inbound(
    connection: Connection, event: Mapping[str, Any], payload: Mapping[str, Any]
) -> InboundMessageEvent | None:
    provider_id = text_in(payload, "id")
    sender = text_in(first_in(payload, "from"), "phone_number")
    to = text_in(first_in(payload, "to"), "phone_number")
    if provider_id is None or sender is None or to is None:
        return None
    # Set if Telnyx itself has replied to a keyword.
    keyword = KEYWORDS.get((text_in(payload, "autoresponse_type") or "").upper())
    media, left_out = media_links(item.get("url") for item in objects_in(payload, "media"))
    occurred_at = moment_in(event, "occurred_at", otherwise=connection.clock.now())
    return InboundMessageEvent(
        provider_id=provider_id,
        from_number=sender,
        to=to,
        body=text_in(payload, "text") or "",
        at=moment_in(payload, "received_at", otherwise=occurred_at),
        keyword=keyword,
        replied_by_carrier=keyword is not None,
        media=media,
        media_left_out=left_out,
    )
