"""The meanings of ElevenLabs' statuses, failures and refusals.

ElevenLabs publishes no list of reasons: a conversation has a status, a text of why it ended, and an analysis; a failed
call has a reason of three values, beside Twilio's or the SIP trunk's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from outreach.models.dispatch import FailureClass
from outreach.models.states import CallStatus
from outreach.providers.http.json_fields import (
    name_at,
    object_at,
    text_at,
    value_at,
)
from outreach.providers.voice import base
from outreach.providers.voice.base import (
    ANSWERED_BY_PERSON,
    BLOCKED,
    BUSY,
    CANCELED,
    DECLINED,
    FAILED_AT_PROVIDER,
    FUNDS,
    INVALID_NUMBER,
    MACHINE,
    NO_ANSWER,
    NOT_CONNECTED,
    CallEnd,
    RefusalWords,
)

STATUSES: Final[Mapping[str, CallStatus]] = MappingProxyType(
    {
        "initiated": CallStatus.INITIATED,
        "in-progress": CallStatus.IN_PROGRESS,
        "processing": CallStatus.IN_PROGRESS,
    }
)
"""Statuses of a conversation with more to come: one in processing gets its analysis in a moment."""

ENDED: Final = frozenset({"done", "failed"})
"""Statuses of an ended conversation."""

VOICEMAIL_TOOL: Final = "voicemail_detection"

FAILURES: Final[Mapping[str, CallEnd]] = MappingProxyType({"busy": BUSY, "no-answer": NO_ANSWER})
"""`failure_reason` of a failed call; the third value is `unknown`."""

TWILIO: Final[Mapping[str, CallEnd]] = MappingProxyType({"busy": BUSY, "no-answer": NO_ANSWER, "canceled": CANCELED})
"""Twilio's `CallStatus` of a failed call; its SIP code explains `failed`."""

SIP: Final[Mapping[int, CallEnd]] = MappingProxyType(
    {
        403: BLOCKED,
        404: INVALID_NUMBER,
        408: NO_ANSWER,
        480: NO_ANSWER,
        484: INVALID_NUMBER,
        486: BUSY,
        487: NO_ANSWER,
        600: BUSY,
        603: DECLINED,
        604: INVALID_NUMBER,
        607: BLOCKED,
        608: BLOCKED,
    }
)
"""Final answers of SIP (RFC 3261, 21; 8197 and 8688 for the last two)."""


def end_of_conversation(data: Mapping[str, Any]) -> CallEnd:
    """Return how a conversation ended; see `GET /v1/convai/conversations/{id}`."""
    why = (text_at(data, "metadata", "termination_reason") or "").lower()
    if name_at(data, "status") == "failed":
        said = f"{why} {text_at(data, 'metadata', 'error', 'reason') or ''}".lower()
        return FUNDS if any(word in said for word in ("quota", "credit", "payment")) else FAILED_AT_PROVIDER
    detection = object_at(data, "metadata", "features_usage", VOICEMAIL_TOOL)
    if "voicemail" in why or detection.get("used") is True or _used(data, VOICEMAIL_TOOL):
        return MACHINE
    # Only with voicemail detection is it known to have been a person.
    return attrs.evolve(ANSWERED_BY_PERSON, answered_by="human" if detection.get("enabled") is True else None)


def end_of_failure(data: Mapping[str, Any]) -> CallEnd:
    """Return how a failed call ended: nobody was reached, so at worst it is retried."""
    body = object_at(data, "metadata", "body")
    return (
        FAILURES.get(name_at(data, "failure_reason") or "")
        or TWILIO.get(name_at(body, "CallStatus") or "")
        or SIP.get(_code(value_at(body, "SipResponseCode")))
        or SIP.get(_code(value_at(body, "sip_status_code")))
        or NOT_CONNECTED
    )


def _code(value: object) -> int:
    text = str(value) if isinstance(value, int | str) else ""
    return int(text) if len(text) == _SIP_DIGITS and text.isascii() and text.isdecimal() else 0


_SIP_DIGITS: Final = 3


def _used(data: Mapping[str, Any], tool: str) -> bool:
    """Return whether the agent successfully called one of its tools."""
    turns = value_at(data, "transcript")
    for turn in turns if isinstance(turns, list) else []:
        results = value_at(turn, "tool_results")
        for result in results if isinstance(results, list) else []:
            if value_at(result, "tool_name") == tool and value_at(result, "is_error") is not True:
                return True
    return False


_CODES: Final[Mapping[str, FailureClass]] = MappingProxyType(
    {
        "quota_exceeded": "provider_funds",
        "payment_required": "provider_funds",
        "concurrent_limit_exceeded": "rate_limited",
        "too_many_concurrent_requests": "rate_limited",
        "rate_limit_exceeded": "rate_limited",
        "system_busy": "rate_limited",
        "invalid_api_key": "provider_auth",
        "missing_permissions": "provider_auth",
        "needs_authorization": "provider_auth",
        "document_not_found": "bad_sender",
        "invalid_provider_config": "bad_sender",
    }
)
"""Known values of a refusal's `detail.status`; an exhausted quota comes with a 401."""

_WORDS: Final[RefusalWords] = (
    (("quota",), "provider_funds"),
    (("credit",), "provider_funds"),
    (("insufficient", "fund"), "provider_funds"),
    (("concurren",), "rate_limited"),
    (("rate limit",), "rate_limited"),
    (("too many",), "rate_limited"),
    (("to_number",), "invalid_number"),
    (("'to'",), "invalid_number"),
    (("not a valid phone number",), "invalid_number"),
    (("agent_phone_number",), "bad_sender"),
    (("phone_number",), "bad_sender"),
    (("phone number", "not found"), "bad_sender"),
    (("agent",), "bad_sender"),
    (("unauthorized",), "provider_auth"),
    (("authenticat",), "provider_auth"),
)
"""Undocumented message texts: the first row whose words all occur decides."""


def refusal_class(code: str | None, message: str) -> FailureClass | None:
    """Return the class of a refusal by its code, else by its message; None leaves it to the HTTP status."""
    return _CODES.get(code or "") or base.refusal_class(message, _WORDS)


def is_generic_message(message: str) -> bool:
    """Return whether an unsuccessful call may have been placed, because a request to the telephony failed."""
    said = message.lower()
    return any(words in said for words in _BROKEN)


_BROKEN: Final = (
    "timed out",
    "timeout",
    "time out",
    "time-out",
    "deadline exceeded",
    "connection",
    "disconnect",
    "reset by",
    "broken pipe",
    "remote end",
    "aborted",
    "read error",
    "write error",
    "network",
    "not respond",
    "no response",
    "without response",
    "waiting for",
    "redirect",
    "retries",
    "gateway",
    "unavailable",
    "unknown error",
    "internal",
    "unexpected",
)
"""Messages about a failed or timed-out request to the telephony, which may have arrived.

Wide on purpose: an unknown request is looked up, a refused one may be called again.
"""
