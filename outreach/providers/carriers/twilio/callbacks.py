"""Twilio's callbacks: the status of messages, and inbound messages.

https://www.twilio.com/docs/messaging/guides/track-outbound-message-status and
https://www.twilio.com/docs/messaging/guides/webhook-request; more parameters may come at any time.

The signature joins names and values without a separator, so an attacker with one callback can split it differently
under the same signature: `MessageSid=SM1` and `NumMedia=0` into `MessageSid=SM1NumMedia0`. So every field that is used
must match a pattern that no such split matches. Patterns of free text (senders, agents) exclude the names of fields.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

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
from outreach.providers.carriers.twilio.carrier import NAME, SID
from outreach.providers.carriers.twilio.errors import FAILURES, LIMIT_RESETS
from outreach.providers.carriers.twilio.signature import SIGNATURE, require_known_query, signature_of, verified_fields
from outreach.providers.http.callback_bodies import media_links, require_id, text_in

STATUSES: Final[Mapping[str, MessageStatus]] = {
    "accepted": MessageStatus.ACCEPTED,
    "scheduled": MessageStatus.ACCEPTED,
    "queued": MessageStatus.ACCEPTED,
    "sending": MessageStatus.ACCEPTED,
    "sent": MessageStatus.SENT,
    "partially_delivered": MessageStatus.SENT,
    "delivered": MessageStatus.DELIVERED,
    "read": MessageStatus.DELIVERED,
    "undelivered": MessageStatus.FAILED,
    "failed": MessageStatus.FAILED,
    "canceled": MessageStatus.FAILED,
}
"""Twilio's statuses of outbound messages."""

_INBOUND: Final = frozenset({"received", "receiving"})

_STATUS: Final = re.compile(r"[a-z][a-z_]{0,31}")
"""Includes future values; cannot contain a field name, which begins with a capital."""

_CODE: Final = re.compile(r"[0-9]{1,10}")
_AFTER_CODE: Final = re.compile(r"ErrorMessage|From|Messag|Sms")
"""Fields that are signed after `ErrorCode`: a code that contains one comes from a different split."""

_OPT_OUT_TYPE: Final = re.compile(r"[A-Za-z_]{1,20}")
_FIELD: Final = r"(?:(?:From|To)(?![a-z])|(?:Media|Message|Messaging|Num|OptOut|Profile|Referral|Sms|Wa)[A-Z])"
"""A field that may be signed after an address."""

_OF_A_CHANNEL: Final = rf"(?!.+{_FIELD})[A-Za-z_]{{1,20}}:(?:\+?[0-9]{{1,20}}|[A-Za-z0-9._@-][A-Za-z0-9 ._@-]{{0,99}})"
_ADDRESS: Final = re.compile(rf"\+?[0-9]{{1,20}}|{_OF_A_CHANNEL}")
"""A number, a short code, or a channel's address: `whatsapp:+14155550100`, `rcs:my agent`."""

_NAME: Final = r"(?!.+From)(?=.*[A-Za-z])[A-Za-z0-9][A-Za-z0-9 &+_.-]{0,10}"
"""An alphanumeric sender of at most 11 characters, too few for a number and a field name.

https://www.twilio.com/docs/glossary/what-alphanumeric-sender-id. After a shorter one, only `FromCity` and the like fit
before `MessageSid`."""

_MEDIA: Final = re.compile(r"MediaUrl[0-9]{1,3}")
"""The fields with links to media (https://www.twilio.com/docs/messaging/guides/webhook-request)."""

_AFTER_LINK: Final = re.compile(r"MediaUrl[0-9]|MessageSid")
"""Fields that are signed after a link: a link that contains one comes from a different split."""

_NUMBER: Final = re.compile(r"\+[1-9][0-9]{6,14}")

_SENDER: Final = re.compile(rf"{_NAME}|{_ADDRESS.pattern}")


