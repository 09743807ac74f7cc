"""What Twilio calls back: the status of messages, and messages that people write.

https://www.twilio.com/docs/messaging/guides/track-outbound-message-status and
https://www.twilio.com/docs/messaging/guides/webhook-request; more parameters may come at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from outreach.carriers.base import DISPATCH
from outreach.carriers.twilio.carrier import NAME
from outreach.carriers.twilio.errors import FAILURES
from outreach.carriers.twilio.signature import verified_fields
from outreach.models.reports import MessageReport
from outreach.models.states import MessageStatus
from outreach.protocols.adapter import Callback, CallbackEvent, CallbackRefused, Connection, InboundText, Keyword
from outreach.wire.callbacks import LONGEST_ID, require_id, text_in

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


def read(connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
    """Verify a callback and read the one event that it is.

    Twilio names no time, neither in the signature nor in the event: the moment is that of the reading.

    Raises:
        CallbackRefused: It is not Twilio's, or cannot be read.
    """
    fields = verified_fields(callback, connection.credentials)
    sid = require_id(fields, "MessageSid" if "MessageSid" in fields else "SmsSid")
    status = text_in(fields, "MessageStatus") or text_in(fields, "SmsStatus")
    if status is None or status in _INBOUND:
        return [CallbackEvent(event_id=f"{sid}:received", content=_inbound(connection, fields, sid))]
    if len(status) > LONGEST_ID:
        raise CallbackRefused("The callback has no status.")
    return [CallbackEvent(event_id=f"{sid}:{status}", content=_report(connection, callback, fields, sid, status))]


def _report(
    connection: Connection, callback: Callback, fields: Mapping[str, Any], sid: str, status: str
) -> MessageReport | None:
    known = STATUSES.get(status)
    if known is None:
        return None
    code = text_in(fields, "ErrorCode")
    return MessageReport(
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=callback.query.get(DISPATCH) or None,
        provider_id=sid,
        status=known,
        at=connection.clock.now(),
        reason=FAILURES.get(code or "", "rejected") if known is MessageStatus.FAILED else None,
        error_code=code[:LONGEST_ID] if code else None,
        raw=dict(fields),
    )


def _inbound(connection: Connection, fields: Mapping[str, Any], sid: str) -> InboundText | None:
    sender, to = text_in(fields, "From"), text_in(fields, "To")
    if sender is None or to is None:
        return None
    # Comes where Advanced Opt-Out is on, and Twilio has then replied itself.
    keyword = _KEYWORDS.get((text_in(fields, "OptOutType") or "").upper())
    return InboundText(
        provider_id=sid,
        sender=sender,
        to=to,
        body=text_in(fields, "Body") or "",
        at=connection.clock.now(),
        keyword=keyword,
        answered=keyword is not None,
    )
