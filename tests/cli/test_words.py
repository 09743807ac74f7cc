from __future__ import annotations

from outreach_server.words import visible


def test_each_control_character_has_its_symbol() -> None:
    """A line break is not shown as an escape, and what joins letters or emoji stays."""
    assert visible("a\tb\nc\x1b\x7f\x9b\u202e") == "a␉b␊c␛␡��"
    assert visible("Zoë\u00a0S. 👩\u200d💻") == "Zoë\u00a0S. 👩\u200d💻"
