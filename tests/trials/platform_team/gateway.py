"""A stand-in that plays the gateway, for the tests."""

from __future__ import annotations

import json
import time
from typing import Any

from outreach.testing.fault_server import Answer, Received


class Gateway:
    def __init__(self) -> None:
        self.taken: dict[str, dict[str, Any]] = {}

    def accept(self, request: Received) -> Answer:
        if request.headers.get("authorization") != "Token t0ken":
            return answer(401, {"error": "token"})
        if request.path == "/me":
            return answer(200, {})
        if request.method == "POST":
            asked = json.loads(request.body)
            self.taken[asked["key"]] = {
                **asked,
                "id": f"h{len(self.taken)}",
                "state": "completed",
                "at": time.time(),
                "summary": "She will come.",
            }
            return answer(202, {"id": self.taken[asked["key"]]["id"]})
        found = self.taken.get(request.path.rpartition("/")[2])
        return answer(404, {}) if found is None else answer(200, found)

    def refuse(self, scenario: str) -> Answer:
        return answer(400, {"error": "unallocated" if scenario == "refuses_for_good" else "overload"})


def answer(status: int, body: object) -> Answer:
    return Answer(status=status, headers={"content-type": "application/json"}, body=json.dumps(body).encode())
