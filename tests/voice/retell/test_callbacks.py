from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

import pytest

from outreach.models.reports import CallReport
from outreach.models.states import CallStatus
from outreach.protocols.adapter import Callback, CallbackEvent
from outreach.providers.http.signatures import keyed_digest
from outreach.providers.voice.retell import ADAPTER
from outreach.testing.builders import NOW, WORKSPACE_ID
from tests.carriers.junk import JunkRules
from tests.voice.adapters import called_back, clock_at, connection_of, is_read

KEY = "retell-key-0001"
CREDENTIALS = {"api_key": KEY}
MILLIS = int(NOW.timestamp() * 1000)
CALL = {
    "call_id": "call-1",
    "call_status": "ended",
    "disconnection_reason": "user_hangup",
    "metadata": {"outreach_dispatch_id": "d-1"},
    "start_timestamp": MILLIS - 60_000,
    "end_timestamp": MILLIS - 1_000,
}
ANALYSIS = {"call_successful": True, "in_voicemail": False, "call_summary": "Will come."}


def signed(body: bytes, *, key: str = KEY, at: int = MILLIS) -> dict[str, str]:
    """Return the header that Retell would send."""
    return {"X-Retell-Signature": f"v={at},d={keyed_digest(key, body, str(at).encode()).hex()}"}


def _read(event: Mapping[str, Any]) -> CallbackEvent:
    body = json.dumps(event).encode()
    connection = connection_of(CREDENTIALS, clock=clock_at())
    (read,) = ADAPTER.read(connection, called_back(body, signed(body)))
    return read


def _report(kind: str, **call: Any) -> CallReport:
    content = _read({"event": kind, "call": {**CALL, **call}}).content
    assert isinstance(content, CallReport)
    return content


def test_the_end_of_a_call_is_reported_at_retells_time() -> None:
    """Both identifiers, the status, and when it ended."""
    event = _read({"event": "call_ended", "call": CALL})
    report = event.content
    assert isinstance(report, CallReport)
    assert event.event_id == "call-1:call_ended:ended"
    assert (report.workspace_id, report.provider, report.dispatch_id) == (WORKSPACE_ID, "retell", "d-1")
    assert (report.provider_id, report.status) == ("call-1", CallStatus.COMPLETED)
    assert report.at.timestamp() == MILLIS / 1000 - 1


def test_an_analysis_brings_verdict_and_summary() -> None:
    """`call_analyzed` says more of the end than `call_ended` did."""
    report = _report("call_analyzed", call_analysis=ANALYSIS)
    assert (report.status, report.outcome, report.answered_by) == (CallStatus.COMPLETED, "positive", "human")
    assert report.summary == "Will come."
    assert _report("call_ended").outcome is None
    assert _report("call_analyzed", call_analysis={"call_successful": "yes"}).outcome is None


def test_a_mailbox_that_the_analysis_finds_is_voicemail_and_no_second_call() -> None:
    """It may come after the end, when nothing is opened again: so it decides the same in either order."""
    report = _report("call_analyzed", call_analysis={**ANALYSIS, "in_voicemail": True})
    assert (report.outcome, report.answered_by, report.message_left) == ("voicemail", "machine", True)


@pytest.mark.parametrize(("reason", "message_left"), [("voicemail_reached", None), ("ivr_reached", False)])
def test_a_menu_takes_no_message(reason: str, message_left: bool | None) -> None:
    """A mailbox gets one if the agent leaves messages."""
    report = _report("call_ended", disconnection_reason=reason)
    assert (report.outcome, report.message_left) == ("voicemail", message_left)


def test_somebody_who_wants_no_more_calls_is_reported() -> None:
    """`user_requested_dnc` goes to the register, whatever the analysis thinks of the call."""
    report = _report("call_ended", disconnection_reason="user_requested_dnc", call_analysis=ANALYSIS)
    assert report.do_not_call
    assert report.outcome == "negative"


@pytest.mark.parametrize(("found", "wanted"), [(True, True), ("yes", True), (False, False), ("no", False), ({}, False)])
def test_an_analysis_that_is_asked_for_it_tells_who_wants_no_more_calls(found: object, wanted: bool) -> None:
    """A custom field of that name says it where the reason says no more than that somebody hung up."""
    analysis = {**ANALYSIS, "custom_analysis_data": {"do_not_call": found}}
    assert _report("call_analyzed", call_analysis=analysis).do_not_call is wanted


def test_somebody_who_asks_for_a_call_is_reported() -> None:
    """By a custom field of the analysis, which counts more than its verdict."""
    analysis = {**ANALYSIS, "custom_analysis_data": {"callback_requested": True}}
    assert _report("call_analyzed", call_analysis=analysis).outcome == "callback"


def test_a_call_brings_transcript_and_cost() -> None:
    """Retell counts cents."""
    report = _report("call_ended", transcript="Agent: Hi\nUser: Yes?\n", call_cost={"combined_cost": 70.5})
    assert (report.transcript, report.cost, report.cost_currency) == ("Agent: Hi\nUser: Yes?", Decimal("0.705"), "USD")
    plain = _report("call_ended")
    assert (plain.transcript, plain.cost) == (None, None)


def test_a_call_that_has_begun_is_in_progress() -> None:
    """`call_started` says when it was answered."""
    report = _report("call_started", call_status="ongoing", disconnection_reason=None)
    assert (report.status, report.at.timestamp()) == (CallStatus.IN_PROGRESS, MILLIS / 1000 - 60)


