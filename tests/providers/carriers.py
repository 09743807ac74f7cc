"""The three carriers' parts: what they take, and the receipts and messages that they call back."""

from __future__ import annotations

import itertools
import json
from datetime import datetime
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from outreach.core.clock import format_timestamp
from outreach.protocols.adapter import Callback
from outreach.testing.fault_server import Answer, Received
from tests.carriers.telnyx import given as telnyx
from tests.carriers.twilio import given as twilio
from tests.carriers.vonage import given as vonage
from tests.providers.parts import Event, Part, Taken

Receipt = Literal["accepted", "sent", "delivered", "failed"]

SENDER: Final = "+14155550199"

_numbers = itertools.count(1)


class CarrierPart(Part):
    """A carrier.

    Attributes:
        failure: The reason, in the engine's words, of a receipt that failed.
        replies: Whether it answers STOP by itself.
        dates_texts: Whether it tells when somebody wrote to us.
    """

    channel = "sms"
    failure = "invalid_number"
    replies = True
    dates_texts = True

    def receipt(self, taken: Taken, status: Receipt, at: datetime) -> Event:
        """Return a receipt; the same status of the same message is the same event."""
        raise NotImplementedError("A subclass knows its provider's receipts.")

    def text(self, sender: str, body: str, at: datetime) -> Event:
        """Return a message that somebody writes to `SENDER`."""
        raise NotImplementedError("A subclass knows its provider's messages.")


class Twilio(CarrierPart):
    """Twilio: forms, signed with their address."""

    name = "twilio"
    credentials = twilio.CREDENTIALS
    dates_texts = False
    stand_in_of = twilio.TwilioStandIn

    def dispatch_id(self, request: Received) -> str:
        """Return what the address of the status callback names."""
        form = dict(parse_qsl(request.body.decode()))
        return dict(parse_qsl(urlsplit(form["StatusCallback"]).query))["dispatch"]

    def taken(self, request: Received, answer: Answer) -> Taken:
        """Read the form and the message resource."""
        made = json.loads(answer.body)
        return Taken(provider_id=made["sid"], dispatch_id=self.dispatch_id(request), to=made["to"])

    def receipt(self, taken: Taken, status: Receipt, at: datetime) -> Event:
        """A status with our identifier in its address."""
        words = {"accepted": "queued", "failed": "undelivered"}
        fields = {
            "AccountSid": twilio.ACCOUNT_SID,
            "From": SENDER,
            "MessageSid": taken.provider_id,
            "MessageStatus": words.get(status, status),
            "To": taken.to,
        }
        if status == "failed":
            fields["ErrorCode"] = "30005"
        return Event(content=fields, query=f"dispatch={taken.dispatch_id}")

    def text(self, sender: str, body: str, at: datetime) -> Event:
        """A message resource of the other direction."""
        sid = f"SM{next(_numbers):032x}"
        fields = {"AccountSid": twilio.ACCOUNT_SID, "MessageSid": sid, "SmsStatus": "received"}
        return Event(content={**fields, "From": sender, "To": SENDER, "Body": body, "NumMedia": "0"})

    def sign(self, event: Event, *, url: str, at: datetime) -> Callback:
        """Sign address and fields; Twilio signs no time."""
        return twilio.signed(event.content, url=f"{url}?{event.query}" if event.query else url)


class Telnyx(CarrierPart):
    """Telnyx: JSON, signed with a time and without its address."""

    name = "telnyx"
    credentials = telnyx.CREDENTIALS
    stand_in_of = telnyx.TelnyxStandIn

    def dispatch_id(self, request: Received) -> str:
        """Return what the address of the webhook names."""
        return dict(parse_qsl(urlsplit(json.loads(request.body)["webhook_url"]).query))["dispatch"]

    def taken(self, request: Received, answer: Answer) -> Taken:
        """Read the request; the answer has the identifier."""
        made = json.loads(answer.body)["data"]
        return Taken(provider_id=made["id"], dispatch_id=self.dispatch_id(request), to=json.loads(request.body)["to"])

    def receipt(self, taken: Taken, status: Receipt, at: datetime) -> Event:
        """A status of the one number that the message went to."""
        word = {"accepted": "queued", "failed": "delivery_failed"}.get(status, status)
        payload = telnyx.a_payload(word, id=taken.provider_id)
        payload["to"][0]["phone_number"] = taken.to
        if status == "failed":
            payload["errors"] = [{"code": "40310", "title": "No"}]
        kind = "message.sent" if status in {"accepted", "sent"} else "message.finalized"
        event = _telnyx(f"{taken.provider_id}:{status}", kind, payload, at)
        return Event(content=event, query=f"dispatch={taken.dispatch_id}")

    def text(self, sender: str, body: str, at: datetime) -> Event:
        """A message that was received."""
        number = next(_numbers)
        payload = {
            "direction": "inbound",
            "from": {"phone_number": sender},
            "id": f"inbound-{number}",
            "received_at": format_timestamp(at),
            "text": body,
            "to": [{"phone_number": SENDER}],
        }
        return Event(content=_telnyx(f"event-{number}", "message.received", payload, at))

    def sign(self, event: Event, *, url: str, at: datetime) -> Callback:
        """Sign time and body."""
        return telnyx.signed(event.content, url=f"{url}?{event.query}" if event.query else url, at=at.timestamp())


class Vonage(CarrierPart):
    """Vonage: JSON, with a token that covers it."""

    name = "vonage"
    credentials = vonage.CREDENTIALS
    replies = False
    stand_in_of = vonage.VonageStandIn

    def dispatch_id(self, request: Received) -> str:
        """Return the reference of the client."""
        reference: str = json.loads(request.body)["client_ref"]
        return reference

    def taken(self, request: Received, answer: Answer) -> Taken:
        """Read the request, whose number has no plus; the answer has the identifier."""
        made = json.loads(answer.body)
        return Taken(
            provider_id=made["message_uuid"],
            dispatch_id=self.dispatch_id(request),
            to=f"+{json.loads(request.body)['to']}",
        )

    def receipt(self, taken: Taken, status: Receipt, at: datetime) -> Event:
        """A status with our reference in its body."""
        word = {"accepted": "of-a-new-kind", "sent": "submitted", "failed": "undeliverable"}.get(status, status)
        changes: dict[str, Any] = {"error": vonage.a_refusal("1170")} if status == "failed" else {}
        event = vonage.a_status(
            word,
            message_uuid=taken.provider_id,
            to=taken.to.removeprefix("+"),
            client_ref=taken.dispatch_id,
            timestamp=format_timestamp(at),
            **changes,
        )
        return Event(content=event)

    def text(self, sender: str, body: str, at: datetime) -> Event:
        """A message that was received; numbers have no plus."""
        event = {
            "channel": "sms",
            "message_uuid": f"00000000-0000-4000-8000-{next(_numbers):012d}",
            "from": sender.removeprefix("+"),
            "to": SENDER.removeprefix("+"),
            "timestamp": format_timestamp(at),
            "text": body,
        }
        return Event(content=event)

    def sign(self, event: Event, *, url: str, at: datetime) -> Callback:
        """Sign a token with the body's hash."""
        return vonage.signed(event.content, url=url, now=at)


CARRIERS: Final = (Twilio, Telnyx, Vonage)


def _telnyx(event_id: str, kind: str, payload: object, at: datetime) -> dict[str, Any]:
    data = {
        "event_type": kind,
        "id": event_id,
        "occurred_at": format_timestamp(at),
        "payload": payload,
        "record_type": "event",
    }
    return {"data": data, "meta": {"attempt": 1}}