def read(connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
    """Verify a callback and read its one event; Twilio gives no time, so the event's time is now.

    Raises:
        CallbackRefused: It is not from Twilio, or a field does not match its pattern.
    """
    require_known_query(callback.url)
    fields = verified_fields(callback, connection.credentials)
    name = "MessageSid" if "MessageSid" in fields else "SmsSid"
    sid = require_id(fields, name)
    _require_form(name, sid, SID)
    status = _formed(fields, "MessageStatus", _STATUS) or _formed(fields, "SmsStatus", _STATUS)
    if status is None or status in _INBOUND:
        return [CallbackEvent(event_id=f"{sid}:received", content=_inbound(connection, fields, sid))]
    if status not in STATUSES:
        return [CallbackEvent(event_id=f"{sid}:{status}", content=None)]
    return [CallbackEvent(event_id=f"{sid}:{status}", content=_report(connection, callback, fields, sid, status))]


def sign(connection: Connection, *, url: str, test_id: str) -> Callback:
    """Return a callback that is only logged, signed as the provider signs; see `SignsCallbacks`."""
    sid = f"SM{hashlib.sha256(test_id.encode()).hexdigest()[:32]}"
    fields = {"AccountSid": connection.credentials["account_sid"], "MessageSid": sid, "MessageStatus": "test"}
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        SIGNATURE: signature_of(url, fields, connection.credentials["auth_token"]),
    }
    return Callback(url=url, headers=headers, query={}, body=urlencode(fields).encode())


def _report(
    connection: Connection, callback: Callback, fields: Mapping[str, Any], sid: str, status: str
) -> MessageReport:
    known = STATUSES[status]
    failed = known is MessageStatus.FAILED
    code = _code(fields)
    now = connection.clock.now()
    _formed(fields, "To", _ADDRESS)
    sender = text_in(fields, "From")
    return MessageReport(
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=callback.query.get(DISPATCH_PARAMETER) or None,
        provider_id=sid,
        status=known,
        at=now,
        from_number=sender if sender is not None and _NUMBER.fullmatch(sender) else None,
        reason=FAILURES.get(code or "", "rejected") if failed else None,
        retry_after_seconds=seconds_to_reset(LIMIT_RESETS, code, now) if failed else None,
        error_code=code,
        raw=dict(fields),
    )


def _inbound(connection: Connection, fields: Mapping[str, Any], sid: str) -> InboundMessageEvent:
    sender, to = require_id(fields, "From"), require_id(fields, "To")
    _require_form("From", sender, _SENDER)
    _require_form("To", to, _ADDRESS)
    # Set if Advanced Opt-Out is on and Twilio has replied itself.
    keyword = KEYWORDS.get((_formed(fields, "OptOutType", _OPT_OUT_TYPE) or "").upper())
    media, left_out = media_links(_links(fields))
    return InboundMessageEvent(
        provider_id=sid,
        from_number=sender,
        to=to,
        body=text_in(fields, "Body") or "",
        at=connection.clock.now(),
        keyword=keyword,
        replied_by_carrier=keyword is not None,
        media=media,
        media_left_out=left_out,
    )


def _links(fields: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the links to media in their order; None for one from a different split."""
    # `MediaUrl2` before `MediaUrl10`.
    for name in sorted(filter(_MEDIA.fullmatch, fields), key=lambda name: (len(name), name)):
        link = text_in(fields, name)
        yield None if link is None or _AFTER_LINK.search(link) else link


def _code(fields: Mapping[str, Any]) -> str | None:
    """Return the error code; None for a non-code such as `null`, without which the receipt still counts."""
    code = text_in(fields, "ErrorCode")
    if code is None or _CODE.fullmatch(code):
        return code
    if _AFTER_CODE.search(code):
        raise CallbackRefused("The callback's ErrorCode is malformed.")
    return None


def _formed(fields: Mapping[str, Any], name: str, form: re.Pattern[str]) -> str | None:
    """Return a field that must match its pattern; None if it is absent."""
    value = text_in(fields, name)
    if value is not None:
        _require_form(name, value, form)
    return value


def _require_form(name: str, value: str, form: re.Pattern[str]) -> None:
    if not form.fullmatch(value):
        raise CallbackRefused(f"The callback's {name} is malformed.")
