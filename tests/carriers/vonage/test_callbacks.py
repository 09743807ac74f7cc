from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from outreach.models.reports import MessageReport
from outreach.models.states import MessageStatus
from outreach.protocols.adapter import Callback, CallbackEvent, CallbackRefused, InboundMessageEvent
from outreach.providers.carriers.vonage import ADAPTER
from outreach.providers.carriers.vonage.callbacks import STATUSES
from outreach.testing.builders import NOW, WORKSPACE_ID
from outreach.testing.clock import ManualClock
from tests.carriers.junk import JunkRules
from tests.carriers.kit import CALLBACK_URL, SECONDS_TO_PACIFIC_MIDNIGHT, connection, seconds_after
from tests.carriers.vonage.given import CREDENTIALS, UUID, a_refusal, a_status, signed, token

INBOUND = {
    "channel": "sms",
    "message_uuid": UUID,
    "to": "14155550199",
    "from": "14155550100",
    "timestamp": "2026-03-02T09:30:10Z",
    "text": "Hello!",
    "sms": {"num_messages": "1", "keyword": "HELLO!"},
    "usage": {"currency": "EUR", "price": "0.0333"},
    "origin": {"network_code": "12345"},
}


def _read(coming: Callback, *, clock: ManualClock | None = None) -> CallbackEvent:
    (event,) = ADAPTER.read(connection(CREDENTIALS, clock=clock), coming)
    return event


def _report(coming: Callback) -> MessageReport:
    content = _read(coming).content
    assert isinstance(content, MessageReport)
    return content


class TestVonageJunk(JunkRules):
    """Messages of any content."""

    adapter = ADAPTER
    credentials = CREDENTIALS
    headers = ("authorization",)
    template = INBOUND

    def sign(self, body: bytes) -> Callback:
        """Sign a body."""
        return signed(None, body=body)


class TestVonageStatusJunk(TestVonageJunk):
    """Statuses of any content."""

    template = a_status("rejected", error=a_refusal("1240"))


def test_a_status_is_a_report_of_its_dispatch() -> None:
    """Our reference stands in the body, which the token covers; the address says nothing."""
    event = a_status("delivered")
    assert _read(signed(event, url=f"{CALLBACK_URL}?dispatch=d-9")) == CallbackEvent(
        event_id=f"{UUID}:delivered",
        content=MessageReport(
            workspace_id=WORKSPACE_ID,
            provider="vonage",
            dispatch_id="d-1",
            provider_id=UUID,
            status=MessageStatus.DELIVERED,
            at=datetime(2026, 3, 2, 9, 30, 11, tzinfo=UTC),
            raw=event,
        ),
    )
    assert _report(signed({name: value for name, value in event.items() if name != "client_ref"})).dispatch_id is None


@pytest.mark.parametrize(("status", "known"), STATUSES.items())
def test_each_status_has_its_word(status: str, known: MessageStatus) -> None:
    """Vonage's statuses, in the engine's words; only a failure has a reason."""
    report = _report(signed(a_status(status)))
    assert report.status is known
    assert (report.reason is not None) is (known is MessageStatus.FAILED)


@pytest.mark.parametrize(
    ("error", "reason", "code"),
    [
        (a_refusal("1240"), "opted_out", "1240"),
        (a_refusal("1180"), "unreachable", "1180"),
        (a_refusal("1030"), "unreachable", "1030"),
        (a_refusal("1320"), "rejected", "1320"),
        (a_refusal("9999"), "rejected", "9999"),
        ({"title": 1170}, "invalid_number", "1170"),
        ({"title": "1170"}, "invalid_number", "1170"),
        ({"title": "No"}, "rejected", None),
        (None, "rejected", None),
    ],
)
def test_a_failure_has_its_reason(error: object, reason: str, code: str | None) -> None:
    """The code's class; what the table lacks is `rejected`."""
    report = _report(signed(a_status("undeliverable", error=error)))
    assert (report.reason, report.error_code) == (reason, code)


@pytest.mark.parametrize(("code", "seconds"), [("1241", None), ("1460", SECONDS_TO_PACIFIC_MIDNIGHT), ("1472", 60.0)])
def test_a_limit_in_a_receipt_names_its_reset(code: str, seconds: float | None) -> None:
    """Too many messages to one number say nothing of the account."""
    report = _report(signed(a_status("rejected", error=a_refusal(code), timestamp=NOW.isoformat())))
    assert (report.reason, report.retry_after_seconds) == ("rate_limited", seconds)


