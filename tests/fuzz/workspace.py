"""The workspace that is fuzzed: made ready before the first request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import attrs
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from outreach import (
    FlowStep,
    NewAgent,
    NewFlow,
    NewMessage,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewTrunk,
    NewWorkspace,
    Outreach,
)
from outreach.models import API_SCOPES, NewSchedule, NewUpload, NewWebhook
from outreach_server import create_app
from tests.fuzz.hooks import Known
from tests.fuzz.managing import LIST

SENDER = "+14155550100"
OPTED_OUT = "+14155550177"


STABLE_KEY = "stable"
"""Stands for the key of the workspace."""


@attrs.define(kw_only=True)
class Target:
    """An ASGI app, and what is known of it once its lifespan has begun.

    Schemathesis makes examples and coverage cases, headers included, before the lifespan makes the key: so
    `STABLE_KEY` stands for it, and nothing else does. The app is made at its first connection, for some databases
    exist only then.

    Attributes:
        make_url: Called once, for the database.
        api_key: The workspace's.
        known: What bodies may name.
    """

    make_url: Callable[[], str]
    api_key: str = ""
    known: Known = attrs.field(factory=Known)
    _inner: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if self._inner is None:
            self._inner = make_app(self)
        if scope["type"] == "http":
            key = {f"Bearer {STABLE_KEY}".encode(): f"Bearer {self.api_key}".encode()}
            headers = [(n, key.get(value, value) if n == b"authorization" else value) for n, value in scope["headers"]]
            scope = {**scope, "headers": headers}
        await self._inner(scope, receive, send)


async def furnish(engine: Outreach, workspace_id: str, agent_id: str) -> Known:
    """Add what bodies may name, and return it."""
    steps = [FlowStep(kind="send", body="Hi {{first_name}}"), FlowStep(kind="stop_if_replied")]
    flow = await engine.flows.create(workspace_id, NewFlow(name="Welcome", steps=steps))
    trunk = await engine.trunks.create(workspace_id, NewTrunk(name="Office", address="sip.example.com"))
    await engine.unsubscribes.add(workspace_id, OPTED_OUT)
    [number] = await engine.numbers.list(workspace_id)
    people = [NewRecipient(phone_number=f"+1415555020{last}", first_name="Ana") for last in range(3)]
    # They keep the flow and the number from being removed.
    fields: dict[str, Any] = {"carrier": "twilio", "from_number": SENDER}
    with_flow = NewSmsCampaign(name="With a flow", message_source="flow", flow_id=flow.id, **fields)
    await engine.campaigns.create_sms(workspace_id, with_flow, people)
    known = await engine.campaigns.create_sms(
        workspace_id, NewSmsCampaign(name="Known", body="Hi {{first_name}}", **fields), people
    )
    message = await engine.messages.send(workspace_id, NewMessage(to="+14155550204", body="Hi"))
    inbound = await engine.messages.receive(workspace_id, from_number="+14155550205", to=SENDER, body="Thanks")
    assert inbound is not None
    new = NewUpload(file_name="list.csv", size_bytes=len(LIST))
    upload, spare = [await engine.uploads.create(workspace_id, new) for _ in range(2)]
    await engine.uploads.add_chunk(workspace_id, upload.id, 0, LIST)
    schedule = await engine.schedules.create(
        workspace_id,
        NewSchedule(
            name="Known",
            template_id=known.campaign.id,
            rule="FREQ=WEEKLY",
            zone="UTC",
            starts_on=date(2199, 1, 1),
            at="09:00",
        ),
    )
    webhook = await engine.webhooks.create(workspace_id, NewWebhook(url="https://hooks.example.com/known"))
    return Known(
        schedule_id=schedule.id,
        webhook_id=webhook.webhook.id,
        agent_id=agent_id,
        flow_id=flow.id,
        trunk_id=trunk.id,
        campaign_id=known.campaign.id,
        number_id=number.id,
        message_id=message.id,
        inbound_id=inbound.id,
        phone=OPTED_OUT,
        upload_id=upload.id,
        spare_upload_id=spare.id,
    )


def make_app(target: Target) -> ASGIApp:
    """Return an app whose lifespan opens the engine and makes a workspace without a request limit.

    Schemathesis runs the lifespan once, on a loop of its own: an engine that a fixture opened would be on another.
    """
    engine = Outreach.open(target.make_url(), dispatch=True)
    app = create_app(engine=engine)
    own = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with engine, own(app):
            workspace = await engine.workspaces.create(
                NewWorkspace(name="Fuzzed", request_limit=None, default_region="US")
            )
            agent = await engine.agents.create(workspace.id, NewAgent(name="Ada", from_number=SENDER))
            await engine.numbers.create(workspace.id, NewNumber(phone=SENDER, carrier="twilio"))
            target.known = await furnish(engine, workspace.id, agent.id)
            target.api_key = (await engine.api_keys.create(workspace.id, scopes=API_SCOPES)).api_key
            yield

    # Not mounted in a host: a host's routes do not match paths with a line break, which the app answers itself.
    app.router.lifespan_context = lifespan
    return app
