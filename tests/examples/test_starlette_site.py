from __future__ import annotations

from pathlib import Path

from tests.examples.running import suite


def test_the_site_works_as_its_tests_say(tmp_path: Path) -> None:
    """The interface mounted in a site of one's own, with one engine."""
    assert "2 passed" in suite("starlette_site", tmp_path)
