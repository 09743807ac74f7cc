"""A stand-in that plays the provider: it accepts, refuses, and answers look-ups from what it has."""

from __future__ import annotations

import json
import uuid
from typing import Any

from outreach.testing.fault_server import Answer, Received


class Loft:
    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}

    def accept(self, request: Received) -> Answer:
        if request.path == "/account":
            return answer(200 if request.headers["authorization"] == "Bearer k3y" else 401, {})
        if request.method == "POST":
            asked = json.loads(request.body)
            self.messages[asked["reference"]] = {"id": str(uuid.uuid4()), "to": asked["to"], "text": asked["text"]}
            return answer(201, {"id": self.messages[asked["reference"]]["id"]})
        found = self.messages.get(request.query["reference"])
        return answer(404, {}) if found is None else answer(200, found)

    def refuse(self, situation: str) -> Answer:
        return answer(422, {"code": "no_such_number" if situation == "refuses_for_good" else "loft_full"})


def answer(status: int, body: object) -> Answer:
    return Answer(status=status, headers={"content-type": "application/json"}, body=json.dumps(body).encode())