@pytest.mark.parametrize(
    "event",
    [
        a_status("pondering"),
        a_status("delivered", channel="whatsapp"),
    ],
)
def test_an_event_that_says_nothing_is_kept_without_content(event: dict[str, Any]) -> None:
    """An unknown status, or another channel: the receipt alone."""
    coming = _read(signed(event))
    assert (coming.content, coming.unreadable_kind) == (None, None)


@pytest.mark.parametrize(
    "event",
    [
        {**INBOUND, "channel": "messenger"},
        {**INBOUND, "from": None},
        {**INBOUND, "from": True},
        {**INBOUND, "from": 1.5},
        {
            "message_uuid": UUID,
            "from": {"type": "sms", "number": "14155550100"},
            "to": {"type": "sms", "number": "14155550199"},
            "message": {"content": {"type": "text", "text": "STOP"}},
        },
        {"message_uuid": UUID},
    ],
)
def test_a_message_that_cannot_be_read_is_reported_as_one(event: dict[str, Any]) -> None:
    """Its channel is not supported, it has no sender, or it has the form of version 0.1 of the API."""
    assert _read(signed(event)) == CallbackEvent(event_id=f"{UUID}:received", content=None, unreadable_kind="inbound")


@pytest.mark.parametrize(
    ("sender", "known"),
    [("14155550100", "+14155550100"), ("Acme", "Acme"), ("12345", "12345"), (14155550100, "+14155550100")],
)
def test_a_message_is_an_inbound_text(sender: object, known: str) -> None:
    """Numbers get their plus, also one that is a JSON number; what is no number stays what it is."""
    assert _read(signed({**INBOUND, "from": sender})) == CallbackEvent(
        event_id=f"{UUID}:received",
        content=InboundMessageEvent(
            provider_id=UUID,
            from_number=known,
            to="+14155550199",
            body="Hello!",
            at=datetime(2026, 3, 2, 9, 30, 10, tzinfo=UTC),
        ),
    )


@pytest.mark.parametrize(
    ("channel", "before"),
    [("mms", ""), ("whatsapp", "whatsapp:"), ("rcs", "rcs:"), ("viber_service", "viber_service:")],
)
def test_a_message_of_another_channel_with_numbers_is_read(channel: str, before: str) -> None:
    """A STOP may come by any of them. The channel stands before the number, except for SMS."""
    text = _read(signed({**INBOUND, "channel": channel})).content
    assert isinstance(text, InboundMessageEvent)
    assert text.from_number.startswith(f"{before}+1")
    assert text.to == f"{before}+14155550199"


@pytest.mark.parametrize(("age", "read"), [(0, True), (299, True), (-299, True), (301, False), (-301, False)])
def test_a_token_may_be_five_minutes_off(age: float, read: bool) -> None:
    """300 s, either way; beyond it is an old callback, or a clock that is wrong."""
    clock = ManualClock(seconds_after(NOW.replace(microsecond=0), age))
    if read:
        assert _read(signed(INBOUND), clock=clock).content is not None
    else:
        with pytest.raises(CallbackRefused, match="too far"):
            _read(signed(INBOUND), clock=clock)


def test_the_same_event_in_another_token_is_the_same_event() -> None:
    """Message and status identify a repeat, whatever token it comes in."""
    event = a_status("delivered")
    assert _read(signed(event, jti="1")).event_id == _read(signed(event, jti="2")).event_id


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"secret": "another"}, "does not match the body"),
        ({"api_key": "dcba4321"}, "api_key"),
        ({"api_key": None}, "api_key"),
        ({"payload_hash": None}, "payload_hash"),
        ({"payload_hash": 7}, "payload_hash"),
        ({"payload_hash": "0" * 64}, "payload_hash"),
        ({"iat": None}, "no time"),
        ({"iat": True}, "not a time"),
        ({"iat": "1772443815"}, "not a time"),
        ({"iat": 10**30}, "cannot be read"),
        ({"iat": -1e300}, "cannot be read"),
        ({"exp": NOW.timestamp() - 301}, "expired"),
        ({"nbf": NOW.timestamp() + 301}, "not valid yet"),
        ({"exp": "1772443815"}, "exp is not a time"),
        ({"nbf": True}, "nbf is not a time"),
        ({"exp": -1e300}, "cannot be read"),
        ({"nbf": 10**30}, "cannot be read"),
        ({"head": {"alg": "none"}}, "algorithm"),
        ({"head": {"alg": "HS512"}}, "algorithm"),
        ({"head": {"typ": "JWT"}}, "algorithm"),
    ],
)
def test_a_token_that_is_not_for_us_is_refused(options: dict[str, Any], words: str) -> None:
    """Another key, another account, another body, another algorithm, no time, a time that is over or has not come."""
    with pytest.raises(CallbackRefused, match=words):
        _read(signed(INBOUND, **options))


