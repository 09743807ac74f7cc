"""Who wrote: the phone number in the address that a carrier gives, and the channel that it names."""

from __future__ import annotations

import re
from typing import Final

import attrs

from outreach.policy.phones import reached_at

_OURS: Final = frozenset({"sms", "mms", "tel"})
"""Channels whose messages are answered by SMS; an address without a channel is of these."""

_OTHERS: Final = frozenset({"whatsapp", "rcs", "viber", "viber_service"})
"""Channels that know people by their phone numbers, too. Others (`messenger:…`) have digits that are no number."""

_ADDRESS: Final = re.compile(r"\s*(?P<channel>[A-Za-z_]{1,20}):(?P<rest>.*)", re.DOTALL)


@attrs.frozen
class Sender:
    """Who wrote a message.

    Attributes:
        phone: What the number is contacted at and stands on the register under (`phones.reached_at`); None where the
            address is no phone number, such as a short code or a name.
        channel: The channel that it came by, where that is another one than SMS; None for SMS.
    """

    phone: str | None
    channel: str | None


def sender_of(address: str, default_region: str | None) -> Sender:
    """Return who wrote, read as the numbers are that are sent to.

    Args:
        address: As the carrier gives it: a number, or one after its channel, such as `whatsapp:+14155550102`
            (https://www.twilio.com/docs/messaging/channels).
        default_region: Where numbers without a country code belong; those of other channels always have theirs.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return Sender(reached_at(address.strip(), default_region), None)
    channel, rest = match["channel"].lower(), match["rest"]
    if channel in _OURS:
        return Sender(reached_at(rest.strip(), default_region), None)
    if channel in _OTHERS:
        return Sender(reached_at("+" + rest.strip().removeprefix("+"), None), channel)
    return Sender(None, channel)
