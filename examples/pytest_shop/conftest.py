from __future__ import annotations

import pytest
from store import Shop

from outreach import Outreach, Workspace

pytest_plugins = ["outreach.testing.plugin"]


@pytest.fixture
async def shop(outreach_engine: Outreach, outreach_workspace: Workspace) -> Shop:
    """Return the shop, over an engine that the plugin has opened."""
    return Shop(outreach_engine, outreach_workspace.id)
