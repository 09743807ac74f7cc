"""An engine for synchronous code, in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outreach import EngineConfig
from outreach.sync import Outreach

QUICK = EngineConfig(change_poll_seconds=0.02, stop_grace_seconds=2.0)


@pytest.fixture
def engine() -> Iterator[Outreach]:
    """Return an engine that sends, and close it."""
    with Outreach.open("memory://", dispatch=True, config=QUICK) as found:
        yield found
