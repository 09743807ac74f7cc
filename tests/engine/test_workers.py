"""Several workers on one database: their leases and what each drives (docs/delivery-contract.md#rule-11)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import attrs
import pytest

from outreach import NewCall
from outreach.core.clock import Clock, SharedClock
from outreach.dispatch.claims import Claims
from outreach.dispatch.worker import Worker
from outreach.errors import DispatchRefused, LeaseLost, StorageError
from outreach.ledger.common import campaign_unit
from outreach.ledger.leases import leases
from outreach.ledger.leases.leases import SINGLES, Granted, NotClaimed, StaleLeaseDetector, Wanted
from outreach.models.campaign import Campaign
from outreach.models.dispatch import DispatchOutcome
from outreach.models.plans import SenderPace
from outreach.models.reports import MessageReport
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.models.work import Claim, WorkerLease, WorkUnit
from outreach.plugins import ledger_archives
from outreach.protocols.storage import Storage
from outreach.rules.deciding import spacing
from outreach.services.context import GuardedStorage, LoopGuard
from outreach.storage.base.writer import CommitUnknown
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_campaign,
    make_dispatch,
    make_number,
    make_run,
    make_worker,
    make_workspace,
    new_id,
)
from outreach.testing.clock import ManualClock, ShiftedClock
from outreach.testing.scripted import ScriptedCarrier
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, given_campaign
from outreach.testing.virtual_time import clock_of_loop
from tests.engine import rig
from tests.engine.calling import CALLS, event, given_agent
from tests.engine.rig import (
    QUICK,
    Rig,
    WatchedStorage,
    dispatching,
    given_workspace,
    make_engine_worker,
    people,
    reaches,
    until,
    until_true,
)

pytestmark = pytest.mark.virtual_time

LASTS = timedelta(seconds=15)
PHONE = "+14155550199"


async def _join(storage: Storage, *, place: int) -> int:
    taken = await storage.write(
        lambda tx: leases.take_over(tx, home=None, noted=None, now=NOW, place=place, lasts=LASTS)
    )
    return taken.epoch


async def _living(storage: Storage) -> list[int]:
    return [worker.epoch for worker in await storage.read(lambda tx: tx.workers.list())]


async def _end_lost(storage: Storage, epoch: int, seen: StaleLeaseDetector) -> Sequence[int]:
    """End the leases of others that are over, as a worker does at its heartbeat."""
    return await storage.write(lambda tx: leases.end_lost(tx, but=epoch, unrenewed=seen.look(tx)))


async def test_workers_begin_side_by_side_each_under_an_epoch_of_its_own(storage: Storage) -> None:
    """A second one ends nothing of the first, and the one with the lowest epoch leads."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    assert await _living(storage) == [first, second]
    assert await storage.read(lambda tx: [leases.leads(tx, epoch) for epoch in (first, second)]) == [True, False]


async def test_a_lease_is_over_by_the_clock_of_the_database(storage: Storage, clock: ManualClock) -> None:
    """Not a moment earlier; what its worker drove is free then, and its next commit is refused."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    claim = Claim(workspace_id=THIS_WORKSPACE, subject=PHONE, epoch=first, held=True)
    await storage.write(lambda tx: tx.claims.put(claim))
    seen = StaleLeaseDetector(clock)
    assert await _end_lost(storage, second, seen) == []
    clock.advance(14.999)
    assert await _end_lost(storage, second, seen) == []
    clock.advance(0.001)
    await storage.write(lambda tx: leases.renew_worker(tx, epoch=second, lasts=LASTS))
    assert await _end_lost(storage, second, seen) == [first]
    assert await storage.read(lambda tx: tx.claims.get(THIS_WORKSPACE, PHONE)) == attrs.evolve(claim, held=False)
    with pytest.raises(LeaseLost):
        await storage.write(lambda tx: leases.renew_worker(tx, epoch=first, lasts=LASTS))


async def test_a_worker_that_is_gone_is_not_waited_for(storage: Storage) -> None:
    """Where its place can be seen to be free, as on one machine."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    ended = await storage.write(lambda tx: leases.end_lost(tx, but=second, is_gone=lambda one: one.place == 1))
    assert ended == [first]


