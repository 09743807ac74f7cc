"""What Twilio calls back: the status of messages, and messages that people write.

https://www.twilio.com/docs/messaging/guides/track-outbound-message-status and
https://www.twilio.com/docs/messaging/guides/webhook-request; more parameters may come at any time.

What is signed joins names and values without a border between them, so that whoever has seen one callback can cut it up
anew under the same signature: `MessageSid=SM1` and `NumMedia=0` into `MessageSid=SM1NumMedia0`. So every field that
counts must be of its form, which no such piece is: what is not is refused, as what nobody signed. Forms that have room
for words (names of senders, agents) leave out those that hold the name of a field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from outreach.carriers.base import DISPATCH_PARAMETER
from outreach.carriers.twilio.carrier import NAME, SID
from outreach.carriers.twilio.errors import FAILURES
from outreach.carriers.twilio.signature import require_known_query, verified_fields
from outreach.models.reports import MessageReport
from outreach.models.states import MessageStatus
from outreach.protocols.adapter import (
    Callback,
    CallbackEvent,
    CallbackRefused,
    Connection,
    InboundMessageEvent,
    Keyword,
)
from outreach.wire.callbacks import require_id, text_in

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
"""The statuses of an outbound message, in the engine's words."""

_INBOUND: Final = frozenset({"received", "receiving"})
_KEYWORDS: Final[Mapping[str, Keyword]] = {"STOP": "stop", "START": "start", "HELP": "help"}

_STATUS: Final = re.compile(r"[a-z][a-z_]{0,31}")
"""Also one that Twilio has yet to think of; no name of a field, which begins with a capital, can be hidden in it."""

_CODE: Final = re.compile(r"[0-9]{1,10}")
_AFTER_CODE: Final = re.compile(r"ErrorMessage|From|Messag|Sms")
"""Names of the fields that come after `ErrorCode` in what is signed: with one of them inside it is a piece cut anew."""

_OPT_OUT_TYPE: Final = re.compile(r"[A-Za-z_]{1,20}")
_FIELD: Final = r"(?:(?:From|To)(?![a-z])|(?:Media|Message|Messaging|Num|OptOut|Profile|Referral|Sms|Wa)[A-Z])"
"""The name of a field that may come after an address in what is signed."""

_OF_A_CHANNEL: Final = rf"(?!.+{_FIELD})[A-Za-z_]{{1,20}}:(?:\+?[0-9]{{1,20}}|[A-Za-z0-9._@-][A-Za-z0-9 ._@-]{{0,99}})"
_ADDRESS: Final = re.compile(rf"\+?[0-9]{{1,20}}|{_OF_A_CHANNEL}")
"""A number, a short code, or what a channel has in its place: `whatsapp:+14155550100`, `rcs:my agent`."""

_NAME: Final = r"(?!.+From)(?=.*[A-Za-z])[A-Za-z0-9][A-Za-z0-9 &+_.-]{0,10}"
"""The alphanumeric sender of a message: at most 11 characters, too few for a number and a field.

https://www.twilio.com/docs/glossary/what-alphanumeric-sender-id. After a shorter one nothing but `FromCity` and the
like has room, before `MessageSid` comes."""

_SENDER: Final = re.compile(rf"{_NAME}|{_ADDRESS.pattern}")


def read(connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
    """Verify a callback and read the one event that it is.

    Twilio names no time, neither in the signature nor in the event: the moment is that of the reading.

    Raises:
        CallbackRefused: It is not Twilio's, or a field that counts is not of its form.
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


def _report(
    connection: Connection, callback: Callback, fields: Mapping[str, Any], sid: str, status: str
) -> MessageReport:
    known = STATUSES[status]
    code = _code(fields)
    _formed(fields, "To", _ADDRESS)
    return MessageReport(
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=callback.query.get(DISPATCH_PARAMETER) or None,
        provider_id=sid,
        status=known,
        at=connection.clock.now(),
        reason=FAILURES.get(code or "", "rejected") if known is MessageStatus.FAILED else None,
        error_code=code,
        raw=dict(fields),
    )


def _inbound(connection: Connection, fields: Mapping[str, Any], sid: str) -> InboundMessageEvent:
    sender, to = require_id(fields, "From"), require_id(fields, "To")
    _require_form("From", sender, _SENDER)
    _require_form("To", to, _ADDRESS)
    # Comes where Advanced Opt-Out is on, and Twilio has then replied itself.
    keyword = _KEYWORDS.get((_formed(fields, "OptOutType", _OPT_OUT_TYPE) or "").upper())
    return InboundMessageEvent(
        provider_id=sid,
        from_number=sender,
        to=to,
        body=text_in(fields, "Body") or "",
        at=connection.clock.now(),
        keyword=keyword,
        replied_by_carrier=keyword is not None,
    )


def _code(fields: Mapping[str, Any]) -> str | None:
    """Return the code of a failure; None for what is none, such as `null`: the receipt counts without it.

    Raises:
        CallbackRefused: Another field has been made a part of it.
    """
    code = text_in(fields, "ErrorCode")
    if code is None or _CODE.fullmatch(code):
        return code
    if _AFTER_CODE.search(code):
        raise CallbackRefused("The callback's ErrorCode is not of its form.")
    return None


def _formed(fields: Mapping[str, Any], name: str, form: re.Pattern[str]) -> str | None:
    """Return a field that must be of its form where it is there at all; None where it is not."""
    value = text_in(fields, name)
    if value is not None:
        _require_form(name, value, form)
    return value


def _require_form(name: str, value: str, form: re.Pattern[str]) -> None:
    if not form.fullmatch(value):
        raise CallbackRefused(f"The callback's {name} is not of its form.")
