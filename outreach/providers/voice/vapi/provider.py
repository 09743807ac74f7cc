"""Calls through Vapi: one POST each, and look-ups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from outreach.models.call import MAX_TRANSCRIPT
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.adapter import Connection
from outreach.protocols.carrier import LookupRequest
from outreach.protocols.sent_list import SentListFailed, SentQuery, SentRequest
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
from outreach.providers.voice.vapi.reasons import REFUSALS, STATUSES, end_of

if TYPE_CHECKING:
    import httpx

NAME: Final = "vapi"
_USUAL_BASE: Final = "https://api.vapi.ai"

METADATA_KEY: Final = "outreach_dispatch_id"
"""The key of our id in the metadata of a call's assistant."""

MIN_CALL_SECONDS: Final = 10
MAX_CALL_SECONDS: Final = 43_200
MAX_MESSAGE_LENGTH: Final = 1_000
_MAX_NAME_LENGTH: Final = 40

_PAGE: Final = 100
_MAX_PAGES: Final = 10
_LIST_PAGE: Final = 100
_MAX_LIST_PAGES: Final = 1000


class VapiVoice:
    """Places calls of an account at Vapi.

    Vapi returns our id in the call's name, in the customer's `externalId` and in the assistant's metadata. Its field
    for a latest time, `schedulePlan.latestAt`, requires `earliestAt`, which would make an immediate call a scheduled
    one; so `not_after` is not sent.
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
            return base.refused_locally("bad_sender", "The agent has no id at Vapi.")
        number_id = base.number_id_of(request, self._connection.credentials)
        if number_id is None:
            return base.refused_locally("bad_sender", "The account has no number id at Vapi for this caller ID.")
        if len(request.voicemail_message or "") > MAX_MESSAGE_LENGTH:
            return base.refused_locally(
                "bad_body", f"A message for voicemail has at most {MAX_MESSAGE_LENGTH} characters."
            )
        body = {
            "assistantId": request.provider_agent_id,
            "phoneNumberId": number_id,
            "name": request.dispatch_id[:_MAX_NAME_LENGTH],
            "customer": {"number": request.to, "externalId": request.dispatch_id[:_MAX_NAME_LENGTH]},
            "assistantOverrides": overrides_of(request),
        }
        return await self._api.post("/call", self._read, json=body)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find a call by its id, else among all calls created in the dispatch's time.

        The list has no filter for our reference, so a bounded number of pages is read and compared. A missing call
        proves
        nothing: it may not be listed yet.
        """
        if lookup.provider_id is not None:
            call = await self._api.fetch("GET", f"/call/{quote(lookup.provider_id, safe='')}")
            return _accepted(call)
        try:
            async for calls in self._pages(lookup.since, lookup.until, _PAGE, _MAX_PAGES):
                found = next((call for call in calls if reference_of(call) == lookup.dispatch_id), None)
                if found is not None:
                    return _accepted(found)
        except SentListFailed:
            pass
        return None

    async def list_sent(self, query: SentQuery) -> Sequence[SentRequest]:
        """List the outbound calls of the account that were created in a period."""
        found = []
        async for calls in self._pages(query.since, query.until, _LIST_PAGE, _MAX_LIST_PAGES):
            for call in calls:
                outcome, to, at = _accepted(call), name_at(call, "customer", "number"), moment_at(call, "createdAt")
                inbound = name_at(call, "type") == "inboundPhoneCall"
                if outcome is not None and to is not None and at is not None and not inbound:
                    found.append(SentRequest(outcome=outcome, to=to, at=at, dispatch_id=reference_of(call)))
        return found

    async def _pages(
        self, since: datetime, until: datetime, size: int, limit: int
    ) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        """Yield the pages of the calls that were created in a period, the newest first.

        Raises:
            SentListFailed: A page could not be read, or there are more than `limit`.
        """
        latest, edge, known = (until + base.CLOCK_SKEW).isoformat(), "createdAtLe", set[str | None]()
        for _ in range(limit):
            query = {"createdAtGe": (since - base.CLOCK_SKEW).isoformat(), edge: latest, "limit": str(size)}
            calls = await self._api.fetch("GET", "/call", params=query)
            if not isinstance(calls, list):
                size = sent_lists.smaller(size)
                continue
            yield [call for call in calls if name_at(call, "id") not in known]
            oldest = min(filter(None, (name_at(call, "createdAt") for call in calls)), default=None)
            if len(calls) < size or oldest is None:
                return
            # Others may have been created in the same millisecond; if a page has no more than these, what is older.
            edge = "createdAtLe" if oldest != latest else "createdAtLt"
            known = {name_at(call, "id") for call in calls if name_at(call, "createdAt") == oldest}
            latest = oldest
        raise sent_lists.too_long(limit)

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return the status of a call, by its id, else among the latest calls."""
        if provider_id is not None:
            call = await self._api.fetch("GET", f"/call/{quote(provider_id, safe='')}")
        else:
            calls = await self._api.fetch("GET", "/call", params={"limit": str(_PAGE)})
            latest = calls if isinstance(calls, list) else []
            call = next((one for one in latest if reference_of(one) == dispatch_id), None)
        if not isinstance(call, dict):
            return None
        return report_of_call(self._connection, call, dispatch_id=dispatch_id)

    def _read(self, response: httpx.Response) -> DispatchOutcome:
        if base.is_accepted(response):
            outcome = _accepted(json_object(response))
            if outcome is None:
                raise UnreadableResponse
            return outcome
        answer = json_object_or_empty(response)
        words = answer.get("message")
        message = "; ".join(str(one) for one in words) if isinstance(words, list) else text_at(words)
        worded = message if response.status_code in base.WORDED_REFUSALS else None
        known = base.refusal_class(worded or "", REFUSALS)
        return refusal(known, response, now=self._connection.clock.now(), message=message)


def api_of(connection: Connection) -> AccountApi:
    """Return the API of an account."""
    return AccountApi(connection, _USUAL_BASE, {"authorization": f"Bearer {connection.credentials['api_key']}"})


def overrides_of(request: CallRequest) -> dict[str, Any]:
    """Return this call's changes to the assistant."""
    native = {base.VOICEMAIL, base.VOICEMAIL_MESSAGE, base.MAX_SECONDS}
    overrides: dict[str, Any] = {
        "variableValues": base.variables_of(request, native=native),
        "metadata": {METADATA_KEY: request.dispatch_id},
    }
    if request.ivr_enabled:
        # The tool lets the assistant press keys; the variable tells its prompt when.
        overrides["tools:append"] = [{"type": "dtmf"}]
    if request.voicemail is not None:
        overrides["voicemailDetection"] = {"provider": "vapi"}
        if request.voicemail == "hang_up":
            # Leave no message, whatever the assistant is set to.
            overrides["voicemailMessage"] = ""
        elif request.voicemail_message:
            overrides["voicemailMessage"] = request.voicemail_message
    if request.max_seconds is not None:
        overrides["maxDurationSeconds"] = min(max(request.max_seconds, MIN_CALL_SECONDS), MAX_CALL_SECONDS)
    return overrides


