"""A Twilio account, and Twilio's part: what it answers, signs, and remembers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from outreach.protocols.adapter import Callback
from outreach.testing.fault_server import Answer, Received
from outreach.testing.provider_contract import Scenario
from tests.carriers.kit import CALLBACK_URL, as_json, callback

ACCOUNT_SID: Final = "AC" + "0" * 31 + "1"
TOKEN: Final = "token-of-the-account"
SHARED_SECRET: Final = "secret-of-the-shared-key"
CREDENTIALS: Final = {"account_sid": ACCOUNT_SID, "auth_token": TOKEN}
SID: Final = "SM" + "0" * 31 + "7"

_numbers = itertools.count(1)


def a_message(**changes: Any) -> dict[str, Any]:
    """Return a message resource as Twilio writes it."""
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
        "sid": f"SM{next(_numbers):032x}",
        "status": "queued",
        "to": "+14155550100",
    }
    return {**resource, **changes}


class TwilioStandIn:
    """Plays Twilio: takes messages, lists them by number, and refuses as Twilio does."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def accept(self, request: Received) -> Answer:
        """Take a message, or list those that were taken."""
        if request.method == "POST":
            form = dict(parse_qsl(request.body.decode()))
            taken = a_message(body=form["Body"], to=form["To"], **{"from": form.get("From")})
            self.messages.append(taken)
            return as_json(taken, 201)
        listed = [
            message
            for message in self.messages
            if message["to"] == request.query.get("To") and message["from"] == request.query.get("From")
        ]
        return as_json({"messages": listed, "next_page_uri": None})

    def refuse(self, scenario: Scenario) -> Answer:
        """Refuse an impossible number for good, and everything during maintenance for now."""
        code = 21211 if scenario == "refuses_for_good" else 21730
        return as_json({"code": code, "message": "No.", "more_info": "…", "status": 400}, 400)


def signed(
    fields: Mapping[str, str] | Sequence[tuple[str, str]],
    *,
    url: str = CALLBACK_URL,
    signed_url: str | None = None,
    secret: str = TOKEN,
    algorithm: str = "sha1",
    settings: str | None = None,
) -> Callback:
    """Return a callback that Twilio has signed."""
    pairs = list(fields.items()) if isinstance(fields, Mapping) else list(fields)
    text = (signed_url or url) + "".join(name + value for name, value in sorted(set(pairs)))
    digest = hmac.new(secret.encode(), text.encode(), getattr(hashlib, algorithm)).digest()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-twilio-signature": base64.b64encode(digest).decode(),
    }
    if settings is not None:
        headers["x-twilio-webhooks-signature-settings"] = settings
    return callback(urlencode(pairs).encode(), headers, url=url)
