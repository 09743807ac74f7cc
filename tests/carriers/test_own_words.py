from __future__ import annotations

import pytest

from outreach.providers.registry import Adapters

TWILIO = {"start", "yes", "unstop"}


@pytest.mark.parametrize(
    ("provider", "to", "words"),
    [
        ("twilio", "+14155550199", TWILIO),
        ("twilio", "whatsapp:+14155550199", TWILIO),
        ("twilio", "+448005550199", TWILIO),
        ("twilio", "+18335550199", {"start", "unstop"}),
        ("twilio", "729", None),
        ("twilio", "729755", None),
        ("twilio", "+72975", None),
        ("twilio", "7297551", TWILIO),
        ("telnyx", "+14155550199", {"start", "unstop"}),
        ("telnyx", "72975", {"start", "unstop"}),
        ("vonage", "14155550199", {"start", "join"}),
        (None, "+14155550199", {"start"}),
        ("retell", "+14155550199", {"start"}),
    ],
)
def test_each_carrier_has_its_own_words_of_start(provider: str | None, to: str, words: set[str] | None) -> None:
    """By their documentation: no YES on toll-free numbers, and nothing at Twilio on short codes."""
    own = Adapters().carrier_start_words(provider, to)
    assert (None if own is None else set(own)) == words
