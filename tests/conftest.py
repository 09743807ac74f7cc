"""What all tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run tests marked `anyio` on asyncio, the loop of the engine, also where trio is installed."""
    return "asyncio"
