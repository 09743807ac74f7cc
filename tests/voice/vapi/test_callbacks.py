from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar

import pytest

from outreach.models.reports import CallReport
from outreach.models.states import CallStatus
from outreach.protocols.adapter import Callback, CallbackEvent, CallbackRefused
from outreach.providers.http.signatures import keyed_digest
from outreach.providers.voice.vapi import ADAPTER
from outreach.testing.builders import NOW, WORKSPACE_ID
from outreach.testing.clock import ManualClock
from tests.carriers.junk import JunkRules
from tests.voice.adapters import called_back, clock_at, connection_of, is_read

SECRET = "a-secret-of-some-length"
PLAIN = {"api_key": "k", "webhook_secret": SECRET, "phone_number_id": "n"}
SIGNED = {**PLAIN, "webhook_signature_header": "X-Signature"}
TIMED = {**SIGNED, "webhook_timestamp_header": "X-Timestamp"}

CALL = {"id": "call-1", "assistantOverrides": {"metadata": {"outreach_dispatch_id": "d-1"}}}


def _read(
    message: Mapping[str, Any],
    credentials: Mapping[str, str] = PLAIN,
    headers: Mapping[str, str] | None = None,
    clock: ManualClock | None = None,
) -> CallbackEvent:
    connection = connection_of(credentials, clock=clock or clock_at())
    callback = called_back({"message": message}, headers or {"X-Vapi-Secret": SECRET})
    (event,) = ADAPTER.read(connection, callback)
    return event


def _report(message: Mapping[str, Any]) -> CallReport:
    content = _read(message).content
    assert isinstance(content, CallReport)
    return content


@pytest.mark.parametrize(("found", "wanted"), [(True, True), (" Yes", True), (False, False), (None, False), (1, False)])
@pytest.mark.parametrize(
    "told",
    [
        lambda found: {"analysis": {"structuredData": {"do_not_call": found}}},
        lambda found: {"artifact": {"structuredOutputs": {"output-1": {"name": "do_not_call", "result": found}}}},
        lambda found: {"call": {**CALL, "analysis": {"structuredData": {"do_not_call": found}}}},
    ],
)
def test_an_analysis_that_is_asked_for_it_tells_who_wants_no_more_calls(
    told: Callable[[object], dict[str, Any]], found: object, wanted: bool
) -> None:
    """By the plan for structured data, or by a structured output; of anything but a yes nothing is made."""
    end = {"type": "end-of-call-report", "endedReason": "customer-ended-call", "call": CALL, **told(found)}
    assert _report(end).do_not_call is wanted


@pytest.mark.parametrize(
    ("analysis", "outcome"),
    [
        ({"successEvaluation": "true", "structuredData": {"callback_requested": True}}, "callback"),
        ({"successEvaluation": "true", "structuredData": {"callback_requested": False}}, "positive"),
        ({"structuredData": {"callback_requested": True, "do_not_call": True}}, None),
    ],
)
def test_somebody_who_asks_for_a_call_is_reported(analysis: dict[str, Any], outcome: str | None) -> None:
    """It counts more than the verdict, and less than a wish for no more calls."""
    end = {"type": "end-of-call-report", "endedReason": "customer-ended-call", "call": CALL, "analysis": analysis}
    assert _report(end).outcome == outcome


@pytest.mark.parametrize(
    ("cost", "wanted"),
    [(0.14, Decimal("0.14")), (0, Decimal(0)), (1e-7, Decimal("1E-7")), (-1, None), (True, None), ("0.14", None)],
)
def test_the_report_of_the_end_brings_transcript_and_cost(cost: object, wanted: Decimal | None) -> None:
    """In the message, its artifact or the call; Vapi's costs are in US dollars."""
    end = {"type": "end-of-call-report", "endedReason": "customer-ended-call"}
    said = "AI: Hello\nUser: Yes?"
    for told in (
        {"call": CALL, "cost": cost, "artifact": {"transcript": said}},
        {"call": {**CALL, "cost": cost, "artifact": {"transcript": said}}},
        {"call": CALL, "cost": cost, "transcript": said},
    ):
        report = _report({**end, **told})
        assert (report.cost, report.cost_currency) == (wanted, None if wanted is None else "USD")
        assert report.transcript == said


def test_a_status_is_reported_with_both_identifiers_and_vapis_time() -> None:
    """The call object brings our reference back; the message says when."""
    at = NOW - timedelta(seconds=7)
    event = _read({"type": "status-update", "status": "in-progress", "timestamp": at.timestamp() * 1000, "call": CALL})
    report = event.content
    assert isinstance(report, CallReport)
    assert event.event_id == "call-1:status-update:in-progress"
    assert (report.workspace_id, report.provider, report.dispatch_id) == (WORKSPACE_ID, "vapi", "d-1")
    assert (report.provider_id, report.status, report.at) == ("call-1", CallStatus.IN_PROGRESS, at)


