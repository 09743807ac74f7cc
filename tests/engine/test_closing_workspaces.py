from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from outreach import CampaignStatus, NewMessage, Outreach, WorkspaceStatus
from outreach.errors import Unauthorized, WorkspaceUnavailable
from outreach.models import NewSchedule
from tests.documents.blocks import ROOT, blocks
from tests.engine.rig import given_campaign, given_workspace

pytestmark = pytest.mark.virtual_time


def documented(name: str) -> Any:
    """Return a function that docs/embedding.md shows."""
    (block,) = [block for block in blocks(ROOT / "docs" / "embedding.md") if f"def {name}(" in block.text]
    names: dict[str, Any] = {}
    exec(block.text, names)  # noqa: S102
    return names[name]


async def test_a_workspace_is_closed_as_the_documentation_does_it(engine: Outreach) -> None:
    """Nothing is open any more, no key works, nothing is sent, and no schedule keeps contacts; what happened stays."""
    workspace = await given_workspace(engine)
    key = await engine.api_keys.create(workspace.id)
    active, ready = [await given_campaign(engine, workspace, 3) for _ in range(2)]
    await engine.campaigns.start(workspace.id, active.id)
    new = NewSchedule(
        name="Daily", template_id=ready.id, rule="FREQ=DAILY", zone="UTC", starts_on=date(2100, 1, 1), at="09:00"
    )
    await engine.schedules.create(workspace.id, new)
    await engine.unsubscribes.add(workspace.id, "+14155550199")
    await documented("close_workspace")(engine, workspace.id)
    found = {one.id: one.status async for one in engine.campaigns.iter_all(workspace.id)}
    assert found == dict.fromkeys((active.id, ready.id), CampaignStatus.CANCELLED)
    assert [one async for one in engine.schedules.iter_all(workspace.id)] == []
    with pytest.raises(Unauthorized):
        await engine.api_keys.authenticate(key.api_key)
    with pytest.raises(WorkspaceUnavailable):
        await engine.messages.send(workspace.id, NewMessage(to="+14155550101", body="Hi"))
    closed = await engine.workspaces.get(workspace.id)
    assert (closed.status, closed.retention_days) == (WorkspaceStatus.UNAVAILABLE, 30)
    assert [entry.phone for entry in await engine.unsubscribes.list(workspace.id)] == ["+14155550199"]