async def test_a_lease_from_before_the_clock_was_set_back_does_not_last_for_hours(
    storage: Storage, clock: ManualClock
) -> None:
    """It lasts as long as it would from now on: its worker renews it meanwhile, if it lives."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    seen = StaleLeaseDetector(clock)
    clock.set(NOW - timedelta(hours=2))
    await storage.write(lambda tx: leases.renew_worker(tx, epoch=second, lasts=LASTS))
    assert await _end_lost(storage, second, seen) == []
    clock.advance(2)
    assert await _end_lost(storage, second, seen) == []
    clock.advance(15)
    await storage.write(lambda tx: leases.renew_worker(tx, epoch=second, lasts=LASTS))
    assert await _end_lost(storage, second, seen) == [first]


async def test_a_lease_that_was_renewed_unseen_lasts_when_the_clock_was_set_forth(
    storage: Storage, clock: ManualClock
) -> None:
    """Each lease has to be seen unrenewed for as long as it lasts, from its last renewal on."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    seen = StaleLeaseDetector(clock)
    assert await _end_lost(storage, second, seen) == []
    clock.advance(14)
    await storage.write(lambda tx: leases.renew_worker(tx, epoch=first, lasts=LASTS))
    clock.advance(1)
    clock.set(clock.now() + timedelta(hours=1))
    for _ in range(2):
        assert await _end_lost(storage, second, seen) == []
        clock.advance(14.9)
    clock.advance(0.1)
    assert await _end_lost(storage, second, seen) == [first]


async def _given_workers(storage: Storage, clock: Clock, count: int) -> list[tuple[Worker, int]]:
    """Have so many workers begin."""
    made = [make_engine_worker(storage, clock) for _ in range(count)]
    return [(one, await one.acquire() or 0) for one in made]


async def test_a_worker_that_joins_after_the_clock_was_set_forth_ends_no_living_lease() -> None:
    """The others have not renewed theirs since, and do so at their next heartbeats."""
    clock = ShiftedClock()
    async with MemoryStorage(clock=clock, workers=3) as storage:
        team = await _given_workers(storage, clock, 2)
        clock.shift(timedelta(seconds=86))
        team += await _given_workers(storage, clock, 1)
        for one, epoch in reversed(team):
            await one.renew(epoch)
        assert await _living(storage) == [epoch for _, epoch in team]


async def test_a_heartbeat_after_the_clock_of_the_database_was_set_forth_ends_no_living_lease() -> None:
    """The first one after the step sees nothing of it by the clock of its own machine."""
    clock = ShiftedClock()
    async with MemoryStorage(clock=clock, workers=2) as storage:
        team = await _given_workers(storage, clock_of_loop(), 2)
        clock.shift(timedelta(seconds=86))
        for one, epoch in team:
            await one.renew(epoch)
        assert await _living(storage) == [epoch for _, epoch in team]


async def test_a_worker_that_joins_beside_one_that_hangs_waits_for_the_length_of_a_lease() -> None:
    """The other's place is not free: only time shows that it renews nothing."""
    clock = ShiftedClock()
    async with MemoryStorage(clock=clock, workers=2) as storage:
        [(_, hanging)] = await _given_workers(storage, clock, 1)
        clock.advance(3600)
        [(one, epoch)] = await _given_workers(storage, clock, 1)
        clock.advance(14.9)
        await one.renew(epoch)
        assert await _living(storage) == [hanging, epoch]
        clock.advance(0.2)
        await one.renew(epoch)
        assert await _living(storage) == [epoch]


async def test_workers_that_were_killed_long_ago_hold_up_no_start() -> None:
    """Their places are free and their leases are over: the next worker takes everything at once."""
    clock = ShiftedClock()
    async with MemoryStorage(clock=clock, workers=3) as storage:
        await _given_workers(storage, clock, 3)
        for place in (1, 2, 3):
            await storage.lock.release(place)
        clock.advance(3600)
        [(one, epoch)] = await _given_workers(storage, clock, 1)
        assert await _living(storage) == [epoch]
        assert one.leads


async def test_the_worker_that_leads_next_repairs_what_the_last_one_did_not(
    storage: Storage, clock: ManualClock
) -> None:
    """Only the leader notes that the clock runs; the next one looks for steps that nobody has repaired."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    assert await storage.write(lambda tx: leases.renew(tx, epoch=second, now=NOW, led=False)) is None
    await storage.write(lambda tx: leases.end_worker(tx, first))
    clock.set(NOW - timedelta(hours=1))
    campaign = await given_campaign(storage, campaign=make_campaign(status=CampaignStatus.ACTIVE))
    assert await storage.write(lambda tx: leases.renew(tx, epoch=second, now=clock.now(), led=False)) is not None
    lease = await storage.read(lambda tx: tx.leases.current())
    assert lease is not None
    assert (lease.steady_since, lease.steady_until) == (clock.now(), clock.now())
    run = await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id))
    assert run is not None
    assert (run.postponed_under or "").startswith("the clock was set back")


async def test_the_worker_that_leads_next_wakes_what_a_wrong_clock_has_put_off(
    storage: Storage, clock: ManualClock
) -> None:
    """It began beside one that was dead; the clock was wrong and right again between the two."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    campaign = await given_campaign(storage, campaign=make_campaign(status=CampaignStatus.ACTIVE))
    unit = campaign_unit(campaign)
    await storage.write(lambda tx: tx.work.schedule(unit, NOW + timedelta(hours=2)))
    await storage.write(lambda tx: leases.end_worker(tx, first))
    clock.advance(1)
    await storage.write(lambda tx: leases.renew(tx, epoch=second, now=clock.now(), led=False))
    work = await storage.read(lambda tx: tx.work.get(unit))
    assert work is not None
    assert work.due_at == clock.now()


