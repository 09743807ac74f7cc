"""A clock that is set back or forth: what was noted by the time from before holds nothing up, and lets nothing go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import attrs
import pytest

from outreach import BusinessHours, NewRecipient, TimeWindow
from outreach.core.clock import Clock, StepWatch
from outreach.dispatch.campaign_runner import CampaignRunner
from outreach.dispatch.outbox import Outbox
from outreach.ledger import provider_throttles
from outreach.ledger.campaigns import transitions
from outreach.ledger.leases import clock_steps, leases
from outreach.ledger.sending.intents import frequency_capped_until
from outreach.models.campaign import Campaign
from outreach.models.dispatch import DispatchOutcome
from outreach.models.plans import Postponement, Wave, WaveResult
from outreach.models.resources import FlowStep
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus, TrailRule
from outreach.models.work import WorkUnit
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.dispatcher import WakeSignal
from outreach.protocols.storage import Storage
from outreach.rules.phones import MAX_NUMBER_WAIT, NUMBER_BUSY
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_dispatch,
    make_flow,
    make_lease,
    make_message,
    make_provider_throttle,
    make_workspace,
)
from outreach.testing.clock import ManualClock, ShiftedClock
from outreach.testing.scripted import ScriptedCarrier
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, TICK
from tests.engine.conftest import OpenStorage
from tests.engine.flow_course import Course
from tests.engine.given import SECOND, commit, commit_wave, given_active, given_settings, recipient, reread
from tests.engine.rig import (
    QUICK,
    WatchedStorage,
    dispatching,
    given_workspace,
    make_engine_worker,
    people,
    reaches,
    sending,
    start_campaign,
    until,
)
from tests.engine.writing import entry, write

pytestmark = pytest.mark.virtual_time

HOUR = timedelta(hours=1)
RECEIPT = timedelta(hours=4)
BACK = timedelta(minutes=50)


def test_a_watch_reports_a_step_of_the_clock_once() -> None:
    """It reports how far it was set. Time that passes is no step, nor is a clock that is slewed."""
    clock = ManualClock()
    watch = StepWatch(clock)
    none = timedelta()
    clock.advance(3600)
    assert watch.step() == none
    clock.set(clock.now() + HOUR)
    assert (watch.step(), watch.step()) == (HOUR, none)
    assert watch.looked_at == clock.now()
    clock.set(clock.now() - timedelta(seconds=0.9))
    assert watch.step() == none
    clock.set(clock.now() - timedelta(seconds=1))
    assert (watch.step(), watch.step()) == (timedelta(seconds=-1), none)


async def test_what_was_noted_by_a_time_that_lasted_for_less_than_a_heartbeat_is_looked_at(
    open_storage: OpenStorage,
) -> None:
    """Between two heartbeats the clock was set forth and back again, so that these alone would notice nothing."""
    clock = ShiftedClock()
    unit = WorkUnit("call", THIS_WORKSPACE, "call")
    async with open_storage(clock) as storage:
        worker = make_engine_worker(storage, clock)
        epoch = await worker.acquire()
        assert epoch is not None
        clock.shift(HOUR)
        await storage.write(lambda tx: (tx.workspaces.insert(make_workspace()), tx.work.schedule(unit, clock.now())))
        clock.shift(-HOUR)
        worker.note_set_back(HOUR)
        await worker.renew(epoch)
        work = await storage.read(lambda tx: tx.work.get(unit))
        assert work is not None
        assert work.due_at is not None
        assert work.due_at <= clock.now()
        await worker.release()


async def test_a_step_that_comes_while_a_heartbeat_is_written_is_the_next_ones(open_storage: OpenStorage) -> None:
    """Also if it is smaller than the one that is being repaired."""
    clock = ShiftedClock()
    unit = WorkUnit("call", THIS_WORKSPACE, "call")
    storage = WatchedStorage(open_storage(clock))
    async with storage:
        worker = make_engine_worker(storage, clock)
        epoch = await worker.acquire()
        assert epoch is not None
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))

        async def step(_: object) -> None:
            storage.after_write = None
            clock.shift(HOUR)
            await storage.write(lambda tx: tx.work.schedule(unit, clock.now()))
            clock.shift(-HOUR)
            worker.note_set_back(HOUR)

        clock.shift(-2 * HOUR)
        storage.after_write = step
        await worker.renew(epoch)
        await worker.renew(epoch)
        work = await storage.read(lambda tx: tx.work.get(unit))
        assert work is not None
        assert work.due_at is not None
        assert work.due_at <= clock.now()
        await worker.release()


@pytest.mark.parametrize("step", [HOUR, timedelta(days=4000), -HOUR])
async def test_a_server_that_starts_again_after_the_clock_was_set_sends_at_once(
    tmp_path: Path, step: timedelta
) -> None:
    """The slots, the due times and the lease of the wrong time are all ahead of now."""
    clock = ShiftedClock()
    clock.shift(step)
    async with sending(_file(tmp_path, clock), 100, carrier=ScriptedCarrier(), clock=clock, rate_per_minute=120) as (
        rig,
        _,
    ):
        await rig.carrier.wait_for_requests(2)
    clock.shift(-step)
    carrier = ScriptedCarrier()
    async with dispatching(_file(tmp_path, clock), carrier=carrier, clock=clock) as rig:
        await carrier.wait_for_requests(2)
        await rig.engine.campaigns.pause_all()


async def test_a_campaign_that_is_resumed_before_its_start_is_scheduled_again(storage: Storage) -> None:
    """It was started and paused by a time that was wrong; active, it would be tried all the time, in vain."""
    start = NOW + HOUR
    campaign = await given_active(
        storage,
        status=CampaignStatus.PAUSED,
        schedule_type="scheduled",
        scheduled_start_at=start,
        carrier="twilio",
        from_number="+14155550199",
    )
    await storage.write(lambda tx: transitions.resume(tx, THIS_WORKSPACE, campaign.id, now=NOW, actor="test"))
    assert (await reread(storage, campaign)).status is CampaignStatus.SCHEDULED
    assert await storage.read(lambda tx: [work.due_at for work in tx.work.due()]) == [start]


async def test_an_intent_from_before_the_clock_was_set_back_is_withdrawn_and_decided_again(
    open_storage: OpenStorage,
) -> None:
    """Its hours were open by a time that was wrong; and its place is not kept until the old time comes again."""
    clock = ShiftedClock()
    carrier = ScriptedCarrier()
    config = attrs.evolve(QUICK, sparse_look_ahead_seconds=1.5, look_ahead_seconds=1.5)
    async with sending(open_storage(clock), 20, carrier=carrier, clock=clock, config=config, rate_per_minute=60) as (
        rig,
        campaign,
    ):
        await carrier.wait_for_requests(1)

        async def ahead() -> list[int]:
            everybody = await people(rig.engine, campaign)
            return [one.position for one in everybody if one.status is RecipientStatus.DISPATCHING and one.position]

        [position, *_] = await until(ahead)
        clock.shift(-HOUR)
        await carrier.wait_for_requests(4)
        await rig.engine.campaigns.pause_all()
        tried = await rig.storage.read(
            lambda tx: tx.dispatches.of_recipient(campaign.workspace_id, campaign.id, position)
        )
    assert (DispatchState.WITHDRAWN, "clock_set_back") in {(one.state, one.reason) for one in tried}


async def test_hours_that_were_open_before_the_clock_was_set_back_are_looked_at_again(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was set back to before the opening while a campaign waited for its permits."""
    opening = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    clock = ShiftedClock(opening + timedelta(seconds=1))
    hours = BusinessHours(
        enabled=True,
        timezone="UTC",
        schedule={"monday": (TimeWindow(start_minute=9 * 60, end_minute=17 * 60),)},
        batch_concurrency=10,
    )
    reserve, began, waited = Outbox.reserve, list[datetime](), 0

    async def wait_and_reserve(self: Outbox, account: str, wake_signal: WakeSignal, *, wanted: int = 1) -> int:
        nonlocal waited
        waited += 1
        if waited == 1:
            clock.shift(timedelta(seconds=-3))
        return await reserve(self, account, wake_signal, wanted=wanted)

    class NotingCarrier(ScriptedCarrier):
        async def send(self, message: OutboundMessage) -> DispatchOutcome:
            began.append(clock.now())
            return await super().send(message)

    monkeypatch.setattr(Outbox, "reserve", wait_and_reserve)
    async with sending(open_storage(clock), 2, carrier=NotingCarrier(), clock=clock, business_hours=hours) as (
        rig,
        campaign,
    ):
        await reaches(rig.engine, campaign, "completed")
    assert waited
    assert min(began) >= opening


