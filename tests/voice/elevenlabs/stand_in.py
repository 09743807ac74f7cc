"""ElevenLabs' part, as far as its adapter needs one."""

from __future__ import annotations

import json
import time
from typing import Any

from outreach.testing.fault_server import Answer, Received
from outreach.testing.provider_contract import Scenario


class ElevenLabsStandIn:
    """Takes calls over both kinds of telephony, lists conversations by their user, and shows them."""

    def __init__(self) -> None:
        self.conversations: list[dict[str, Any]] = []

    def accept(self, request: Received) -> Answer:
        """Place a call, list conversations, or show one."""
        if request.method == "POST":
            return Answer(body=json.dumps(self._place(request)).encode())
        if request.path == "/v1/convai/conversations":
            after = int(request.query.get("call_start_after_unix", "0"))
            rows = [
                {"conversation_id": one["conversation_id"], "agent_id": one["agent_id"], "status": one["status"]}
                for one in self.conversations
                if one["user_id"] == request.query.get("user_id", one["user_id"])
                and one["metadata"]["start_time_unix_secs"] > after
            ]
            return Answer(body=json.dumps({"conversations": rows, "has_more": False}).encode())
        identifier = request.path.removeprefix("/v1/convai/conversations/")
        found = [one for one in self.conversations if one["conversation_id"] == identifier]
        return Answer(body=json.dumps(found[0]).encode()) if found else Answer(status=404, body=b"{}")

    def refuse(self, scenario: Scenario) -> Answer:
        """Refuse a number, which is a 200 here; nothing is refused for now alone."""
        assert scenario == "refuses_for_good"
        message = "Unable to create record: the number is not a valid phone number."
        answer = {"success": False, "message": message, "conversation_id": None, "callSid": None}
        return Answer(body=json.dumps(answer).encode())

    def _place(self, request: Received) -> dict[str, Any]:
        body = json.loads(request.body)
        client = body["conversation_initiation_client_data"]
        number = len(self.conversations) + 1
        self.conversations.append(
            {
                "conversation_id": f"conv-{number}",
                "agent_id": body["agent_id"],
                "user_id": client["user_id"],
                "status": "initiated",
                "transcript": [],
                "metadata": {"start_time_unix_secs": int(time.time()), "call_duration_secs": 0},
                "conversation_initiation_client_data": client,
            }
        )
        telephony = "sip_call_id" if "sip-trunk" in request.path else "callSid"
        return {"success": True, "message": "Success", "conversation_id": f"conv-{number}", telephony: f"CA{number}"}
