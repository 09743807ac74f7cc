"""ElevenLabs' part: https://elevenlabs.io/docs/api-reference (Agents, outbound calls) and its post-call webhooks."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from outreach_server.stand_ins.base import (
    NOT_FOUND,
    REPLY,
    SUMMARY,
    TALK_SECONDS,
    WRITTEN_AFTER,
    Answer,
    Outgoing,
    Refusal,
    Request,
    Scenario,
    Signed,
    as_object,
    hexadecimal_digest,
    new_number,
    scenario_of,
)

_CONVERSATIONS: Final = "/v1/convai/conversations"
_FAILURES: Final[Mapping[Scenario, str]] = {Scenario.FAILED: "busy", Scenario.SILENT: "no-answer"}


class ElevenLabsStandIn:
    """Takes calls over both kinds of telephony, lists conversations by their user, and shows them."""

    credentials: Mapping[str, str] = {
        "api_key": "sk_of_the_stand_in",
        "webhook_secret": "wsec_of_the_stand_in",
        "phone_number_id": "number-of-the-stand-in",
    }

    def __init__(self) -> None:
        self.conversations: list[dict[str, Any]] = []

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Compare the API key."""
        return headers.get("xi-api-key") == self.credentials["api_key"]

    def answer(self, request: Request) -> Answer:
        """Place a call, list conversations, or show one."""
        if request.method == "POST":
            return self._place(request)
        if request.path == _CONVERSATIONS:
            after = int(request.query.get("call_start_after_unix", "0"))
            rows = [
                {"conversation_id": one["conversation_id"], "agent_id": one["agent_id"], "status": one["status"]}
                for one in self.conversations
                if one["user_id"] == request.query.get("user_id", one["user_id"])
                and one["metadata"]["start_time_unix_secs"] > after
            ]
            return Answer(document={"conversations": rows, "has_more": False})
        name = request.path.removeprefix(f"{_CONVERSATIONS}/")
        return next((Answer(document=one) for one in self.conversations if one["conversation_id"] == name), NOT_FOUND)

    def refuse(self, refusal: Refusal) -> Answer:
        """Refuse a number, which is a 200 here; nothing is refused for now alone."""
        message = "Unable to create record: the number is not a valid phone number."
        return Answer(document={"success": False, "message": message, "conversation_id": None, "callSid": None})

    def record(self, content: Mapping[str, Any]) -> None:
        """Change the conversation."""
        data = content["data"]
        if content["type"] == "call_initiation_failure":
            data = {"conversation_id": data["conversation_id"], "status": "failed"}
        next(one for one in self.conversations if one["conversation_id"] == data["conversation_id"]).update(data)

    def sign(self, url: str, content: Mapping[str, Any], now: datetime) -> Signed:
        """Sign the time and the body with the webhook's secret."""
        moment = str(int(now.timestamp()))
        body = json.dumps({"event_timestamp": int(moment), **content}).encode()
        digest = hexadecimal_digest(self.credentials["webhook_secret"], moment.encode(), b".", body)
        headers = {"content-type": "application/json", "elevenlabs-signature": f"t={moment},v0={digest}"}
        return Signed(headers=headers, body=body)

    def _place(self, request: Request) -> Answer:
        body = as_object(request.body)
        scenario = scenario_of(body["to_number"])
        if scenario is Scenario.REFUSED:
            return self.refuse("refuses_for_good")
        client = body["conversation_initiation_client_data"]
        conversation = {
            "conversation_id": f"conv_{new_number(26)}",
            "agent_id": body["agent_id"],
            "user_id": client["user_id"],
            "status": "initiated",
            "transcript": [],
            "metadata": {"start_time_unix_secs": int(time.time()), "call_duration_secs": 0},
            "conversation_initiation_client_data": client,
        }
        self.conversations.append(conversation)
        telephony, name = "sip_call_id" if "sip-trunk" in request.path else "callSid", f"CA{new_number(32)}"
        document = {
            "success": True,
            "message": "Success",
            "conversation_id": conversation["conversation_id"],
            telephony: name,
        }
        return Answer(document=document, callbacks=[_callback(conversation, scenario, name)])


def _callback(conversation: Mapping[str, Any], scenario: Scenario, telephony: str) -> Outgoing:
    """Return the one event of a call."""
    failure = _FAILURES.get(scenario)
    if failure is not None:
        content = {
            "type": "call_initiation_failure",
            "data": {
                "agent_id": conversation["agent_id"],
                "conversation_id": conversation["conversation_id"],
                "failure_reason": failure,
                "metadata": {"type": "twilio", "body": {"CallSid": telephony, "CallStatus": failure}},
            },
        }
        return Outgoing(after=WRITTEN_AFTER, url=None, content=content)
    began, machine, opted_out = int(time.time()), scenario is Scenario.ANSWERED, scenario is Scenario.OPTED_OUT
    data = {
        **conversation,
        "status": "done",
        "transcript": [
            {"role": "agent", "message": "Hello, do you have a moment?"},
            {"role": "user", "message": REPLY},
        ],
        "metadata": {
            "start_time_unix_secs": began,
            "accepted_time_unix_secs": began,
            "call_duration_secs": TALK_SECONDS,
            "features_usage": {"voicemail_detection": {"enabled": True, "used": machine}},
        },
        "analysis": {
            "call_successful": "failure" if machine or opted_out else "success",
            "transcript_summary": SUMMARY,
            "data_collection_results": {"do_not_call": {"value": opted_out}},
        },
    }
    return Outgoing(after=WRITTEN_AFTER, url=None, content={"type": "post_call_transcription", "data": data})
