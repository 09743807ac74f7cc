from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from outreach import NewCall, NewMessage
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.states import DispatchState, RecipientStatus
from outreach.protocols import SystemClock
from tests.engine.calling import CALLS, POSITIVE, event, given_agent, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import Rig, dispatching, given_campaign, given_workspace, people, reaches, until

pytestmark = pytest.mark.anyio

D, R = DispatchState, RecipientStatus
channels = pytest.mark.parametrize("channel", ["sms", "call"])

FAILURES = 3


@pytest.mark.field(3)
@channels
async def test_a_yes_whose_write_fails_is_no_failure_and_frees_no_place(
    open_storage: OpenStorage, channel: str
) -> None:
    """Field, test 3 (Dograh marks the ringing call failed and gives its place away): it is neither, however late."""
    async with dispatching(open_storage(SystemClock()), config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        if channel == "call":
            campaign = await given_calls(rig.engine, workspace, 2, batch_concurrency=1)
        else:
            campaign = await given_campaign(rig.engine, workspace, 2)
        provider: Any = rig.carrier if channel == "sms" else rig.voice
        asked_meanwhile: list[int] = []

        def break_after_the_yes() -> None:
            if provider.reached and len(asked_meanwhile) < FAILURES:
                asked_meanwhile.append(len(provider.requests))
                raise sqlite3.OperationalError("database or disk is full")

        rig.storage.before_write = break_after_the_yes
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        for number in range(2):
            await provider.wait_for_requests(number + 1)
            if channel == "call":
                await until(lambda number=number: _is(rig, campaign, number, R.IN_PROGRESS))  # type: ignore[misc]
                assert len(rig.voice.requests) == number + 1
                rig.voice.report(event(rig.voice.requests[number], **POSITIVE))
        await reaches(rig.engine, campaign, "completed")
        if channel == "call":
            assert asked_meanwhile == [1] * FAILURES
        assert [(one.status, one.attempts) for one in await people(rig.engine, campaign)] == [(R.COMPLETED, 1)] * 2
        assert len(provider.requests) == 2


@pytest.mark.field(4)
@pytest.mark.parametrize("kind", ["campaign of messages", "campaign of calls", "message", "call"])
async def test_the_intent_is_committed_before_a_provider_is_asked(open_storage: OpenStorage, kind: str) -> None:
    """Field, test 4 (Spoke sends within a transaction that can still roll back): the intent is committed first."""
    async with dispatching(open_storage(SystemClock()), config=CALLS) as rig:
        seen: list[Dispatch | None] = []

        async def ask(request: Any) -> DispatchOutcome:
            # A snapshot sees what is committed, and nothing else.
            seen.append(await rig.storage.read(lambda tx: tx.dispatches.get(request.workspace_id, request.dispatch_id)))
            return DispatchOutcome(state=D.ACCEPTED, provider_id=f"p{len(seen)}")

        rig.carrier.send = ask  # type: ignore[method-assign, assignment]
        rig.voice.place_call = ask  # type: ignore[method-assign]
        workspace = await given_workspace(rig.engine)
        match kind:
            case "campaign of messages":
                campaign = await given_campaign(rig.engine, workspace, 2)
                await rig.engine.campaigns.start(workspace.id, campaign.id)
            case "campaign of calls":
                campaign = await given_calls(rig.engine, workspace, 2)
                await rig.engine.campaigns.start(workspace.id, campaign.id)
            case "message":
                for _ in range(2):
                    await rig.engine.messages.send(workspace.id, NewMessage(to="+14155550123", body="Hello"))
            case _:
                agent_id = await given_agent(rig.engine, workspace)
                for to in ("+14155550123", "+14155550124"):
                    await rig.engine.calls.create(workspace.id, NewCall(agent_id=agent_id, to=to))

        async def both() -> bool:
            return len(seen) == 2

        await until(both)
        assert [one.state if one is not None else None for one in seen] == [D.DISPATCHING] * 2


async def _is(rig: Rig, campaign: Any, position: int, status: RecipientStatus) -> bool:
    return (await people(rig.engine, campaign))[position].status is status