# -------------------------------------------------------------------------------------------------- claims


async def _claim(
    storage: Storage, epoch: int, campaign: Campaign | None, sender: SenderPace | None = None
) -> Granted | None:
    workspace_id = THIS_WORKSPACE if campaign is None else campaign.workspace_id
    wanted = Wanted(workspace_id=workspace_id, campaign=campaign, senders=[sender])
    [granted] = await storage.write(lambda tx: leases.claim_all(tx, [wanted], epoch=epoch, now=NOW))
    return granted


def _sender() -> SenderPace:
    return SenderPace(workspace_id=THIS_WORKSPACE, phone=PHONE, spacing=spacing(60), next_slot_at=None)


async def _given(storage: Storage, count: int, workspace_id: str = THIS_WORKSPACE) -> list[Campaign]:
    made = [make_campaign(id=new_id(), workspace_id=workspace_id, status=CampaignStatus.ACTIVE) for _ in range(count)]

    def operation(tx: Transaction) -> None:
        if tx.workspaces.get(workspace_id) is None:
            tx.workspaces.insert(make_workspace(id=workspace_id, name=workspace_id))

    await storage.write(operation)
    return [await given_campaign(storage, campaign=campaign) for campaign in made]


async def test_one_worker_at_a_time_drives_a_campaign(storage: Storage) -> None:
    """The other is refused until it is freed; then it keeps a spacing from the last start of the first."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    [campaign] = await _given(storage, 1)
    await storage.write(lambda tx: tx.runs.put(make_run(campaign_id=campaign.id, owner_epoch=first, next_slot_at=NOW)))
    assert await _claim(storage, first, campaign) == Granted(spacings={})
    assert await _claim(storage, second, campaign) is None
    await storage.write(lambda tx: leases.release_claim(tx, THIS_WORKSPACE, campaign.id, first))
    apart = spacing(campaign.rate_per_minute or 1)
    assert await _claim(storage, second, campaign) == Granted(spacings={campaign.id: apart})
    run = await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id))
    assert run is not None
    assert (run.owner_epoch, run.next_slot_at) == (second, NOW + apart)
    assert await _claim(storage, first, campaign) is None


async def test_what_sends_from_rated_numbers_is_driven_by_one_worker(storage: Storage) -> None:
    """Late starts of two would exceed a rate; who has the numbers takes their campaigns, whatever its portion.

    Those of one workspace go together: a pool may send from any of them.
    """
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    campaigns = await _given(storage, 3)
    for number, campaign in enumerate(campaigns):
        other = attrs.evolve(_sender(), phone=f"+1415555012{number}")
        assert await _claim(storage, second, campaign, other) == Granted(spacings={})
        assert await _claim(storage, first, campaign, _sender()) is None
    assert await _claim(storage, first, None, _sender()) is None
    assert await _claim(storage, first, None) == Granted(spacings={})


async def test_a_number_keeps_its_pace_over_the_workers_that_drive_it(storage: Storage) -> None:
    """The next one starts a spacing after the claim, because every start of the one before lies before that."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    await storage.write(lambda tx: tx.numbers.insert(make_number(phone=PHONE, rate_per_minute=60)))
    await storage.write(lambda tx: tx.runs.put_sender_slot(THIS_WORKSPACE, PHONE, NOW - timedelta(seconds=9)))
    free = Granted(spacings={_sender().key: timedelta()})
    assert await _claim(storage, first, None, _sender()) == free
    await storage.write(lambda tx: leases.end_worker(tx, first))
    sender = _sender()
    assert await _claim(storage, second, None, sender) == Granted(spacings={sender.key: sender.spacing})
    assert await storage.read(lambda tx: tx.runs.sender_slot(THIS_WORKSPACE, PHONE)) == NOW + sender.spacing


