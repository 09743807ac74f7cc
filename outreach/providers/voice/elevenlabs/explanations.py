"""Explanations of ElevenLabs' refusals for people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PAGE: Final = "https://elevenlabs.io/docs/developers/resources/error-messages"

_PAY: Final = "Add credits or raise the quota of the key at ElevenLabs, then resume the campaigns."
_PLACES: Final = "Lower the batch concurrency, or take a plan with more concurrent calls. It is tried again by itself."
_KEY: Final = "Make a key with the right to place calls at ElevenLabs, and connect the account again with it."

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "quota_exceeded": "The quota of the account, or of this key, is used up.",
        "payment_required": "The account has no credit left.",
        "concurrent_limit_exceeded": "The account has no place for another call at the same time.",
        "too_many_concurrent_requests": "The account has no place for another request at the same time.",
        "rate_limit_exceeded": "Too many requests for this account.",
        "system_busy": "ElevenLabs is busy.",
        "invalid_api_key": "ElevenLabs does not accept the API key.",
        "missing_permissions": "The API key may not place calls.",
        "needs_authorization": "The account may not use this agent or number.",
        "document_not_found": "ElevenLabs found no agent, or no number, of this identifier.",
        "invalid_provider_config": "The telephony behind the number is not set up as ElevenLabs needs it.",
    }
)

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "quota_exceeded": _PAY,
        "payment_required": _PAY,
        "concurrent_limit_exceeded": _PLACES,
        "too_many_concurrent_requests": _PLACES,
        "invalid_api_key": _KEY,
        "missing_permissions": _KEY,
        "document_not_found": "Check the agent's identifier, and the number's among the account's values.",
        "invalid_provider_config": "Check the Twilio credentials, or the SIP trunk, of the number at ElevenLabs.",
    }
)
"""More precise advice than that of the failure class, by code."""

PARTS: Final[tuple[tuple[str, str, str], ...]] = (
    ("quota", "The quota of the account, or of this key, is used up.", _PAY),
    (
        "canceled",
        "The call was canceled before anybody answered.",
        "It is not made again by itself: make a new one, where it still matters.",
    ),
    ("credit", "The account has no credit left.", _PAY),
)
"""Words of why a conversation failed."""
