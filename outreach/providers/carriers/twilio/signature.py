"""Twilio's signatures, with the account's token or with a shared key.

https://www.twilio.com/docs/usage/webhooks/webhooks-security and
https://www.twilio.com/docs/usage/webhooks/webhook-shared-keys.

The signature covers the URL as Twilio knows it and the sorted form parameters, but no time: a replay is recognised by
the event's id.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from outreach.protocols.adapter import Callback, CallbackRefused
from outreach.providers.carriers.base import DISPATCH_PARAMETER
from outreach.providers.http.callback_bodies import json_event
from outreach.providers.http.signatures import equal_in_constant_time, from_base64, keyed_digest, require_header

SIGNATURE: Final = "x-twilio-signature"
SETTINGS: Final = "x-twilio-webhooks-signature-settings"

_ALGORITHMS: Final[Mapping[str, Literal["sha1", "sha256"]]] = {"HMAC_SHA1": "sha1", "HMAC_SHA256": "sha256"}
_MAX_FIELDS: Final = 1000
_AS_IT_CAME: Final = "surrogateescape"
"""Keeps bytes that are not UTF-8 until their signature is checked."""

_QUERY: Final = re.compile(
    rf"(?:{DISPATCH_PARAMETER}=[A-Za-z0-9_-]{{0,64}})?(?:(?:^|&)bodySHA256=(?P<hash>[0-9a-fA-F]{{64}}))?"
)
"""The query of our callback URL: a dispatch id or nothing; Twilio adds the hash of a body that is not a form."""

_PORTS: Final = {"http": 80, "https": 443}


def verified_fields(callback: Callback, credentials: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the signed fields of a callback; of a repeated one the last.

    Raises:
        CallbackRefused: It is not from Twilio, or unreadable.
    """
    given = from_base64(require_header(callback.headers, SIGNATURE))
    secret, algorithm = _key(callback.headers.get(SETTINGS, ""), credentials)
    body_hash = _body_hash(callback)
    if body_hash is not None:
        # A body that is not a form is signed by its hash in the URL.
        if not equal_in_constant_time(hashlib.sha256(callback.body).hexdigest(), body_hash):
            raise CallbackRefused("The signature does not match the body.")
        parameters: Sequence[tuple[str, str]] = ()
    else:
        parameters = _form(callback.body)
    signed = "".join(name + value for name, value in sorted(set(parameters))).encode(errors=_AS_IT_CAME)
    for url in _spellings(callback.url):
        if equal_in_constant_time(given, keyed_digest(secret, url.encode(), signed, algorithm=algorithm)):
            if body_hash is not None:
                return json_event(callback.body)
            return {_readable(name): _readable(value) for name, value in parameters}
    raise CallbackRefused("The signature does not match the URL and the body.")


def signature_of(url: str, parameters: Mapping[str, str], token: str) -> str:
    """Return the signature of a form by an account's token."""
    signed = "".join(name + value for name, value in sorted(parameters.items()))
    return base64.b64encode(keyed_digest(token, url.encode(), signed.encode(), algorithm="sha1")).decode()


def _key(settings: str, credentials: Mapping[str, str]) -> tuple[str, Literal["sha1", "sha256"]]:
    """Return the secret and the algorithm of a signature; without the header, the account's token and SHA-1."""
    named = dict(part.strip().partition("=")[::2] for part in settings.split(","))
    algorithm = _ALGORITHMS.get((named.get("algorithm") or "HMAC_SHA1").upper())
    if algorithm is None:
        raise CallbackRefused("The callback is signed with an unknown algorithm.")
    if not named.get("key"):
        return credentials["auth_token"], algorithm
    if "webhook_shared_secret" not in credentials:
        raise CallbackRefused("The callback is signed with a shared key, and the account has no webhook_shared_secret.")
    return credentials["webhook_shared_secret"], algorithm


def require_known_query(url: str) -> None:
    """Check that a URL has only our parameters and Twilio's.

    The signature joins URL and fields without a separator: with other parameters, fields could be moved into the URL,
    together with the hash of a forged body.

    Raises:
        CallbackRefused: It has others, or they are malformed.
    """
    if _QUERY.fullmatch(url.partition("?")[2]) is None:
        raise CallbackRefused("The URL's query has parameters that are neither ours nor Twilio's, or is malformed.")


def _body_hash(callback: Callback) -> str | None:
    """Return the body's hash from the URL; None for a form, whose fields are signed themselves."""
    if callback.headers.get("content-type", "").lower().startswith("application/x-www-form-urlencoded"):
        return None
    known = _QUERY.fullmatch(callback.url.partition("?")[2])
    return known["hash"].lower() if known is not None and known["hash"] is not None else None


def _form(body: bytes) -> list[tuple[str, str]]:
    try:
        text = body.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, errors=_AS_IT_CAME, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise CallbackRefused("The body is not a form.") from None


def _readable(text: str) -> str:
    """Return a form's text with U+FFFD for invalid UTF-8, such as half an emoji at a cut."""
    return text.encode(errors=_AS_IT_CAME).decode(errors="replace")


def _spellings(url: str) -> list[str]:
    """Return the URL as it is, with its port, and without: Twilio signs one of them."""
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
