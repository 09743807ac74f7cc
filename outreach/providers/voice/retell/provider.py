"""Calls through Retell: one POST each, and look-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import attrs

from outreach.models.call import MAX_TRANSCRIPT
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.adapter import Connection
from outreach.protocols.carrier import LookupRequest
from outreach.protocols.sent_list import SentQuery, SentRequest
from outreach.protocols.voice import CallRequest, VoiceCapabilities
from outreach.providers.http import sent_lists
from outreach.providers.http.account_api import AccountApi
from outreach.providers.http.json_fields import (
    moment_at,
    name_at,
    object_at,
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
from outreach.providers.voice.retell.reasons import REFUSALS, STATUSES, end_of

if TYPE_CHECKING:
    import httpx

NAME: Final = "retell"
_USUAL_BASE: Final = "https://api.retellai.com"

METADATA_KEY: Final = "outreach_dispatch_id"
"""The key of our id in a call's metadata."""

WEBHOOK_EVENTS: Final = ("call_started", "call_ended", "call_analyzed")

MIN_CALL_SECONDS: Final = 60
MAX_CALL_SECONDS: Final = 7_200

_MAX_FOUND: Final = 20
"""Calls to list in a search; the filter should leave one."""

_LIST_PAGE: Final = 100
_MAX_LIST_PAGES: Final = 1000


class RetellVoice:
    """Places calls of an account at Retell.

    Retell returns our id in the call's metadata, and takes it as `idempotency_key`, so that a duplicated request makes
    one call. Its list of calls lags by an unknown time, so a missing call proves nothing. The trunk belongs to the
    imported number that calls, so a campaign's trunk is only kept in the metadata. There is no field for `not_after`.
    """

    name = NAME
    capabilities = VoiceCapabilities(look_up="evidence", supports_not_after=False, lists_sent=True)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._api = api_of(connection)

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Place one call, once."""
        if request.provider_agent_id is None:
            # Like a wrong sending number: our setup is wrong, so it counts against the error budget.
            return base.refused_locally("bad_sender", "The agent has no id at Retell.")
        if request.from_number is None:
            return base.refused_locally(
                "bad_sender", "Retell calls from a number of the account: the agent needs a caller ID."
            )
        body = body_of(request, callback_url=self._connection.callback_url)
        return await self._api.post("/v2/create-phone-call", self._read, json=body)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find a call by its id, else by our reference."""
        call = await self._find(lookup.provider_id, lookup.dispatch_id)
        call_id = name_at(call, "call_id")
        return None if call_id is None else DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=call_id)

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return the status of a call, by its id, else by our reference."""
        call = await self._find(provider_id, dispatch_id)
        return None if call is None else report_of_call(self._connection, call, dispatch_id=dispatch_id)

    async def list_sent(self, query: SentQuery) -> Sequence[SentRequest]:
        """List the outbound calls of the account that began in a period."""
        begun = {
            "lower_threshold": int((query.since - base.CLOCK_SKEW).timestamp() * 1000),
            "upper_threshold": int((query.until + base.CLOCK_SKEW).timestamp() * 1000),
        }
        body: dict[str, Any] = {
            "filter_criteria": {"direction": ["outbound"], "start_timestamp": begun},
            "limit": _LIST_PAGE,
        }
        found: list[SentRequest] = []
        for _ in range(_MAX_LIST_PAGES):
            calls = await self._api.fetch("POST", "/v2/list-calls", json=body)
            if not isinstance(calls, list):
                body["limit"] = sent_lists.smaller(body["limit"])
                continue
            for call in calls:
                call_id, to = name_at(call, "call_id"), name_at(call, "to_number")
                if call_id is not None and to is not None and name_at(call, "direction") == "outbound":
                    outcome = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=call_id)
                    # A call that has not begun has no time yet.
                    at = moment_at(call, "start_timestamp") or query.until
                    found.append(SentRequest(outcome=outcome, to=to, at=at, dispatch_id=reference_of(call)))
            last = name_at(calls[-1], "call_id") if len(calls) == body["limit"] else None
            if last is None:
                return found
            body["pagination_key"] = last
        raise sent_lists.too_long(_MAX_LIST_PAGES)

    async def _find(self, call_id: str | None, dispatch_id: str) -> Mapping[str, Any] | None:
        if call_id is not None:
            call = await self._api.fetch("GET", f"/v2/get-call/{quote(call_id, safe='')}")
            return call if isinstance(call, dict) else None
        body = {"filter_criteria": {f"metadata.{METADATA_KEY}": [dispatch_id]}, "limit": _MAX_FOUND}
        calls = await self._api.fetch("POST", "/v2/list-calls", json=body)
        # An ignored filter would return every call, so each is compared.
        found = calls if isinstance(calls, list) else []
        return next((call for call in found if reference_of(call) == dispatch_id), None)

    def _read(self, response: httpx.Response) -> DispatchOutcome:
        if base.is_accepted(response):
            call_id = name_at(json_object(response), "call_id")
            if call_id is None:
                raise UnreadableResponse
            return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=call_id)
        message = text_at(json_object_or_empty(response), "message")
        worded = message if response.status_code in base.WORDED_REFUSALS else None
        known = base.refusal_class(worded or "", REFUSALS)
        return refusal(known, response, now=self._connection.clock.now(), message=message)


def api_of(connection: Connection) -> AccountApi:
    """Return the API of an account."""
    return AccountApi(connection, _USUAL_BASE, {"authorization": f"Bearer {connection.credentials['api_key']}"})


def body_of(request: CallRequest, *, callback_url: str | None) -> dict[str, Any]:
    """Return the request's body; its variables are texts, as Retell requires."""
    screens = request.call_screen_enabled and bool(request.screen_identity) and bool(request.screen_purpose)
    leaves = request.voicemail == "leave_message" and bool(request.voicemail_message)
    native = {base.MAX_SECONDS}
    if screens:
        native |= {base.CALL_SCREENING, base.SCREEN_IDENTITY, base.SCREEN_PURPOSE}
    if leaves or request.voicemail == "hang_up":
        native |= {base.VOICEMAIL, base.VOICEMAIL_MESSAGE}
    metadata = {METADATA_KEY: request.dispatch_id}
    if request.provider_trunk is not None:
        metadata["outreach_trunk"] = request.provider_trunk
    body: dict[str, Any] = {
        "from_number": request.from_number,
        "to_number": request.to,
        "override_agent_id": request.provider_agent_id,
        "metadata": metadata,
        "retell_llm_dynamic_variables": base.variables_of(request, native=native),
        "idempotency_key": request.dispatch_id,
        # Refuses calls to numbers on the account's own do-not-call list.
        "honor_internal_dnc": True,
    }
    agent: dict[str, Any] = {}
    if screens:
        agent["call_screening_option"] = {
            "agent_identity": request.screen_identity,
            "call_purpose": request.screen_purpose,
        }
    if request.voicemail == "hang_up":
        agent["voicemail_option"] = {"action": {"type": "hangup"}}
    elif leaves:
        agent["voicemail_option"] = {"action": {"type": "static_text", "text": request.voicemail_message}}
    if request.max_seconds is not None:
        agent["max_call_duration_ms"] = min(max(request.max_seconds, MIN_CALL_SECONDS), MAX_CALL_SECONDS) * 1000
    if callback_url is not None:
        agent["webhook_url"] = callback_url
        agent["webhook_events"] = list(WEBHOOK_EVENTS)
    if agent:
        body["agent_override"] = {"agent": agent}
    return body


