"""How long the pages are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LONGEST: Final = 2500
"""Words of a page that is no reference: a reader reads it in a quarter of an hour."""
BY_HAND: Final = 45_000
"""Words of all pages of docs that are written by hand."""


def test_pages_are_short() -> None:
    """A page has at most so many words, unless docs/README.md names it as a reference; all by hand have a bound too."""
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text("utf-8")
    reference = index.partition("\n## Reference\n")[2].partition("\n## ")[0]
    words = {page.relative_to(docs).as_posix(): len(page.read_text("utf-8").split()) for page in docs.rglob("*.md")}
    by_hand = {name: count for name, count in words.items() if not name.startswith("reference/")}
    references = set(re.findall(r"\]\(([^)]+\.md)\)", reference))
    assert {name: count for name, count in by_hand.items() if count > LONGEST and name not in references} == {}
    assert sum(by_hand.values()) <= BY_HAND