@pytest.mark.parametrize(
    ("noted", "free"), [(-9, 0), (0.4, 0.4), (40, 1)], ids=["long ago", "just now", "before the clock was set back"]
)
async def test_a_number_of_which_no_claim_is_left_keeps_its_pace(storage: Storage, noted: float, free: float) -> None:
    """A worker that was alone has cleared them. Its slot tells when it is free, or the clock was set back since."""
    await storage.write(
        lambda tx: tx.runs.put_sender_slot(THIS_WORKSPACE, PHONE, NOW + timedelta(seconds=noted)),
    )
    sender, epoch = _sender(), await _join(storage, place=1)
    await storage.write(lambda tx: tx.numbers.insert(make_number(phone=PHONE, rate_per_minute=60)))
    assert await _claim(storage, epoch, None, sender) == Granted(spacings={sender.key: timedelta(seconds=free)})
    slot = await storage.read(lambda tx: tx.runs.sender_slot(THIS_WORKSPACE, PHONE))
    assert slot == NOW + timedelta(seconds=min(noted, free))


async def test_a_worker_claims_no_more_than_its_portion(storage: Storage) -> None:
    """What is left waits for the others; one of them always has room. Alone, it takes everything."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    campaigns = await _given(storage, 5)
    granted = [await _claim(storage, first, campaign) is not None for campaign in campaigns]
    assert granted == [True, False, False, False, False]
    assert [await _claim(storage, second, campaign) is not None for campaign in campaigns[1:4]] == [True, True, False]
    assert await _claim(storage, first, campaigns[3]) is not None
    await storage.write(lambda tx: leases.end_worker(tx, second))
    assert [await _claim(storage, first, campaign) is not None for campaign in campaigns] == [True] * 5


async def test_a_small_workspace_is_driven_by_one_worker(storage: Storage) -> None:
    """Whatever its portion, so that its transactions wait for no others."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    a, b, c = [await _given(storage, 3, workspace_id) for workspace_id in "abc"]
    asked = [(first, a[0]), (second, b[0]), (second, a[1]), (first, a[1]), (second, b[1]), (first, a[2])]
    granted = [await _claim(storage, epoch, campaign) is not None for epoch, campaign in asked]
    assert granted == [True, True, False, True, True, True]
    assert [await _claim(storage, epoch, c[0]) is not None for epoch in (first, second)] == [False, True]


async def test_what_is_committed_without_a_claim_is_refused(storage: Storage) -> None:
    """What nobody has driven is claimed by the commit; what another one drove last has to be claimed first."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    subjects = ("a", "b")

    def may(tx: Transaction, epoch: int) -> bool:
        return leases.may_commit(tx, THIS_WORKSPACE, subjects, epoch)

    assert await storage.write(lambda tx: may(tx, first)) is True
    assert await storage.write(lambda tx: may(tx, second)) is False
    with pytest.raises(NotClaimed):
        await storage.write(lambda tx: leases.require_claims(tx, THIS_WORKSPACE, subjects, second))
    await storage.write(lambda tx: leases.release_claim(tx, THIS_WORKSPACE, "a", first))
    assert await storage.write(lambda tx: may(tx, second)) is False
    # Nobody else was there meanwhile.
    assert await storage.write(lambda tx: may(tx, first)) is True
    assert await storage.read(lambda tx: [one.subject for one in tx.claims.held()]) == ["a", "b"]


async def test_a_worker_that_begins_alone_takes_everything(storage: Storage) -> None:
    """What others have left of claims is forgotten, once all slots are moved behind what they may have started."""
    first = await _join(storage, place=1)
    [campaign] = await _given(storage, 1)
    await _claim(storage, first, campaign)
    await _join(storage, place=1)
    assert await storage.read(lambda tx: tx.claims.get(THIS_WORKSPACE, campaign.id)) is None


async def test_only_what_workers_without_a_lease_left_is_abandoned(storage: Storage) -> None:
    """A living worker's intents are its own, however low its epoch is."""
    await storage.write(lambda tx: tx.workers.put(make_worker(epoch=2)))
    assert await storage.read(lambda tx: list(tx.dispatches.abandoned({2}, limit=9))) == []


# ------------------------------------------------------------------------------------------- two engines


async def _given_campaigns(one: Rig, count: int, recipients: int, **changes: Any) -> list[Campaign]:
    workspace = await given_workspace(one.engine)
    return [
        await rig.given_campaign(one.engine, workspace, rig.contacts(recipients, first=100 * number), **changes)
        for number in range(count)
    ]


def _sent(*rigs: Rig) -> list[int]:
    return [len(one.carrier.requests) for one in rigs]