def reference_of(call: object) -> str | None:
    """Return our id in a Retell call, if any."""
    return name_at(call, "metadata", METADATA_KEY) or name_at(
        call, "retell_llm_dynamic_variables", base.DISPATCH_ID_VARIABLE
    )


def reason_of(call: object) -> str | None:
    """Return why a call ended, if known."""
    return name_at(call, "disconnection_reason")


def report_of_call(
    connection: Connection, call: Mapping[str, Any], *, dispatch_id: str | None = None
) -> CallReport | None:
    """Return a call's report; None if its status says nothing.

    An analysis that finds voicemail after a reason of a talk does not cause another call, whichever came first: the
    agent's words are on the machine.
    """
    status = name_at(call, "call_status") or "none"
    reason = reason_of(call)
    analysis = object_at(call, "call_analysis")
    end: base.CallEnd | CallStatus
    if status in STATUSES:
        end = STATUSES[status]
        at = moment_at(call, "start_timestamp")
    elif reason is not None or status in {"ended", "not_connected", "error"}:
        end = end_of(status, reason)
        ended_at = moment_at(call, "end_timestamp")
        at = ended_at or moment_at(call, "start_timestamp")
        if end == base.ANSWERED_BY_PERSON:
            end = _end_of_conversation(value_at(analysis, "in_voicemail"))
        elif reason is None:
            end = base.provisional_end(end, ended_at, now=connection.clock.now())
    else:
        return None
    successful = value_at(analysis, "call_successful")
    return base.report_of(
        end,
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=dispatch_id or reference_of(call),
        provider_id=name_at(call, "call_id"),
        at=at or connection.clock.now(),
        verdict=successful if isinstance(successful, bool) else None,
        summary=text_at(analysis, "call_summary"),
        error=text_at(call, "disconnection_reason") or status,
        do_not_call=base.is_yes(value_at(analysis, "custom_analysis_data", base.DO_NOT_CALL_FIELD)),
        callback=base.is_yes(value_at(analysis, "custom_analysis_data", base.CALLBACK_FIELD)),
        transcript=text_at(call, "transcript", longest=MAX_TRANSCRIPT),
        cost=base.cost_of(value_at(call, "call_cost", "combined_cost"), hundredths=True),
        raw=call,
    )


def _end_of_conversation(in_voicemail: object) -> base.CallEnd:
    if in_voicemail is True:
        return base.TALKED_TO_MACHINE
    return attrs.evolve(base.ANSWERED_BY_PERSON, answered_by="human" if in_voicemail is False else None)
