"""Vapi's part, as far as its adapter needs one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from outreach.testing.fault_server import Answer, Received
from outreach.testing.provider_contract import Scenario


class VapiStandIn:
    """Takes calls, and lists them newest first."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def accept(self, request: Received) -> Answer:
        """Place a call, list calls, or show one."""
        if request.method == "POST":
            return Answer(status=201, body=json.dumps(self._place(json.loads(request.body))).encode())
        if request.path == "/call":
            limit = int(request.query["limit"])
            found = [call for call in reversed(self.calls) if _fits(call, request)]
            return Answer(body=json.dumps(found[:limit]).encode())
        found = [call for call in self.calls if request.path == f"/call/{call['id']}"]
        return Answer(body=json.dumps(found[0]).encode()) if found else Answer(status=404, body=b"{}")

    def refuse(self, scenario: Scenario) -> Answer:
        """Refuse a number; nothing is refused for now alone."""
        assert scenario == "refuses_for_good"
        message = ["customer.number must be a valid phone number in the E.164 format."]
        return Answer(status=400, body=json.dumps({"message": message, "error": "Bad Request"}).encode())

    def _place(self, body: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        call = {
            **body,
            "id": f"call-{len(self.calls) + 1}",
            "orgId": "org-1",
            "type": "outboundPhoneCall",
            "status": "queued",
            "createdAt": now,
            "updatedAt": now,
        }
        self.calls.append(call)
        return call


def _fits(call: dict[str, Any], request: Received) -> bool:
    made = datetime.fromisoformat(call["createdAt"])
    first, last, before = (request.query.get(name) for name in ("createdAtGe", "createdAtLe", "createdAtLt"))
    return (
        (first is None or made >= datetime.fromisoformat(first))
        and (last is None or made <= datetime.fromisoformat(last))
        and (before is None or made < datetime.fromisoformat(before))
    )
