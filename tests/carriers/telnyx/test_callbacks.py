from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from outreach.models.reports import MessageReport
from outreach.models.states import MessageStatus
from outreach.protocols.adapter import Callback, CallbackEvent, CallbackRefused, InboundMessageEvent
from outreach.providers.carriers.base import LimitReset, seconds_to_reset
from outreach.providers.carriers.telnyx import ADAPTER
from outreach.providers.carriers.telnyx.callbacks import STATUSES
from outreach.testing.builders import NOW, WORKSPACE_ID
from outreach.testing.clock import ManualClock
from tests.carriers.junk import JunkRules
from tests.carriers.kit import CALLBACK_URL, connection, seconds_after
from tests.carriers.telnyx.given import CREDENTIALS, ID, a_payload, signed

EVENT_ID = "b301ed3f-1490-491f-995f-6e64e69674d4"
WITH_DISPATCH = f"{CALLBACK_URL}?dispatch=d-1"


def _event(kind: str, payload: Any, **changes: Any) -> dict[str, Any]:
    data = {
        "event_type": kind,
        "id": EVENT_ID,
        "occurred_at": "2026-03-02T09:30:11.000+00:00",
        "payload": payload,
        "record_type": "event",
    }
    return {"data": {**data, **changes}, "meta": {"attempt": 1, "delivered_to": CALLBACK_URL}}


def _status(status: str, **changes: Any) -> dict[str, Any]:
    return _event("message.finalized", a_payload(status, **changes))


INBOUND = _event(
    "message.received",
    {
        "direction": "inbound",
        "from": {"phone_number": "+14155550100", "status": "webhook_delivered"},
        "id": ID,
        "media": [],
        "received_at": "2026-03-02T09:30:10.500Z",
        "text": "Hello!",
        "to": [{"phone_number": "+14155550199", "status": "webhook_delivered"}],
    },
)


def _read(coming: Callback, *, clock: ManualClock | None = None) -> CallbackEvent:
    (event,) = ADAPTER.read(connection(CREDENTIALS, clock=clock), coming)
    return event


def _report(coming: Callback) -> MessageReport:
    content = _read(coming).content
    assert isinstance(content, MessageReport)
    return content


class TestTelnyxJunk(JunkRules):
    """Events of any content."""

    adapter = ADAPTER
    credentials = CREDENTIALS
    headers = ("telnyx-timestamp", "telnyx-signature-ed25519")
    template = INBOUND

    def sign(self, body: bytes) -> Callback:
        """Sign a body."""
        return signed(None, body=body)


class TestTelnyxStatusJunk(TestTelnyxJunk):
    """Statuses of any content."""

    template = _status("delivery_failed", errors=[{"code": "40008", "title": "No"}])


def test_a_status_is_a_report_of_its_dispatch() -> None:
    """The dispatch id comes from the address, which is not signed: the number goes with it."""
    event = _status("delivered")
    assert _read(signed(event, url=WITH_DISPATCH)) == CallbackEvent(
        event_id=EVENT_ID,
        to="+14155550100",
        content=MessageReport(
            workspace_id=WORKSPACE_ID,
            provider="telnyx",
            dispatch_id="d-1",
            provider_id=ID,
            status=MessageStatus.DELIVERED,
            at=datetime(2026, 3, 2, 9, 30, 11, tzinfo=UTC),
            from_number="+14155550199",
            raw=event["data"],
        ),
    )
    assert _report(signed(event)).dispatch_id is None


@pytest.mark.parametrize(("status", "known"), STATUSES.items())
@pytest.mark.parametrize("kind", ["message.sent", "message.finalized"])
def test_each_status_has_its_word(kind: str, status: str, known: MessageStatus) -> None:
    """Telnyx's statuses of outbound messages, in the engine's words; only a failure has a reason."""
    report = _report(signed(_event(kind, a_payload(status))))
    assert report.status is known
    assert (report.reason is not None) is (known is MessageStatus.FAILED)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"code": "40008", "title": "Undeliverable"}, "unreachable"),
        ({"code": "40001"}, "invalid_number"),
        ({"code": "40300", "title": "Blocked due to STOP message"}, "opted_out"),
        ({"code": "40300", "title": "Number not on a profile"}, "rejected"),
        ({"code": "1"}, "rejected"),
    ],
)
def test_a_failure_has_its_reason(error: dict[str, str], reason: str) -> None:
    """The class of its code; what the table lacks is `rejected`. It decides also after one that is unknown."""
    for errors in ([error], [{"code": "2"}, error] if error["code"] != "1" else [error, {"code": "2"}]):
        report = _report(signed(_status("delivery_failed", errors=errors)))
        assert (report.reason, report.error_code) == (reason, error["code"])


@pytest.mark.parametrize(
    ("code", "reset"), [("40011", "minute"), ("40016", "pacific_midnight"), ("40018", "minute"), ("40318", None)]
)
def test_a_limit_in_a_receipt_names_its_reset(code: str, reset: LimitReset | None) -> None:
    """From the time of the event on; a queue that is full names none."""
    report = _report(signed(_status("delivery_failed", errors=[{"code": code}])))
    seconds = None if reset is None else seconds_to_reset({code: reset}, code, report.at)
    assert (report.reason, report.retry_after_seconds) == ("rate_limited", seconds)


