from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import outreach
from tests.surface import PATH

ROOT = Path(__file__).resolve().parent.parent

HIDDEN = {
    *("Engine", "Stream", "ServiceContext", "Tally"),  # what classes are built on, and what only the engine makes
    *("CampaignRef", "WorkingSet"),  # opaque to a storage of one's own
}
"""Types that public signatures name, and that nobody who uses them has to."""


def test_the_public_surface_is_the_one_that_was_reviewed() -> None:
    """Every public name and signature stands in `tests/surface.txt`; `python -m tests.surface` writes it anew."""
    code = "from tests.surface import surface; import sys; sys.stdout.write(surface())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == PATH.read_text(encoding="utf-8")


def test_the_top_level_stays_small() -> None:
    """A reader takes in some sixty names; what fewer programs need is in a module of its own."""
    assert len(outreach.__all__) <= 65


def test_what_public_signatures_name_is_public() -> None:
    """Whoever writes a function around the engine can annotate it, and finds each type in a public module."""
    code = "from tests.surface import hidden_types; print(*sorted(hidden_types()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert set(done.stdout.split()) == HIDDEN
