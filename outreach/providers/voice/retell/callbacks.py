"""Retell's callbacks: signed with the API key that has the webhook badge, over the raw body and a time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from outreach.protocols.adapter import Callback, CallbackEvent, CallbackRefused, Connection
from outreach.providers.http.callback_bodies import json_event
from outreach.providers.http.json_fields import name_at, object_at
from outreach.providers.http.signatures import keyed_digest, require_header, require_recent, require_signature
from outreach.providers.voice import base
from outreach.providers.voice.retell.provider import reason_of, reference_of, report_of_call
from outreach.providers.voice.retell.reasons import ENDED

SIGNATURE: Final = "x-retell-signature"

_FORM: Final = re.compile(r"v=([0-9]{1,16}),d=([0-9a-f]{64})")

REPORTED: Final = frozenset({"call_started", "call_ended", "call_analyzed"})
"""Events about a call's status; others are only logged."""


def read(connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
    """Verify a callback and read it; see `Adapter.read`."""
    _verify(connection, callback)
    event = json_event(callback.body)
    kind = name_at(event, "event")
    if kind is None:
        raise CallbackRefused("The body has no event.")
    call = object_at(event, "call")
    status = name_at(call, "call_status")
    report = report_of_call(connection, call) if kind in REPORTED else None
    # Transcripts and transfers come several times for one call, each a different event.
    mark = status if kind in REPORTED else name_at(event, "event_timestamp") or _signed_at(callback)
    if kind in REPORTED and status in ENDED and reason_of(call) is None:
        mark = f"{status}{base.NO_REASON_SUFFIX}"
    prefix = base.event_prefix(name_at(call, "call_id"), reference_of(call), callback.body)
    return [CallbackEvent(event_id=f"{prefix}:{kind}:{mark}", content=report)]


def sign(connection: Connection, *, url: str, test_id: str) -> Callback:
    """Return a callback that is only logged, signed as the provider signs; see `SignsCallbacks`."""
    body = json.dumps({"event": "test", "event_timestamp": test_id, "call": {}}).encode()
    signed_at = str(int(connection.clock.now().timestamp() * 1000))
    digest = keyed_digest(_key(connection), body, signed_at.encode()).hex()
    headers = {"content-type": "application/json", SIGNATURE: f"v={signed_at},d={digest}"}
    return Callback(url=url, headers=headers, query={}, body=body)


def _key(connection: Connection) -> str:
    return connection.credentials.get("webhook_api_key") or connection.credentials["api_key"]


def _verify(connection: Connection, callback: Callback) -> None:
    match = _FORM.fullmatch(require_header(callback.headers, SIGNATURE))
    if match is None:
        raise CallbackRefused("The signature is not of the form v=TIME,d=DIGEST.")
    signed_at, digest = match.groups()
    require_signature(digest, keyed_digest(_key(connection), callback.body, signed_at.encode()).hex())
    require_recent(int(signed_at) / 1000, now=connection.clock.now())


def _signed_at(callback: Callback) -> str:
    match = _FORM.fullmatch(callback.headers.get(SIGNATURE, ""))
    return match.group(1) if match is not None else ""