@pytest.mark.parametrize(
    "event",
    [
        _event("message.imagined", a_payload("delivered")),
        _event("call.initiated", {}),
        _status("pondering"),
        _event("message.sent", {}),
        _event("message.sent", a_payload("delivered", to=[])),
        _event("message.sent", a_payload("delivered", to=[{"status": "delivered"}])),
        _event("message.sent", a_payload("delivered", id=None)),
    ],
)
def test_an_event_that_says_nothing_is_kept_without_content(event: dict[str, Any]) -> None:
    """An unknown kind or status, or a report that does not name its number: the receipt alone."""
    assert _read(signed(event)) == CallbackEvent(event_id=EVENT_ID, content=None, to=_read(signed(event)).to)


@pytest.mark.parametrize("payload", [{"text": "x"}, None, {**INBOUND["data"]["payload"], "from": None}])
def test_a_message_that_cannot_be_read_is_reported_as_one(payload: object) -> None:
    """It says not who wrote, or to whom: the log tells that something was lost."""
    event = _read(signed(_event("message.received", payload)))
    assert event == CallbackEvent(event_id=EVENT_ID, content=None, unreadable_kind="message.received")


def test_a_message_is_an_inbound_text() -> None:
    """Who wrote what to whom, at the time that Telnyx names."""
    assert _read(signed(INBOUND)) == CallbackEvent(
        event_id=EVENT_ID,
        content=InboundMessageEvent(
            provider_id=ID,
            from_number="+14155550100",
            to="+14155550199",
            body="Hello!",
            at=datetime(2026, 3, 2, 9, 30, 10, 500_000, tzinfo=UTC),
        ),
    )


@pytest.mark.parametrize("keyword", ["STOP", "START", "HELP"])
def test_a_keyword_that_telnyx_has_answered_is_said(keyword: str) -> None:
    """`autoresponse_type` names what Telnyx has replied to."""
    event = json.loads(json.dumps(INBOUND))
    event["data"]["payload"]["autoresponse_type"] = keyword
    content = _read(signed(event)).content
    assert isinstance(content, InboundMessageEvent)
    assert (content.keyword, content.replied_by_carrier) == (keyword.lower(), True)


@pytest.mark.parametrize(("age", "read"), [(0, True), (299, True), (-299, True), (301, False), (-301, False)])
def test_a_signed_time_may_be_five_minutes_off(age: float, read: bool) -> None:
    """300 s, either way; beyond it is an old callback, or a clock that is wrong."""
    coming = signed(INBOUND, at=int(NOW.timestamp()))
    clock = ManualClock(seconds_after(NOW.replace(microsecond=0), age))
    if read:
        assert _read(coming, clock=clock).content is not None
    else:
        with pytest.raises(CallbackRefused, match="too far"):
            _read(coming, clock=clock)


@pytest.mark.parametrize(
    "changes",
    [
        {"body": json.dumps(_status("delivered")).encode()},
        {"body": json.dumps(INBOUND).encode() + b" "},
        {"body": b""},
        {"headers": {}},
        {"headers": {"telnyx-timestamp": "1772443815"}},
    ],
)
def test_what_telnyx_has_not_signed_is_refused(changes: dict[str, Any]) -> None:
    """A changed body, a missing header: nothing of it is read."""
    with pytest.raises(CallbackRefused):
        _read(attrs.evolve(signed(INBOUND), **changes))


def test_another_key_is_refused() -> None:
    """Only the account's own key signs for it."""
    with pytest.raises(CallbackRefused, match="does not match"):
        _read(signed(INBOUND, key=Ed25519PrivateKey.generate()))


@pytest.mark.parametrize("event_id", [None, "", 7, "x" * 201])
def test_an_event_without_an_identifier_is_refused(event_id: object) -> None:
    """It could not be told from others."""
    with pytest.raises(CallbackRefused, match="no id"):
        _read(signed(_event("message.sent", a_payload("sent"), id=event_id)))


def test_a_text_with_half_a_surrogate_pair_is_taken_in() -> None:
    """It was cut in the midst of an emoji: a STOP in it must not be lost."""
    event = json.loads(json.dumps(INBOUND))
    event["data"]["payload"]["text"] = "STOP \ud83d"
    content = _read(signed(event)).content
    assert isinstance(content, InboundMessageEvent)
    assert content.body == "STOP \ufffd"


LINKS = tuple(f"http://media.example.com/{n}" for n in range(20))


@pytest.mark.parametrize(
    ("media", "links", "left_out"),
    [
        (
            [{"url": "https://media.example.com/1.jpg", "content_type": "image/jpeg"}],
            ("https://media.example.com/1.jpg",),
            0,
        ),
        ([{"url": "javascript:alert(1)"}, {"url": None}, "x", {}], (), 3),
        ([{"url": f"http://media.example.com/{n}"} for n in range(30)], LINKS, 10),
        ({"url": "https://media.example.com/1.jpg"}, (), 0),
        (None, (), 0),
    ],
)
def test_the_links_to_media_are_kept(media: object, links: tuple[str, ...], left_out: int) -> None:
    """What is no link is left out and counted, and the message counts all the same."""
    event = json.loads(json.dumps(INBOUND))
    event["data"]["payload"]["media"] = media
    content = _read(signed(event)).content
    assert isinstance(content, InboundMessageEvent)
    assert (content.media, content.media_left_out) == (links, left_out)