async def test_two_engines_share_the_campaigns_of_one_database() -> None:
    """Both dispatch, both send, everybody is reached once, and each campaign by one of them at a time."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    async with dispatching(storage) as one, dispatching(storage) as two:
        assert [each.dispatcher.health().state for each in (one, two)] == ["dispatching", "dispatching"]
        campaigns = await _given_campaigns(one, 6, 20, rate_per_minute=120)
        for campaign in campaigns:
            await one.engine.campaigns.start(campaign.workspace_id, campaign.id)
        for campaign in campaigns:
            await reaches(one.engine, campaign, "completed")
        assert sum(_sent(one, two)) == 120
        assert min(_sent(one, two)) >= 40
        for campaign in campaigns:
            assert {person.status for person in await people(one.engine, campaign)} == {RecipientStatus.COMPLETED}


@pytest.mark.parametrize("ended", [False, True])
async def test_a_call_is_polled_as_often_by_several_engines_as_by_one(ended: bool) -> None:
    """Not at each heartbeat, at which what is due is looked at again: the provider limits how often it is asked."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    config = attrs.evolve(CALLS, heartbeat_interval_seconds=2.0, call_poll_seconds=10.0, call_analysis_wait_seconds=200)
    asked: list[float] = []

    async def status(*, workspace_id: str, dispatch_id: str, provider_id: str | None) -> None:
        asked.append(clock_of_loop().monotonic())

    async with dispatching(storage, config=config) as one, dispatching(storage, config=config) as two:
        for each in (one, two):
            each.voice.status = status  # type: ignore[method-assign]
        workspace = await given_workspace(one.engine)
        agent_id = await given_agent(one.engine, workspace)
        call = await one.engine.calls.create(workspace.id, NewCall(agent_id=agent_id, to="+14155550101"))
        [request] = [*one.voice.requests, *two.voice.requests]
        if ended:
            await one.worker.report(event(request, CallStatus.COMPLETED))
            asked.clear()
        await anyio.sleep(100)
        # After 20, 40 and 80 s, or every 10 s.
        assert len(asked) == 3 if ended else 8 <= len(asked) <= 11
        assert (await one.engine.calls.get(workspace.id, call.id)).is_open is not ended


async def test_a_third_engine_stands_by_until_a_place_is_free() -> None:
    """docs/operations.md: it says so, and takes over when another one ends."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    async with dispatching(storage) as one, dispatching(storage) as third_place, dispatching(storage) as two:
        assert [each.dispatcher.health().state for each in (one, third_place, two)] == [
            "dispatching",
            "dispatching",
            "standing_by",
        ]
        await third_place.dispatcher.stop(grace_seconds=1.0)
        await until_true(lambda: two.dispatcher.health().state == "dispatching")


async def test_what_an_engine_drives_is_handed_over_when_it_stops() -> None:
    """In order, so that nothing is unknown; the other takes it up within a heartbeat."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    async with dispatching(storage) as one:
        async with dispatching(storage) as two:
            campaigns = await _given_campaigns(one, 4, 20, rate_per_minute=60)
            for campaign in campaigns:
                await one.engine.campaigns.start(campaign.workspace_id, campaign.id)
            await until_true(lambda: min(_sent(one, two)) >= 4)
        for campaign in campaigns:
            await reaches(one.engine, campaign, "completed")
        assert sum(_sent(one, two)) == 80


async def test_a_newcomer_is_handed_its_portion() -> None:
    """The one that drives everything gives up what is more than its own."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    async with dispatching(storage) as one:
        campaigns = await _given_campaigns(one, 4, 30, rate_per_minute=150)
        for campaign in campaigns:
            await one.engine.campaigns.start(campaign.workspace_id, campaign.id)
        await one.carrier.wait_for_requests(8)
        async with dispatching(storage) as two:
            for campaign in campaigns:
                await reaches(one.engine, campaign, "completed")
            assert sum(_sent(one, two)) == 120
            assert min(_sent(one, two)) >= 20


async def test_an_engine_that_hangs_is_replaced_when_its_lease_is_over() -> None:
    """Its campaigns go on at the other one; the request that it had begun is unknown, and nobody is asked twice."""
    hanging = anyio.Event()
    carrier = ScriptedCarrier()
    answer = carrier.send

    async def hang(message: object) -> DispatchOutcome:
        if not hanging.is_set():
            hanging.set()
            await anyio.sleep_forever()
        return await answer(message)  # type: ignore[arg-type]

    carrier.send = hang  # type: ignore[method-assign]
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    async with dispatching(storage, carrier=carrier) as one, dispatching(storage) as two:
        workspace = await given_workspace(two.engine)
        campaign = await rig.given_campaign(two.engine, workspace, 5, rate_per_minute=60)
        await one.engine.campaigns.start(workspace.id, campaign.id)
        # Its own task is held up, so that it renews nothing; the other one claims what it drove.
        renew = one.worker.renew

        async def never(epoch: int) -> None:
            await anyio.sleep_forever()

        one.worker.renew = never  # type: ignore[method-assign]
        two_epoch = two.dispatcher.health().epoch

        async def alone() -> bool:
            return [row.epoch for row in await storage.read(lambda tx: tx.workers.list())] == [two_epoch]

        await until(alone, timeout_seconds=60)
        one.worker.renew = renew  # type: ignore[method-assign]

        async def ended() -> bool:
            states = {person.status for person in await people(two.engine, campaign)}
            return states <= {RecipientStatus.COMPLETED, RecipientStatus.UNKNOWN}

        await until(ended, timeout_seconds=120)
        ids = [message.dispatch_id for each in (one, two) for message in each.carrier.requests]
        assert len(ids) == len(set(ids))


async def test_a_stop_at_one_engine_holds_at_the_other_from_its_next_commit() -> None:
    """docs/delivery-contract.md#rule-3: it stands in the database, which every commit reads."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    async with dispatching(storage, config=QUICK) as one, dispatching(storage) as two:
        campaigns = await _given_campaigns(one, 2, 40, rate_per_minute=60)
        for campaign in campaigns:
            await one.engine.campaigns.start(campaign.workspace_id, campaign.id)
        await until_true(lambda: min(_sent(one, two)) >= 1)
        for each, campaign in zip((one, two), campaigns, strict=True):
            await each.engine.campaigns.pause(campaign.workspace_id, campaign.id)
        before = _sent(one, two)
        await anyio.sleep(10)
        assert _sent(one, two) == before
        for campaign in campaigns:
            open_states = {DispatchState.DISPATCHING, DispatchState.UNKNOWN}
            for person in await people(one.engine, campaign):
                made = await one.engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, person.position)
                assert not open_states & {dispatch.state for dispatch in made}


