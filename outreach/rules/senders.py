"""Who wrote a message, and what messages are sent from: numbers, names and Messaging Services of carriers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from outreach.rules.phones import canonical_phone

_SMS_CHANNELS: Final = frozenset({"sms", "mms", "tel"})
"""Channels whose messages are answered by SMS, as are addresses without a channel."""

_PHONE_CHANNELS: Final = frozenset({"whatsapp", "rcs", "viber", "viber_service"})
"""Other channels that use phone numbers; the digits of others still (`messenger:…`) are not numbers."""

_ADDRESS: Final = re.compile(r"\s*(?P<channel>[A-Za-z_]{1,20}):(?P<rest>.*)", re.DOTALL)
_BEGINS_LIKE_A_NUMBER: Final = re.compile(r"[+(0-9]")

NUMBER_BUSY: Final = "sender_rate"
"""Reason of a contact that waits for the number of a pool that it gets its messages from."""

_SERVICES: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        # https://www.twilio.com/docs/messaging/services
        "twilio": re.compile(r"MG[0-9a-fA-F]{32}"),
        # The identifier of a messaging profile with a number pool.
        "telnyx": re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    }
)
"""The identifiers of Messaging Services, from whose numbers the carrier chooses one for each contact, by carrier."""


def is_service(sender: str | None, carrier: str | None = None) -> bool:
    """Return whether a sender is a Messaging Service, of any carrier unless one is given."""
    patterns = _SERVICES.values() if carrier is None else [_SERVICES[carrier]] if carrier in _SERVICES else []
    return sender is not None and any(pattern.fullmatch(sender) for pattern in patterns)


@attrs.frozen
class InboundSender:
    """The sender of a message.

    Attributes:
        phone: The number as `canonical_phone`; None for a short code or name.
        channel: The channel, if it is not SMS.
    """

    phone: str | None
    channel: str | None


def parse_inbound_sender(address: str, default_region: str | None) -> InboundSender:
    """Return the sender at an address of the carrier.

    The address is a number, or one after its channel, such as `whatsapp:+14155550102`
    (https://www.twilio.com/docs/messaging/channels). `default_region` is for SMS: other channels use country codes.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return InboundSender(canonical_phone(address.strip(), default_region), None)
    channel, rest = match["channel"].lower(), match["rest"]
    if channel in _SMS_CHANNELS:
        return InboundSender(canonical_phone(rest.strip(), default_region), None)
    if channel in _PHONE_CHANNELS:
        return InboundSender(canonical_phone(_international(rest), None), channel)
    return InboundSender(None, channel)


def number_of_channel(address: str) -> str | None:
    """Return the number, with its plus sign, at an address such as `whatsapp:14155550102`; None for any other text."""
    match = _ADDRESS.fullmatch(address)
    if match is None or match["channel"].lower() not in _PHONE_CHANNELS:
        return None
    rest = match["rest"].strip()
    return _international(rest) if _BEGINS_LIKE_A_NUMBER.match(rest) else None


def _international(number: str) -> str:
    return "+" + number.strip().removeprefix("+")
