"""Calls through ElevenLabs Agents: one POST each, and look-ups."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from outreach.models.dispatch import DispatchOutcome, FailureClass
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.adapter import Connection
from outreach.protocols.carrier import LookupRequest
from outreach.protocols.voice import CallRequest, VoiceCapabilities
from outreach.providers.http.account_api import AccountApi
from outreach.providers.http.json_fields import (
    moment_at,
    name_at,
    text_at,
    value_at,
)
from outreach.providers.http.sending import (
    UnreadableResponse,
    json_object,
    json_object_or_empty,
    refusal,
)
from outreach.providers.voice import base
from outreach.providers.voice.elevenlabs.reasons import (
    ENDED,
    STATUSES,
    end_of_conversation,
    is_generic_message,
    refusal_class,
)

if TYPE_CHECKING:
    import httpx

NAME: Final = "elevenlabs"
_USUAL_BASE: Final = "https://api.elevenlabs.io"

CONVERSATIONS: Final = "/v1/convai/conversations"

_IDENTIFIERS: Final = ("conversation_id", "callSid", "sip_call_id")
"""The fields of a response that identify the call, the best one first."""

_MAX_FOUND: Final = 5
"""Conversations of one reference to open and compare; there should be one."""


class ElevenLabsVoice:
    """Places calls of an account at ElevenLabs.

    ElevenLabs returns our id as the conversation's `user_id`. It answers 200 to refusals too, with `success` false.
    Such a refusal is unknown if it names a conversation or a call, or reports a failed request to the telephony, which
    goes for a 400 without a known code too: somebody may be called. A success without a conversation id is known by the
    telephony's id; without any id it is unknown, because nothing could be looked up. There is no field for `not_after`.
    """

    name = NAME
    capabilities = VoiceCapabilities(look_up="evidence", supports_not_after=False)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._api = api_of(connection)

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Place one call, once: over the SIP trunk if there is one, else over Twilio."""
        if request.provider_agent_id is None:
            # Like a wrong sending number: our setup is wrong, so it counts against the error budget.
            return base.refused_locally("bad_sender", "The agent has no id at ElevenLabs.")
        number_id = base.number_id_of(request, self._connection.credentials)
        if number_id is None:
            return base.refused_locally("bad_sender", "The account has no number id at ElevenLabs for this caller ID.")
        trunk = request.provider_trunk is not None or self._connection.credentials.get("telephony") == "sip_trunk"
        body = {
            "agent_id": request.provider_agent_id,
            "agent_phone_number_id": number_id,
            "to_number": request.to,
            "conversation_initiation_client_data": {
                "user_id": request.dispatch_id,
                "dynamic_variables": base.variables_of(request),
            },
        }
        path = f"/v1/convai/{'sip-trunk' if trunk else 'twilio'}/outbound-call"
        return await self._api.post(path, self._read, json=body)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find a conversation by its id, else by our reference."""
        found = await self._find(lookup.provider_id, lookup.dispatch_id, since=lookup.since)
        conversation_id = name_at(found, "conversation_id")
        if conversation_id is None:
            return None
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=lookup.provider_id or conversation_id)

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return the status of a call, by its id, else by our reference."""
        found = await self._find(provider_id, dispatch_id)
        if found is None:
            return None
        return report_of_conversation(self._connection, found, dispatch_id=dispatch_id)

    async def _find(
        self, provider_id: str | None, dispatch_id: str, *, since: datetime | None = None
    ) -> Mapping[str, Any] | None:
        if provider_id is not None:
            found = await self._conversation(provider_id)
            # The known id may be Twilio's or the trunk's, which no conversation has.
            if found is not None:
                return found
        query = {"user_id": dispatch_id, "page_size": str(_MAX_FOUND)}
        if since is not None:
            query["call_start_after_unix"] = str(int((since - base.CLOCK_SKEW).timestamp()))
        listed = value_at(await self._api.fetch("GET", CONVERSATIONS, params=query), "conversations")
        for row in listed[:_MAX_FOUND] if isinstance(listed, list) else []:
            conversation_id = name_at(row, "conversation_id")
            found = await self._conversation(conversation_id) if conversation_id is not None else None
            # The list does not show references, and the filter may have been ignored.
            if found is not None and reference_of(found) == dispatch_id:
                return found
        return None

    async def _conversation(self, conversation_id: str) -> Mapping[str, Any] | None:
        found = await self._api.fetch("GET", f"{CONVERSATIONS}/{quote(conversation_id, safe='')}")
        return found if isinstance(found, dict) and name_at(found, "conversation_id") is not None else None

    def _read(self, response: httpx.Response) -> DispatchOutcome:
        if not base.is_accepted(response):
            answer = json_object_or_empty(response)
            message = _message(answer)
            code = name_at(answer, "detail", "status") or name_at(answer, "detail", "code")
            words = (message or "") if response.status_code in base.WORDED_REFUSALS else ""
            if response.status_code == HTTPStatus.BAD_REQUEST and refusal_class(code, "") is None:
                _require_no_broken_request(words)
            return self._refused(refusal_class(code, words), response, code, message)
        answer = json_object(response)
        success = answer.get("success")
        if success is False:
            message = text_at(answer, "message")
            # A call with an id has begun, whatever failed then.
            if any(answer.get(name) for name in _IDENTIFIERS):
                raise UnreadableResponse
            _require_no_broken_request(message or "")
            return self._refused(refusal_class(None, message or ""), response, "not_successful", message)
        provider_id = next(filter(None, (name_at(answer, name) for name in _IDENTIFIERS)), None)
        if success is not True or provider_id is None:
            raise UnreadableResponse
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)

    def _refused(
        self, reason: FailureClass | None, response: httpx.Response, code: str | None, message: str | None
    ) -> DispatchOutcome:
        return refusal(reason, response, now=self._connection.clock.now(), code=code, message=message)


