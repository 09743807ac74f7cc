"""The texts that the contacts of a list are to get."""

from __future__ import annotations

from collections.abc import Sequence

from outreach import NewCallCampaign, NewSmsCampaign, NotFound, Outreach
from outreach.server_support import expected_names


async def texts_of(
    engine: Outreach, workspace_id: str, new: NewSmsCampaign | NewCallCampaign
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the texts of a campaign, and the names that its agent expects; nothing of what is not there."""
    try:
        if isinstance(new, NewCallCampaign):
            return (), expected_names(await engine.agents.get(workspace_id, new.agent_id))
        if new.flow_id is None:
            return (new.body or "",), ()
        flow = await engine.flows.get(workspace_id, new.flow_id)
    except NotFound:
        # The creation says what is not there.
        return (), ()
    return tuple(step.body or "" for step in flow.steps if step.kind == "send"), ()
