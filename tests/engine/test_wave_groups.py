"""The waves of many campaigns are planned and committed together, and the trouble of one is its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import anyio
import attrs
import pytest

from outreach import Outreach
from outreach.ledger.sending import committing
from outreach.models.campaign import Campaign
from outreach.models.plans import Wave, WavePlan, WaveResult
from outreach.models.states import RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.given import given_active, make_wave, recipient, reread
from tests.engine.rig import contacts, dispatching, given_campaign, given_workspace, people, reaches

pytestmark = pytest.mark.virtual_time

CAMPAIGNS: Final = 20
EACH: Final = 3


async def _start_all(engine: Outreach, campaigns: Sequence[Campaign]) -> None:
    async with anyio.create_task_group() as tasks:
        for campaign in campaigns:
            tasks.start_soon(engine.campaigns.start, campaign.workspace_id, campaign.id)


async def test_campaigns_that_run_at_the_same_time_share_operations(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned and committed together: far fewer operations than campaigns have waves."""
    planned, committed = list[int](), list[int]()
    plan_waves, commit_waves = committing.plan_waves, committing.commit_waves

    def plan(tx: Transaction, wanted: Sequence[tuple[str, str, int]], *, now: datetime) -> Sequence[WavePlan | None]:
        planned.append(len(wanted))
        return plan_waves(tx, wanted, now=now)

    def commit_all(tx: Transaction, decided: Sequence[Wave], **given: Any) -> Sequence[WaveResult]:
        committed.append(len(decided))
        return commit_waves(tx, decided, **given)

    monkeypatch.setattr(committing, "plan_waves", plan)
    monkeypatch.setattr(committing, "commit_waves", commit_all)
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        made = [
            await given_campaign(rig.engine, workspace, contacts(EACH, first=EACH * number))
            for number in range(CAMPAIGNS)
        ]
        await _start_all(rig.engine, made)
        for campaign in made:
            await reaches(rig.engine, campaign, "completed")
        assert len(rig.carrier.requests) == CAMPAIGNS * EACH
    assert max(planned) > CAMPAIGNS / 4
    assert max(committed) > CAMPAIGNS / 4
    assert len(committed) < sum(committed) / 2


async def test_the_trouble_of_one_campaign_stops_no_other(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wave that cannot be committed is undone and tried again, later each time. Its group goes on at once."""
    begin = committing._begin
    bad = set[str]()

    def breaking(tx: Transaction, wave: Wave, contacted: set[tuple[str, str]], now: datetime) -> Any:
        begun = begin(tx, wave, contacted, now)
        if wave.campaign_id in bad:
            raise ValueError("a wave that cannot be committed")
        return begun

    monkeypatch.setattr(committing, "_begin", breaking)
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        made = [await given_campaign(rig.engine, workspace, contacts(EACH, first=EACH * number)) for number in range(6)]
        bad.add(made[2].id)
        await _start_all(rig.engine, made)
        for campaign in (*made[:2], *made[3:]):
            await reaches(rig.engine, campaign, "completed")
        assert {one.status for one in await people(rig.engine, made[2])} == {RecipientStatus.PENDING}
        bad.clear()
        await reaches(rig.engine, made[2], "completed")
        assert len(rig.carrier.requests) == 6 * EACH


async def test_a_wave_that_is_stale_keeps_no_other_from_its_commit(storage: Storage) -> None:
    """Each is compared with what it was decided on by itself, and has an answer of its own."""
    first, second, third = [await given_active(storage, 2) for _ in range(3)]
    chosen = {one.id: await recipient(storage, one) for one in (first, second, third)}

    def operation(tx: Transaction) -> Sequence[WaveResult]:
        made = [make_wave(tx, one, [chosen[one.id]]) for one in (first, second, third)]
        made[1] = attrs.evolve(made[1], basis=attrs.evolve(made[1].basis, settings=99))
        return committing.commit_waves(tx, made, clock_now=lambda: NOW)

    committed = await storage.write(operation)
    assert [one.stale for one in committed] == [False, True, False]
    assert [len(one.dispatches) for one in committed] == [1, 0, 1]
    assert [(await recipient(storage, one)).status for one in (first, second, third)] == [
        RecipientStatus.DISPATCHING,
        RecipientStatus.PENDING,
        RecipientStatus.DISPATCHING,
    ]
    for one in (first, second, third):
        await reread(storage, one)


async def test_a_wave_that_is_committed_twice_is_reported_twice(storage: Storage) -> None:
    """Who went away before it could be told leaves others that ask again; the stops are asked for anew then."""
    first, second = [await given_active(storage, 2) for _ in range(2)]
    chosen = {one.id: await recipient(storage, one) for one in (first, second)}
    made = await storage.read(lambda tx: [make_wave(tx, one, [chosen[one.id]]) for one in (first, second)])
    [before] = await storage.write(lambda tx: committing.commit_waves(tx, made[:1], clock_now=lambda: NOW))
    again, other = await storage.write(lambda tx: committing.commit_waves(tx, made, clock_now=lambda: NOW))
    assert len(before.dispatches) == len(other.dispatches) == 1
    assert again == attrs.evolve(before, stops=None)
    assert other.stops is not None
    for one in (first, second):
        await reread(storage, one)
        assert len(await storage.read(lambda tx, one=one: tx.dispatches.of_recipient(THIS_WORKSPACE, one.id, 0))) == 1  # type: ignore[misc]


@pytest.mark.parametrize("spellings", [("+14155550101", "+14155550101"), ("+5215512345678", "+525512345678")])
async def test_two_campaigns_of_one_commit_contact_a_number_as_often_as_the_cap_has_it(
    storage: Storage, spellings: tuple[str, str]
) -> None:
    """Under whichever spelling. Messages of the same commit count; a contact that has to wait is decided about anew."""
    first, second = [await given_active(storage) for _ in range(2)]

    def operation(tx: Transaction) -> Sequence[WaveResult]:
        workspace = tx.workspaces.get(THIS_WORKSPACE)
        assert workspace is not None
        tx.workspaces.update(attrs.evolve(workspace, frequency_cap=1))
        person = tx.recipients.get(THIS_WORKSPACE, first.id, 0)
        other = tx.recipients.get(THIS_WORKSPACE, second.id, 0)
        assert person is not None
        assert other is not None
        made = [make_wave(tx, first, [person]), make_wave(tx, second, [other])]
        made = [
            attrs.evolve(wave, intents=[attrs.evolve(wave.intents[0], to=to)])
            for wave, to in zip(made, spellings, strict=True)
        ]
        return committing.commit_waves(tx, made, clock_now=lambda: NOW)

    committed = await storage.write(operation)
    assert [len(one.dispatches) for one in committed] == [1, 0]
    assert (await recipient(storage, second)).status is RecipientStatus.PENDING
