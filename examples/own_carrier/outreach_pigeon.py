"""Pigeon Post, a carrier that is made up: its one request, what an account needs, and what it calls back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from outreach import DispatchState, MessageStatus
from outreach.adapters import (
    UnreadableResponse,
    json_event,
    json_object,
    json_object_or_empty,
    keyed_digest,
    refusal,
    require_header,
    require_recent,
    require_signature,
    send_once,
    text_of,
)
from outreach.models import FailureClass
from outreach.protocols import (
    AccountCheck,
    Callback,
    CallbackEvent,
    CallbackRefused,
    CarrierCapabilities,
    Connection,
    CredentialField,
    DispatchOutcome,
    InboundMessageEvent,
    LookupRequest,
    MessageReport,
    OutboundMessage,
)

NAME: Final = "pigeon"
STATUSES: Final = {"sent": MessageStatus.SENT, "landed": MessageStatus.DELIVERED, "lost": MessageStatus.FAILED}

FAILURES: dict[str | None, FailureClass] = {"no_such_number": "invalid_number", "loft_full": "temporary"}
"""What the provider's codes mean; a code that is not here goes by the status."""


class PigeonCarrier:
    name = NAME
    capabilities = CarrierCapabilities(look_up="evidence", supports_not_after=False)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._messages = f"{connection.credentials['api_base']}/messages"

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        if message.from_number is None:
            return DispatchOutcome(state=DispatchState.REFUSED, reason="bad_sender")
        # Our identifier goes with it: by this everything that is told later is matched.
        body = {"from": message.from_number, "to": message.to, "text": message.body, "reference": message.dispatch_id}
        request = self._connection.http.build_request(
            "POST", self._messages, json=body, headers=authorization(self._connection)
        )
        return await send_once(self._connection.http, request, self._read, clock=self._connection.clock)

    async def look_up(self, question: LookupRequest) -> DispatchOutcome | None:
        request = self._connection.http.build_request(
            "GET",
            self._messages,
            params={"reference": question.dispatch_id},
            headers=authorization(self._connection),
        )
        found = await send_once(self._connection.http, request, self._read, clock=self._connection.clock)
        return found if found.state is DispatchState.ACCEPTED else None

    def _read(self, response: httpx.Response) -> DispatchOutcome:
        if response.is_success:
            return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=text_of(json_object(response).get("id")))
        if not response.is_client_error:
            raise UnreadableResponse
        code = json_object_or_empty(response).get("code")
        return refusal(FAILURES.get(code), response, now=self._connection.clock.now(), code=code)


def authorization(connection: Connection) -> Mapping[str, str]:
    return {"authorization": f"Bearer {connection.credentials['api_key']}"}


class PigeonAdapter:
    name = NAME
    kind: Final = "carrier"
    fields: Sequence[CredentialField] = (
        CredentialField(name="api_base", description="Where your loft's API is.", secret=False),
        CredentialField(name="api_key", description="The API key, from the loft's settings."),
        CredentialField(name="signing_secret", description="What callbacks are signed with, beside it."),
    )
    replies_to_keywords = False
    max_callback_bytes = 64 * 1024

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        if not credentials["api_base"].startswith(("https://", "http://127.0.0.1:")):
            return ["api_base must begin with https: messages would go unencrypted."]
        return []

    async def check(self, connection: Connection) -> AccountCheck:
        try:
            answer = await connection.http.get(
                f"{connection.credentials['api_base']}/account", headers=authorization(connection)
            )
        except httpx.HTTPError as error:
            return AccountCheck(ok=False, message=f"The loft cannot be reached: {type(error).__name__}.")
        if answer.is_success:
            return AccountCheck(ok=True, message="The loft accepts the key.")
        return AccountCheck(ok=False, message=f"The loft answers {answer.status_code}: look at api_key.")

    def connect(self, connection: Connection) -> PigeonCarrier:
        return PigeonCarrier(connection)

    def carrier_start_words(self, to: str) -> Collection[str] | None:
        return None

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        when = require_header(callback.headers, "pigeon-time")
        wanted = keyed_digest(connection.credentials["signing_secret"], when.encode(), b".", callback.body).hex()
        require_signature(require_header(callback.headers, "pigeon-signature"), wanted)
        # Only now: nothing is read that is not verified.
        try:
            require_recent(int(when), now=connection.clock.now())
            return [_event(connection, one) for one in json_event(callback.body)["events"]]
        except (KeyError, TypeError, ValueError):
            raise CallbackRefused("It is not as documented.") from None


def _event(connection: Connection, event: Mapping[str, Any]) -> CallbackEvent:
    at = datetime.fromtimestamp(event["at"], UTC)
    if event["kind"] == "reply":
        text = InboundMessageEvent(
            provider_id=event["id"], from_number=event["from"], to=event["to"], body=event["text"], at=at
        )
        return CallbackEvent(event_id=event["id"], content=text)
    status = STATUSES.get(event["kind"])
    if status is None:
        # What the provider adds later is no error.
        return CallbackEvent(event_id=event["id"], content=None)
    report = MessageReport(
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=event["reference"],
        provider_id=event["message"],
        status=status,
        at=at,
    )
    return CallbackEvent(event_id=event["id"], content=report)


ADAPTER: Final = PigeonAdapter()
