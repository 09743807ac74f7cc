"""Intents whose commit went wrong in the middle: nobody is left behind as on the way, and nobody is asked twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from outreach import NewMessage
from outreach.dispatch.runner import Runner
from outreach.errors import StorageError
from outreach.models.dispatch import Dispatch
from outreach.models.message import Message
from outreach.models.plans import WaveResult
from outreach.models.states import DispatchState, MessageStatus, RecipientStatus
from outreach.models.work import WorkUnit
from outreach.protocols.storage import OneQuery, Operation
from outreach.storage.base.writer import CommitUnknown
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, until, until_true

pytestmark = pytest.mark.virtual_time

MESSAGE = NewMessage(to="+14155550101", body="Hi", from_number="+14155550199", carrier="twilio")


def _dispatches(result: object) -> Sequence[Dispatch]:
    """Return the intents in what a write returned."""
    found: list[Dispatch] = []
    for each in result if isinstance(result, list | tuple) else [result]:
        found += each.dispatches if isinstance(each, WaveResult) else [each] if isinstance(each, Dispatch) else []
    return found


@pytest.mark.parametrize("campaigns", [1, 3])
async def test_intents_of_which_nobody_knows_whether_they_were_committed_become_unknown(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture, campaigns: int
) -> None:
    """docs/delivery-contract.md#rule-6: their worker never asks for them, and says so under a new lease."""
    lost: list[str] = []

    async def lose_one(result: object) -> None:
        if not lost and (made := _dispatches(result)):
            lost.extend(dispatch.id for dispatch in made)
            raise CommitUnknown("Nobody can tell.")

    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        made = [await given_campaign(rig.engine, workspace, 10) for _ in range(campaigns)]
        rig.storage.after_write = lose_one
        for campaign in made:
            await rig.engine.campaigns.start(workspace.id, campaign.id)

        async def ended() -> bool:
            states = {one.status for campaign in made for one in await people(rig.engine, campaign)}
            return states <= {RecipientStatus.COMPLETED, RecipientStatus.UNKNOWN}

        await until(ended)
        asked = [message.dispatch_id for message in rig.carrier.requests]
        assert lost
        assert not set(asked) & set(lost)
        assert len(asked) == len(set(asked)) == 10 * campaigns - len(lost)
        unknown = [one for campaign in made for one in await people(rig.engine, campaign) if one.status == "unknown"]
        assert len(unknown) == len(lost)
        assert rig.worker.permits.held() == type(rig.worker.permits.held())(intents=0, requests=0)
    assert "It is unknown whether intents were committed" in caplog.text


async def test_a_single_message_does_not_depend_on_what_is_read_after_its_commit(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is away right after it costs a message nothing but time."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        read, away = rig.storage.read, 0

        async def away_for_a_while(operation: Operation[object]) -> object:
            nonlocal away
            if away and not isinstance(operation, OneQuery):
                away -= 1
                raise StorageError("It is away.")
            return await read(operation)

        async def go_away(result: object) -> None:
            nonlocal away
            if any(one.state is DispatchState.DISPATCHING for one in _dispatches(result)):
                # Once only: where the check before the request is what fails, the next try gets through.
                rig.storage.after_write, away = None, 1

        monkeypatch.setattr(rig.storage, "read", away_for_a_while)
        rig.storage.after_write = go_away
        sent = await rig.engine.messages.send(workspace.id, MESSAGE)

        async def accepted() -> Message | None:
            found = await rig.engine.messages.get(workspace.id, sent.id)
            return found if found.status is MessageStatus.ACCEPTED else None

        await until_true(lambda: rig.carrier.requests)
        away = 0
        await until(accepted)
        assert [message.to for message in rig.carrier.requests] == [MESSAGE.to]


@pytest.mark.parametrize("kind", ["campaign", "campaigns", "message"])
async def test_intents_whose_slice_is_cancelled_at_their_commit_become_unknown(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As by a dispatcher that has lost its jobs: the worker goes on, and nobody would ask for them."""
    slices = set[anyio.CancelScope]()
    run_slice = Runner.run_slice
    lost: list[str] = []

    async def run_cancellable(self: Runner, unit: WorkUnit, **terms: Any) -> datetime | None:
        with anyio.CancelScope() as scope:
            slices.add(scope)
            due = await run_slice(self, unit, **terms)
        slices.discard(scope)
        return clock_of_loop().now() if scope.cancelled_caught else due

    async def cancel_all(result: object) -> None:
        if not lost and (made := _dispatches(result)):
            lost.extend(dispatch.id for dispatch in made)
            for scope in slices:
                scope.cancel()
            await checkpoint()

    monkeypatch.setattr(Runner, "run_slice", run_cancellable)
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        count = {"campaign": 1, "campaigns": 3, "message": 0}[kind]
        campaigns = [await given_campaign(rig.engine, workspace, 10) for _ in range(count)]
        rig.storage.after_write = cancel_all
        for campaign in campaigns:
            await rig.engine.campaigns.start(workspace.id, campaign.id)
        if not campaigns:
            await rig.engine.messages.send(workspace.id, MESSAGE)

        async def all_unknown() -> bool:
            found = await rig.storage.read(lambda tx: [tx.dispatches.get(workspace.id, one) for one in lost])
            return bool(lost) and {one and one.state for one in found} == {DispatchState.UNKNOWN}

        async def others_are_sent() -> bool:
            found = [one.status for campaign in campaigns for one in await people(rig.engine, campaign)]
            return set(found) <= {RecipientStatus.COMPLETED, RecipientStatus.UNKNOWN}

        await until(all_unknown)
        await until(others_are_sent)
        assert not {message.dispatch_id for message in rig.carrier.requests} & set(lost)
