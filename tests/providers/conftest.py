"""What the tests of whole campaigns at real providers share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.place import Place, open_place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """An empty database, where servers can be started."""
    with open_place(tmp_path) as made:
        yield made
