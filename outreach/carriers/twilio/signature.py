"""Twilio's signatures, with the account's token or with a shared key.

https://www.twilio.com/docs/usage/webhooks/webhooks-security and
https://www.twilio.com/docs/usage/webhooks/webhook-shared-keys.

What is signed is the address as Twilio knows it with the sorted parameters of the form after it. There is no time in
it: what is sent again is told by the identifier of the event.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from outreach.carriers.base import DISPATCH_PARAMETER
from outreach.protocols.adapter import Callback, CallbackRefused
from outreach.wire.callbacks import json_event
from outreach.wire.signatures import equal_in_constant_time, from_base64, keyed_digest, require_header

SIGNATURE: Final = "x-twilio-signature"
SETTINGS: Final = "x-twilio-webhooks-signature-settings"

_ALGORITHMS: Final[Mapping[str, Literal["sha1", "sha256"]]] = {"HMAC_SHA1": "sha1", "HMAC_SHA256": "sha256"}
_MAX_FIELDS: Final = 1000
_AS_IT_CAME: Final = "surrogateescape"
"""How bytes that are no UTF-8 are kept until the signature over them is checked."""

_QUERY: Final = re.compile(
    rf"(?:{DISPATCH_PARAMETER}=[A-Za-z0-9_-]{{0,64}})?(?:(?:^|&)bodySHA256=(?P<hash>[0-9a-fA-F]{{64}}))?"
)
"""The query of an address that Twilio was told: ours names a dispatch, or there is none; Twilio adds the hash of a body
that is no form."""

_PORTS: Final = {"http": 80, "https": 443}


def verified_fields(callback: Callback, credentials: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the fields of a callback that Twilio signed; of a repeated one the last.

    Raises:
        CallbackRefused: It is not Twilio's, or cannot be read.
    """
    given = from_base64(require_header(callback.headers, SIGNATURE))
    secret, algorithm = _key(callback.headers.get(SETTINGS, ""), credentials)
    body_hash = _body_hash(callback)
    if body_hash is not None:
        # A body that is no form is signed by its hash, which stands in the signed address.
        if not equal_in_constant_time(hashlib.sha256(callback.body).hexdigest(), body_hash):
            raise CallbackRefused("The signature does not fit the body.")
        parameters: Sequence[tuple[str, str]] = ()
    else:
        parameters = _form(callback.body)
    signed = "".join(name + value for name, value in sorted(set(parameters))).encode(errors=_AS_IT_CAME)
    for url in _spellings(callback.url):
        if equal_in_constant_time(given, keyed_digest(secret, url.encode(), signed, algorithm=algorithm)):
            if body_hash is not None:
                return json_event(callback.body)
            return {_readable(name): _readable(value) for name, value in parameters}
    raise CallbackRefused("The signature does not fit the address and the body.")


def _key(settings: str, credentials: Mapping[str, str]) -> tuple[str, Literal["sha1", "sha256"]]:
    """Return the secret and the algorithm of a signature; without the header it is the account's token and SHA-1."""
    named = dict(part.strip().partition("=")[::2] for part in settings.split(","))
    algorithm = _ALGORITHMS.get((named.get("algorithm") or "HMAC_SHA1").upper())
    if algorithm is None:
        raise CallbackRefused("The callback is signed by an algorithm that is not known here.")
    if not named.get("key"):
        return credentials["auth_token"], algorithm
    if "webhook_shared_secret" not in credentials:
        raise CallbackRefused("The callback is signed with a shared key, and the account has no webhook_shared_secret.")
    return credentials["webhook_shared_secret"], algorithm


def require_known_query(url: str) -> None:
    """Check that an address has no parameters but ours and Twilio's, whatever it is signed by.

    What is signed joins address and fields without a border: were others let through, the text of a message could be
    cut off from its fields and made a part of the address, with a hash of any body in it.

    Raises:
        CallbackRefused: There are others, or they are not of their form.
    """
    if _QUERY.fullmatch(url.partition("?")[2]) is None:
        raise CallbackRefused("The address is none that Twilio was told to call back.")


def _body_hash(callback: Callback) -> str | None:
    """Return the hash that the address says the body has; None for a form, whose fields are signed themselves."""
    if callback.headers.get("content-type", "").lower().startswith("application/x-www-form-urlencoded"):
        return None
    known = _QUERY.fullmatch(callback.url.partition("?")[2])
    return known["hash"].lower() if known is not None and known["hash"] is not None else None


def _form(body: bytes) -> list[tuple[str, str]]:
    try:
        text = body.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, errors=_AS_IT_CAME, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise CallbackRefused("The body is no form.") from None


def _readable(text: str) -> str:
    """Return a text of a form with U+FFFD for what is no UTF-8: half a surrogate pair of a text that was cut."""
    return text.encode(errors=_AS_IT_CAME).decode(errors="replace")


def _spellings(url: str) -> list[str]:
    """Return the address as it is, with its port, and without: Twilio signs the one or the other."""
    spellings = [url]
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return spellings
    if not host or parts.scheme not in _PORTS:
        return spellings
    before, _, rest = url.partition(parts.netloc)
    if port is None:
        spellings.append(f"{before}{parts.netloc}:{_PORTS[parts.scheme]}{rest}")
    else:
        spellings.append(before + parts.netloc.removesuffix(f":{port}") + rest)
    return spellings