async def test_contact_hours_that_were_open_before_the_clock_was_set_back_are_looked_at_again(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They opened while a campaign waited for its permits; the clock was set back between decision and commit."""
    opening = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
    awake, asleep = [f"+44207123456{number}" for number in range(6)], "+17875550101"
    clock = ShiftedClock(opening - timedelta(seconds=3))
    reserve, commit_all = Outbox.reserve, CampaignRunner._commit_all
    began, is_set_back = dict[str, datetime](), False

    async def wait_and_reserve(self: Outbox, account: str, wake_signal: WakeSignal, *, wanted: int = 1) -> int:
        if began and clock.now() < opening and not is_set_back:
            await anyio.sleep(4)
        return await reserve(self, account, wake_signal, wanted=wanted)

    async def set_back_and_commit(self: CampaignRunner, decided: Sequence[Wave]) -> Sequence[WaveResult]:
        nonlocal is_set_back
        if not is_set_back and asleep in {intent.to for wave in decided for intent in wave.intents}:
            clock.shift(timedelta(seconds=-3))
            is_set_back = True
        return await commit_all(self, decided)

    class NotingCarrier(ScriptedCarrier):
        async def send(self, message: OutboundMessage) -> DispatchOutcome:
            began[message.to] = clock.now()
            return await super().send(message)

    monkeypatch.setattr(Outbox, "reserve", wait_and_reserve)
    monkeypatch.setattr(CampaignRunner, "_commit_all", set_back_and_commit)
    async with dispatching(open_storage(clock), carrier=NotingCarrier(), clock=clock) as rig:
        workspace = await given_workspace(rig.engine, contact_hours=True)
        contacts = [NewRecipient(phone_number=phone) for phone in (*awake, asleep)]
        campaign = await start_campaign(rig.engine, workspace, contacts, body="Hello")
        await reaches(rig.engine, campaign, "completed")
    assert is_set_back
    assert began[asleep] >= opening


@pytest.mark.parametrize(("back", "retry"), [(0, 15), (9, 15), (50, 10)])
async def test_a_wait_from_a_time_ahead_is_no_longer_than_one_that_begins_now(
    storage: Storage, back: int, retry: int
) -> None:
    """It waits as long as was left before the step, where that is known. A shorter wait keeps its time."""
    campaign = await given_active(storage, 6)
    await given_settings(storage, retry_enabled=True, retry_delay_minutes=15)
    waits = [
        (RecipientStatus.WAITING, "retry", HOUR),
        (RecipientStatus.WAITING, "retry", timedelta(minutes=10)),
        (RecipientStatus.WAITING, "deferred", HOUR),
        (RecipientStatus.WAITING, "contact_hours", 9 * HOUR),
        (RecipientStatus.IN_PROGRESS, "awaiting_receipt", 5 * HOUR),
        (RecipientStatus.IN_PROGRESS, "awaiting_receipt", 3 * HOUR),
    ]
    await _given_waits(storage, campaign, waits)
    await storage.write(lambda tx: clock_steps.repair_after_clock_step(tx, timedelta(minutes=back), epoch=1, now=NOW))
    # One at a time: what was given its time is not gone through again.
    for _ in range(9):
        await _release(storage, campaign, limit=1)
    due = [(await recipient(storage, campaign, position)).due_at for position in range(6)]
    minutes = [None if at is None else (at - NOW) / timedelta(minutes=1) for at in due]
    assert minutes == [retry, 10, 0, 0, 240, 180]
    run = await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id))
    assert run is not None
    assert clock_steps.recorded_setback(run) is None


async def test_a_step_of_a_flow_waits_for_its_own_wait_again(storage: Storage) -> None:
    """Never shorter: who was to get a reminder after three days does not get it at once."""
    steps = [
        FlowStep(kind="send", body="Hello"),
        FlowStep(kind="wait", wait_minutes=20),
        FlowStep(kind="send", body="Hello again"),
        FlowStep(kind="wait", wait_minutes=4320),
        FlowStep(kind="send", body="Goodbye"),
    ]
    flow = make_flow(steps=tuple(steps))
    await storage.write(lambda tx: tx.flows.insert(flow))
    campaign = await given_active(storage, 2, message_source="flow", flow_id=flow.id)
    await _given_waits(storage, campaign, [(RecipientStatus.WAITING, "flow_wait", 400 * 24 * HOUR)] * 2, steps=(2, 4))
    await storage.write(lambda tx: clock_steps.repair_after_clock_step(tx, BACK, epoch=1, now=NOW))
    await _release(storage, campaign, limit=9)
    due = [(await recipient(storage, campaign, position)).due_at for position in range(2)]
    assert due == [NOW + timedelta(minutes=20), NOW + timedelta(minutes=4320)]


@pytest.mark.parametrize("contact_hours", [False, True], ids=["next step", "left out"])
async def test_a_contact_that_was_due_by_a_wrong_time_goes_on_waiting(
    storage: Storage, clock: ManualClock, contact_hours: bool
) -> None:
    """The clock was set back between decision and commit: the next step of a flow neither comes nor is left out."""
    steps = [
        FlowStep(kind="send", body="Hello"),
        FlowStep(kind="wait", wait_minutes=4320),
        FlowStep(kind="send" if contact_hours else "stop_if_replied", body="Hello again" if contact_hours else None),
        FlowStep(kind="send", body="Goodbye"),
    ]
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(contact_hours=contact_hours)))
    course = await Course.begin(storage, clock, *steps)
    await _given_waits(storage, course.campaign, [(RecipientStatus.WAITING, "flow_wait", 72 * HOUR)], steps=(2,))
    waits = await recipient(storage, course.campaign)
    clock.set(NOW + 96 * HOUR)
    wave = await course.decided()
    # No number of these belongs to a time zone.
    assert [one.recipient for one in (wave.endings if contact_hours else wave.advances)] == [waits]
    clock.set(NOW)
    await storage.write(lambda tx: commit_wave(tx, wave, clock_now=clock.now))
    assert await recipient(storage, course.campaign) == waits


@pytest.mark.parametrize("ahead", [False, True])
async def test_a_takeover_finds_out_that_the_clock_was_set_back(storage: Storage, ahead: bool) -> None:
    """By the last heartbeat, or by a campaign that was changed ahead of now."""
    campaign = await given_active(storage)
    message = make_message()
    later = NOW + HOUR
    await storage.write(lambda tx: leases.take_over(tx, home=None, noted=None, now=later if ahead else NOW))
    await storage.write(lambda tx: tx.messages.insert(message))
    await storage.write(lambda tx: tx.work.schedule(WorkUnit("message", THIS_WORKSPACE, message.id), later))
    await storage.write(lambda tx: tx.work.schedule(WorkUnit("campaign", THIS_WORKSPACE, campaign.id), later))
    await storage.write(lambda tx: leases.take_over(tx, home=None, noted=None, now=NOW))
    due = {work.unit.id: work.due_at for work in await storage.read(lambda tx: tx.work.due())}
    run = await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id))
    # Units are looked at in any case: that changes nothing.
    assert due == dict.fromkeys((message.id, campaign.id), NOW)
    assert run is not None or not ahead
    assert (run and clock_steps.recorded_setback(run)) == (HOUR if ahead else None)


@pytest.mark.parametrize(
    ("status", "reason", "wait", "is_wrong"),
    [
        (RecipientStatus.WAITING, "flow", TICK, True),
        (RecipientStatus.WAITING, "operator_retry", TICK, True),
        (RecipientStatus.WAITING, "retry", timedelta(minutes=15), False),
        (RecipientStatus.WAITING, "retry", timedelta(minutes=15) + TICK, True),
        (RecipientStatus.WAITING, NUMBER_BUSY, MAX_NUMBER_WAIT, False),
        (RecipientStatus.WAITING, NUMBER_BUSY, MAX_NUMBER_WAIT + TICK, True),
        (RecipientStatus.WAITING, "deferred", timedelta(days=1), False),
        (RecipientStatus.WAITING, "deferred", timedelta(days=1) + TICK, True),
        (RecipientStatus.WAITING, "contact_hours", timedelta(days=9), False),
        (RecipientStatus.IN_PROGRESS, "awaiting_receipt", RECEIPT, False),
        (RecipientStatus.IN_PROGRESS, "awaiting_receipt", RECEIPT + TICK, True),
    ],
)
async def test_a_takeover_finds_waits_that_a_wrong_clock_made(
    storage: Storage, status: RecipientStatus, reason: str, wait: timedelta, is_wrong: bool
) -> None:
    """While no worker ran the clock was set forth and back, and an operator's decision was written in between."""
    campaign = await given_active(storage, 1)
    await given_settings(storage, retry_enabled=True, retry_delay_minutes=15)
    await _given_waits(storage, campaign, [(status, reason, wait)])
    await storage.write(lambda tx: leases.take_over(tx, home=None, noted=None, now=NOW, receipt=RECEIPT))
    run = await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id))
    assert (run and clock_steps.recorded_setback(run)) == (timedelta() if is_wrong else None)


