"""Simulated replies, receipts and ends of calls in sandboxes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import pytest

from outreach import (
    CallStatus,
    Conflict,
    InvalidRequest,
    MessageStatus,
    NewAgent,
    NewCall,
    NewCallCampaign,
    NewMessage,
    NewNumber,
    NewRecipient,
    NewWorkspace,
    Outreach,
    WorkspaceMode,
)
from outreach.models import NewSimulation, SimulatedKind, Simulation
from outreach.testing.plugin import ENGINE_CONFIG
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage

pytestmark = pytest.mark.virtual_time

SENDER = "+14155550100"
PHONE = "+14155550142"
A_WHILE = 65.0
"""Twice as long as the worker waits until it looks for new work."""


class Sandbox:
    """A sandbox workspace with an agent and a number, in an engine that dispatches."""

    def __init__(self, engine: Outreach, workspace_id: str, agent_id: str) -> None:
        self.engine, self.workspace_id, self.agent_id = engine, workspace_id, agent_id

    async def simulate(self, event: SimulatedKind, **fields: Any) -> Simulation:
        """Simulate an event of the one contact."""
        return await self.engine.simulate(
            self.workspace_id, NewSimulation(event=event, phone_number="415 555 0142", **fields)
        )

    async def send(self) -> str:
        """Send the contact a message, and wait until everything has come of it."""
        message = await self.engine.messages.send(self.workspace_id, NewMessage(to=PHONE, body="Hello"))
        await anyio.sleep(A_WHILE)
        return message.id

    async def status(self, message_id: str) -> MessageStatus:
        """Return the status of a message."""
        return (await self.engine.messages.get(self.workspace_id, message_id)).status


@asynccontextmanager
async def sandbox(open_storage: OpenStorage, mode: WorkspaceMode = WorkspaceMode.SANDBOX) -> AsyncIterator[Sandbox]:
    """Open an engine that dispatches to the simulators."""
    clock = clock_of_loop()
    async with Outreach(open_storage(clock), clock=clock, dispatch=True, config=ENGINE_CONFIG) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Try", default_region="US", mode=mode))
        agent = await engine.agents.create(workspace.id, NewAgent(name="Ada", from_number=SENDER))
        await engine.numbers.create(workspace.id, NewNumber(phone=SENDER, carrier="twilio"))
        yield Sandbox(engine, workspace.id, agent.id)


async def test_a_reply_and_a_stop_are_obeyed(open_storage: OpenStorage) -> None:
    """They go to the number that wrote last; STOP is answered, and nobody is contacted after it."""
    async with sandbox(open_storage) as box:
        await box.send()
        said = await box.simulate("reply", body="Which table?")
        assert said.inbound_id is not None
        reply = await box.engine.messages.get_inbound(box.workspace_id, said.inbound_id)
        assert (reply.from_number, reply.to, reply.body) == (PHONE, SENDER, "Which table?")
        await box.simulate("stop")
        entry = await box.engine.unsubscribes.get(box.workspace_id, PHONE)
        assert (entry.scope, entry.source) == ("all", "keyword")
        await anyio.sleep(A_WHILE)
        newest = (await box.engine.messages.list(box.workspace_id)).items[0]
        assert (newest.purpose, newest.status) == ("opt_out_confirmation", MessageStatus.DELIVERED)


async def test_a_failure_is_kept_for_the_next_message(open_storage: OpenStorage) -> None:
    """It comes in place of the simulator's receipts, once; a delivery that is simulated later counts."""
    async with sandbox(open_storage) as box:
        assert (await box.simulate("receipt", status="failed", reason="filtered")).kept
        failed = await box.send()
        assert await box.status(failed) is MessageStatus.FAILED
        failure = await box.engine.messages.failure(await box.engine.messages.get(box.workspace_id, failed))
        assert failure is not None
        assert failure.reason == "filtered"
        assert (await box.simulate("receipt", status="delivered")).dispatch_id is not None
        assert await box.status(failed) is MessageStatus.DELIVERED
        assert await box.status(await box.send()) is MessageStatus.DELIVERED
        with pytest.raises(Conflict, match="not delivered"):
            await box.simulate("receipt", status="delivered")


