"""The templates of the console."""

from __future__ import annotations

from outreach_server.console.rendering import Templates


def test_every_template_can_be_compiled() -> None:
    """A server compiles each one only when a page first needs it."""
    templates = Templates()
    assert "base.html" in templates.names()
    for name in templates.names():
        templates.compiled(name)