async def test_a_postponement_keeps_the_waits_that_are_to_be_looked_at(storage: Storage) -> None:
    """A wave that was decided before a takeover found these waits is committed after it."""
    campaign = await given_active(storage, 2)
    await _given_waits(storage, campaign, [(RecipientStatus.WAITING, "flow", HOUR)])
    other = await recipient(storage, campaign, 1)
    await storage.write(lambda tx: clock_steps.correct_waits(tx, receipt=RECEIPT, epoch=1, now=NOW))
    postponed = Postponement(
        recipient=other, due_at=NOW + HOUR, reason=TrailRule.CONTACT_HOURS, rule=TrailRule.CONTACT_HOURS
    )
    await commit(storage, campaign, 9, postponements=[postponed])
    assert (await recipient(storage, campaign, 1)).reason == "contact_hours"
    await _release(storage, campaign, limit=9)
    assert [(await recipient(storage, campaign, position)).due_at for position in range(2)] == [NOW, NOW]


@pytest.mark.parametrize(("back", "created"), [(50, -40), (0, 0)])
async def test_an_unknown_dispatch_was_committed_by_as_much_earlier_as_the_clock_was_set_back(
    storage: Storage, back: int, created: int
) -> None:
    """Its provider is asked for what it has received since then; where that is not known, it was before now."""
    campaign = await given_active(storage, 2)
    fields = {"campaign_id": campaign.id, "message_id": None, "state": DispatchState.UNKNOWN}
    ahead = make_dispatch(**fields, position=0, created_at=NOW + timedelta(minutes=10))
    past = make_dispatch(**fields, position=1, created_at=NOW - HOUR)
    await storage.write(lambda tx: [tx.dispatches.insert(one) for one in (ahead, past)])
    await storage.write(lambda tx: clock_steps.repair_after_clock_step(tx, timedelta(minutes=back), epoch=1, now=NOW))
    unknown = await storage.read(lambda tx: {one.id: one.created_at for one in tx.dispatches.unknown(None, limit=9)})
    expected = NOW + timedelta(minutes=created) if created else NOW - timedelta(microseconds=1)
    assert unknown == {ahead.id: expected, past.id: past.created_at}


