"""The agent and number of a new sandbox workspace, so that a campaign runs without an account."""

from __future__ import annotations

from typing import Final

from outreach import Agent, NewAgent, NewNumber, Outreach
from outreach.models import CarrierName

SENDER: Final = "+14155550100"
"""The sending number of sandboxes, reserved for fiction."""

CARRIER: Final[CarrierName] = "twilio"


async def add_agent_and_number(engine: Outreach, workspace_id: str, *, actor: str) -> Agent:
    """Give a workspace a voice agent and a number that it sends and calls from; return the agent."""
    agent = await engine.agents.create(workspace_id, NewAgent(name="Ada", from_number=SENDER), actor=actor)
    await engine.numbers.create(workspace_id, NewNumber(phone=SENDER, carrier=CARRIER), actor=actor)
    return agent
