from __future__ import annotations

from datetime import UTC, datetime

import attrs
import orjson
import pytest
from hypothesis import given

from outreach.http import EVENT_TYPES
from outreach.models.events import (
    CallEnded,
    CampaignStatusChanged,
    ContactHeld,
    Event,
    EventsPurged,
    MessageReceived,
    MessageStatusChanged,
    OptedOut,
    RecipientEnded,
    WebhookTest,
)
from outreach.models.states import CallStatus, CampaignStatus, MessageStatus, RecipientStatus, TrailRule
from outreach.models.webhook import WebhookPayload
from outreach.serialization.webhook_bodies import (
    DELIVERED,
    MAX_BODY_BYTES,
    WEBHOOK_TYPES,
    EventContent,
    body_of,
    key_of,
    type_of,
)
from tests.serialization.webhook_events import CONTENTS, EVENTS

AT = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
PHONE = "+14155550101"

PAUSED = CampaignStatusChanged(
    number=7,
    at=AT,
    workspace_id="w",
    campaign_id="c",
    status=CampaignStatus.PAUSED,
    change="paused",
    reason="operator",
    rule=TrailRule.OPERATOR,
    actor="cli:ann",
    external_id="spring",
    metadata={"a": 1},
)
ENDED = RecipientEnded(
    number=8,
    at=AT,
    workspace_id="w",
    campaign_id="c",
    position=3,
    status=RecipientStatus.COMPLETED,
    reason=None,
    rule=TrailRule.PROVIDER_ANSWER,
    dispatch_id="d",
)
RECEIVED = MessageReceived(number=9, at=AT, workspace_id="w", message_id="m", from_number=PHONE)
OPTED_OUT = OptedOut(number=10, at=AT, workspace_id="w", phone=PHONE, scope="all", source="keyword", actor=None)
HELD = ContactHeld(number=11, at=AT, workspace_id="w", phone=PHONE, reason="unclear")
CALL = CallEnded(
    number=12,
    at=AT,
    workspace_id="w",
    call_id="call",
    campaign_id=None,
    position=None,
    status=CallStatus.COMPLETED,
    outcome=None,
    dispatch_id="d",
)
STATUS = MessageStatusChanged(
    number=13,
    at=AT,
    workspace_id="w",
    dispatch_id="d",
    message_id="m",
    campaign_id=None,
    position=None,
    status=MessageStatus.DELIVERED,
    reason=None,
)


def test_thin_body_holds_ids_states_and_reasons() -> None:
    """A thin body has no number, text, metadata or actor."""
    assert orjson.loads(body_of(PAUSED, "thin")) == {
        "type": "campaign.paused",
        "timestamp": "2026-11-28T09:30:00.000000Z",
        "data": {
            "number": 7,
            "workspace_id": "w",
            "campaign_id": "c",
            "status": "paused",
            "reason": "operator",
            "rule": "operator",
            "external_id": "spring",
        },
    }
    for event in (RECEIVED, OPTED_OUT, HELD, ENDED, STATUS):
        assert PHONE.encode() not in body_of(event, "thin", EventContent(phone=PHONE, text="Hello"))
        assert b"Hello" not in body_of(event, "thin", EventContent(phone=PHONE, text="Hello"))


def test_full_body_adds_numbers_texts_metadata_and_actors() -> None:
    """A full body has what the class holds, and the number and text of its message."""
    paused = orjson.loads(body_of(PAUSED, "full"))["data"]
    assert (paused["actor"], paused["metadata"]) == ("cli:ann", {"a": 1})
    content = EventContent(phone=PHONE, text="Hello")
    assert orjson.loads(body_of(RECEIVED, "full", content))["data"] == {
        "number": 9,
        "workspace_id": "w",
        "message_id": "m",
        "from_number": PHONE,
        "unclear": False,
        "text": "Hello",
    }
    assert orjson.loads(body_of(ENDED, "full", content))["data"]["phone"] == PHONE
    assert orjson.loads(body_of(CALL, "full"))["data"]["phone"] is None
    assert orjson.loads(body_of(STATUS, "full", content))["data"]["text"] == "Hello"


@pytest.mark.parametrize(
    ("event", "key"),
    [
        (PAUSED, "campaign:c"),
        (ENDED, "contact:c:3"),
        (RECEIVED, f"contact:{PHONE}"),
        (OPTED_OUT, f"contact:{PHONE}"),
        (HELD, f"contact:{PHONE}"),
        (CALL, "call:call"),
        (STATUS, "message:m"),
        (attrs.evolve(STATUS, message_id=None), "message:d"),
        (WebhookTest(number=1, at=AT, workspace_id="w", endpoint_id="e"), "webhook:e"),
        (EventsPurged(number=5, at=AT, workspace_id="w", first=2, last=5), "gap:5"),
    ],
)
def test_key_names_the_subject_of_an_event(event: Event, key: str) -> None:
    """Events about one campaign, contact, call or message have one key."""
    assert key_of(event) == key


@given(event=EVENTS, content=CONTENTS)
def test_every_body_is_below_its_bound(event: Event, content: EventContent) -> None:
    """Whatever is stored, a body has less than 20,000 bytes, and the type of its event."""
    payloads: tuple[WebhookPayload, ...] = ("thin", "full")
    for payload in payloads:
        body = body_of(event, payload, content)
        assert len(body) < MAX_BODY_BYTES
        assert orjson.loads(body)["type"] == type_of(event)
        assert type_of(event) in WEBHOOK_TYPES
    assert key_of(event).count("\n") == 0


def test_long_text_is_shortened_and_marked() -> None:
    """The metadata goes first, then the end of the text; ids stay."""
    body = orjson.loads(body_of(RECEIVED, "full", EventContent(text="é" * 30_000)))
    assert body["data"]["truncated"] is True
    assert 2_000 < len(body["data"]["text"]) < 10_000
    assert body["data"]["message_id"] == "m"
    assert "truncated" not in orjson.loads(body_of(RECEIVED, "full", EventContent(text="é")))["data"]


def test_every_class_of_the_feed_is_delivered() -> None:
    """The feed has no event that webhooks leave out; they add the two that are about an endpoint alone."""
    assert set(DELIVERED) == {*EVENT_TYPES.values(), WebhookTest, EventsPurged}
    assert len(set(WEBHOOK_TYPES)) == len(WEBHOOK_TYPES)
