from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest

from outreach import Outreach
from outreach.core.clock import UuidV7Source
from outreach.dispatch.runner import Runner
from outreach.dispatch.worker import Worker
from outreach.errors import LeaseLost, StorageUnreachable
from outreach.ledger.leases import leases
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, DispatchState, RecipientStatus
from outreach.models.work import WorkUnit
from outreach.protocols.storage import Storage
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, accept
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import CALLS, POSITIVE, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.provider_pool import provider_pool_of
from tests.engine.rig import (
    QUICK,
    WatchedStorage,
    dispatching,
    given_campaign,
    given_workspace,
    make_engine_worker,
    people,
    sending,
    start_campaign,
    until,
    until_true,
)

pytestmark = pytest.mark.virtual_time

D, R = DispatchState, RecipientStatus


class _Gate:
    """Keeps every request to a provider until it is opened; then the provider says yes."""

    def __init__(self) -> None:
        self.opened = anyio.Event()
        self.asked: list[str] = []

    async def ask(self, request: Any) -> DispatchOutcome:
        """Take a request and answer it once the gate is open."""
        self.asked.append(request.dispatch_id)
        await self.opened.wait()
        return DispatchOutcome(state=D.ACCEPTED, provider_id=f"p-{len(self.asked)}")


class _Slice:
    """The wake_signal of a slice that is to stop once so many requests have been made."""

    def __init__(self, gate: _Gate, *, most: int) -> None:
        self._gate, self._most = gate, most

    @property
    def stopping(self) -> bool:
        """Whether they have."""
        return len(self._gate.asked) >= self._most

    async def wait(self, seconds: float) -> None:
        """Wait, but look around meanwhile."""
        await anyio.sleep(min(seconds, 0.05))


@attrs.frozen(kw_only=True)
class OldWorker:
    """A worker with one request on its way, and the campaign that it works on."""

    engine: Outreach
    storage: Storage
    worker: Worker
    runner: Runner
    epoch: int
    campaign: Campaign
    gate: _Gate
    voice: ScriptedVoice

    async def slice(self, *, most: int) -> None:
        """Work on the campaign as the worker would, under its own epoch, until so many requests have been made."""
        unit = WorkUnit("campaign", self.campaign.workspace_id, self.campaign.id)
        with anyio.fail_after(30):
            await self.runner.run_slice(
                unit, epoch=self.epoch, until=clock_of_loop().monotonic() + 20, wake_signal=_Slice(self.gate, most=most)
            )

    async def dispatches(self) -> list[Dispatch]:
        """Return all that stands in the ledger of the campaign."""
        found: list[Dispatch] = []
        workspace_id, campaign_id = self.campaign.workspace_id, self.campaign.id
        for one in await people(self.engine, self.campaign):
            found += await self.engine.campaigns.list_dispatches(workspace_id, campaign_id, one.position)
        return found

    async def settled(self) -> None:
        """Wait until the one request has its outcome."""
        await until(self.dispatches, lambda found: [one.state for one in found] == [D.ACCEPTED])

    async def hear(self, status: CallStatus, **more: Any) -> None:
        """Report a status of its call to the old worker."""
        report = CallReport(
            workspace_id=self.campaign.workspace_id,
            provider="simulator",
            dispatch_id=self.gate.asked[0],
            provider_id=None,
            status=status,
            at=clock_of_loop().now(),
            **more,
        )
        await self.worker.report(report)


@asynccontextmanager
async def overtaken(open_storage: OpenStorage, channel: str) -> AsyncIterator[OldWorker]:
    """Have a worker ask for one contact of three, and another worker take over while it waits for the answer."""
    gate, carrier, voice = _Gate(), ScriptedCarrier(), ScriptedVoice()
    carrier.send = gate.ask  # type: ignore[method-assign, assignment]
    voice.place_call = gate.ask  # type: ignore[method-assign]
    storage = open_storage(clock_of_loop())
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        workspace = await given_workspace(engine)
        if channel == "call":
            campaign = await given_calls(engine, workspace, 3, batch_concurrency=1)
        else:
            campaign = await given_campaign(engine, workspace, 3)
        await engine.campaigns.start(workspace.id, campaign.id)
        # One request at a time, of messages as of calls.
        config = attrs.evolve(CALLS, max_queued_intents=1, max_requests_in_flight=1)
        worker = make_engine_worker(storage, clock_of_loop(), config)
        runner = Runner(
            storage=storage,
            clock=clock_of_loop(),
            ids=UuidV7Source(clock=clock_of_loop(), rng=random.Random(1)),
            config=config,
            provider_pool=provider_pool_of(carrier, voice),
            worker=worker,
        )
        epoch = await worker.acquire()
        assert epoch is not None
        old = OldWorker(
            engine=engine,
            storage=storage,
            worker=worker,
            runner=runner,
            epoch=epoch,
            campaign=campaign,
            gate=gate,
            voice=voice,
        )
        async with anyio.create_task_group() as tasks:
            await tasks.start(runner.serve)
            await old.slice(most=1)
            await until_true(lambda: len(gate.asked) == 1)
            await storage.write(lambda tx: leases.take_over(tx, home=None, noted=None, now=clock_of_loop().now()))
            yield old
            tasks.cancel_scope.cancel()
        await worker.release()