@pytest.mark.parametrize("kind", ["status-update", "end-of-call-report", "transcript"])
def test_events_that_lack_vapis_identifier_are_told_apart(kind: str) -> None:
    """By ours, else by all that they hold: they are of different calls, and none is a repeat of another."""
    calls = [{"name": "d-1"}, {"name": "d-2"}, {"id": None, "orgId": "o-1"}, {"id": 5}, {}]
    events = [_read({"type": kind, "status": "ended", "call": call}).event_id for call in calls]
    assert len(set(events)) == len(calls)
    assert _read({"type": kind, "status": "ended", "call": calls[-1]}).event_id == events[-1]


@pytest.mark.parametrize(
    "call",
    [
        CALL,
        {"id": "call-1", "customer": {"externalId": "d-1"}},
        {"id": "call-1", "name": "d-1"},
    ],
)
def test_our_reference_is_found_wherever_vapi_brings_it_back(call: dict[str, Any]) -> None:
    """Metadata, external identifier and name hold the same."""
    assert _report({"type": "status-update", "status": "ringing", "call": call}).dispatch_id == "d-1"


@pytest.mark.parametrize(
    ("evaluation", "outcome"),
    [
        ("true", "positive"),
        ("False", "negative"),
        (True, "positive"),
        ("Pass", "positive"),
        ("7", None),
        ("Good", None),
        (None, None),
        ({"a": 1}, None),
    ],
)
def test_the_report_of_the_end_brings_verdict_and_summary(evaluation: object, outcome: str | None) -> None:
    """A rubric of two values is a verdict; a scale is none, for nobody has drawn the border."""
    report = _report(
        {
            "type": "end-of-call-report",
            "endedReason": "customer-ended-call",
            "endedAt": (NOW - timedelta(seconds=9)).isoformat(),
            "timestamp": NOW.timestamp() * 1000,
            "analysis": {"successEvaluation": evaluation, "summary": "They\x00 will come. " + "x" * 9_000},
            "call": CALL,
        }
    )
    assert (report.status, report.outcome, report.answered_by) == (CallStatus.COMPLETED, outcome, "human")
    assert report.at == NOW - timedelta(seconds=9)
    assert report.summary is not None
    assert report.summary.startswith("They will come.")
    assert len(report.summary) <= 4_000


def test_a_message_left_to_a_machine_is_no_success() -> None:
    """Voicemail is voicemail, whatever the analysis thinks of it."""
    report = _report(
        {
            "type": "end-of-call-report",
            "endedReason": "voicemail",
            "analysis": {"successEvaluation": "true"},
            "call": CALL,
        }
    )
    assert (report.outcome, report.answered_by) == ("voicemail", "machine")


def test_a_failure_says_why() -> None:
    """The provider's own reason is kept for people, and its class decides what follows."""
    report = _report(
        {"type": "status-update", "status": "ended", "endedReason": "pipeline-error-x-llm-failed", "call": CALL}
    )
    assert (report.status, report.outcome, report.reason) == (CallStatus.FAILED, "failed", "provider_error")
    assert report.error == "pipeline-error-x-llm-failed"


@pytest.mark.parametrize("kind", ["status-update", "end-of-call-report"])
@pytest.mark.parametrize(
    ("ended_at", "status"),
    [
        (None, CallStatus.INITIATED),
        (NOW - timedelta(seconds=299), CallStatus.INITIATED),
        (NOW - timedelta(seconds=300), CallStatus.COMPLETED),
    ],
)
def test_an_end_without_a_reason_is_believed_when_the_reason_had_its_time(
    kind: str, ended_at: datetime | None, status: CallStatus
) -> None:
    """Vapi need not say in a status how the call ended; the event with its reason is another one."""
    told = {"type": kind, "status": "ended", "call": CALL, "endedAt": ended_at.isoformat() if ended_at else None}
    event = _read(told)
    assert isinstance(event.content, CallReport)
    assert (event.content.status, event.content.outcome) == (status, None)
    assert event.event_id != _read({**told, "endedReason": "customer-busy"}).event_id


@pytest.mark.parametrize(
    "message",
    [
        {"type": "hang", "call": CALL},
        {"type": "tool-calls", "call": CALL, "timestamp": 1},
        {"type": "status-update", "status": "not-found", "call": CALL},
        {"type": "status-update", "call": CALL},
        {"type": "of-a-new-kind"},
    ],
)
def test_other_events_are_kept_and_mean_nothing(message: dict[str, Any]) -> None:
    """`hang` is an assistant that is slow, and no end; what is of an unknown kind has no content."""
    assert _read(message).content is None


