"""The three voice providers' parts: what they take, and the events of calls that they call back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from outreach.protocols.adapter import Callback
from outreach.providers.http.signatures import keyed_digest
from outreach.testing.fault_server import Answer, Received
from tests.carriers.kit import callback
from tests.providers.parts import Event, Part, Taken
from tests.voice.elevenlabs.stand_in import ElevenLabsStandIn
from tests.voice.retell.stand_in import RetellStandIn
from tests.voice.vapi.stand_in import VapiStandIn

ANSWERED_BY_PERSON: Final = timedelta(seconds=60)
SUMMARY: Final = "Will come."

_VAPI: Final = {"api_key": "vapi-key", "webhook_secret": "a-secret-of-some-length", "phone_number_id": "number-1"}
_RETELL: Final = {"api_key": "retell-key-0001"}
_ELEVENLABS: Final = {"api_key": "eleven-key", "webhook_secret": "wsec_secret", "phone_number_id": "number-1"}


class VoicePart(Part):
    """A voice provider."""

    channel = "call"

    def talk(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """Return the events of a call that lasted `ANSWERED_BY_PERSON` and went well, in their order."""
        raise NotImplementedError("A subclass knows its provider's events.")

    def busy(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """Return the events of a call to a busy line."""
        raise NotImplementedError("A subclass knows its provider's events.")

    def over(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """Return the events that tell a call's end before its reason is known; none where all tell it."""
        return ()

    def do_not_call(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """Return the events of a call in which somebody said that no more are wanted."""
        raise NotImplementedError("A subclass knows its provider's events.")


class Vapi(VoicePart):
    """Vapi: a message for each event, with a secret in a header."""

    name = "vapi"
    credentials = _VAPI
    stand_in_of = VapiStandIn

    def dispatch_id(self, request: Received) -> str:
        """Return the name of the call."""
        name: str = json.loads(request.body)["name"]
        return name

    def taken(self, request: Received, answer: Answer) -> Taken:
        """Read the call object."""
        made = json.loads(answer.body)
        return Taken(provider_id=made["id"], dispatch_id=made["name"], to=made["customer"]["number"])

    def talk(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """Ringing, answered, ended, and the report with the analysis."""
        call = _vapi_call(taken)
        analysis = {"successEvaluation": "true", "summary": SUMMARY}
        end = {"endedReason": "customer-ended-call", "endedAt": ended.isoformat(), "call": call}
        began = {"status": "in-progress", "timestamp": (ended - ANSWERED_BY_PERSON).timestamp() * 1000, "call": call}
        return [
            _vapi({"type": "status-update", "status": "ringing", "call": call}),
            _vapi({"type": "status-update", **began}),
            _vapi({"type": "status-update", "status": "ended", **end}),
            _vapi({"type": "end-of-call-report", "analysis": analysis, **end}),
        ]

    def busy(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """Ringing, and both of the events that tell an end."""
        call = _vapi_call(taken)
        end = {"endedReason": "customer-busy", "endedAt": ended.isoformat(), "call": call}
        return [
            _vapi({"type": "status-update", "status": "ringing", "call": call}),
            _vapi({"type": "status-update", "status": "ended", **end}),
            _vapi({"type": "end-of-call-report", **end}),
        ]

    def do_not_call(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """The data that the assistant's plan asks for says it, in the report after the end."""
        *_, ended_event, report = self.talk(taken, ended)
        analysis = {"successEvaluation": "false", "structuredData": {"do_not_call": True}}
        return [ended_event, _vapi({**report.content["message"], "analysis": analysis})]

    def over(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """A status alone."""
        return [_vapi({"type": "status-update", "status": "ended", "call": _vapi_call(taken)})]

    def sign(self, event: Event, *, url: str, at: datetime) -> Callback:
        """Bring the secret; Vapi signs neither body nor time unless it is told to."""
        body = json.dumps(event.content).encode()
        return callback(body, {"x-vapi-secret": self.credentials["webhook_secret"]}, url=url)


class Retell(VoicePart):
    """Retell: the call object with each event, signed with the key of the account."""

    name = "retell"
    credentials = _RETELL
    stand_in_of = RetellStandIn

    def asks(self, request: Received) -> bool:
        """Look-ups are POSTs too."""
        return request.path == "/v2/create-phone-call"

    def dispatch_id(self, request: Received) -> str:
        """Return the key of idempotency."""
        key: str = json.loads(request.body)["idempotency_key"]
        return key

    def taken(self, request: Received, answer: Answer) -> Taken:
        """Read the call object."""
        made = json.loads(answer.body)
        return Taken(provider_id=made["call_id"], dispatch_id=made["idempotency_key"], to=made["to_number"])

    def talk(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """Started, ended, analysed."""
        over = self._ended(taken, ended, "user_hangup", began=ended - ANSWERED_BY_PERSON)
        analysis = {"call_successful": True, "in_voicemail": False, "call_summary": SUMMARY}
        ongoing = {**over, "call_status": "ongoing", "disconnection_reason": None, "end_timestamp": None}
        return [
            Event(content={"event": "call_started", "call": ongoing}),
            Event(content={"event": "call_ended", "call": over}),
            Event(content={"event": "call_analyzed", "call": {**over, "call_analysis": analysis}}),
        ]

    def busy(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """A call that was not connected, and its analysis, which has nothing to say."""
        over = self._ended(taken, ended, "dial_busy", status="not_connected")
        return [Event(content={"event": kind, "call": over}) for kind in ("call_ended", "call_analyzed")]

    def over(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """The call object, as far as it is known."""
        call = {**self._ended(taken, ended, ""), "disconnection_reason": None}
        return [Event(content={"event": "call_ended", "call": call})]

    def do_not_call(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """The reason says it."""
        over = self._ended(taken, ended, "user_requested_dnc", began=ended - ANSWERED_BY_PERSON)
        return [Event(content={"event": kind, "call": over}) for kind in ("call_ended", "call_analyzed")]

    def sign(self, event: Event, *, url: str, at: datetime) -> Callback:
        """Sign body and time."""
        body = json.dumps(event.content).encode()
        moment = str(round(at.timestamp() * 1000))
        digest = keyed_digest(self.credentials["api_key"], body, moment.encode()).hex()
        return callback(body, {"x-retell-signature": f"v={moment},d={digest}"}, url=url)

    def _ended(
        self, taken: Taken, ended: datetime, reason: str, *, status: str = "ended", began: datetime | None = None
    ) -> dict[str, Any]:
        return {
            "call_id": taken.provider_id,
            "call_status": status,
            "disconnection_reason": reason,
            "metadata": {"outreach_dispatch_id": taken.dispatch_id},
            "start_timestamp": round(began.timestamp() * 1000) if began else None,
            "end_timestamp": round(ended.timestamp() * 1000),
        }


class ElevenLabs(VoicePart):
    """ElevenLabs: one event at the end of a call, signed with the secret of the webhook."""

    name = "elevenlabs"
    credentials = _ELEVENLABS
    stand_in_of = ElevenLabsStandIn

    def dispatch_id(self, request: Received) -> str:
        """Return the user of the conversation."""
        user: str = json.loads(request.body)["conversation_initiation_client_data"]["user_id"]
        return user

    def taken(self, request: Received, answer: Answer) -> Taken:
        """Read the request; the answer has the identifier."""
        made = json.loads(answer.body)
        to = json.loads(request.body)["to_number"]
        return Taken(provider_id=made["conversation_id"], dispatch_id=self.dispatch_id(request), to=to)

    def talk(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """The transcription tells beginning, end and analysis; the sound comes beside it."""
        data = {
            **_conversation(taken),
            "status": "done",
            "metadata": {
                "start_time_unix_secs": int((ended - ANSWERED_BY_PERSON).timestamp()),
                "accepted_time_unix_secs": int((ended - ANSWERED_BY_PERSON).timestamp()),
                "call_duration_secs": int(ANSWERED_BY_PERSON.total_seconds()),
                "features_usage": {"voicemail_detection": {"enabled": True, "used": False}},
            },
            "analysis": {"call_successful": "success", "transcript_summary": SUMMARY},
        }
        at = int(ended.timestamp())
        return [
            Event(content={"type": "post_call_transcription", "event_timestamp": at, "data": data}),
            Event(content={"type": "post_call_audio", "event_timestamp": at, "data": _conversation(taken)}),
        ]

    def do_not_call(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """What the agent collects says it."""
        told, sound = self.talk(taken, ended)
        collected = {"do_not_call": {"data_collection_id": "do_not_call", "value": True, "rationale": "They said so."}}
        analysis = {"call_successful": "failure", "data_collection_results": collected}
        data = {**told.content["data"], "analysis": analysis}
        return [Event(content={**told.content, "data": data}), sound]

    def busy(self, taken: Taken, ended: datetime) -> Sequence[Event]:
        """A call that did not come about."""
        data = {**_conversation(taken), "failure_reason": "busy"}
        event = {"type": "call_initiation_failure", "event_timestamp": int(ended.timestamp()), "data": data}
        return [Event(content=event)]

    def sign(self, event: Event, *, url: str, at: datetime) -> Callback:
        """Sign time and body."""
        body = json.dumps(event.content).encode()
        moment = str(int(at.timestamp()))
        digest = keyed_digest(self.credentials["webhook_secret"], moment.encode(), b".", body).hex()
        return callback(body, {"elevenlabs-signature": f"t={moment},v0={digest}"}, url=url)


VOICES: Final = (Vapi, Retell, ElevenLabs)


def _vapi(message: Mapping[str, Any]) -> Event:
    return Event(content={"message": message})


def _vapi_call(taken: Taken) -> dict[str, Any]:
    return {"id": taken.provider_id, "name": taken.dispatch_id}


def _conversation(taken: Taken) -> dict[str, Any]:
    return {"agent_id": "agent-1", "conversation_id": taken.provider_id, "user_id": taken.dispatch_id}
