from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from outreach.models.reports import CallReport
from outreach.models.states import CallStatus
from outreach.protocols.adapter import Callback, CallbackEvent
from outreach.providers.http.signatures import keyed_digest
from outreach.providers.voice.elevenlabs import ADAPTER
from outreach.testing.builders import NOW, WORKSPACE_ID
from tests.carriers.junk import JunkRules
from tests.voice.adapters import called_back, clock_at, connection_of, is_read

SECRET = "wsec_secret"
CREDENTIALS = {"api_key": "k", "webhook_secret": SECRET, "phone_number_id": "n"}
SECONDS = int(NOW.timestamp())
DATA: dict[str, Any] = {
    "agent_id": "agent-1",
    "conversation_id": "conv-1",
    "user_id": "d-1",
    "status": "done",
    "metadata": {
        "start_time_unix_secs": SECONDS - 90,
        "accepted_time_unix_secs": SECONDS - 80,
        "call_duration_secs": 60,
    },
    "analysis": {"call_successful": "success", "transcript_summary": "Will come."},
}


def signed(body: bytes, *, secret: str = SECRET, at: int | str = SECONDS) -> dict[str, str]:
    """Return the header that ElevenLabs would send."""
    return {"ElevenLabs-Signature": f"t={at},v0={keyed_digest(secret, str(at).encode(), b'.', body).hex()}"}


def _read(kind: str, data: Mapping[str, Any], **more: Any) -> Sequence[CallbackEvent]:
    body = json.dumps({"type": kind, "event_timestamp": SECONDS, "data": data, **more}).encode()
    return ADAPTER.read(connection_of(CREDENTIALS, clock=clock_at()), called_back(body, signed(body)))


def _reports(kind: str, data: Mapping[str, Any]) -> list[CallReport]:
    return [event.content for event in _read(kind, data) if isinstance(event.content, CallReport)]


def test_the_end_of_a_conversation_tells_its_beginning_too() -> None:
    """ElevenLabs calls back once, after its analysis: when somebody answered, and how it ended."""
    begun, ended = _reports("post_call_transcription", DATA)
    assert (begun.status, begun.at.timestamp()) == (CallStatus.IN_PROGRESS, SECONDS - 80)
    assert (ended.status, ended.outcome, ended.summary) == (CallStatus.COMPLETED, "positive", "Will come.")
    assert ended.at.timestamp() == SECONDS - 30
    for report in (begun, ended):
        assert (report.workspace_id, report.provider) == (WORKSPACE_ID, "elevenlabs")
        assert (report.dispatch_id, report.provider_id) == ("d-1", "conv-1")


def test_a_conversation_brings_its_turns_and_a_wish_to_be_called() -> None:
    """Turns without words are left out. Its cost counts credits, which are no money."""
    turns = [
        {"role": "agent", "message": "Hello", "tool_calls": []},
        {"role": "agent", "message": None},
        {"role": "user", "message": "Call me on Monday."},
        "nonsense",
    ]
    collected = {"callback_requested": {"value": True}}
    analysis = {**DATA["analysis"], "data_collection_results": collected}
    data = {**DATA, "transcript": turns, "analysis": analysis, "metadata": {**DATA["metadata"], "cost": 296}}
    _, ended = _reports("post_call_transcription", data)
    assert ended.transcript == "agent: Hello\nuser: Call me on Monday."
    assert (ended.outcome, ended.cost) == ("callback", None)
    assert _reports("post_call_transcription", DATA)[1].transcript is None


@pytest.mark.parametrize("kind", ["post_call_transcription", "call_initiation_failure", "of_a_new_kind"])
def test_events_that_lack_elevenlabs_identifier_are_told_apart(kind: str) -> None:
    """By ours, else by all that they hold: they are of different calls, and none is a repeat of another."""
    found: list[dict[str, Any]] = [{"user_id": "d-1"}, {"user_id": "d-2"}, {"agent_id": "a"}, {"user_id": 5}, {}]
    events = [_read(kind, {"status": "done", **data})[-1].event_id for data in found]
    assert len(set(events)) == len(found)
    assert _read(kind, {"status": "done"})[-1].event_id == events[-1]


@pytest.mark.parametrize(
    "data",
    [
        {"user_id": "d-1"},
        {"conversation_initiation_client_data": {"user_id": "d-1"}},
        {"conversation_initiation_client_data": {"dynamic_variables": {"_outreach_dispatch_id": "d-1"}}},
    ],
)
def test_our_reference_is_found_wherever_elevenlabs_brings_it_back(data: dict[str, Any]) -> None:
    """As the user of the conversation, of its beginning, and as a variable."""
    (report,) = _reports("post_call_transcription", {"conversation_id": "conv-1", "status": "done", **data})
    assert report.dispatch_id == "d-1"


@pytest.mark.parametrize(
    ("verdict", "outcome"), [("failure", "negative"), ("unknown", None), (True, None), (None, None)]
)
def test_the_analysis_is_the_verdict_where_it_says_one(verdict: object, outcome: str | None) -> None:
    """`unknown` is no verdict, and neither is anything but a word."""
    reports = _reports("post_call_transcription", {**DATA, "analysis": {"call_successful": verdict}})
    assert reports[-1].outcome == outcome


FAILED = {
    "conversation_id": "conv-1",
    "failure_reason": "unknown",
    "metadata": {"type": "sip", "body": {"sip_status_code": 404, "error_reason": "INVITE failed: Not found"}},
}


