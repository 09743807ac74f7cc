from __future__ import annotations

from outreach.rules.previous_credentials import ACCEPTED_FOR, replaced
from outreach.testing.builders import NOW

VERIFYING = ("api_key", "webhook_key")


def test_what_verified_before_a_change_is_kept_as_it_was() -> None:
    """Also where a field that verifies is only added: what was signed before it has another signature."""
    before = {"api_key": "k", "number_id": "1"}
    for given in ({"api_key": "new"}, {**before, "webhook_key": "w"}, {"api_key": "new", "webhook_key": "w"}):
        [kept] = replaced(before, (), given, NOW, verifying=VERIFYING)
        assert (kept.values, kept.until) == (before, NOW + ACCEPTED_FOR)


def test_where_nothing_that_verifies_changes_nothing_is_kept() -> None:
    """Such as the number that a provider calls from."""
    assert replaced({"api_key": "k"}, (), {"api_key": "k", "number_id": "2"}, NOW, verifying=VERIFYING) == []
