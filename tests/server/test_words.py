"""Texts of others are shown in one line, whatever they contain."""

from __future__ import annotations

import pytest

from outreach_server.words import visible


@pytest.mark.parametrize(("text", "shown"), [("Hi Ada", "Hi Ada"), ("Hi\nSTOP", "Hi␊STOP"), ("\x1b[2J", "␛[2J")])
def test_what_is_invisible_is_shown_as_what_it_is(text: str, shown: str) -> None:
    """A line break, as before the footer of most messages, is no escape character."""
    assert visible(text) == shown