channels = pytest.mark.parametrize("channel", ["sms", "call"])


@channels
async def test_a_worker_that_lost_its_lease_commits_no_new_intent(open_storage: OpenStorage, channel: str) -> None:
    """The epoch is the fence: no intent, no request and no call record come of its next wave.

    docs/delivery-contract.md#rule-11.
    """
    async with overtaken(open_storage, channel) as old:
        # Otherwise its one place is taken, and it would not even try.
        old.gate.opened.set()
        await old.settled()
        if channel == "call":
            await old.hear(**POSITIVE)
        before = [one.id for one in await old.dispatches()]
        with pytest.raises(LeaseLost):
            await old.slice(most=2)
        assert [one.id for one in await old.dispatches()] == before
        assert old.gate.asked == before
        statuses = [one.status for one in await people(old.engine, old.campaign)]
        assert statuses[1:] == [R.PENDING, R.PENDING]


@channels
async def test_the_outcomes_of_a_worker_that_lost_its_lease_are_merged(open_storage: OpenStorage, channel: str) -> None:
    """docs/delivery-contract.md#rule-8: what its request came to is recorded, and so is the end of its call."""
    async with overtaken(open_storage, channel) as old:
        old.gate.opened.set()
        await old.settled()
        (dispatch,) = await old.dispatches()
        assert (dispatch.state, dispatch.epoch, dispatch.provider_id) == (D.ACCEPTED, old.epoch, "p-1")
        if channel == "call":
            await old.hear(CallStatus.RINGING)
            await old.hear(**POSITIVE)
        first = (await people(old.engine, old.campaign))[0]
        assert (first.status, first.successful) == (R.COMPLETED, True)
        campaign = await old.engine.campaigns.get(old.campaign.workspace_id, old.campaign.id)
        assert campaign.counters == await old.engine.campaigns.recount(old.campaign.workspace_id, old.campaign.id)


async def test_the_outcome_of_a_worker_that_lost_its_lease_overrules_the_doubt(open_storage: OpenStorage) -> None:
    """The new worker took the call as unknown; the old one's answer is evidence, and frees no place too early."""
    async with overtaken(open_storage, "call") as old:
        new = make_engine_worker(old.storage, clock_of_loop(), CALLS)
        await old.worker.release()
        assert await new.acquire() == old.epoch + 2
        assert [one.state for one in await old.dispatches()] == [D.UNKNOWN]
        assert (await people(old.engine, old.campaign))[0].status is R.UNKNOWN
        old.gate.opened.set()
        await old.settled()
        assert (await people(old.engine, old.campaign))[0].status is R.IN_PROGRESS
        await new.release()


