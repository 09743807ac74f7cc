"""Vonage's part: https://developer.vonage.com/en/api/messages and its webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from outreach_server.stand_ins.base import (
    ENDED_AFTER,
    SENT_AFTER,
    WRITTEN_AFTER,
    Answer,
    Outgoing,
    Refusal,
    Request,
    Scenario,
    Signed,
    as_object,
    basic_auth,
    new_uuid,
    reply_of,
    scenario_of,
    timestamp,
)


class VonageStandIn:
    """Takes messages, reports on them, and refuses as Vonage does."""

    credentials: Mapping[str, str] = {
        "api_key": "abcd1234",
        "api_secret": "secret-of-the-stand-in",
        "signature_secret": "signature-secret-of-the-stand-in",
    }

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Compare key and secret; the token of an application, which has a key pair of its own, is not checked."""
        given = headers.get("authorization", "")
        return given.startswith("Bearer ") or given == basic_auth(
            self.credentials["api_key"], self.credentials["api_secret"]
        )

    def answer(self, request: Request) -> Answer:
        """Take a message, report on those that were taken, or show the account."""
        if request.method == "POST":
            return self._take(as_object(request.body))
        if request.path.endswith("/records"):
            return Answer(document={"request_status": "SUCCESS", "records": self.records})
        return Answer(document={"total_items": 0, "value": 10.0, "autoReload": False})

    def refuse(self, refusal: Refusal) -> Answer:
        """Refuse an impossible number for good, and for a network that is away for now."""
        return Answer(status=422, document=error_of("1430" if refusal == "refuses_for_good" else "1331"))

    def record(self, content: Mapping[str, Any]) -> None:
        """Change the record of a status."""
        for record in self.records:
            if record["message_id"] == content["message_uuid"]:
                record["status"] = content["status"]
                if "error" in content:
                    record["error_code"] = content["error"]["type"].rpartition("#")[2]

    def sign(self, url: str, content: Mapping[str, Any], now: datetime) -> Signed:
        """Sign a token with the hash of the body."""
        body = json.dumps({"timestamp": timestamp(now), **content}).encode()
        claims = {
            "iat": int(now.timestamp()),
            "jti": new_uuid(),
            "iss": "Vonage",
            "payload_hash": hashlib.sha256(body).hexdigest(),
            "api_key": self.credentials["api_key"],
        }
        signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(claims)}"
        digest = hmac.new(self.credentials["signature_secret"].encode(), signed.encode(), hashlib.sha256).digest()
        token = f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
        return Signed(headers={"content-type": "application/json", "authorization": f"Bearer {token}"}, body=body)

    def _take(self, body: Mapping[str, Any]) -> Answer:
        scenario = scenario_of(body["to"])
        if scenario is Scenario.REFUSED:
            return self.refuse("refuses_for_good")
        taken = new_uuid()
        self.records.append({"message_id": taken, "client_ref": body["client_ref"], "status": "submitted"})
        callbacks = _callbacks(body, taken, scenario)
        return Answer(status=202, document={"message_uuid": taken}, callbacks=callbacks)


def error_of(code: str) -> dict[str, str]:
    """Return an error as Vonage writes it."""
    return {
        "type": f"https://developer.vonage.com/api-errors/messages#{code}",
        "title": "No",
        "detail": "No.",
        "instance": "bf0ca0bf927b3b52e3cb03217e1a1ddf",
    }


def _callbacks(body: Mapping[str, Any], taken: str, scenario: Scenario) -> list[Outgoing]:
    """Return the statuses of a message, and what the contact writes back to the same address."""
    url = body.get("webhook_url") or ""
    shared = {"channel": "sms", "to": body["to"], "from": body["from"]}
    last = "undeliverable" if scenario is Scenario.FAILED else "delivered"
    found = [
        Outgoing(
            after=after,
            url=url,
            content={
                **shared,
                "message_uuid": taken,
                "client_ref": body["client_ref"],
                "status": status,
                **({"error": error_of("1250")} if status == "undeliverable" else {}),
            },
        )
        for after, status in ((SENT_AFTER, "submitted"), (ENDED_AFTER, last))
    ]
    text = reply_of(scenario)
    if text is not None:
        content = {
            "channel": "sms",
            "message_uuid": new_uuid(),
            "to": body["from"],
            "from": body["to"],
            "text": text,
        }
        found.append(Outgoing(after=WRITTEN_AFTER, url=url, content=content))
    return found


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
