"""Heron, the platform's own gateway: calls over one small HTTP API, and what they came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from outreach import CallStatus, DispatchState
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
    Connection,
    CredentialField,
    DispatchOutcome,
    LookupRequest,
    VoiceCapabilities,
)

CALL_STATUSES: Final = {"completed": CallStatus.COMPLETED, "no-answer": CallStatus.NO_ANSWER}
FAILURES: Final[Mapping[object, FailureClass]] = {"unallocated": "invalid_number", "overload": "temporary"}
FIELDS: Final = (
    CredentialField(name="url", description="Where the gateway is.", secret=False),
    CredentialField(name="token", description="The platform's token, from the gateway's settings."),
)


class HeronVoice:
    name = "heron-voice"
    capabilities = VoiceCapabilities(look_up="evidence", supports_not_after=False)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._url = f"{connection.credentials['url']}/calls"
        self._headers = {"authorization": f"Token {connection.credentials['token']}"}

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        body = {
            "key": request.dispatch_id,
            "to": request.to,
            "agent": request.provider_agent_id,
            "say": request.variables,
        }
        asked = self._connection.http.build_request("POST", self._url, json=body, headers=self._headers)
        return await send_once(self._connection.http, asked, self._read, clock=self._connection.clock)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        request = self._connection.http.build_request("GET", f"{self._url}/{lookup.dispatch_id}", headers=self._headers)
        found = await send_once(self._connection.http, request, self._read, clock=self._connection.clock)
        return found if found.state is DispatchState.ACCEPTED else None

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        found = await self._fetch(dispatch_id)
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

    async def _fetch(self, dispatch_id: str) -> Mapping[str, Any] | None:
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


class HeronVoiceAdapter:
    name = "heron-voice"
    kind: Final = "voice"
    trunks_by_identifier = False
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


ADAPTER: Final = HeronVoiceAdapter()
