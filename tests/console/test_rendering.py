"""The templates of the console."""

from __future__ import annotations

import pytest
from jinja2 import Environment

from outreach_server.console.rendering import Templates


def test_every_template_can_be_compiled_and_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console compiles each one when it is first used; a second console needs no compiler."""
    templates = Templates()
    assert "base.html" in templates.names()
    for name in templates.names():
        templates.compiled(name)
    monkeypatch.delattr(Environment, "compile")
    other = Templates()
    for name in other.names():
        other.compiled(name)