async def test_a_worker_that_was_killed_is_replaced_before_its_lease_is_over() -> None:
    """Its place is free, so the worker that had it at the last heartbeat is gone."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    async with dispatching(storage) as one, dispatching(storage) as two:
        killed = two.dispatcher.health().epoch

        async def never(epoch: int) -> None:
            await anyio.sleep_forever()

        two.worker.renew = never  # type: ignore[method-assign]
        with anyio.fail_after(5):
            await anyio.sleep(1)
            assert killed in await _living(storage)
            await storage.lock.release(2)
            while killed in await _living(storage):  # noqa: ASYNC110 - it is asked of a database
                await anyio.sleep(0.02)
        assert await _living(storage) == [one.dispatcher.health().epoch]


async def test_a_lock_that_does_not_answer_holds_up_no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked who is gone, and not waited for."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)

    async def find_free(places: Collection[int]) -> Collection[int]:
        await anyio.sleep_forever()
        return places

    monkeypatch.setattr(storage.lock, "find_free", find_free)
    async with dispatching(storage) as one, dispatching(storage) as two:
        await anyio.sleep(20)  # longer than a lease
        assert await _living(storage) == [each.dispatcher.health().epoch for each in (one, two)]


# -------------------------------------------------------------------------------------------- one worker


def _claims_of(storage: Storage, noted: dict[str, float]) -> Claims:
    return Claims(storage=storage, clock=clock_of_loop(), idle_seconds=15.0, note_pace=noted.__setitem__)


async def _tick(storage: Storage, held: Claims) -> None:
    free = held.to_free()
    held.note(await storage.write(lambda tx: held.look_around(tx, free)), free)


async def test_nothing_is_handed_over_that_is_in_work(storage: Storage) -> None:
    """What waits to start would start beside what the next one starts; a slice ends first, and so does a request."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    campaigns = await _given(storage, 2)
    held = _claims_of(storage, {})
    held.begin(first, alone=True)
    wanted = [Wanted(workspace_id=THIS_WORKSPACE, campaign=one) for one in campaigns]
    for campaign in campaigns:
        await storage.write(lambda tx, one=campaign: leases.may_commit(tx, THIS_WORKSPACE, [one.id], first))  # type: ignore[misc]
    await _tick(storage, held)
    with held.slice(_unit(campaigns[0])) as slice_, held.slice(_unit(campaigns[1])) as other:
        assert [await slice_.take(wanted[0]), await other.take(wanted[1])] == [False, True]
    head = (THIS_WORKSPACE, campaigns[0].id)
    held.enter(head)
    await _tick(storage, held)
    assert await storage.read(lambda tx: len(tx.claims.held())) == 2
    assert await _claim(storage, second, campaigns[0]) is None
    held.leave(head)
    await _tick(storage, held)
    assert [one.subject for one in await storage.read(lambda tx: tx.claims.held())] == [campaigns[1].id]
    assert await _claim(storage, second, campaigns[0]) == Granted(spacings={})


