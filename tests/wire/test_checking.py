from __future__ import annotations

import pytest

from outreach.adapters import adapter
from outreach.models.account import PROVIDERS

NOT_PLAIN = "pässwörter-sind-lang"
IN_PEM = {"private_key"}
"""Secrets that are keys and not texts, and have rules of their own."""


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_secret_that_no_header_can_hold_is_refused(provider: str) -> None:
    """RFC 9110, 5.5: what comes or goes in a header is ASCII; else every callback would be refused."""
    known = adapter(provider)
    secrets = [field.name for field in known.fields if field.secret and field.name not in IN_PEM]
    assert secrets
    given = {field.name: "plain-0123456789" for field in known.fields if field.required}
    for name in secrets:
        assert any(words.startswith(f"{name} must be one line") for words in known.problems({**given, name: NOT_PLAIN}))