@pytest.mark.parametrize("kind", ["call_ended", "call_analyzed"])
@pytest.mark.parametrize(
    ("ended", "call_status", "status"),
    [
        (None, "ended", CallStatus.INITIATED),
        (MILLIS - 299_000, "ended", CallStatus.INITIATED),
        (MILLIS - 299_000, "not_connected", CallStatus.INITIATED),
        (MILLIS - 299_000, "error", CallStatus.INITIATED),
        (MILLIS - 300_000, "ended", CallStatus.COMPLETED),
        (MILLIS - 300_000, "not_connected", CallStatus.FAILED),
        (MILLIS - 300_000, "error", CallStatus.FAILED),
    ],
)
def test_an_end_without_a_reason_is_believed_when_the_reason_had_its_time(
    kind: str, ended: int | None, call_status: str, status: CallStatus
) -> None:
    """Not connected may be declined, or busy; the event with its reason is another one."""
    call = {**CALL, "call_status": call_status, "disconnection_reason": None, "end_timestamp": ended}
    event = _read({"event": kind, "call": call})
    assert isinstance(event.content, CallReport)
    assert event.content.status is status
    assert event.event_id != _read({"event": kind, "call": {**call, "disconnection_reason": "dial_busy"}}).event_id


@pytest.mark.parametrize("kind", ["transcript_updated", "transfer_started", "chat_started", "of_a_new_kind"])
def test_other_events_are_kept_and_mean_nothing(kind: str) -> None:
    """A transcript or a transfer says nothing of how far a call has come."""
    assert _read({"event": kind, "call": CALL}).content is None


def test_each_event_of_a_call_has_an_identifier_of_its_own() -> None:
    """Twice the same event is one; another kind and another call are others, and so is a later transcript."""
    kinds = ["call_started", "call_ended", "call_analyzed", "transcript_updated"]
    events = [{"event": kind, "call": {**CALL, "call_id": call}} for kind in kinds for call in ("call-1", "call-2")]
    assert len({_read(event).event_id for event in events}) == len(events)
    body = json.dumps({"event": "transcript_updated", "call": CALL}).encode()
    connection = connection_of(CREDENTIALS, clock=clock_at())
    first, second = (
        ADAPTER.read(connection, called_back(body, signed(body, at=MILLIS + later)))[0].event_id for later in (0, 9)
    )
    assert first != second


@pytest.mark.parametrize("kind", ["call_ended", "transcript_updated"])
def test_events_that_lack_retells_identifier_are_told_apart(kind: str) -> None:
    """By ours, else by all that they hold: they are of different calls, and none is a repeat of another."""
    references: list[dict[str, Any]] = [{"metadata": {"outreach_dispatch_id": name}} for name in ("d-1", "d-2")]
    calls = [*references, {"call_id": None, "agent_id": "a-1"}, {"call_id": 5}, {}]
    events = [_read({"event": kind, "call": {"call_status": "ended", **call}}).event_id for call in calls]
    assert len(set(events)) == len(calls)
    assert _read({"event": kind, "call": {"call_status": "ended"}}).event_id == events[-1]


BODY = json.dumps({"event": "call_ended", "call": CALL}).encode()


@pytest.mark.parametrize(
    ("body", "headers", "taken"),
    [
        (BODY, signed(BODY), True),
        (BODY, signed(BODY, at=MILLIS - 299_000), True),
        (BODY + b" ", signed(BODY), False),
        (BODY, signed(BODY, key="another-key"), False),
        (BODY, signed(BODY, at=MILLIS - 301_000), False),
        (BODY, signed(BODY, at=MILLIS + 301_000), False),
        (BODY, {"X-Other": "1"}, False),
        (BODY, {"X-Retell-Signature": ""}, False),
        (BODY, {"X-Retell-Signature": signed(BODY)["X-Retell-Signature"].upper()}, False),
        (BODY, {"X-Retell-Signature": signed(BODY)["X-Retell-Signature"].replace(str(MILLIS), str(MILLIS + 1))}, False),
        (b"not json", signed(b"not json"), False),
        (b"[]", signed(b"[]"), False),
        (b"{}", signed(b"{}"), False),
    ],
)
def test_a_signature_is_over_the_raw_body_and_its_time(body: bytes, headers: dict[str, str], taken: bool) -> None:
    """A changed body, a stale time, a wrong key and a missing header are refused; so is what cannot be read."""
    assert is_read(ADAPTER, CREDENTIALS, body, headers) is taken


def test_the_key_with_the_badge_may_be_another_one() -> None:
    """Then it alone signs."""
    credentials = {**CREDENTIALS, "webhook_api_key": "key-with-the-badge"}
    assert is_read(ADAPTER, credentials, BODY, signed(BODY, key="key-with-the-badge"))
    assert not is_read(ADAPTER, credentials, BODY, signed(BODY))


class TestRetellJunk(JunkRules):
    """Events of any content."""

    adapter = ADAPTER
    credentials = CREDENTIALS
    headers = ("x-retell-signature",)
    template: ClassVar[Mapping[str, Any]] = {"event": "call_analyzed", "call": {**CALL, "call_analysis": ANALYSIS}}

    def sign(self, body: bytes) -> Callback:
        """Sign a body."""
        return called_back(body, signed(body))


def test_what_the_events_of_one_call_say_of_its_end_does_not_contradict() -> None:
    """Whichever comes first, what is filled in later fits; so every order ends the same.

    docs/delivery-contract.md#rule-12.
    """
    ended, analyzed = _report("call_ended"), _report("call_analyzed", call_analysis=ANALYSIS)
    for first, second in itertools.permutations([ended, analyzed]):
        assert first.status is second.status
        for name in ("outcome", "answered_by", "summary"):
            told = {getattr(one, name) for one in (first, second)} - {None}
            assert len(told) <= 1