@pytest.mark.parametrize(
    ("mine", "others", "kept"),
    [
        # The portion is 3: another workspace would be too much.
        ("aabbcc", "", "bbcc"),
        # Of one that is larger than the portion, what is too much.
        ("aaaaaa", "", "aaa"),
        # Of a large one, not all at once that is too much.
        (18 * "a", "", 10 * "a"),
        # The other drives most of it.
        ("abbbcc", "aa", "bbbcc"),
        # Both drive half of it: the worker that came first keeps it.
        ("ab", "ab", "ab"),
    ],
)
async def test_whole_workspaces_are_handed_over(storage: Storage, mine: str, others: str, kept: str) -> None:
    """Where they are no larger than a worker's portion. Nothing is claimed of them until all of it is free."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    held = _claims_of(storage, {})
    held.begin(first, alone=True)
    for epoch, workspaces in ((first, mine), (second, others)):
        for workspace_id in workspaces:
            [campaign] = await _given(storage, 1, workspace_id)
            subjects = [campaign.id]
            await storage.write(partial(leases.may_commit, workspace_id=workspace_id, subjects=subjects, epoch=epoch))
    await _tick(storage, held)
    for workspace_id in set(mine) - set(kept):
        assert not await held.hold(Wanted(workspace_id=workspace_id, campaign=None))
    await _tick(storage, held)
    found = await storage.read(lambda tx: tx.claims.held())
    left = [one.workspace_id for one in found if one.epoch == first and one.subject != SINGLES]
    assert "".join(sorted(left)) == kept


async def test_what_is_not_driven_for_long_is_freed(storage: Storage) -> None:
    """A campaign that waits for the morning is anybody's then."""
    first, _ = await _join(storage, place=1), await _join(storage, place=2)
    [campaign] = await _given(storage, 1)
    held = _claims_of(storage, {})
    held.begin(first, alone=False)
    with held.slice(_unit(campaign)) as slice_:
        assert await slice_.take(Wanted(workspace_id=THIS_WORKSPACE, campaign=campaign))
    await _tick(storage, held)
    assert await storage.read(lambda tx: len(tx.claims.held())) == 1
    await anyio.sleep(16)
    await _tick(storage, held)
    assert await storage.read(lambda tx: len(tx.claims.held())) == 0


async def test_a_worker_that_is_alone_asks_for_no_claim(storage: Storage) -> None:
    """Nothing is written before its first commit, so that one worker costs what it did."""
    first = await _join(storage, place=1)
    [campaign] = await _given(storage, 1)
    held = _claims_of(storage, {})
    held.begin(first, alone=True)
    with held.slice(_unit(campaign)) as slice_:
        assert await slice_.take(Wanted(workspace_id=THIS_WORKSPACE, campaign=campaign))
    await _tick(storage, held)
    assert await storage.read(lambda tx: tx.claims.get(THIS_WORKSPACE, campaign.id)) is None


# ------------------------------------------------------------------------------------------------ clocks


@pytest.mark.parametrize("ahead", [-8.0, -0.2, 0.2, 8.0])
def test_a_machine_goes_by_the_clock_of_the_database(ahead: float) -> None:
    """Its own may be ahead or behind, and is set right as often as the two are compared."""
    database, machine = ManualClock(), ManualClock(NOW + timedelta(seconds=ahead))
    clock = SharedClock(machine)
    clock.follow(database.now)
    assert clock.now() == database.now()
    machine.advance(3)
    assert clock.now() == NOW + timedelta(seconds=3)
    machine.set(database.now())
    clock.follow(database.now)
    assert clock.now() == database.now()


@pytest.mark.parametrize("ahead", [-0.1, 0.0, 0.05])
def test_clocks_that_hardly_differ_are_taken_for_one(ahead: float) -> None:
    """The way to a database takes a moment, and no two looks are at once."""
    machine = ManualClock(NOW + timedelta(seconds=ahead))
    clock = SharedClock(machine)
    clock.follow(lambda: NOW)
    assert clock.now() == machine.now()


async def test_what_a_lost_worker_left_is_settled_also_if_that_fails_at_first() -> None:
    """Nobody else looks for it: the next heartbeat tries again."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    async with storage:
        [(first, _), (worker, epoch)] = await _given_workers(storage, clock_of_loop(), 2)
        settle = worker._settle_abandoned
        tried: list[int] = []

        async def failing() -> None:
            tried.append(len(tried))
            if len(tried) == 1:
                raise StorageError("The disk is full.")
            await settle()

        worker._settle_abandoned = failing  # type: ignore[method-assign]
        await storage.lock.release(1)
        with pytest.raises(StorageError):
            await worker.renew(epoch)
        await worker.renew(epoch)
        await worker.renew(epoch)
        assert tried == [0, 1]
        await first.release()
        await worker.release()


@pytest.mark.parametrize("trouble", ["commit", "note"])
async def test_what_a_lost_worker_left_is_settled_also_if_the_heartbeat_that_ended_its_lease_failed(
    monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Nobody can tell whether it was committed, or the note beside the file could not be written then."""
    storage = WatchedStorage(MemoryStorage(clock=clock_of_loop(), workers=2))
    async with storage:
        [(worker, epoch), (lost, lost_epoch)] = await _given_workers(storage, clock_of_loop(), 2)
        left = make_dispatch(epoch=lost_epoch)
        await storage.write(lambda tx: (tx.workspaces.insert(make_workspace()), tx.dispatches.insert(left)))
        await worker.renew(epoch)
        await storage.lock.release(2)

        async def fail(_: object) -> None:
            raise CommitUnknown("Nobody can tell.")

        def refuse(mark: object, *, ended: bool = False) -> None:
            raise DispatchRefused("The disk is full.", reason="note")

        with monkeypatch.context() as patch:
            if trouble == "commit":
                patch.setattr(storage, "after_write", fail)
            else:
                patch.setattr(storage.lock, "record_high_water", refuse)
            with pytest.raises((CommitUnknown, DispatchRefused)):
                await worker.renew(epoch)
        await worker.renew(epoch)
        settled = await storage.read(lambda tx: tx.dispatches.get(left.workspace_id, left.id))
        assert settled is not None
        assert settled.state is DispatchState.UNKNOWN
        await worker.release()
        await lost.release()


