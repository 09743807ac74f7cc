"""Vapi's part: https://docs.vapi.ai/api-reference/calls/create and its server messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from outreach_server.stand_ins.base import (
    ENDED_AFTER,
    NOT_FOUND,
    SENT_AFTER,
    SUMMARY,
    TRANSCRIPT,
    WRITTEN_AFTER,
    Answer,
    Outgoing,
    Refusal,
    Request,
    Scenario,
    Signed,
    as_object,
    new_uuid,
    scenario_of,
    timestamp,
)

_REASONS: Final[Mapping[Scenario, str]] = {
    Scenario.FAILED: "customer-busy",
    Scenario.ANSWERED: "voicemail",
    Scenario.SILENT: "customer-did-not-answer",
}

_OF_THE_END: Final = ("endedReason", "cost", "artifact", "analysis")
"""Fields of an end-of-call report that the call has too."""


class VapiStandIn:
    """Takes calls, and lists them newest first."""

    credentials: Mapping[str, str] = {
        "api_key": "key-of-the-stand-in",
        "webhook_secret": "webhook-secret-of-the-stand-in",
        "phone_number_id": "number-of-the-stand-in",
    }

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Compare the API key."""
        return headers.get("authorization") == f"Bearer {self.credentials['api_key']}"

    def answer(self, request: Request) -> Answer:
        """Place a call, list calls, or show one."""
        if request.method == "POST":
            return self._place(as_object(request.body))
        if request.path == "/call":
            found = [call for call in reversed(self.calls) if _fits(call, request)]
            return Answer(document=found[: int(request.query.get("limit", "100"))])
        return next((Answer(document=call) for call in self.calls if request.path == f"/call/{call['id']}"), NOT_FOUND)

    def refuse(self, refusal: Refusal) -> Answer:
        """Refuse a number; nothing is refused for now alone."""
        message = ["customer.number must be a valid phone number in the E.164 format."]
        return Answer(status=400, document={"message": message, "error": "Bad Request"})

    def record(self, content: Mapping[str, Any]) -> None:
        """Change the call."""
        call, now = content["call"], timestamp(datetime.now(UTC))
        call["updatedAt"] = now
        if content["type"] == "status-update":
            call["status"] = content["status"]
        else:
            call |= {"status": "ended", "endedAt": now}
            call |= {name: content[name] for name in _OF_THE_END if name in content}

    def sign(self, url: str, content: Mapping[str, Any], now: datetime) -> Signed:
        """Add the time, and the secret of the assistant's server."""
        body = json.dumps({"message": {"timestamp": int(now.timestamp() * 1000), **content}}).encode()
        headers = {"content-type": "application/json", "x-vapi-secret": self.credentials["webhook_secret"]}
        return Signed(headers=headers, body=body)

    def _place(self, body: Mapping[str, Any]) -> Answer:
        scenario = scenario_of(body["customer"]["number"])
        if scenario is Scenario.REFUSED:
            return self.refuse("refuses_for_good")
        now = timestamp(datetime.now(UTC))
        call = {
            **body,
            "id": new_uuid(),
            "orgId": "org-1",
            "type": "outboundPhoneCall",
            "status": "queued",
            "createdAt": now,
            "updatedAt": now,
        }
        self.calls.append(call)
        return Answer(status=201, document=call, callbacks=_callbacks(call, scenario))


def _callbacks(call: Mapping[str, Any], scenario: Scenario) -> list[Outgoing]:
    """Return the messages about a call to the assistant's server."""
    reason = _REASONS.get(scenario)
    end: dict[str, Any] = {
        "type": "end-of-call-report",
        "endedReason": reason or "customer-ended-call",
        "call": call,
        "cost": 0 if reason else 0.1,
    }
    if reason is None:
        opted_out = scenario is Scenario.OPTED_OUT
        end["artifact"] = {"transcript": TRANSCRIPT}
        end["analysis"] = {
            "summary": SUMMARY,
            "successEvaluation": "false" if opted_out else "true",
            "structuredData": {"do_not_call": opted_out},
        }
    statuses = [(SENT_AFTER, "ringing")]
    if reason in {None, "voicemail"}:
        statuses.append((ENDED_AFTER, "in-progress"))
    updates = [(after, {"type": "status-update", "status": status, "call": call}) for after, status in statuses]
    return [Outgoing(after=after, url=None, content=content) for after, content in (*updates, (WRITTEN_AFTER, end))]


def _fits(call: Mapping[str, Any], request: Request) -> bool:
    made = datetime.fromisoformat(call["createdAt"])
    first, last, before = (request.query.get(name) for name in ("createdAtGe", "createdAtLe", "createdAtLt"))
    return (
        (first is None or made >= datetime.fromisoformat(first))
        and (last is None or made <= datetime.fromisoformat(last))
        and (before is None or made < datetime.fromisoformat(before))
    )
