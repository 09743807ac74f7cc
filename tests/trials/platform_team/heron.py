"""Heron, the platform's own gateway: texts and calls over one small HTTP API, and what its calls came to."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from outreach import CallStatus, DispatchState, MessageStatus
from outreach.adapters import (
    UnreadableResponse,
    json_object,
    json_object_or_empty,
    keyed_digest,
    refusal,
    require_header,
    require_signature,
    send_once,
    text_of,
)
from outreach.models import CallOutcome, FailureClass
from outreach.protocols import (
    AccountCheck,
    Callback,
    CallbackEvent,
    CallbackRefused,
    CallReport,
    CallRequest,
    CarrierCapabilities,
    Connection,
    CredentialField,
    DispatchOutcome,
    InboundMessageEvent,
    LookupRequest,
    MessageReport,
    OutboundMessage,
    VoiceCapabilities,
)

MESSAGE_STATUSES: Final = {"delivered": MessageStatus.DELIVERED, "failed": MessageStatus.FAILED}
CALL_STATUSES: Final = {"completed": CallStatus.COMPLETED, "no-answer": CallStatus.NO_ANSWER}
FAILURES: Final[Mapping[object, FailureClass]] = {"unallocated": "invalid_number", "overload": "temporary"}
FIELDS: Final = (
    CredentialField(name="url", description="Where the gateway is.", secret=False),
    CredentialField(name="token", description="The platform's token, from the gateway's settings."),
)


class _Gateway:
    """What texts and calls have in common: one POST that asks, one GET that looks up."""

    def __init__(self, connection: Connection, path: str) -> None:
        self._connection = connection
        self._url = f"{connection.credentials['url']}/{path}"
        self._headers = {"authorization": f"Token {connection.credentials['token']}"}

    async def ask(self, body: Mapping[str, object]) -> DispatchOutcome:
        request = self._connection.http.build_request("POST", self._url, json=body, headers=self._headers)
        return await send_once(self._connection.http, request, self._read, clock=self._connection.clock)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        request = self._connection.http.build_request("GET", f"{self._url}/{lookup.dispatch_id}", headers=self._headers)
        found = await send_once(self._connection.http, request, self._read, clock=self._connection.clock)
        return found if found.state is DispatchState.ACCEPTED else None

    async def fetch(self, dispatch_id: str) -> Mapping[str, Any] | None:
        try:
            answer = await self._connection.http.get(f"{self._url}/{dispatch_id}", headers=self._headers)
            return json_object(answer) if answer.is_success else None
        except (httpx.HTTPError, UnreadableResponse):
            return None

    def _read(self, response: httpx.Response) -> DispatchOutcome:
        if response.is_success:
            return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=text_of(json_object(response).get("id")))
        if not response.is_client_error:
            raise UnreadableResponse
        code = json_object_or_empty(response).get("error")
        return refusal(FAILURES.get(code), response, now=self._connection.clock.now(), code=code)


class HeronCarrier:
    name = "heron"
    capabilities = CarrierCapabilities(look_up="evidence", supports_not_after=True)

    def __init__(self, connection: Connection) -> None:
        self._gateway = _Gateway(connection, "texts")

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        body: dict[str, object] = {"key": message.dispatch_id, "to": message.to, "text": message.body}
        if message.from_number is not None:
            body["from"] = message.from_number
        if message.not_after is not None:
            body["until"] = message.not_after.isoformat()
        return await self._gateway.ask(body)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        return await self._gateway.look_up(lookup)


class HeronVoice:
    name = "heron-voice"
    capabilities = VoiceCapabilities(look_up="evidence", supports_not_after=False)

    def __init__(self, connection: Connection) -> None:
        self._gateway = _Gateway(connection, "calls")

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        return await self._gateway.ask(
            {"key": request.dispatch_id, "to": request.to, "agent": request.provider_agent_id, "say": request.variables}
        )

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        return await self._gateway.look_up(lookup)

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        found = await self._gateway.fetch(dispatch_id)
        status = None if found is None else CALL_STATUSES.get(str(found.get("state")))
        if found is None or status is None:
            return None
        return CallReport(
            workspace_id=workspace_id,
            provider=self.name,
            dispatch_id=dispatch_id,
            provider_id=provider_id,
            status=status,
            at=datetime.fromtimestamp(found["at"], UTC),
            summary=found.get("summary"),
        )


class _HeronAdapter:
    fields: Sequence[CredentialField] = FIELDS
    replies_to_keywords = False
    max_callback_bytes = 16 * 1024

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        if not credentials["url"].startswith(("https://", "http://127.0.0.1:")):
            return ["url must begin with https."]
        return []

    async def check(self, connection: Connection) -> AccountCheck:
        headers = {"authorization": f"Token {connection.credentials['token']}"}
        try:
            answer = await connection.http.get(f"{connection.credentials['url']}/me", headers=headers)
        except httpx.HTTPError as error:
            return AccountCheck(ok=False, message=f"The gateway cannot be reached: {type(error).__name__}.")
        return AccountCheck(ok=answer.is_success, message=f"The gateway answered {answer.status_code}.")


class HeronCarrierAdapter(_HeronAdapter):
    name = "heron"
    kind: Final = "carrier"

    def connect(self, connection: Connection) -> HeronCarrier:
        return HeronCarrier(connection)

    def carrier_start_words(self, to: str) -> Collection[str] | None:
        return None

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        return [self._event(connection, one) for one in verified(connection, callback)]

    def _event(self, connection: Connection, one: Mapping[str, Any]) -> CallbackEvent:
        at = datetime.fromtimestamp(one["at"], UTC)
        if one["type"] == "text":
            text = InboundMessageEvent(
                provider_id=one["id"], from_number=one["from"], to=one["to"], body=one["text"], at=at
            )
            return CallbackEvent(event_id=one["id"], content=text)
        if (status := MESSAGE_STATUSES.get(one["type"])) is None:
            return CallbackEvent(event_id=one["id"], content=None)
        report = MessageReport(
            workspace_id=connection.workspace_id,
            provider=self.name,
            dispatch_id=one["key"],
            provider_id=one["message"],
            status=status,
            at=at,
        )
        return CallbackEvent(event_id=one["id"], content=report)


class HeronVoiceAdapter(_HeronAdapter):
    name = "heron-voice"
    kind: Final = "voice"
    trunks_by_identifier = False

    def connect(self, connection: Connection) -> HeronVoice:
        return HeronVoice(connection)

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        return [CallbackEvent(event_id=one["id"], content=None) for one in verified(connection, callback)]


def verified(connection: Connection, callback: Callback) -> Sequence[Mapping[str, Any]]:
    wanted = keyed_digest(connection.credentials["token"], callback.body).hex()
    require_signature(require_header(callback.headers, "heron-signature"), wanted)
    events = json.loads(callback.body)
    if not isinstance(events, list):
        raise CallbackRefused("It is no list.")
    return events


class Verdict:
    """An analyser: a call is good when whoever was called wants to come."""

    def outcome(self, report: CallReport) -> CallOutcome | None:
        if report.summary is None:
            return None
        return "positive" if "will come" in report.summary else "negative"


ADAPTERS: Final = (HeronCarrierAdapter(), HeronVoiceAdapter())