def _require_no_broken_request(message: str) -> None:
    """Check that a refusal does not report a failed request to the telephony, which may have arrived.

    Raises:
        UnreadableResponse: It does.
    """
    if is_generic_message(message):
        raise UnreadableResponse


def _message(answer: Mapping[str, Any]) -> str | None:
    """Return the message of a refusal: a text, an object with a message, or validation errors."""
    detail = answer.get("detail")
    if isinstance(detail, list):
        parts = [f"{value_at(one, 'loc')}: {value_at(one, 'msg')}" for one in detail[:5]]
        return text_at("; ".join(parts))
    return text_at(detail) or text_at(detail, "message") or text_at(answer, "message")


def api_of(connection: Connection) -> AccountApi:
    """Return the API of an account."""
    return AccountApi(connection, _USUAL_BASE, {"xi-api-key": connection.credentials["api_key"]})


def reference_of(conversation: object) -> str | None:
    """Return our id in a conversation, if any."""
    data = "conversation_initiation_client_data"
    return (
        name_at(conversation, "user_id")
        or name_at(conversation, data, "user_id")
        or name_at(conversation, data, "dynamic_variables", base.DISPATCH_ID_VARIABLE)
    )


def answered_at(conversation: object) -> datetime | None:
    """Return when somebody answered, if known."""
    return moment_at(conversation, "metadata", "accepted_time_unix_secs")


def report_of_conversation(
    connection: Connection, conversation: Mapping[str, Any], *, dispatch_id: str | None = None
) -> CallReport | None:
    """Return a conversation's report; None if its status says nothing."""
    status = name_at(conversation, "status") or "none"
    began = moment_at(conversation, "metadata", "start_time_unix_secs")
    end: base.CallEnd | CallStatus
    if status in STATUSES:
        end, at = STATUSES[status], answered_at(conversation) or began
    elif status in ENDED:
        end, at = end_of_conversation(conversation), _ended_at(conversation, began)
    else:
        return None
    success = value_at(conversation, "analysis", "call_successful")
    collected = value_at(conversation, "analysis", "data_collection_results")
    reason = text_at(conversation, "metadata", "error", "reason")
    return base.report_of(
        end,
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=dispatch_id or reference_of(conversation),
        provider_id=name_at(conversation, "conversation_id"),
        at=at or connection.clock.now(),
        verdict=_VERDICTS.get(success) if isinstance(success, str) else None,
        summary=text_at(conversation, "analysis", "transcript_summary"),
        error=reason or text_at(conversation, "metadata", "termination_reason") or status,
        do_not_call=base.is_yes(value_at(collected, base.DO_NOT_CALL_FIELD, "value")),
        callback=base.is_yes(value_at(collected, base.CALLBACK_FIELD, "value")),
        # Its `cost` counts credits, which have no currency.
        transcript=base.transcript_of(value_at(conversation, "transcript")),
        raw=conversation,
    )


_VERDICTS: Final[Mapping[str, bool]] = {"success": True, "failure": False}


def _ended_at(conversation: Mapping[str, Any], began: datetime | None) -> datetime | None:
    took = value_at(conversation, "metadata", "call_duration_secs")
    if began is None or isinstance(took, bool) or not isinstance(took, int) or not 0 <= took <= _MAX_CALL_SECONDS:
        return None
    return (began + timedelta(seconds=took)).astimezone(UTC)


_MAX_CALL_SECONDS: Final = 7 * 86_400
