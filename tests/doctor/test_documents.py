"""docs/doctor.md lists every code with its severities, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, get_args

from outreach.models import EngineCode
from outreach.models.diagnosis import DatabaseCode
from outreach_server.doctor.findings import ServerCode

_PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"

SEVERITIES: Final = {
    code: set(words.split(", "))
    for code, words in re.findall(
        r"^\| `(\w+)` \| ((?:critical|warning|info)(?:, \w+)*) \|", _PAGE.read_text("utf-8"), re.MULTILINE
    )
}
"""The severities of each code, as the page has them."""


def test_the_page_lists_every_code() -> None:
    """Each once."""
    listed = re.findall(r"^\| `(\w+)` \|", _PAGE.read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted({*get_args(EngineCode), *get_args(DatabaseCode), *get_args(ServerCode)})
    assert sorted(SEVERITIES) == sorted(listed)
