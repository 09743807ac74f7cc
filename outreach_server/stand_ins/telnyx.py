"""Telnyx's part: https://developers.telnyx.com/api/messaging and its webhooks."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from outreach_server.stand_ins.base import (
    ENDED_AFTER,
    NOT_FOUND,
    POOL_NUMBER,
    SENT_AFTER,
    WRITTEN_AFTER,
    Answer,
    Outgoing,
    Refusal,
    Request,
    Scenario,
    Signed,
    as_object,
    new_uuid,
    reply_of,
    scenario_of,
    timestamp,
    without_query,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_UNREACHABLE = {"code": "40008", "title": "Undeliverable", "detail": "The carrier could not deliver the message."}


class TelnyxStandIn:
    """Takes messages, keeps their records, and refuses as Telnyx does."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.messages: dict[str, dict[str, Any]] = {}

    @cached_property
    def credentials(self) -> Mapping[str, str]:
        """A key, and the public part of the key that signs callbacks."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return {"api_key": "KEY-of-the-stand-in", "public_key": base64.b64encode(public).decode()}

    @cached_property
    def _key(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        # The same in every run, so that an account stays connected.
        return Ed25519PrivateKey.from_private_bytes(bytes(range(32)))

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Compare the API key."""
        return headers.get("authorization") == f"Bearer {self.credentials['api_key']}"

    def answer(self, request: Request) -> Answer:
        """Take a message, search the records, show a message, or list the profiles."""
        if request.method == "POST":
            return self._take(as_object(request.body))
        if request.path.endswith("/detail_records"):
            rows = [row for row in self.rows if request.query.get("filter[cld]") in {None, row["cld"]}]
            meta = {"page_number": 1, "total_pages": 1, "total_results": len(rows)}
            return Answer(document={"data": rows, "meta": meta})
        if "/messages/" in request.path:
            name = request.path.rpartition("/")[2]
            found = self.messages.get(name)
            return NOT_FOUND if found is None else Answer(document={"data": found})
        return Answer(document={"data": []})

    def refuse(self, refusal: Refusal) -> Answer:
        """Refuse an impossible number for good, and for a network that is away for now."""
        code = "40310" if refusal == "refuses_for_good" else "40006"
        return Answer(status=400, document={"errors": [{"code": code, "title": "No", "detail": "No."}]})

    def record(self, content: Mapping[str, Any]) -> None:
        """Change the message of a report, and its record."""
        payload = content["payload"]
        message = self.messages.get(payload["id"])
        if message is not None:
            message |= payload
            codes = [error["code"] for error in payload["errors"]]
            row = next(row for row in self.rows if row["uuid"] == payload["id"])
            row |= {"status": "failed" if codes else payload["to"][0]["status"], "errors": codes}

    def sign(self, url: str, content: Mapping[str, Any], now: datetime) -> Signed:
        """Sign the time and the body with the private key."""
        event = {"occurred_at": timestamp(now), "record_type": "event", **content}
        body = json.dumps({"data": event, "meta": {"attempt": 1, "delivered_to": url}}).encode()
        moment = str(int(now.timestamp()))
        signature = base64.b64encode(self._key.sign(f"{moment}|".encode() + body)).decode()
        headers = {
            "content-type": "application/json",
            "telnyx-timestamp": moment,
            "telnyx-signature-ed25519": signature,
        }
        return Signed(headers=headers, body=body)

    def _take(self, body: Mapping[str, Any]) -> Answer:
        scenario = scenario_of(body["to"])
        if scenario is Scenario.REFUSED:
            return self.refuse("refuses_for_good")
        row = detail_record(
            uuid=new_uuid(),
            cli=body.get("from") or POOL_NUMBER,
            profile_id=body.get("messaging_profile_id"),
            cld=body["to"],
            status="queued",
            created_at=timestamp(datetime.now(UTC)),
            delivery_status_webhook_url=body.get("webhook_url"),
        )
        self.rows.append(row)
        payload = message_payload(id=row["uuid"], text=body.get("text", ""))
        payload["from"] = {**payload["from"], "phone_number": row["cli"]}
        payload["to"] = [{**payload["to"][0], "phone_number": row["cld"]}]
        self.messages[row["uuid"]] = payload
        return Answer(document={"data": payload}, callbacks=_callbacks(row, payload, scenario))


def message_payload(status: str = "queued", **changes: Any) -> dict[str, Any]:
    """Return an outbound message as Telnyx writes it."""
    payload = {
        "record_type": "message",
        "direction": "outbound",
        "id": "40385f64-5717-4562-b3fc-2c963f66afa6",
        "type": "SMS",
        "from": {"phone_number": "+14155550199", "carrier": "Telnyx", "line_type": "VoIP"},
        "to": [{"phone_number": "+14155550100", "status": status, "carrier": "A", "line_type": "Wireless"}],
        "text": "x",
        "encoding": "GSM-7",
        "parts": 1,
        "cost": {"amount": "0.0051", "currency": "USD"},
        "errors": [],
    }
    return {**payload, **changes}


def detail_record(**changes: Any) -> dict[str, Any]:
    """Return a detail record of a message as Telnyx writes it."""
    row = {
        "record_type": "message_detail_record",
        "direction": "outbound",
        "cli": "+14155550199",
        "cld": "+14155550100",
        "status": "delivered",
    }
    return {**row, **changes}


def _callbacks(row: Mapping[str, Any], message: Mapping[str, Any], scenario: Scenario) -> list[Outgoing]:
    """Return the reports of a message, and what the contact writes back to the same address."""
    url = row["delivery_status_webhook_url"] or ""
    failed = scenario is Scenario.FAILED
    ours, theirs = {"phone_number": row["cli"]}, row["cld"]
    reports = (
        (SENT_AFTER, "message.sent", "sent"),
        (ENDED_AFTER, "message.finalized", "delivery_failed" if failed else "delivered"),
    )
    found = [
        Outgoing(
            after=after,
            url=url,
            content={
                "event_type": kind,
                "id": new_uuid(),
                "payload": {
                    **message,
                    "to": [{**message["to"][0], "status": status}],
                    "errors": [_UNREACHABLE] if status == "delivery_failed" else [],
                },
            },
        )
        for after, kind, status in reports
    ]
    text = reply_of(scenario)
    if text is not None:
        payload = {
            "record_type": "message",
            "direction": "inbound",
            "id": new_uuid(),
            "type": "SMS",
            "from": {"phone_number": theirs},
            "to": [{**ours, "status": "webhook_delivered"}],
            "text": text,
            "media": [],
        }
        content = {"event_type": "message.received", "id": new_uuid(), "payload": payload}
        found.append(Outgoing(after=WRITTEN_AFTER, url=without_query(url), content=content))
    return found