def reference_of(call: object) -> str | None:
    """Return our id in a Vapi call, if any."""
    return (
        name_at(call, "assistantOverrides", "metadata", METADATA_KEY)
        or name_at(call, "customer", "externalId")
        or name_at(call, "name")
    )


def report_of_call(connection: Connection, call: Mapping[str, Any], *, dispatch_id: str | None) -> CallReport | None:
    """Return a call's report; None if its status says nothing."""
    status = name_at(call, "status") or "none"
    end: base.CallEnd | CallStatus
    if status == "ended":
        at = moment_at(call, "endedAt") or moment_at(call, "updatedAt")
        reason = name_at(call, "endedReason")
        end = end_of(reason)
        if reason is None:
            end = base.provisional_end(end, at, now=connection.clock.now())
    elif status in STATUSES:
        end = STATUSES[status]
        at = moment_at(call, "startedAt") if end is CallStatus.IN_PROGRESS else None
        at = at or moment_at(call, "updatedAt")
    else:
        return None
    analysis = object_at(call, "analysis")
    return base.report_of(
        end,
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=dispatch_id or reference_of(call),
        provider_id=name_at(call, "id"),
        at=at or connection.clock.now(),
        verdict=verdict_of(value_at(analysis, "successEvaluation")),
        summary=text_at(analysis, "summary"),
        error=text_at(call, "endedReason"),
        **told_of(call),
        raw=call,
    )


def told_of(*messages: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of a call's end, without its reason and verdict: arguments of `base.report_of`.

    Args:
        messages: A call, or before it the message of its end; the first that tells something counts.
    """
    costs = (base.cost_of(value_at(one, "cost")) for one in messages)
    transcripts = (
        text_at(one, *path, longest=MAX_TRANSCRIPT)
        for one in messages
        for path in (("artifact", "transcript"), ("transcript",))
    )
    return {
        "do_not_call": any(_says(one, base.DO_NOT_CALL_FIELD) for one in messages),
        "callback": any(_says(one, base.CALLBACK_FIELD) for one in messages),
        "transcript": next(filter(None, transcripts), None),
        "cost": next((one for one in costs if one is not None), None),
    }


def _says(message: Mapping[str, Any], field: str) -> bool:
    """Return whether the analysis says yes to a field, in its structured data or a structured output."""
    outputs = object_at(message, "artifact", "structuredOutputs").values()
    answers = [value_at(one, "result") for one in outputs if name_at(one, "name") == field]
    return any(base.is_yes(found) for found in (value_at(message, "analysis", "structuredData", field), *answers))


def verdict_of(evaluation: object) -> bool | None:
    """Return whether an analysis calls a call a success; None if unclear.

    The assistant's rubric decides the scale; only a yes-or-no value is clear, since a number or a grade has no known
    limit.
    """
    if isinstance(evaluation, bool):
        return evaluation
    if not isinstance(evaluation, str):
        return None
    return _VERDICTS.get(evaluation.strip().lower())


_VERDICTS: Final[Mapping[str, bool]] = {
    "true": True,
    "pass": True,
    "passed": True,
    "success": True,
    "false": False,
    "fail": False,
    "failed": False,
    "failure": False,
}


def _accepted(call: object) -> DispatchOutcome | None:
    call_id = name_at(call, "id")
    return None if call_id is None else DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=call_id)