@pytest.mark.parametrize(
    "claims", [{"exp": NOW.timestamp() - 299}, {"nbf": NOW.timestamp() + 299}, {"exp": 4e9, "nbf": 0}]
)
def test_a_tokens_own_times_have_the_tolerance_of_its_age(claims: dict[str, Any]) -> None:
    """RFC 7519, 4.1.4 and 4.1.5: clocks differ a little."""
    assert _read(signed(INBOUND, **claims)).event_id == f"{UUID}:received"


def test_another_body_under_the_same_token_is_refused() -> None:
    """What the official library does not look at: the token is good, and the body is not its own."""
    coming = signed(INBOUND)
    for body in (json.dumps({**INBOUND, "text": "STOP"}).encode(), coming.body + b" ", b""):
        with pytest.raises(CallbackRefused, match="payload_hash"):
            _read(attrs.evolve(coming, body=body))


@pytest.mark.parametrize(
    "head", [b"[" * 4000, b"[]", b"7", b'"x"', b"{", b'{"alg":"HS256","kid":7}', b'{"alg":["HS256"]}', b"9" * 5000]
)
def test_a_token_whose_header_cannot_be_read_is_refused(head: bytes) -> None:
    """Whatever somebody without the secret puts there, the answer is a refusal."""
    coming = signed(INBOUND)
    _, claims, signature = token(coming.body).split(".")
    forged = f"{base64.urlsafe_b64encode(head).rstrip(b'=').decode()}.{claims}.{signature}"
    with pytest.raises(CallbackRefused):
        _read(attrs.evolve(coming, headers={"authorization": f"Bearer {forged}"}))


def test_a_token_without_its_signature_is_refused() -> None:
    """Nothing, and a part of it, are not it."""
    coming = signed(INBOUND)
    whole = token(coming.body)
    for cut in (whole.rpartition(".")[0] + ".", whole[:-2], f"{whole}.x"):
        with pytest.raises(CallbackRefused):
            _read(attrs.evolve(coming, headers={"authorization": f"Bearer {cut}"}))


@pytest.mark.parametrize("uuid", [None, "", 7, "x" * 201])
def test_an_event_without_a_message_is_refused(uuid: object) -> None:
    """It could not be told from others."""
    with pytest.raises(CallbackRefused, match="message_uuid"):
        _read(signed(a_status("delivered", message_uuid=uuid)))


def test_a_text_with_half_a_surrogate_pair_is_taken_in() -> None:
    """It was cut in the midst of an emoji: a STOP in it must not be lost."""
    event = {**INBOUND, "text": "STOP \ud83d"}
    content = _read(signed(event)).content
    assert isinstance(content, InboundMessageEvent)
    assert content.body == "STOP \ufffd"


@pytest.mark.parametrize("kind", ["image", "audio", "video", "file", "vcard"])
def test_the_links_to_media_are_kept(kind: str) -> None:
    """An MMS has a text beside it, or none."""
    link = "https://api.nexmo.com/v3/media/1b456509"
    event = {**INBOUND, "channel": "mms", "message_type": kind, kind: {"url": link}}
    content = _read(signed(event)).content
    assert isinstance(content, InboundMessageEvent)
    assert (content.media, content.media_left_out) == ((link,), 0)
    without = _read(signed({**event, kind: {"name": "1.jpg"}})).content
    assert isinstance(without, InboundMessageEvent)
    assert (without.media, without.media_left_out) == ((), 1)