def test_a_call_that_did_not_come_about_says_why() -> None:
    """`call_initiation_failure` of a SIP trunk, by its code."""
    (report,) = _reports("call_initiation_failure", FAILED)
    assert (report.status, report.reason) == (CallStatus.FAILED, "invalid_number")
    assert (report.error, report.at.timestamp()) == ("INVITE failed: Not found", SECONDS)
    (report,) = _reports("call_initiation_failure", {"conversation_id": "conv-1", "failure_reason": "busy"})
    assert (report.status, report.error) == (CallStatus.BUSY, None)


@pytest.mark.parametrize("name", ["CallSid", "call_sid", "sip_call_id"])
def test_a_call_that_did_not_come_about_is_named_twice(name: str) -> None:
    """By its conversation and by its telephony's call, which our request may have been answered with alone."""
    data = {"conversation_id": "conv-1", "failure_reason": "busy", "metadata": {"body": {name: "CA-1"}}}
    (report,) = _reports("call_initiation_failure", data)
    assert (report.dispatch_id, report.provider_id, report.telephony_id) == (None, "conv-1", "CA-1")
    (report,) = _reports("call_initiation_failure", {"conversation_id": "conv-1", "failure_reason": "busy"})
    assert report.telephony_id is None


def test_calls_that_have_no_conversation_are_told_apart_by_their_telephony() -> None:
    """Else the second failure would be dropped as a repeat of the first."""
    ids = [
        event.event_id
        for sid in ("CA-1", "CA-2")
        for event in _read("call_initiation_failure", {"metadata": {"body": {"CallSid": sid}}})
    ]
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    ("data", "answered_by"),
    [
        ({"answered_by": "machine_start"}, "machine"),
        ({"answered_by": "fax"}, "machine"),
        ({"answered_by": "human"}, "human"),
        ({"metadata": {"body": {"AnsweredBy": "machine_end_beep"}}}, "machine"),
    ],
)
def test_a_detected_machine_is_reported_during_the_call(data: dict[str, Any], answered_by: str) -> None:
    """Twilio's detection says who answered; the end of the call need not say it again."""
    (report,) = _reports("answering_machine_detection", {"conversation_id": "conv-1", **data})
    assert (report.status, report.answered_by) == (CallStatus.IN_PROGRESS, answered_by)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("answering_machine_detection", {"answered_by": "unknown"}),
        ("post_call_audio", {"conversation_id": "conv-1", "full_audio": "AAAA"}),
        ("post_call_transcription", {"conversation_id": "conv-1", "status": "of-a-new-kind"}),
        ("voice_removed", {}),
    ],
)
def test_other_events_are_kept_and_mean_nothing(kind: str, data: dict[str, Any]) -> None:
    """Audio, a verdict that is none, and events of other products say nothing of a call."""
    (event,) = _read(kind, data)
    assert event.content is None


def test_each_event_of_a_call_has_an_identifier_of_its_own() -> None:
    """The same event twice is one; what it tells, its kind and its conversation make it another one."""
    events = [
        *_read("post_call_transcription", DATA),
        *_read("post_call_transcription", {**DATA, "conversation_id": "conv-2"}),
        *_read("call_initiation_failure", DATA),
        *_read("answering_machine_detection", DATA),
        *_read("post_call_audio", DATA),
    ]
    ids = [event.event_id for event in events]
    assert len(set(ids)) == len(ids) == 7
    assert [event.event_id for event in _read("post_call_transcription", DATA)] == ids[:2]


BODY = json.dumps({"type": "post_call_transcription", "data": DATA}).encode()


@pytest.mark.parametrize(
    ("body", "headers", "taken"),
    [
        (BODY, signed(BODY), True),
        (BODY, signed(BODY, at=SECONDS - 29 * 60), True),
        (BODY + b" ", signed(BODY), False),
        (BODY, signed(BODY, secret="another"), False),
        (BODY, signed(BODY, at=SECONDS - 31 * 60), False),
        (BODY, signed(BODY, at=SECONDS + 31 * 60), False),
        (BODY, signed(BODY, at="9" * 400), False),
        (BODY, signed(BODY, at="soon"), False),
        (BODY, {"X-Other": "1"}, False),
        (BODY, {"ElevenLabs-Signature": f"t={SECONDS}"}, False),
        (BODY, {"ElevenLabs-Signature": f"t={SECONDS},v0="}, False),
        (BODY, {"ElevenLabs-Signature": signed(BODY)["ElevenLabs-Signature"].replace("v0", "v1")}, False),
        (BODY, {"ElevenLabs-Signature": signed(BODY)["ElevenLabs-Signature"].replace(str(SECONDS), "1")}, False),
        (b"not json", signed(b"not json"), False),
        (b"[]", signed(b"[]"), False),
        (b"{}", signed(b"{}"), False),
    ],
)
def test_a_signature_is_over_its_time_and_the_raw_body(body: bytes, headers: dict[str, str], taken: bool) -> None:
    """A changed body, a stale time, a wrong key and a missing header are refused; so is what cannot be read."""
    assert is_read(ADAPTER, CREDENTIALS, body, headers) is taken


class TestElevenLabsJunk(JunkRules):
    """Ends of conversations of any content."""

    adapter = ADAPTER
    credentials = CREDENTIALS
    headers = ("elevenlabs-signature",)
    template: ClassVar[Mapping[str, Any]] = {
        "type": "post_call_transcription",
        "event_timestamp": SECONDS,
        "data": {
            **DATA,
            "transcript": [{"role": "agent", "tool_results": [{"tool_name": "voicemail_detection"}]}],
        },
    }

    def sign(self, body: bytes) -> Callback:
        """Sign a body."""
        return called_back(body, signed(body))


class TestElevenLabsFailureJunk(TestElevenLabsJunk):
    """Failures of any content."""

    template: ClassVar[Mapping[str, Any]] = {"type": "call_initiation_failure", "data": FAILED}
