"""Vonage's callbacks: https://developer.vonage.com/en/api/messages (status and inbound webhooks, version 1)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from outreach.models.reports import MessageReport
from outreach.models.states import MessageStatus
from outreach.protocols.adapter import Callback, CallbackEvent, CallbackRefused, Connection, InboundMessageEvent
from outreach.providers.carriers.base import seconds_to_reset
from outreach.providers.carriers.vonage.carrier import NAME
from outreach.providers.carriers.vonage.errors import LIMIT_RESETS, error_code, reported_class
from outreach.providers.carriers.vonage.tokens import callback_token, verify_callback
from outreach.providers.http.callback_bodies import (
    MAX_ID_LENGTH,
    address_in,
    json_event,
    media_links,
    moment_in,
    require_id,
    text_in,
)
from outreach.providers.http.json_fields import object_at

STATUSES: Final[Mapping[str, MessageStatus]] = {
    "submitted": MessageStatus.SENT,
    "delivered": MessageStatus.DELIVERED,
    "rejected": MessageStatus.FAILED,
    "undeliverable": MessageStatus.FAILED,
}
"""Vonage's statuses of messages."""

_INBOUND: Final = "inbound"
"""Vonage's name of the inbound webhook; the event itself names no kind."""

_SMS: Final = "sms"
_MMS: Final = "mms"
_BY_NUMBER: Final = frozenset({_SMS, _MMS, "rcs", "whatsapp", "viber_service"})
"""Channels by phone number, in which a STOP counts; messages are sent by SMS alone."""

_MEDIA: Final = ("image", "audio", "video", "file", "vcard")
"""The fields of an inbound message that hold media."""

_NUMBER: Final = re.compile(r"[1-9][0-9]{6,14}")


def read(connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
    """Verify a callback's signature, age and body hash, and read its one event.

    The body, which the token covers, has our reference. An event's id is message and status, so that a repeated token
    or status is the same event.

    Raises:
        CallbackRefused: It is not from Vonage, too old, of another body or unreadable.
    """
    credentials = connection.credentials
    verify_callback(
        callback,
        api_key=credentials["api_key"],
        secret=credentials["signature_secret"],
        now=connection.clock.now(),
    )
    event = json_event(callback.body)
    uuid = require_id(event, "message_uuid")
    status = text_in(event, "status")
    if status is None:
        text = _inbound(connection, event, uuid)
        return [
            CallbackEvent(event_id=f"{uuid}:received", content=text, unreadable_kind=_INBOUND if text is None else None)
        ]
    if len(status) > MAX_ID_LENGTH:
        raise CallbackRefused("The callback has no status.")
    return [CallbackEvent(event_id=f"{uuid}:{status}", content=_report(connection, event, uuid, status))]


def sign(connection: Connection, *, url: str, test_id: str) -> Callback:
    """Return a callback that is only logged, signed as the provider signs; see `SignsCallbacks`."""
    body = json.dumps({"message_uuid": test_id, "channel": _SMS, "status": "test"}).encode()
    credentials = connection.credentials
    token = callback_token(
        body,
        api_key=credentials["api_key"],
        secret=credentials["signature_secret"],
        token_id=test_id,
        now=connection.clock.now(),
    )
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    return Callback(url=url, headers=headers, query={}, body=body)


def _report(connection: Connection, event: Mapping[str, Any], uuid: str, status: str) -> MessageReport | None:
    known = STATUSES.get(status)
    if known is None or text_in(event, "channel") != _SMS:
        return None
    failed = known is MessageStatus.FAILED
    code = error_code(object_at(event, "error"))
    at = moment_in(event, "timestamp", otherwise=connection.clock.now())
    return MessageReport(
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=text_in(event, "client_ref"),
        provider_id=uuid,
        status=known,
        at=at,
        reason=reported_class(code) if failed else None,
        retry_after_seconds=seconds_to_reset(LIMIT_RESETS, code, at) if failed else None,
        error_code=code,
        raw=dict(event),
    )


def _inbound(connection: Connection, event: Mapping[str, Any], uuid: str) -> InboundMessageEvent | None:
    sender, to = address_in(event, "from"), address_in(event, "to")
    channel = text_in(event, "channel")
    if sender is None or to is None or channel not in _BY_NUMBER:
        return None
    before = "" if channel in {_SMS, _MMS} else f"{channel}:"
    media, left_out = media_links(object_at(event, kind).get("url") for kind in _MEDIA if event.get(kind))
    return InboundMessageEvent(
        provider_id=uuid,
        from_number=before + _e164(sender),
        to=before + _e164(to),
        body=text_in(event, "text") or "",
        at=moment_in(event, "timestamp", otherwise=connection.clock.now()),
        media=media,
        media_left_out=left_out,
    )


def _e164(number: str) -> str:
    """Return a number with its plus; a short code or a name unchanged."""
    return f"+{number}" if _NUMBER.fullmatch(number) else number
