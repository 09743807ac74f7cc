"""ElevenLabs' callbacks: signed with the webhook's secret, over a time and the raw body."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from outreach.models.reports import CallReport
from outreach.models.states import CallStatus
from outreach.protocols.adapter import Callback, CallbackEvent, CallbackRefused, Connection
from outreach.providers.http.callback_bodies import json_event
from outreach.providers.http.json_fields import (
    moment_at,
    name_at,
    object_at,
    text_at,
)
from outreach.providers.http.signatures import keyed_digest, raw, require_header, require_recent, require_signature
from outreach.providers.voice import base
from outreach.providers.voice.elevenlabs.provider import NAME, answered_at, reference_of, report_of_conversation
from outreach.providers.voice.elevenlabs.reasons import end_of_failure

SIGNATURE: Final = "elevenlabs-signature"

TELEPHONY: Final = ("CallSid", "call_sid", "sip_call_id")
"""The telephony's id of the call, in the telephony's event that ElevenLabs passes on: Twilio, then SIP trunks."""

MAX_SIGNATURE_AGE: Final = timedelta(minutes=30)
"""The maximum age of a signed time, as in ElevenLabs' own verifier; repeated events are dropped by their id."""


def read(connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
    """Verify a callback and read it; see `Adapter.read`."""
    _verify(connection, callback)
    event = json_event(callback.body)
    kind = name_at(event, "type")
    if kind is None:
        raise CallbackRefused("The body has no type.")
    data = object_at(event, "data")
    call_id = name_at(data, "conversation_id") or _telephony_id(data)
    identity = f"{base.event_prefix(call_id, reference_of(data), callback.body)}:{kind}"
    at = moment_at(event, "event_timestamp") or connection.clock.now()
    if kind == "post_call_transcription":
        return _conversation(connection, data, identity)
    if kind == "call_initiation_failure":
        return [_event(f"{identity}:failed", _failure(connection, data, at))]
    if kind == "answering_machine_detection":
        return [_event(f"{identity}:answered", _answered(connection, data, at))]
    return [CallbackEvent(event_id=f"{identity}:{int(at.timestamp())}", content=None)]


def sign(connection: Connection, *, url: str, test_id: str) -> Callback:
    """Return a callback that is only logged, signed as the provider signs; see `SignsCallbacks`."""
    signed_at = str(int(connection.clock.now().timestamp()))
    body = json.dumps({"type": "test", "event_timestamp": int(signed_at), "data": {"test_id": test_id}}).encode()
    digest = keyed_digest(connection.credentials["webhook_secret"], signed_at.encode(), b".", body).hex()
    headers = {"content-type": "application/json", SIGNATURE: f"t={signed_at},v0={digest}"}
    return Callback(url=url, headers=headers, query={}, body=body)


def _verify(connection: Connection, callback: Callback) -> None:
    parts = [part.partition("=") for part in require_header(callback.headers, SIGNATURE).split(",")]
    given = {name.strip(): value.strip() for name, _, value in parts}
    signed_at, digest = given.get("t", ""), given.get("v0", "")
    if not digest or not (signed_at.isascii() and signed_at.isdecimal()):
        raise CallbackRefused("The signature is not of the form t=TIME,v0=DIGEST.")
    secret = connection.credentials["webhook_secret"]
    require_signature(digest, keyed_digest(secret, raw(signed_at), b".", callback.body).hex())
    require_recent(float(signed_at), now=connection.clock.now(), age=MAX_SIGNATURE_AGE)


def _conversation(connection: Connection, data: Mapping[str, Any], identity: str) -> list[CallbackEvent]:
    """Return the two events of a conversation's end: when somebody answered, and how it ended."""
    report = report_of_conversation(connection, data)
    events = [_event(f"{identity}:{name_at(data, 'status')}", report)]
    moment = answered_at(data)
    if report is not None and report.status is CallStatus.COMPLETED and moment is not None:
        begun = _report(connection, data, CallStatus.IN_PROGRESS, moment)
        events.insert(0, _event(f"{identity}:begun", begun))
    return events


def _event(event_id: str, report: CallReport | None) -> CallbackEvent:
    # If the response named no conversation, the call is known by its telephony's id.
    return CallbackEvent(event_id=event_id, content=report, provider_id_may_differ=True)


def _failure(connection: Connection, data: Mapping[str, Any], at: datetime) -> CallReport:
    body = object_at(data, "metadata", "body")
    said = text_at(body, "error_reason") or text_at(body, "CallStatus") or text_at(data, "failure_reason")
    return _report(connection, data, end_of_failure(data), at, error=said)


def _answered(connection: Connection, data: Mapping[str, Any], at: datetime) -> CallReport | None:
    """Return who answered, by Twilio's `AnsweredBy` in an undocumented event; counts before the end of the call."""
    verdict = (name_at(data, "answered_by") or name_at(data, "metadata", "body", "AnsweredBy") or "").lower()
    if verdict != "human" and not verdict.startswith(("machine", "fax")):
        return None
    return _report(
        connection, data, CallStatus.IN_PROGRESS, at, answered_by="human" if verdict == "human" else "machine"
    )


def _report(
    connection: Connection,
    data: Mapping[str, Any],
    end: base.CallEnd | CallStatus,
    at: datetime,
    *,
    answered_by: str | None = None,
    error: str | None = None,
) -> CallReport:
    return base.report_of(
        end,
        workspace_id=connection.workspace_id,
        provider=NAME,
        dispatch_id=reference_of(data),
        provider_id=name_at(data, "conversation_id"),
        at=at,
        answered_by=answered_by,
        error=error,
        telephony_id=_telephony_id(data),
        raw=data,
    )


def _telephony_id(data: Mapping[str, Any]) -> str | None:
    """Return the id at Twilio or the SIP trunk, which may be all that the response to the request had."""
    body = object_at(data, "metadata", "body")
    return next(filter(None, (name_at(body, name) for name in TELEPHONY)), None)