async def test_an_event_is_kept_for_a_day(open_storage: OpenStorage) -> None:
    """After that the simulator goes on as ever; an event of calls is not one of messages."""
    async with sandbox(open_storage) as box:
        await box.simulate("receipt", status="failed")
        await anyio.sleep(timedelta(days=1).total_seconds() + 60)
        await box.simulate("busy")
        assert await box.status(await box.send()) is MessageStatus.DELIVERED


@pytest.mark.parametrize(
    ("event", "status", "outcome"),
    [
        ("busy", CallStatus.BUSY, "busy"),
        ("no_answer", CallStatus.NO_ANSWER, "no_answer"),
        ("voicemail", CallStatus.COMPLETED, "voicemail"),
    ],
)
@pytest.mark.parametrize("when", ["before", "during"])
async def test_a_call_ends_as_simulated(
    open_storage: OpenStorage, event: SimulatedKind, status: CallStatus, outcome: str, when: str
) -> None:
    """Whether it is simulated before the call or while it is open; the simulator's own end counts no more."""
    async with sandbox(open_storage) as box:
        if when == "before":
            assert (await box.simulate(event)).kept
        call = await box.engine.calls.create(box.workspace_id, NewCall(agent_id=box.agent_id, to=PHONE))
        if when == "during":
            await anyio.sleep(1)
            assert (await box.simulate(event)).dispatch_id is not None
        await anyio.sleep(A_WHILE)
        ended = await box.engine.calls.get(box.workspace_id, call.id)
        assert (ended.status, ended.outcome) == (status, outcome)
        assert ended.answered_by == ("machine" if event == "voicemail" else None)
        assert ended.answered_at is None or event == "voicemail"
        assert ended.cost is None
        again = await box.engine.calls.create(box.workspace_id, NewCall(agent_id=box.agent_id, to=PHONE))
        await anyio.sleep(A_WHILE)
        assert (await box.engine.calls.get(box.workspace_id, again.id)).outcome == "positive"


async def test_a_busy_contact_of_a_campaign_is_called_again(open_storage: OpenStorage) -> None:
    """The retry follows the rules of the workspace, and reaches the contact."""
    async with sandbox(open_storage) as box:
        await box.simulate("busy")
        made = await box.engine.campaigns.create_call(
            box.workspace_id,
            NewCallCampaign(name="Renewals", agent_id=box.agent_id),
            [NewRecipient(phone_number=PHONE)],
        )
        await box.engine.campaigns.start(box.workspace_id, made.campaign.id)
        await anyio.sleep(timedelta(hours=3).total_seconds())
        calls = (await box.engine.calls.list(box.workspace_id)).items
        assert [one.outcome for one in calls] == ["positive", "busy"]
        done = await box.engine.campaigns.get(box.workspace_id, made.campaign.id)
        assert (done.status, done.counters.successful) == ("completed", 1)


async def test_what_is_refused(open_storage: OpenStorage) -> None:
    """A live workspace, a number that is none, and fields that do not belong together; nothing is kept."""
    async with sandbox(open_storage, WorkspaceMode.LIVE) as box:
        for event, fields in (("stop", {}), ("busy", {}), ("receipt", {"status": "failed"})):
            with pytest.raises(Conflict, match="live"):
                await box.simulate(event, **fields)  # type: ignore[arg-type]
    async with sandbox(open_storage) as box:
        with pytest.raises(InvalidRequest, match="phone_number"):
            await box.engine.simulate(box.workspace_id, NewSimulation(event="busy", phone_number="12"))
        for event, fields, where in (
            ("reply", {}, "body"),
            ("receipt", {}, "status"),
            ("busy", {"body": "x"}, "body"),
            ("receipt", {"status": "delivered", "reason": "filtered"}, "reason"),
        ):
            with pytest.raises(InvalidRequest) as refused:
                NewSimulation(event=event, phone_number=PHONE, **fields)  # type: ignore[arg-type]
            assert [one.path for one in refused.value.details] == [where]