def test_each_event_of_a_call_has_an_identifier_of_its_own() -> None:
    """The same event twice is one event; another status, another kind and another call are others."""
    ended = {"status": "ended", "endedReason": "customer-ended-call"}
    messages = [
        {"type": "status-update", "status": "ringing", "call": CALL},
        {"type": "status-update", **ended, "call": CALL},
        {"type": "end-of-call-report", **ended, "call": CALL},
        {"type": "end-of-call-report", **ended, "call": {**CALL, "id": "call-2"}},
    ]
    assert len({_read(message).event_id for message in messages}) == len(messages)
    assert _read(messages[0]).event_id == _read({**messages[0], "timestamp": 5}).event_id


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Vapi-Secret": SECRET},
        {"Authorization": f"Bearer {SECRET}"},
        {"Authorization": f"bearer {SECRET}"},
    ],
)
def test_a_shared_secret_is_taken_in_either_header(headers: dict[str, str]) -> None:
    """Vapi's custom credentials of the kind Bearer, and the older header."""
    assert _read({"type": "hang", "call": CALL}, PLAIN, headers).content is None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Vapi-Secret": ""},
        {"X-Vapi-Secret": "another-secret-of-length"},
        {"X-Vapi-Secret": SECRET[:-1]},
        {"Authorization": SECRET},
        {"Authorization": f"Basic {SECRET}"},
        {"X-Vapi-Secret": "\udc80ü"},
    ],
)
def test_anything_but_the_secret_is_refused(headers: dict[str, str]) -> None:
    """A missing header, a wrong secret, and another scheme change nothing."""
    with pytest.raises(CallbackRefused):
        _read({"type": "hang", "call": CALL}, PLAIN, headers or {"X-Other": "1"})


def _signed(body: bytes, *, secret: str = SECRET, timestamp: str | None = None) -> dict[str, str]:
    if timestamp is None:
        return {"X-Signature": keyed_digest(secret, body).hex()}
    digest = keyed_digest(secret, timestamp.encode(), b".", body).hex()
    return {"X-Signature": f"sha256={digest}", "X-Timestamp": timestamp}


BODY = json.dumps({"message": {"type": "hang", "call": CALL}}).encode()
IN_TIME = str(int(NOW.timestamp() * 1000))


@pytest.mark.parametrize(
    ("credentials", "body", "headers", "taken"),
    [
        (SIGNED, BODY, _signed(BODY), True),
        (SIGNED, BODY + b" ", _signed(BODY), False),
        (SIGNED, BODY, _signed(BODY, secret="another-secret-of-length"), False),
        (SIGNED, BODY, {"X-Vapi-Secret": SECRET}, False),
        (SIGNED, BODY, {"X-Signature": ""}, False),
        (TIMED, BODY, _signed(BODY, timestamp=IN_TIME), True),
        (TIMED, BODY, _signed(BODY, timestamp=str(NOW.timestamp())), True),
        (TIMED, BODY, _signed(BODY, timestamp=NOW.isoformat()), True),
        (TIMED, BODY, _signed(BODY, timestamp=str(int(NOW.timestamp()) - 301)), False),
        (TIMED, BODY, _signed(BODY, timestamp=str(int(NOW.timestamp()) + 301)), False),
        (TIMED, BODY, _signed(BODY, timestamp="soon"), False),
        (TIMED, BODY, {**_signed(BODY, timestamp=IN_TIME), "X-Timestamp": str(int(NOW.timestamp()) - 1)}, False),
        (TIMED, BODY, _signed(BODY), False),
        (TIMED, BODY + b" ", _signed(BODY, timestamp=IN_TIME), False),
    ],
)
def test_a_signature_is_over_the_raw_body_and_its_time(
    credentials: dict[str, str], body: bytes, headers: dict[str, str], taken: bool
) -> None:
    """A changed body, a stale time, a wrong key and a missing header are refused; a secret alone is not enough then."""
    assert is_read(ADAPTER, credentials, body, headers) is taken


class TestVapiJunk(JunkRules):
    """Ends of calls of any content, in front of a right secret."""

    adapter = ADAPTER
    credentials = PLAIN
    headers = ("x-vapi-secret", "authorization")
    template: ClassVar[Mapping[str, Any]] = {
        "message": {
            "type": "end-of-call-report",
            "endedReason": "customer-ended-call",
            "timestamp": NOW.timestamp() * 1000,
            "analysis": {"successEvaluation": "true", "summary": "They will come.", "structuredData": {}},
            "call": CALL,
        }
    }

    def sign(self, body: bytes) -> Callback:
        """Give the secret."""
        return called_back(body, {"X-Vapi-Secret": SECRET})


class TestVapiSignedJunk(TestVapiJunk):
    """Statuses of any content, with a signature of body and time."""

    credentials = TIMED
    headers = ("x-signature", "x-timestamp")
    template: ClassVar[Mapping[str, Any]] = {"message": {"type": "status-update", "status": "ringing", "call": CALL}}

    def sign(self, body: bytes) -> Callback:
        """Sign a body."""
        return called_back(body, _signed(body, timestamp=IN_TIME))
