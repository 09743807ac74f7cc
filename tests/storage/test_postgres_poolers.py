"""docs/scaling.md: what a pooler that drops `options` has to have stored with the user."""

from __future__ import annotations

import re
from pathlib import Path

from outreach.storage.postgres import connect

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scaling.md").read_text("utf-8")


def test_the_page_stores_every_setting_of_a_connection() -> None:
    """With the value that a process would bring."""
    stored = re.findall(r"^ALTER ROLE outreach IN DATABASE outreach SET (\w+) = '([^']*)';$", PAGE, re.MULTILINE)
    assert dict(stored) == connect._SERVER_SETTINGS
