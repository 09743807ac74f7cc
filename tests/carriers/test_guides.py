from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

import pytest

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "carriers"
CARRIERS = ("telnyx", "twilio", "vonage")


def table(failures: Mapping[str, str]) -> list[str]:
    """Return the lines of a guide's table of codes."""
    by_class: dict[str, list[str]] = {}
    for code, failure in failures.items():
        by_class.setdefault(failure, []).append(code)
    return ["| class | codes |", "|---|---|"] + [
        f"| `{failure}` | {', '.join(sorted(codes))} |" for failure, codes in sorted(by_class.items())
    ]


@pytest.mark.parametrize("name", CARRIERS)
def test_the_table_of_codes_is_the_adapters_own(name: str) -> None:
    """A guide says of every code what the adapter makes of it."""
    lines = (GUIDES / f"{name}.md").read_text(encoding="utf-8").splitlines()
    failures = importlib.import_module(f"outreach.carriers.{name}.errors").FAILURES
    expected = table(failures)
    start = lines.index(expected[0])
    assert lines[start : start + len(expected)] == expected
    assert lines[start + len(expected) :][:1] in ([], [""])
