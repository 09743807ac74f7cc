"""Every sentence of docs/interface.md#2 to #8, and every row of its #10, has a test that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interface.conftest import NAMED
from tests.interface.sentences import SENTENCES


def test_every_sentence_is_named_by_a_test(pytestconfig: pytest.Config) -> None:
    """Nothing is left out, and nothing is named that nobody says."""
    named = pytestconfig.stash[NAMED]
    files = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    if set(named) != files:
        pytest.skip("only a part of the tests was collected")
    assert set[str]().union(*named.values()) == SENTENCES