async def test_a_campaign_was_changed_and_started_before_now(storage: Storage) -> None:
    """Else its failures and its replies of the next hour would count for nothing."""
    campaign = await given_active(storage, updated_at=NOW + HOUR, started_at=NOW + HOUR)
    await storage.write(lambda tx: clock_steps.repair_after_clock_step(tx, BACK, epoch=1, now=NOW))
    after = await reread(storage, campaign)
    assert (after.updated_at, after.started_at, after.revision) == (NOW, NOW, campaign.revision + 1)


async def test_a_hold_lasts_as_long_as_it_was_meant_to(storage: Storage) -> None:
    """From now on, for what of it has passed cannot be known; one that began before now stays as it is."""
    ahead = make_provider_throttle(since=NOW + HOUR, until=NOW + HOUR + timedelta(seconds=30))
    stands = make_provider_throttle(provider="vonage", since=NOW, until=NOW + HOUR)
    for hold in (ahead, stands):
        await storage.write(lambda tx, hold=hold: tx.provider_throttles.put(hold))  # type: ignore[misc]
    await storage.write(lambda tx: provider_throttles.restart_throttle(tx, THIS_WORKSPACE, "twilio", NOW))
    await storage.write(lambda tx: provider_throttles.restart_throttle(tx, THIS_WORKSPACE, "vonage", NOW))
    await storage.write(lambda tx: provider_throttles.restart_throttle(tx, THIS_WORKSPACE, "telnyx", NOW))
    after = await storage.read(
        lambda tx: [tx.provider_throttles.get(THIS_WORKSPACE, name) for name in ("twilio", "vonage")]
    )
    assert after == [attrs.evolve(ahead, since=NOW, until=NOW + timedelta(seconds=30)), stands]


