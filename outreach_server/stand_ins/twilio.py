"""Twilio's part: https://www.twilio.com/docs/messaging/api/message-resource and its status callbacks."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

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
    basic_auth,
    new_number,
    reply_of,
    scenario_of,
    without_query,
)

ACCOUNT_SID: Final = "AC" + "0" * 31 + "1"
_UNREACHABLE: Final = "30003"


class TwilioStandIn:
    """Takes messages, lists them by number, and refuses as Twilio does."""

    credentials: Mapping[str, str] = {"account_sid": ACCOUNT_SID, "auth_token": "token-of-the-stand-in"}

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Compare the account and its token."""
        return headers.get("authorization") == basic_auth(ACCOUNT_SID, self.credentials["auth_token"])

    def answer(self, request: Request) -> Answer:
        """Take a message, list or show those that were taken, or show the account."""
        if request.method == "POST":
            return self._take(dict(parse_qsl(request.body.decode())))
        name = request.path.rpartition("/")[2].removesuffix(".json")
        if name == "Messages":
            return Answer(document=self._listed(request))
        if name == self.credentials["account_sid"]:
            return Answer(document={"sid": name, "status": "active"})
        return next((Answer(document=one) for one in self.messages if one["sid"] == name), NOT_FOUND)

    def refuse(self, refusal: Refusal) -> Answer:
        """Refuse an impossible number for good, and everything during maintenance for now."""
        code = 21211 if refusal == "refuses_for_good" else 21730
        return Answer(status=400, document={"code": code, "message": "No.", "more_info": "…", "status": 400})

    def record(self, content: Mapping[str, Any]) -> None:
        """Change the message of a receipt."""
        for message in self.messages:
            if message["sid"] == content["MessageSid"]:
                code = content.get("ErrorCode")
                message |= {"status": content["MessageStatus"], "error_code": None if code is None else int(code)}

    def sign(self, url: str, content: Mapping[str, Any], now: datetime) -> Signed:
        """Write a form, and sign the URL with its fields."""
        text = url + "".join(name + value for name, value in sorted(content.items()))
        digest = hmac.new(self.credentials["auth_token"].encode(), text.encode(), hashlib.sha1).digest()
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "x-twilio-signature": base64.b64encode(digest).decode(),
        }
        return Signed(headers=headers, body=urlencode(content).encode())

    def _listed(self, request: Request) -> dict[str, Any]:
        """Return a page of the messages, the newest first."""
        found = [
            message
            for message in reversed(self.messages)
            if request.query.get("To") in {None, message["to"]} and request.query.get("From") in {None, message["from"]}
        ]
        size, page = int(request.query.get("PageSize", "50")), int(request.query.get("Page", "0"))
        end = (page + 1) * size
        following = f"{request.path}?{urlencode({**request.query, 'Page': page + 1})}" if end < len(found) else None
        return {"messages": found[page * size : end], "next_page_uri": following}

    def _take(self, form: Mapping[str, str]) -> Answer:
        scenario = scenario_of(form["To"])
        if scenario is Scenario.REFUSED:
            return self.refuse("refuses_for_good")
        service = form.get("MessagingServiceSid")
        sender = {"from": form.get("From") or POOL_NUMBER, "messaging_service_sid": service}
        taken = message_resource(new_number(32), body=form["Body"], to=form["To"], **sender)
        self.messages.append(taken)
        # The answer does not name the number that a service chooses.
        answer = taken if service is None else {**taken, "from": form.get("From")}
        return Answer(
            status=201, document=answer, callbacks=_callbacks(taken, form.get("StatusCallback", ""), scenario)
        )


def message_resource(number: str, **changes: Any) -> dict[str, Any]:
    """Return a message as Twilio writes it."""
    resource = {
        "account_sid": ACCOUNT_SID,
        "api_version": "2010-04-01",
        "body": "x",
        "date_created": format_datetime(datetime.now(UTC), usegmt=False),
        "date_sent": None,
        "direction": "outbound-api",
        "error_code": None,
        "error_message": None,
        "from": "+14155550199",
        "num_segments": "1",
        "price": None,
        "sid": f"SM{number}",
        "status": "queued",
        "to": "+14155550100",
    }
    return {**resource, **changes}


def _callbacks(taken: Mapping[str, Any], url: str, scenario: Scenario) -> list[Outgoing]:
    """Return the receipts of a message, and what the contact writes back to the same address."""
    sid, ours, theirs = taken["sid"], str(taken["from"]), taken["to"]
    shared = {"AccountSid": taken["account_sid"], "ApiVersion": taken["api_version"], "MessageSid": sid, "SmsSid": sid}
    last = "undelivered" if scenario is Scenario.FAILED else "delivered"
    found = [
        Outgoing(
            after=after,
            url=url,
            content={
                **shared,
                "From": ours,
                "To": theirs,
                "MessageStatus": status,
                "SmsStatus": status,
                **({"ErrorCode": _UNREACHABLE} if status == "undelivered" else {}),
            },
        )
        for after, status in ((SENT_AFTER, "sent"), (ENDED_AFTER, last))
    ]
    text = reply_of(scenario)
    if text is not None:
        reply = f"SM{new_number(32)}"
        content = {
            **shared,
            "MessageSid": reply,
            "SmsMessageSid": reply,
            "SmsSid": reply,
            "From": theirs,
            "To": ours,
            "Body": text,
            "NumMedia": "0",
            "NumSegments": "1",
            "SmsStatus": "received",
        }
        found.append(Outgoing(after=WRITTEN_AFTER, url=without_query(url), content=content))
    return found
