"""Retell's part, as far as its adapter needs one."""

from __future__ import annotations

import json
from typing import Any

from outreach.testing.fault_server import Answer, Received
from outreach.testing.provider_contract import Scenario


class RetellStandIn:
    """Takes calls, finds them by their metadata, and replays what comes with an idempotency key that it has had."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def accept(self, request: Received) -> Answer:
        """Place a call, list calls, or show one."""
        if request.path == "/v2/create-phone-call":
            return Answer(status=201, body=json.dumps(self._place(json.loads(request.body))).encode())
        if request.path == "/v2/list-calls":
            wanted = json.loads(request.body)["filter_criteria"]
            found = [call for call in self.calls if _fits(call, wanted)]
            return Answer(body=json.dumps(found).encode())
        found = [call for call in self.calls if request.path == f"/v2/get-call/{call['call_id']}"]
        return Answer(body=json.dumps(found[0]).encode()) if found else Answer(status=404, body=b"{}")

    def refuse(self, scenario: Scenario) -> Answer:
        """Refuse a number; nothing is refused for now alone."""
        assert scenario == "refuses_for_good"
        return Answer(status=400, body=b'{"status": "error", "message": "to_number is not a valid number."}')

    def _place(self, body: dict[str, Any]) -> dict[str, Any]:
        for call in self.calls:
            if call["idempotency_key"] == body["idempotency_key"]:
                return call
        call = {
            **body,
            "call_id": f"call-{len(self.calls) + 1}",
            "call_type": "phone_call",
            "call_status": "registered",
            "agent_id": body["override_agent_id"],
            "agent_version": 1,
            "direction": "outbound",
        }
        self.calls.append(call)
        return call


def _fits(call: dict[str, Any], wanted: dict[str, list[str]]) -> bool:
    return all(
        call["metadata"].get(name.removeprefix("metadata.")) in values
        for name, values in wanted.items()
        if name.startswith("metadata.")
    )
