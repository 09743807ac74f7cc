from __future__ import annotations

from pathlib import Path

from tests.examples.running import suite


def test_the_shop_works_as_its_tests_say(tmp_path: Path) -> None:
    """Mounted, with its own identities, and events into its own table."""
    assert "3 passed" in suite("fastapi_shop", tmp_path)
