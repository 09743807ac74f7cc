"""What all tests share."""

from __future__ import annotations

import pytest

# The contract suites that ship are tests too: show what their assertions compared.
pytest.register_assert_rewrite("outreach.testing")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run tests marked `anyio` on asyncio, the loop of the engine, also where trio is installed."""
    return "asyncio"
