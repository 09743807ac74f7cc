"""A Twilio account, and Twilio's part: what it answers, signs, and remembers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from outreach.protocols.adapter import Callback
from outreach_server.stand_ins import twilio
from outreach_server.stand_ins.twilio import message_resource
from tests.carriers.kit import CALLBACK_URL, Played, callback

ACCOUNT_SID: Final = twilio.ACCOUNT_SID
TOKEN: Final = "token-of-the-account"
SHARED_SECRET: Final = "secret-of-the-shared-key"
CREDENTIALS: Final = {"account_sid": ACCOUNT_SID, "auth_token": TOKEN}
SID: Final = "SM" + "0" * 31 + "7"

_numbers = itertools.count(1)


def a_message(**changes: Any) -> dict[str, Any]:
    """Return a message resource as Twilio writes it."""
    return message_resource(f"{next(_numbers):032x}", **changes)


class TwilioStandIn(Played):
    """Plays Twilio."""

    def __init__(self) -> None:
        super().__init__(twilio.TwilioStandIn())


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