def _file(folder: Path, clock: Clock) -> Storage:
    return SqliteStorage(folder / "engine.db", clock=clock)


async def _given_waits(
    storage: Storage,
    campaign: Campaign,
    waits: list[tuple[RecipientStatus, str, timedelta]],
    steps: tuple[int, ...] = (),
) -> None:
    def operation(tx: Transaction) -> None:
        for position, (status, reason, ahead) in enumerate(waits):
            known = tx.recipients.get(THIS_WORKSPACE, campaign.id, position)
            assert known is not None
            step = steps[position] if steps else known.step
            tx.recipients.put(
                THIS_WORKSPACE, attrs.evolve(known, status=status, reason=reason, due_at=NOW + ahead, step=step)
            )

    await storage.write(operation)


async def _release(storage: Storage, campaign: Campaign, *, limit: int) -> None:
    await storage.write(
        lambda tx: clock_steps.release_postponed(tx, THIS_WORKSPACE, campaign.id, receipt=RECEIPT, now=NOW, limit=limit)
    )


async def test_a_start_of_a_time_ahead_outweighs_no_stop(storage: Storage) -> None:
    """Which of them was written later nobody can say; a STOP counts then."""
    await write(storage, "START", now=NOW + HOUR)
    await write(storage, "STOP", now=NOW)
    assert await entry(storage) is not None


async def test_the_frequency_cap_holds_nobody_longer_than_a_day(storage: Storage) -> None:
    """What was sent before the clock was set back lies ahead of now."""
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(id=THIS_WORKSPACE, frequency_cap=1)))
    campaign = await given_active(storage)
    dispatch = make_dispatch(
        campaign_id=campaign.id, position=0, message_id=None, state=DispatchState.ACCEPTED, created_at=NOW + 240 * HOUR
    )
    await storage.write(lambda tx: tx.dispatches.insert(dispatch))

    async def capped_until(now: datetime) -> datetime | None:
        return await storage.read(lambda tx: frequency_capped_until(tx, THIS_WORKSPACE, dispatch.to, now))

    assert await capped_until(NOW) == NOW + 24 * HOUR
    # The clock runs since then: what lies ahead was sent before.
    await storage.write(lambda tx: tx.leases.put(make_lease(steady_since=NOW, steady_until=NOW)))
    assert await capped_until(NOW + HOUR) == NOW + 24 * HOUR
    assert await capped_until(NOW + 24 * HOUR) is None
    # A moment ahead it may be another node's, by a clock that is not followed yet.
    assert await capped_until(dispatch.created_at - SECOND) == dispatch.created_at - SECOND + 24 * HOUR