async def test_a_worker_goes_by_the_clock_of_the_database_before_it_plans_anything() -> None:
    """As the engine was opened, the database may have been away: nobody has compared their clocks since."""
    compared: list[Sequence[WorkerLease]] = []
    async with MemoryStorage(clock=clock_of_loop()) as storage:
        worker = make_engine_worker(
            storage, clock_of_loop(), compare_clocks=lambda tx: compared.append(tx.workers.list())
        )
        await worker.acquire()
        assert compared == [[]]
        await worker.release()


async def test_a_report_before_the_first_lease_is_merged_by_the_clock_of_the_database() -> None:
    """A process takes reports in as soon as it is there: the wait for a retry begins by the time of all others."""
    shared = SharedClock(clock_of_loop())
    async with MemoryStorage(clock=clock_of_loop()) as storage:
        worker = make_engine_worker(
            storage,
            shared,
            compare_clocks=lambda _: shared.follow(lambda: clock_of_loop().now() + timedelta(seconds=30)),
        )
        report = MessageReport(
            workspace_id=new_id(),
            provider="twilio",
            dispatch_id=new_id(),
            provider_id=None,
            status=MessageStatus.SENT,
            at=NOW,
        )
        await worker.report(report)
        assert shared.now() - clock_of_loop().now() > timedelta(seconds=29)


async def test_clocks_are_compared_as_soon_as_the_database_is_there() -> None:
    """A write that did not reach it has compared nothing."""
    compared: list[Transaction] = []
    guard = LoopGuard()
    guard.bind()

    def fail() -> None:
        raise StorageError("The database is away.")

    async with WatchedStorage(MemoryStorage(clock=clock_of_loop())) as storage:
        guarded = GuardedStorage(
            storage, guard, clock=clock_of_loop(), compare_clocks=compared.append, archives=ledger_archives()
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(storage, "before_write", fail)
            with pytest.raises(StorageError):
                await guarded.write(lambda _: None)
        for _ in range(2):
            await guarded.write(lambda _: None)
            assert len(compared) == 1


async def test_a_worker_in_doubt_begins_no_more_requests() -> None:
    """They would be cut off in the midst of its end, and nobody would know what became of them."""
    async with MemoryStorage(clock=clock_of_loop()) as storage:
        [(worker, epoch)] = await _given_workers(storage, clock_of_loop(), 1)
        await worker.renew(epoch)
        assert worker.lease_seconds_left > 0
        worker.doubt()
        with pytest.raises(LeaseLost):
            await worker.renew(epoch)
        assert worker.lease_seconds_left <= 0
        await worker.release()


async def test_a_refused_slice_names_the_worker_that_drives_what_it_needed(storage: Storage) -> None:
    """A dispatcher that hands work on has to know to whom. A slice that was not refused names no worker."""
    first, second = await _join(storage, place=1), await _join(storage, place=2)
    [campaign, other] = await _given(storage, 2)
    assert await _claim(storage, second, campaign) == Granted(spacings={})
    held = _claims_of(storage, {})
    held.begin(first, alone=False)
    with held.slice(_unit(campaign)) as slice_:
        assert not await slice_.take(Wanted(workspace_id=THIS_WORKSPACE, campaign=campaign))
    assert [await held.refused_by(_unit(campaign)) for _ in range(2)] == [second, None]
    with held.slice(_unit(other)) as slice_:
        assert await slice_.take(Wanted(workspace_id=THIS_WORKSPACE, campaign=other))
    assert await held.refused_by(_unit(other)) is None


def _unit(campaign: Campaign) -> WorkUnit:
    return WorkUnit("campaign", campaign.workspace_id, campaign.id)
