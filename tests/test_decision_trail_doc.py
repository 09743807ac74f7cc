"""docs/decision-trail.md and the rules of the trail name what they speak of."""

from __future__ import annotations

import re
from pathlib import Path

from outreach.http import EVENT_TYPES
from outreach.models.states import TrailRule

TEXT = (Path(__file__).parent.parent / "docs" / "decision-trail.md").read_text(encoding="utf-8")


def test_every_rule_says_where_it_comes_from() -> None:
    """One sentence, and the place that it is from."""
    for rule in TrailRule:
        assert re.search(r"\(docs/[a-z-]+\.md(#|, row )[^()]*(\([a-z0-9]\)[^()]*)*\)\.$|\)\)\.$", rule.text), rule


def test_every_kind_of_event_is_named() -> None:
    """An application can find out what to ask for."""
    kinds = {kind.__name__ for kind in EVENT_TYPES.values()}
    assert len(kinds) == 11
    assert all(f"`{kind}`" in TEXT for kind in kinds)