async def test_outcomes_that_nobody_could_record_are_recorded_under_the_next_lease(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database did not answer when the lease was lost: all that still waited for it gave up together.

    docs/delivery-contract.md#rule-8.
    """
    record, away = Worker._settle, list[int]()

    async def be_away_once(self: Worker, outcomes: Sequence[tuple[Dispatch, DispatchOutcome]]) -> Sequence[Any]:
        if not away and len(outcomes) == 1:
            await anyio.sleep(0.05)  # the others come meanwhile
        elif not away:
            away.append(len(outcomes))
            await anyio.sleep_forever()
        return await record(self, outcomes)

    async def is_away() -> bool:
        return bool(away)

    monkeypatch.setattr(Worker, "_settle", be_away_once)
    # All answer at the same time.
    carrier = ScriptedCarrier([accept(seconds=1.0 - 0.1 * number) for number in range(6)])
    config = attrs.evolve(QUICK, stop_grace_seconds=0.2)
    async with sending(open_storage(clock_of_loop()), 30, carrier=carrier, config=config) as (rig, campaign):
        await until(is_away)
        epoch = rig.dispatcher.health().epoch
        assert epoch is not None
        await rig.storage.write(lambda tx: leases.end_worker(tx, epoch))
        await until(lambda: people(rig.engine, campaign), lambda found: {one.status for one in found} == {R.COMPLETED})


async def test_what_providers_answered_while_the_database_was_away_is_recorded_when_it_is_back(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """A failover often takes the answer to a commit, and so the lease, with it; docs/delivery-contract.md#rule-8."""
    carrier = ScriptedCarrier([accept(seconds=0.5)] * 3)

    def be_away() -> None:
        raise StorageUnreachable("It is away.")

    async with dispatching(open_storage(clock_of_loop()), carrier=carrier) as rig:
        campaign = await start_campaign(rig.engine, await given_workspace(rig.engine), 3)
        await carrier.wait_for_requests(3)
        rig.storage.before_write = be_away
        rig.worker.doubt()
        # Longer than the answers, its grace and the last moment for outcomes together.
        await anyio.sleep(5)
        assert {one.status for one in await people(rig.engine, campaign)} == {R.DISPATCHING}
        rig.storage.before_write = lambda: None
        await until(lambda: people(rig.engine, campaign), lambda found: {one.status for one in found} == {R.COMPLETED})
        assert len(carrier.requests) == 3
    assert "unknown until this process can record it" in caplog.text
    assert "have no outcome" not in caplog.text


async def test_a_loss_that_is_found_as_the_lease_is_taken_pauses_what_runs(open_storage: OpenStorage) -> None:
    """The transaction that takes it may be the first one that finds that the database was set back."""
    storage = WatchedStorage(open_storage(clock_of_loop()))
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        campaign = await start_campaign(engine, await given_workspace(engine), 3)
        worker = make_engine_worker(storage, clock_of_loop(), CALLS)
        await worker.acquire()
        await worker.release()

        def find_loss() -> None:
            storage.before_write = lambda: None
            mark = storage.lock.high_water()
            assert mark is not None
            storage.lock.record_high_water(attrs.evolve(mark, epoch=mark.epoch + 1))

        storage.before_write = find_loss
        await worker.acquire()
        assert (await engine.campaigns.get(campaign.workspace_id, campaign.id)).pause_reason == "restored"
        await worker.release()


async def test_what_was_kept_is_recorded_also_while_another_worker_dispatches(open_storage: OpenStorage) -> None:
    """It may do so for weeks, and takes the request for unknown; one that cannot be recorded is tried again."""
    async with overtaken(open_storage, "sms") as old:
        await old.worker.release()
        watched = WatchedStorage(old.storage)
        new, standby = (make_engine_worker(storage, clock_of_loop(), CALLS) for storage in (old.storage, watched))
        assert await new.acquire()
        (dispatch,) = await old.dispatches()
        assert dispatch.state is D.UNKNOWN
        standby.keep(dispatch, DispatchOutcome(state=D.ACCEPTED, provider_id="p-1"))

        def be_away() -> None:
            raise StorageUnreachable("It is away.")

        watched.before_write = be_away
        assert await standby.acquire() is None
        assert [one.state for one in await old.dispatches()] == [D.UNKNOWN]
        watched.before_write = lambda: None
        assert await standby.acquire() is None
        assert [one.state for one in await old.dispatches()] == [D.ACCEPTED]
        before = watched.writes
        assert await standby.acquire() is None
        assert watched.writes == before
        await new.release()


async def test_who_ends_tries_to_record_what_was_kept_until_it_is(open_storage: OpenStorage) -> None:
    """The dispatcher gives it what is left of the grace."""
    async with overtaken(open_storage, "sms") as old:
        watched, failed = WatchedStorage(old.storage), list[int]()
        ending = make_engine_worker(watched, clock_of_loop(), CALLS)

        def be_away_for_a_while() -> None:
            failed.append(len(failed))
            if len(failed) < 5:
                raise StorageUnreachable("It is away.")

        watched.before_write = be_away_for_a_while
        await ending.settle_kept()
        assert failed == []
        (dispatch,) = await old.dispatches()
        ending.keep(dispatch, DispatchOutcome(state=D.ACCEPTED, provider_id="p-1"))
        await ending.settle_kept()
        assert [one.state for one in await old.dispatches()] == [D.ACCEPTED]
        assert len(failed) == 5


@pytest.mark.parametrize("later", [600.0, 1800.0])
async def test_a_kept_answer_asks_to_wait_for_what_is_left_of_its_time(open_storage: OpenStorage, later: float) -> None:
    """Whatever has passed meanwhile says nothing of the account any more."""
    async with overtaken(open_storage, "sms") as old:
        (dispatch,) = await old.dispatches()
        busy = DispatchOutcome(state=D.DEFERRED, reason="rate_limited", retry_after_seconds=900.0)
        old.worker.keep(dispatch, busy)
        await anyio.sleep(later)
        await old.worker.settle_kept()
        throttle = await old.storage.read(
            lambda tx: tx.provider_throttles.get(dispatch.workspace_id, dispatch.provider)
        )
        if later > 900:
            assert throttle is None
        else:
            assert throttle is not None
            assert (throttle.until - clock_of_loop().now()).total_seconds() == pytest.approx(900 - later, abs=1)
        assert [one.state for one in await old.dispatches()] == [D.DEFERRED]


async def test_a_lease_that_cannot_be_given_back_does_not_end_the_dispatcher(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is over anyway: the next one is taken, and what is started then is sent."""
    clock = clock_of_loop()
    async with dispatching(open_storage(clock)) as rig:
        release = rig.worker.release
        failed = 0

        async def fail_once() -> None:
            nonlocal failed
            await release()
            failed += 1
            if failed == 1:
                raise OSError("I/O error")

        monkeypatch.setattr(rig.worker, "release", fail_once)
        await rig.storage.write(lambda tx: leases.take_over(tx, home=None, noted=None, now=clock.now()))
        await until_true(lambda: failed > 0)
        await start_campaign(rig.engine, await given_workspace(rig.engine), 1)
        await rig.carrier.wait_for_requests(1)
        assert "OSError" in (rig.dispatcher.health().last_error or "")
