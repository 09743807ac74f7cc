"""What is removed from a provider's words before they are stored."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import pytest

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport, MessageReport
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.protocols.adapter import CallbackEvent, CredentialField
from outreach.providers.redaction import Redaction

USER: Final = "AC0001"
SECRET: Final = 's3cret/with+signs"and more'
KEY: Final = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nSome/Other+LineOfTheKey12345=\n-----END KEY-----\n"
FIELDS: Final = (
    CredentialField(name="user", description="", secret=False),
    CredentialField(name="secret", description=""),
    CredentialField(name="key", description=""),
    CredentialField(name="short", description=""),
)
REDACTION: Final = Redaction({"user": USER, "secret": SECRET, "key": KEY, "short": "the"}, FIELDS)


def basic(text: str) -> str:
    """Return what Basic authentication makes of it."""
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (f"The token {SECRET} is not valid.", "The token [removed] is not valid."),
        (f"POST /?key={quote(SECRET, safe='')} failed", "POST /?key=[removed] failed"),
        (f"got {json.dumps({'key': SECRET})}", 'got {"key": "[removed]"}'),
        (f"got {basic(f'{USER}:{SECRET}')}", "got [removed]"),
        (f"Authorization: Basic {basic(f'{USER}:{SECRET}')}", "Authorization: [removed]"),
        ('{"authorization": "Bearer abc.def", "to": "+1"}', '{"authorization": "[removed]", "to": "+1"}'),
        ("proxy-authorization=abcdef; x", "proxy-authorization=[removed]; x"),
        ("You sent Bearer eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln", "You sent Bearer [removed]"),
        ("The token eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln is old", "The token [removed] is old"),
        ("Line MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "Line [removed]"),
        (f"This is cut off: {SECRET[:9]}", "This is cut off: [removed]"),
        # As an answer may escape it: in JSON, in a URL, in HTML, twice, cut off.
        (json.dumps({"key": SECRET}).replace("/", r"\/"), '{"key": "[removed]"}'),
        (r"key=s3cret\u002Fwith\u002bsigns\u0022and more.", "key=[removed]."),
        ("key=s3cret%2fwith%2bsigns%22and%20more&to=1", "key=[removed]&to=1"),
        ("key=s3cret/with%2Bsigns%22and%20more&to=1", "key=[removed]&to=1"),
        ("key=s3cret%252fwith%252bsigns%2522and%2520more.", "key=[removed]."),
        ("<b>s3cret&#x2F;with&#43;signs&quot;and more</b>", "<b>[removed]</b>"),
        ("<b>s3cret&amp;#47;with&plus;signs&amp;quot;and more</b>", "<b>[removed]</b>"),
        (f"<b>{basic(f'{USER}:{SECRET}')[:-1]}&#108;</b>", "<b>[removed]</b>"),
        (r"This is cut off: s3cret\/wi", "This is cut off: [removed]"),
        ("Two: s3cret%2fwith%2bsigns%22and%20more s3cret/with+signs&quot;and more!", "Two: [removed] [removed]!"),
        # Shortened by the provider, at either end, or in the middle of an escape.
        (f"The key {SECRET[:9]}… is not known", "The key [removed]… is not known"),
        (f"The key {SECRET[:12]}... is not known", "The key [removed]... is not known"),
        (f'{{"key": "{SECRET[:10]}", "more": true}}', '{"key": "[removed]", "more": true}'),
        (f"The key …{SECRET[-9:]} is not known", "The key …[removed] is not known"),
        (f"The key {SECRET[:8]}…{SECRET[-8:]} is not known", "The key [removed]…[removed] is not known"),
        ("key=s3cret%2fwith%2bsi… is not known", "key=[removed]… is not known"),
        ("This is cut off: s3cret%2", "This is cut off: [removed]"),
        ("This is cut off: s3cret\\u00", "This is cut off: [removed]"),
        ("This is cut off: s3cret&#x2", "This is cut off: [removed]"),
        (f"got {basic(f'{USER}:{SECRET}')[:22]}…", "got [removed]…"),
        (f"got {basic('x:' + SECRET)}", f"got {basic('x:' + SECRET)[:3]}[removed]Q=="),
        (f"got {basic('xy:' + SECRET)[:20]}…", f"got {basic('xy:')}[removed]…"),
        ("Line MIIEvQIBADANBgkq…", "Line [removed]…"),
        # Words that only look alike stay.
        ("-----BEGIN KEY----- is missing", None),
        (f"The key {SECRET[:5]}… is not known", None),
        ("100%25 of a \\u00e9t\\u00e9 &amp; R&amp;D &copy; 5%zz &#9999999;", None),
        ("Basic authentication failed for the bearer of the number", None),
        ("No authorization to send to this number", None),
        (f"Account {USER} is suspended", None),
    ],
)
def test_secrets_are_removed_however_they_are_written(words: str, left: str | None) -> None:
    """Whole or cut off, alone or in a header; values that are no secrets, and too short ones, stay."""
    assert REDACTION.text(words) == (words if left is None else left)


def test_answers_and_reports_are_redacted_where_they_hold_words_of_the_provider() -> None:
    """Everything else stays, and an answer that is none of ours."""
    refused = DispatchOutcome(
        state=DispatchState.REFUSED, reason="rejected", error_code="7", error_message=f"{SECRET}!"
    )
    assert REDACTION.outcome(refused).error_message == "[removed]!"
    assert REDACTION.outcome(refused).error_code == "7"
    told: dict[str, Any] = {"workspace_id": "w", "provider": "p", "dispatch_id": None, "provider_id": "1"}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    call = CallReport(**told, status=CallStatus.FAILED, at=at, error=SECRET, summary=f"Said {SECRET}")
    message = MessageReport(**told, status=MessageStatus.FAILED, at=at, error_code=SECRET)
    clean = REDACTION.event(CallbackEvent(event_id="e", content=call)).content
    assert isinstance(clean, CallReport)
    assert (clean.error, clean.summary) == ("[removed]", "Said [removed]")
    assert REDACTION.report(message).error_code == "[removed]"
    nothing = CallbackEvent(event_id="e", content=None)
    assert REDACTION.event(nothing) is nothing
    as_it_was: Callable[[object], object] = REDACTION.outcome
    assert as_it_was("no outcome") == "no outcome"
    assert REDACTION.report(None) is None
