"""The list of steps and rules in the documentation is the one in the code."""

from __future__ import annotations

import re
from pathlib import Path

from outreach.models import TrailRule, TrailStepKind, events
from outreach.reasons import TRAIL_RULES

TEXT = (Path(__file__).parent.parent / "docs" / "decision-trail.md").read_text(encoding="utf-8")


def table(column: str) -> dict[str, str]:
    """Return the rows of the table with this first column, by their names."""
    _, _, rest = TEXT.partition(f"| `{column}` |")
    assert rest, column
    rows = rest.partition("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", rows, re.MULTILINE))


def test_every_rule_is_explained_and_no_other() -> None:
    """Each with the words that the command line shows, in one order."""
    assert list(TRAIL_RULES) == list(TrailRule)
    assert list(table("rule").items()) == [(rule.value, text) for rule, text in TRAIL_RULES.items()]


def test_every_rule_says_where_it_comes_from() -> None:
    """One sentence, and the place that it is from."""
    for rule, text in TRAIL_RULES.items():
        assert re.search(r"\(docs/[a-z-]+\.md(#|, row )[^()]*(\([a-z0-9]\)[^()]*)*\)\.$|\)\)\.$", text), rule


def test_every_step_is_explained_and_no_other() -> None:
    """In one order."""
    assert list(table("what")) == [what.value for what in TrailStepKind]


def test_every_kind_of_event_is_named() -> None:
    """An application can find out what to ask for."""
    kinds = {name for name, kind in vars(events).items() if isinstance(kind, type) and kind.__base__ is events.Event}
    assert len(kinds) == 7
    assert all(f"`{kind}`" in TEXT for kind in kinds)
