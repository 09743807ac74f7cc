"""What a page shows of an example is in the example's files, to the letter."""

from __future__ import annotations

import re

import pytest

from tests.documents.blocks import ALL, ROOT, Block

_PART = re.compile(r"a part of (examples/[\w/.]*\w)")
QUOTED = [block for block in ALL if block.not_run is not None and _PART.match(block.not_run)]


@pytest.mark.parametrize("block", QUOTED, ids=[block.place for block in QUOTED])
def test_a_page_quotes_its_example(block: Block) -> None:
    """A reader who copies it from either has the same."""
    named = _PART.match(block.not_run or "")
    assert named is not None
    example = ROOT / named[1]
    files = example.glob("*.py") if example.is_dir() else [example]
    assert any(block.text in file.read_text(encoding="utf-8") for file in files)
