"""An adapter without a provider behind it: what the engine makes of accounts and callbacks is tested with it."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from outreach.models.reports import MessageReport
from outreach.models.states import MessageStatus
from outreach.protocols.adapter import (
    AccountCheck,
    Callback,
    CallbackEvent,
    CallbackRefused,
    Connection,
    CredentialField,
    InboundMessageEvent,
)
from outreach.testing.scripted import ScriptedCarrier

CREDENTIALS: Final = {"account": "AC1", "token": "s3cret-token", "signing_secret": "s3cret-signature"}


class FakeAdapter:
    """Takes what it is told for true, when it is signed."""

    name = "twilio"
    kind: Final = "carrier"
    fields: Sequence[CredentialField] = (
        CredentialField(name="account", description="The account's name.", secret=False),
        CredentialField(name="token", description="What requests are made with."),
        CredentialField(name="signing_secret", description="What callbacks are signed with."),
        CredentialField(name="region", description="Where it is.", secret=False, required=False),
    )
    replies_to_keywords = True
    max_callback_bytes = 1024 * 1024

    def __init__(self) -> None:
        self.carrier = ScriptedCarrier()
        self.connections: list[Connection] = []

    def connect(self, connection: Connection) -> ScriptedCarrier:
        """Remember the connection, and return the one carrier."""
        self.connections.append(connection)
        return self.carrier

    def carrier_start_words(self, to: str) -> Collection[str] | None:
        """Know one word that we know, too, and leave short codes to us."""
        return None if to == "72975" else {"start"}

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Refuse accounts that do not begin as they must."""
        return [] if credentials["account"].startswith("AC") else ["account must begin with AC."]

    async def check(self, connection: Connection) -> AccountCheck:
        """Accept one token."""
        ok = connection.credentials["token"] == CREDENTIALS["token"]
        return AccountCheck(ok=ok, message="The account is in order." if ok else "The token is wrong.")

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        """Read a signed list of events."""
        wanted = sign(callback.url, callback.body, connection.credentials["signing_secret"])
        if not hmac.compare_digest(callback.headers.get("x-signature", ""), wanted):
            raise CallbackRefused("The signature does not match the body.")
        return [_event(connection, event) for event in json.loads(callback.body)]

    def sign_callback(self, connection: Connection, *, url: str, test_id: str) -> Callback | None:
        """Sign an event of a kind that is only logged."""
        body = json.dumps([{"kind": "test", "id": test_id}]).encode()
        signature = sign(url, body, connection.credentials["signing_secret"])
        return Callback(url=url, headers={"x-signature": signature}, query={}, body=body)


def sign(url: str, body: bytes, secret: str = CREDENTIALS["signing_secret"]) -> str:
    """Return the signature of a callback."""
    return hmac.new(secret.encode(), url.encode() + body, hashlib.sha256).hexdigest()


def _event(connection: Connection, event: Mapping[str, Any]) -> CallbackEvent:
    at = datetime.fromisoformat(event["at"]) if "at" in event else connection.clock.now()
    match event.get("kind"):
        case "report":
            report = MessageReport(
                workspace_id=connection.workspace_id,
                provider="twilio",
                dispatch_id=event.get("dispatch"),
                provider_id=event.get("message"),
                status=MessageStatus(event["status"]),
                at=at,
            )
            return CallbackEvent(event_id=event["id"], content=report, to=event.get("to"))
        case "text":
            text = InboundMessageEvent(
                provider_id=event["id"],
                from_number=event["from"],
                to=event.get("to", "+14155550100"),
                body=event["body"],
                at=at,
                media=event.get("media", ()),
                media_left_out=event.get("left_out", 0),
            )
            return CallbackEvent(event_id=event["id"], content=text)
        case "unreadable":
            return CallbackEvent(event_id=event["id"], content=None, unreadable_kind="a.text")
        case _:
            return CallbackEvent(event_id=event["id"], content=None)
