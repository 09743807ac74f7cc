"""Who wrote: everybody who can be reached is recognised when they write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.phones import InboundSender, canonical_phone, is_dialable, normalise, parse_inbound_sender

UNKNOWN_TO_PLANS = "+999123456789"
"""Has the form of E.164, and no numbering plan knows it."""

_REGIONS = st.sampled_from([None, "US", "DE", "GB", "IT", "ZZ"])


@pytest.mark.parametrize(
    ("written", "region", "expected"),
    [
        ("(415) 555-0102", "US", "+14155550102"),
        (UNKNOWN_TO_PLANS, "US", UNKNOWN_TO_PLANS),
        (UNKNOWN_TO_PLANS[1:], None, UNKNOWN_TO_PLANS),
        ("+999 123456789", None, None),
        ("12345", "US", None),
        ("Acme", None, None),
    ],
)
def test_a_number_outside_every_plan_is_reached_as_it_stands(
    written: str, region: str | None, expected: str | None
) -> None:
    """Only in the form that POST /calls accepts. Every other spelling needs a plan to be read."""
    assert canonical_phone(written, region) == expected


@given(written=st.from_regex(r"\A\+?[1-9][0-9]{6,14}\Z"), ours=_REGIONS, theirs=_REGIONS)
def test_every_number_that_can_be_reached_is_recognised(written: str, ours: str | None, theirs: str | None) -> None:
    """A sender is read as the number that is dialled, whatever the workspace's region is by then."""
    assert is_dialable(written)
    phone = canonical_phone(written, ours)
    assert phone is not None
    digits = "+" + written.removeprefix("+")
    assert phone == (normalise(written, ours) or normalise(digits, None) or digits)
    assert canonical_phone(phone, theirs) == phone
    for channel in ("", "sms:", "whatsapp:", "RCS:"):
        assert parse_inbound_sender(channel + phone, theirs).phone == phone


@pytest.mark.parametrize(
    ("address", "sender"),
    [
        ("+14155550102", InboundSender("+14155550102", None)),
        ("4155550102", InboundSender("+14155550102", None)),
        (f" {UNKNOWN_TO_PLANS}\n", InboundSender(UNKNOWN_TO_PLANS, None)),
        ("sms:4155550102", InboundSender("+14155550102", None)),
        ("tel:+14155550102", InboundSender("+14155550102", None)),
        ("whatsapp:+14155550102", InboundSender("+14155550102", "whatsapp")),
        ("WhatsApp: 14155550102", InboundSender("+14155550102", "whatsapp")),
        # Digits of another channel are international: never read as those of the workspace's region.
        ("whatsapp:4155550102", InboundSender("+4155550102", "whatsapp")),
        ("rcs:+14155550102", InboundSender("+14155550102", "rcs")),
        ("rcs:acme_agent", InboundSender(None, "rcs")),
        # The id of a page or of a person there, which somebody's number may look like.
        ("messenger:14155550102", InboundSender(None, "messenger")),
        ("client:+14155550102", InboundSender(None, "client")),
        ("12345", InboundSender(None, None)),
        ("", InboundSender(None, None)),
    ],
)
def test_a_channel_before_the_number_is_recognised(address: str, sender: InboundSender) -> None:
    """Twilio writes the channel before the number. Only some channels have a number after it."""
    assert parse_inbound_sender(address, "US") == sender
