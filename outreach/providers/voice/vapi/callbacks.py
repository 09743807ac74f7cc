"""Vapi's callbacks: verified as the account is configured, and read into reports.

Vapi has no fixed signature. A custom credential in its dashboard decides what a callback has: a secret in
`X-Vapi-Secret` or `Authorization: Bearer`, or an HMAC-SHA256 in configurable headers. An account with a signature
header accepts signed callbacks only, because the secret alone would admit any client that has once seen it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from outreach.models.states import CallStatus
from outreach.protocols.adapter import Callback, CallbackEvent, CallbackRefused, Connection
from outreach.providers.http.callback_bodies import json_event
from outreach.providers.http.json_fields import (
    moment_at,
    name_at,
    object_at,
    text_at,
    value_at,
)
from outreach.providers.http.signatures import keyed_digest, raw, require_header, require_recent, require_signature
from outreach.providers.voice import base
from outreach.providers.voice.vapi.provider import NAME, reference_of, told_of, verdict_of
from outreach.providers.voice.vapi.reasons import STATUSES, end_of


def read(connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
    """Verify a callback and read it; see `Adapter.read`."""
    _verify(connection, callback)
    message = object_at(json_event(callback.body), "message")
    kind = name_at(message, "type")
    call = object_at(message, "call")
    if kind is None:
        raise CallbackRefused("The body has no message with a type.")
    prefix = f"{base.event_prefix(name_at(call, 'id'), _reference_of(message, call), callback.body)}:{kind}"
    if kind == "status-update":
        return [_status_update(connection, prefix, message, call)]
    if kind == "end-of-call-report":
        return [_ended(connection, f"{prefix}:ended", message, call)]
    at = text_at(message, "timestamp") or str(value_at(message, "timestamp"))
    return [CallbackEvent(event_id=f"{prefix}:{at[:40]}", content=None)]


def sign(connection: Connection, *, url: str, test_id: str) -> Callback | None:
    """Return a callback that is only logged, signed as the provider signs; see `SignsCallbacks`."""
    credentials = connection.credentials
    header = credentials.get("webhook_signature_header")
    if header is None:
        return None
    now = connection.clock.now()
    body = json.dumps({"message": {"type": "test", "timestamp": now.isoformat(), "id": test_id}}).encode()
    headers = {"content-type": "application/json"}
    secret, timed = credentials["webhook_secret"], credentials.get("webhook_timestamp_header")
    if timed is None:
        headers[header.lower()] = keyed_digest(secret, body).hex()
    else:
        headers[timed.lower()] = now.isoformat()
        headers[header.lower()] = keyed_digest(secret, now.isoformat().encode(), b".", body).hex()
    return Callback(url=url, headers=headers, query={}, body=body)


def _verify(connection: Connection, callback: Callback) -> None:
    credentials = connection.credentials
    secret = credentials["webhook_secret"]
    header = credentials.get("webhook_signature_header")
    if header is None:
        bearer = callback.headers.get("authorization", "")
        given = callback.headers.get("x-vapi-secret") or (bearer[7:] if bearer[:7].lower() == "bearer " else "")
        if not given:
            raise CallbackRefused("The callback has neither X-Vapi-Secret nor Authorization: Bearer.")
        require_signature(given, secret)
        return
    given = require_header(callback.headers, header.lower()).removeprefix("sha256=").lower()
    signed_at = credentials.get("webhook_timestamp_header")
    if signed_at is None:
        require_signature(given, keyed_digest(secret, callback.body).hex())
        return
    timestamp = require_header(callback.headers, signed_at.lower())
    require_signature(given, keyed_digest(secret, raw(timestamp), b".", callback.body).hex())
    moment = moment_at(timestamp)
    if moment is None:
        raise CallbackRefused("The signed time cannot be read.")
    require_recent(moment.timestamp(), now=connection.clock.now())


def _status_update(
    connection: Connection, prefix: str, message: Mapping[str, Any], call: Mapping[str, Any]
) -> CallbackEvent:
    status = name_at(message, "status") or "none"
    event_id = f"{prefix}:{status}"
    if status == "ended":
        return _ended(connection, event_id, message, call)
    if status in STATUSES:
        return _event(connection, event_id, STATUSES[status], message, call)
    return CallbackEvent(event_id=event_id, content=None)


def _ended(connection: Connection, event_id: str, message: Mapping[str, Any], call: Mapping[str, Any]) -> CallbackEvent:
    reason = name_at(message, "endedReason") or name_at(call, "endedReason")
    if reason is not None:
        return _event(connection, event_id, end_of(reason), message, call)
    end = base.provisional_end(end_of(None), _ended_at(message, call), now=connection.clock.now())
    return _event(connection, event_id + base.NO_REASON_SUFFIX, end, message, call)


def _reference_of(message: Mapping[str, Any], call: Mapping[str, Any]) -> str | None:
    return reference_of(call) or name_at(message, "customer", "externalId")


def _ended_at(message: Mapping[str, Any], call: Mapping[str, Any]) -> datetime | None:
    return moment_at(message, "endedAt") or moment_at(call, "endedAt")


def _event(
    connection: Connection,
    event_id: str,
    end: base.CallEnd | CallStatus,
    message: Mapping[str, Any],
    call: Mapping[str, Any],
) -> CallbackEvent:
    analysis = object_at(message, "analysis") or object_at(call, "analysis")
    ended = isinstance(end, base.CallEnd)
    at = _ended_at(message, call) if ended else None
    report = base.report_of(
        end,
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=_reference_of(message, call),
        provider_id=name_at(call, "id"),
        at=at or moment_at(message, "timestamp") or connection.clock.now(),
        verdict=verdict_of(value_at(analysis, "successEvaluation")),
        summary=text_at(analysis, "summary") or text_at(message, "summary"),
        error=text_at(message, "endedReason") or text_at(call, "endedReason"),
        **told_of(message, call),
        raw=message,
    )
    return CallbackEvent(event_id=event_id, content=report)
