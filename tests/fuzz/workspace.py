"""The workspace that is fuzzed: made ready before the first request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
from starlette.applications import Starlette
from starlette.routing import Mount

from outreach import FlowStep, Outreach
from outreach_server import create_app
from tests.fuzz.hooks import Known

SENDER = "+14155550100"
OPTED_OUT = "+14155550177"


@attrs.define(kw_only=True)
class Target:
    """An app, and what is known of it once its lifespan has begun."""

    app: Starlette
    api_key: str = ""
    known: Known = attrs.field(factory=Known)


async def furnish(engine: Outreach, workspace_id: str, agent_id: str) -> Known:
    """Add what bodies may name, and return it."""
    steps = [FlowStep(kind="send", body="Hi {{first_name}}"), FlowStep(kind="stop_if_replied")]
    flow = await engine.flows.create(workspace_id, "Welcome", steps=steps)
    trunk = await engine.trunks.create(workspace_id, "Office", address="sip.example.com")
    await engine.unsubscribes.add(workspace_id, OPTED_OUT)
    return Known(agent_id=agent_id, flow_id=flow.id, trunk_id=trunk.id)


def make_target(url: str) -> Target:
    """Return an app whose lifespan opens the engine and makes a workspace without a request limit.

    Schemathesis runs the lifespan once, on a loop of its own: an engine that a fixture opened would be on another.
    """
    engine = Outreach.open(url, dispatch=True)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with engine:
            workspace = await engine.workspaces.create("Fuzzed", request_limit=None, default_region="US")
            agent = await engine.agents.create(workspace.id, "Ada", from_number=SENDER)
            await engine.numbers.add(workspace.id, SENDER, carrier="twilio")
            target.known = await furnish(engine, workspace.id, agent.id)
            target.api_key = (await engine.workspaces.create_key(workspace.id)).api_key
            yield

    target = Target(app=Starlette(routes=[Mount("", create_app(engine=engine))], lifespan=lifespan))
    return target
