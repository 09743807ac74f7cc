"""What a page shows of an example is the file, to the letter."""

from __future__ import annotations

import pytest

from tests.documents.blocks import ALL, Block
from tests.examples.running import EXAMPLES

PAGES = {
    "docs/own-carrier.md": "own_carrier",
    "docs/own-storage.md": "own_storage",
    "docs/embedding.md": "fastapi_shop",
}
QUOTED = [block for block in ALL if block.page in PAGES and block.title is not None]


@pytest.mark.parametrize("block", QUOTED, ids=[f"{block.page}:{block.title}" for block in QUOTED])
def test_a_page_quotes_its_example(block: Block) -> None:
    """Whoever copies it from either has the same."""
    assert block.title is not None
    assert block.text == (EXAMPLES / PAGES[block.page] / block.title).read_text(encoding="utf-8")
