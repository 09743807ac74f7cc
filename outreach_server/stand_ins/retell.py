"""Retell's part: https://docs.retellai.com/api-references/create-phone-call and its webhooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from outreach_server.stand_ins.base import (
    ENDED_AFTER,
    NOT_FOUND,
    SUMMARY,
    TALK_SECONDS,
    TRANSCRIPT,
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

_REASONS: Final[Mapping[Scenario, str]] = {
    Scenario.FAILED: "dial_busy",
    Scenario.ANSWERED: "voicemail_reached",
    Scenario.SILENT: "dial_no_answer",
    Scenario.OPTED_OUT: "user_requested_dnc",
}
_NOT_CONNECTED: Final = frozenset({"dial_busy", "dial_no_answer"})


class RetellStandIn:
    """Takes calls, finds them by their metadata, and replays what comes with an idempotency key that it has had."""

    credentials: Mapping[str, str] = {"api_key": "key-of-the-stand-in"}

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Compare the API key."""
        return headers.get("authorization") == f"Bearer {self.credentials['api_key']}"

    def answer(self, request: Request) -> Answer:
        """Place a call, list calls, show one, or tell how many run."""
        if request.path == "/v2/create-phone-call":
            return self._place(as_object(request.body))
        if request.path == "/v2/list-calls":
            return Answer(document=self._listed(as_object(request.body)))
        if request.path == "/get-concurrency":
            return Answer(document={"current_concurrency": 0, "concurrency_limit": 20})
        return next(
            (Answer(document=call) for call in self.calls if request.path == f"/v2/get-call/{call['call_id']}"),
            NOT_FOUND,
        )

    def refuse(self, refusal: Refusal) -> Answer:
        """Refuse a number; nothing is refused for now alone."""
        return Answer(status=400, document={"status": "error", "message": "to_number is not a valid number."})

    def record(self, content: Mapping[str, Any]) -> None:
        """Change the call."""
        changed = content["call"]
        next(call for call in self.calls if call["call_id"] == changed["call_id"]).update(changed)

    def sign(self, url: str, content: Mapping[str, Any], now: datetime) -> Signed:
        """Sign the body and the time with the API key."""
        body = json.dumps(content).encode()
        moment = str(int(now.timestamp() * 1000))
        digest = hexadecimal_digest(self.credentials["api_key"], body, moment.encode())
        headers = {"content-type": "application/json", "x-retell-signature": f"v={moment},d={digest}"}
        return Signed(headers=headers, body=body)

    def _listed(self, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return a page of the calls, the newest first."""
        wanted, last = query.get("filter_criteria", {}), query.get("pagination_key")
        found = [call for call in reversed(self.calls) if _fits(call, wanted)]
        names = [call["call_id"] for call in found]
        begin = names.index(last) + 1 if last is not None else 0
        return found[begin : begin + query.get("limit", 50)]

    def _place(self, body: Mapping[str, Any]) -> Answer:
        for known in self.calls:
            if known["idempotency_key"] == body["idempotency_key"]:
                return Answer(status=201, document=known)
        scenario = scenario_of(body["to_number"])
        if scenario is Scenario.REFUSED:
            return self.refuse("refuses_for_good")
        call = {
            **body,
            "call_id": f"call_{new_number(27)}",
            "call_type": "phone_call",
            "call_status": "registered",
            "agent_id": body["override_agent_id"],
            "agent_version": 1,
            "direction": "outbound",
        }
        self.calls.append(call)
        return Answer(status=201, document=call, callbacks=_callbacks(call, scenario))


def _callbacks(call: Mapping[str, Any], scenario: Scenario) -> list[Outgoing]:
    """Return the events of a call, to the address that its request named."""
    url = call.get("agent_override", {}).get("agent", {}).get("webhook_url") or ""
    started = int(datetime.now(UTC).timestamp() * 1000)
    reason = _REASONS.get(scenario)
    connected = reason not in _NOT_CONNECTED
    begun = {**call, "call_status": "ongoing", "start_timestamp": started}
    ended = {
        **call,
        "call_status": "ended" if connected else "not_connected",
        "disconnection_reason": reason or "user_hangup",
        "start_timestamp": started,
        "end_timestamp": started + (TALK_SECONDS * 1000 if connected else 0),
    }
    events = [(WRITTEN_AFTER, "call_ended", ended)]
    if connected:
        events.insert(0, (ENDED_AFTER, "call_started", begun))
        analysis = {
            "call_successful": reason is None,
            "in_voicemail": reason == "voicemail_reached",
            "call_summary": SUMMARY,
        }
        cost = {"combined_cost": 10.0}
        analyzed = {**ended, "call_analysis": analysis, "transcript": TRANSCRIPT, "call_cost": cost}
        events.append((WRITTEN_AFTER + 0.1, "call_analyzed", analyzed))
    return [Outgoing(after=after, url=url, content={"event": kind, "call": said}) for after, kind, said in events]


def _fits(call: Mapping[str, Any], wanted: Mapping[str, list[str]]) -> bool:
    return all(
        call["metadata"].get(name.removeprefix("metadata.")) in values
        for name, values in wanted.items()
        if name.startswith("metadata.")
    )
