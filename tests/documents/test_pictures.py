"""The pictures of the pages."""

from __future__ import annotations

import re
from pathlib import Path

from tests.documents.blocks import PAGES, ROOT
from tests.screenshots import MOST_BYTES

PICTURES = ROOT / "docs/pictures"
MOST = 12


def test_every_picture_is_shown_in_both_themes() -> None:
    """Each has a light and a dark one, in one element that chooses."""
    pages = "".join(Path(page).read_text("utf-8") for page in PAGES)
    chosen = re.findall(
        r'srcset="(?:docs/)?pictures/(\w+)-dark\.png">\s+<img src="(?:docs/)?pictures/(\w+)-light\.png"', pages
    )
    assert all(dark == light for dark, light in chosen)
    shown = {f"{name}-{theme}.png" for name, _ in chosen for theme in ("light", "dark")}
    assert shown == {one.name for one in PICTURES.iterdir()}


def test_pictures_are_few_and_small() -> None:
    """Who clones the repository loads all that there ever were."""
    sizes = [one.stat().st_size for one in PICTURES.iterdir()]
    assert len(sizes) <= MOST
    assert sum(sizes) <= MOST_BYTES
