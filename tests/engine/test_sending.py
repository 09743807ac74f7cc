from __future__ import annotations

import asyncio
import math
import sqlite3
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import anyio
import attrs
import pytest

from outreach import (
    NewMessage,
    Outreach,
    SmsSettingsUpdate,
    WorkspaceStatus,
    WorkspaceUpdate,
)
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState, RecipientStatus
from outreach.models.work import WorkUnit
from outreach.protocols.carrier import OutboundMessage
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import (
    ScriptedCarrier,
    Step,
    accept,
    drop,
    fail,
    hang,
)
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import (
    QUICK,
    Rig,
    contacts,
    dispatching,
    given_campaign,
    given_workspace,
    people,
    reaches,
    sending,
    start_campaign,
    until,
)

pytestmark = pytest.mark.virtual_time

AT_THE_SAME_MOMENT = 1
"""A request may begin just after a stop has returned: one that had read the ledger just before the commit."""

R: TypeAlias = RecipientStatus


async def test_every_contact_gets_its_own_message_once(open_storage: OpenStorage) -> None:
    """docs/interface.md#4.3 and #4.4: rendered for each contact, with the footer, from the campaign's number."""
    async with sending(open_storage(clock_of_loop()), 5) as (rig, campaign):
        done = await reaches(rig.engine, campaign, "completed")
        assert (done.counters.completed, done.counters.successful, done.counters.pending) == (5, 5, 0)
        assert done.completed_at is not None
    assert sorted((message.to, message.body, message.from_number) for message in rig.carrier.requests) == [
        (f"+1415555{n:04d}", f"Hello N{n}\nReply STOP to opt out", "+14155550199") for n in range(5)
    ]


async def test_the_footer_follows_the_settings_as_they_are_at_the_time(open_storage: OpenStorage) -> None:
    """docs/interface.md#4.4: the footer is appended while footer_enabled is true."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_campaign(rig.engine, workspace, 1)
        await rig.engine.sms_settings.update(workspace.id, SmsSettingsUpdate(footer_enabled=False))
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await reaches(rig.engine, campaign, "completed")
        assert [message.body for message in rig.carrier.requests] == ["Hello N0"]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (fail(), "adapter_error"),
        (drop(), "dropped"),
        (hang(), "timeout"),
    ],
)
async def test_what_nobody_knows_is_unknown_and_never_repeated(
    open_storage: OpenStorage, step: Step, reason: str
) -> None:
    """An adapter that raises, a lost connection, a timeout: unknown, sent once.

    docs/delivery-contract.md#rule-5 and #rule-6.
    """
    config = attrs.evolve(QUICK, provider_timeout_seconds=0.1)
    async with sending(open_storage(clock_of_loop()), 3, carrier=ScriptedCarrier([step]), config=config) as (
        rig,
        campaign,
    ):
        await until(lambda: _settled(rig, campaign.workspace_id, campaign.id, 2))
        await until(lambda: _reason(rig.engine, campaign.workspace_id, campaign.id, 0, reason))
        await rig.engine.campaigns.pause(campaign.workspace_id, campaign.id)
        await rig.engine.campaigns.resume(campaign.workspace_id, campaign.id)
        await anyio.sleep(0.15)
        assert sorted(message.to for message in rig.carrier.requests) == [f"+1415555{n:04d}" for n in range(3)]
        assert (await rig.engine.campaigns.get(campaign.workspace_id, campaign.id)).status == "active"


@pytest.mark.parametrize(
    "details",
    [
        {"provider_id": "\ud83d", "error_message": "Cut off: \ud83d\x00"},
        {"error_message": {"code": 5}, "retry_after_seconds": math.nan},
        {"provider_id": 5, "retry_after_seconds": "5"},
    ],
)
async def test_an_outcome_is_recorded_whatever_its_details_are(
    open_storage: OpenStorage, details: dict[str, Any]
) -> None:
    """A provider's words may end in half an emoji, and adapters of a host are not all careful."""
    accepted = accept()
    assert accepted.outcome is not None
    odd = attrs.evolve(accepted, outcome=attrs.evolve(accepted.outcome, **details))
    async with sending(open_storage(clock_of_loop()), 1, carrier=ScriptedCarrier([odd])) as (rig, campaign):
        await reaches(rig.engine, campaign, "completed")
        (dispatch,) = await rig.engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, 0)
        assert dispatch.state is DispatchState.ACCEPTED
        assert [(one.status, one.reason) for one in await people(rig.engine, campaign)] == [(R.COMPLETED, None)]


async def test_a_slice_that_fails_backs_off_and_is_reported(open_storage: OpenStorage) -> None:
    """docs/rules.md#dispatching: errors of a runner are told in health(), and its unit is tried again after a while."""
    async with sending(open_storage(clock_of_loop()), 1) as (rig, campaign):
        failures = 0

        def break_once() -> None:
            nonlocal failures
            if not failures and rig.dispatcher.health().active_units:
                failures += 1
                raise sqlite3.OperationalError("disk I/O error")

        rig.storage.before_write = break_once
        await reaches(rig.engine, campaign, "completed")
        health = rig.dispatcher.health()
        assert (failures, len(rig.carrier.requests)) == (1, 1)
        assert health.failures >= 1
        assert health.last_error is not None
        assert health.last_error.startswith("OperationalError at ")


@pytest.mark.field(6)
async def test_cancel_lets_nothing_more_out_and_closes_the_others(open_storage: OpenStorage) -> None:
    """Field, test 6 (listmonk #1010 drains its batch): open recipients close as canceled, what was sent keeps its end.

    docs/states.md#recipients.
    """
    async with sending(open_storage(clock_of_loop()), 700) as (rig, campaign):
        await rig.carrier.wait_for_requests(2)
        await rig.engine.campaigns.cancel(campaign.workspace_id, campaign.id)
        before = len(rig.carrier.requests)
        await until(lambda: _closed(rig.engine, campaign.workspace_id, campaign.id))
        over = await reaches(rig.engine, campaign, "cancelled")
        sent = {message.to for message in rig.carrier.requests}
        assert len(rig.carrier.requests) == len(sent) <= before + AT_THE_SAME_MOMENT
        states = {one.phone: one.status for one in await people(rig.engine, campaign)}
        assert {phone for phone, status in states.items() if status is R.COMPLETED} == sent
        assert set(states.values()) == {R.COMPLETED, R.CANCELED}
        assert over.counters.completed == len(sent)


async def test_expiry_in_the_middle_ends_the_campaign_soon(open_storage: OpenStorage) -> None:
    """By the clock; a slice of 30 s does not keep an expired campaign active, or the loop busy.

    docs/states.md#campaigns.
    """
    clock = ShiftedClock()
    async with dispatching(open_storage(clock), clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        expiry = clock.now() + timedelta(minutes=10)
        campaign = await start_campaign(rig.engine, workspace, 50, scheduled_expires_at=expiry)
        await rig.carrier.wait_for_requests(1)
        clock.shift(timedelta(minutes=10))
        with anyio.fail_after(QUICK.time_slice_seconds * 0.8):
            await reaches(rig.engine, campaign, "expired")
            await until(lambda: _closed(rig.engine, workspace.id, campaign.id))
        late = [message for message in rig.carrier.requests if message.not_after != expiry]
        assert late == []
        assert {one.status for one in await people(rig.engine, campaign)} <= {R.COMPLETED, R.EXPIRED}


async def test_a_scheduled_campaign_starts_at_its_time(open_storage: OpenStorage) -> None:
    """docs/states.md#campaigns: scheduled becomes active when its start is reached, and not before."""
    clock = ShiftedClock()
    async with dispatching(open_storage(clock), clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        start = clock.now() + timedelta(hours=3)
        campaign = await given_campaign(rig.engine, workspace, 1, schedule_type="scheduled", scheduled_start_at=start)
        assert (await rig.engine.campaigns.start(workspace.id, campaign.id)).status == "scheduled"
        await anyio.sleep(0.1)
        assert rig.carrier.requests == []
        clock.shift(timedelta(hours=3))
        done = await reaches(rig.engine, campaign, "completed")
        assert done.started_at is not None
        assert done.started_at >= start


@pytest.mark.parametrize(("days", "status", "requests"), [(0, "completed", 1), (3, "paused", 0)])
async def test_a_start_that_comes_while_the_workspace_is_suspended_waits_for_it(
    open_storage: OpenStorage, days: int, status: str, requests: int
) -> None:
    """Nothing is sent by surprise days later; a start that is still in its grace takes place.

    docs/states.md#campaigns.
    """
    clock = ShiftedClock()
    async with dispatching(open_storage(clock), clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        start = clock.now() + timedelta(hours=1)
        campaign = await start_campaign(rig.engine, workspace, 1, schedule_type="scheduled", scheduled_start_at=start)
        await rig.engine.workspaces.update(workspace.id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
        looked = 0
        run_slice = rig.dispatcher._runner.run_slice

        async def counted(unit: WorkUnit, **terms: Any) -> datetime | None:
            nonlocal looked
            looked += 1
            return await run_slice(unit, **terms)

        rig.dispatcher._runner.run_slice = counted  # type: ignore[method-assign]
        clock.shift(timedelta(hours=1, days=days))
        await anyio.sleep(0.3)
        assert (await rig.engine.campaigns.get(workspace.id, campaign.id)).status == "scheduled"
        # It is looked at when it was to start, and then when somebody has changed something: not again and again.
        assert looked <= 5
        await rig.engine.workspaces.update(workspace.id, WorkspaceUpdate(status=WorkspaceStatus.ACTIVE))
        done = await reaches(rig.engine, campaign, status)
        assert (done.pause_reason, len(rig.carrier.requests)) == ("missed_start" if days else None, requests)


async def test_a_suspended_workspace_sends_nothing_and_goes_on_when_it_is_active_again(
    open_storage: OpenStorage,
) -> None:
    """docs/states.md#workspaces: a suspended workspace keeps its campaigns' states and sends nothing."""
    async with sending(open_storage(clock_of_loop()), 8) as (rig, campaign):
        await rig.carrier.wait_for_requests(2)
        await rig.engine.workspaces.update(campaign.workspace_id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
        sent = len(rig.carrier.requests)
        await anyio.sleep(0.3)
        assert len(rig.carrier.requests) <= sent + AT_THE_SAME_MOMENT
        assert (await rig.engine.campaigns.get(campaign.workspace_id, campaign.id)).status == "active"
        await rig.engine.workspaces.update(campaign.workspace_id, WorkspaceUpdate(status=WorkspaceStatus.ACTIVE))
        await reaches(rig.engine, campaign, "completed")
        assert sorted(message.to for message in rig.carrier.requests) == [f"+1415555{n:04d}" for n in range(8)]


async def test_stop_with_requests_in_flight_records_what_is_known(open_storage: OpenStorage) -> None:
    """docs/rules.md#dispatching: stopping waits for what is in flight, within its grace; the rest is unknown."""
    storage = open_storage(clock_of_loop())
    carrier = ScriptedCarrier(lambda message: hang() if message.to.endswith("1") else accept(seconds=0.2))
    config = attrs.evolve(QUICK, stop_grace_seconds=0.6)
    async with sending(storage, 2, carrier=carrier, config=config) as (_, campaign):
        await carrier.wait_for_requests(2)
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        assert [(one.status, one.reason) for one in await people(engine, campaign)] == [
            (R.COMPLETED, None),
            (R.UNKNOWN, "interrupted"),
        ]


class Deaf(ScriptedCarrier):
    """Ignores each cancellation until it is released, after an hour at the latest."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()
        asyncio.get_running_loop().call_later(3600, self.released.set)
        self.task: asyncio.Task[None] | None = None

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Wait, and accept the message."""
        self.task = asyncio.current_task()
        while not self.released.is_set():
            with suppress(asyncio.CancelledError):
                await self.released.wait()
        return await super().send(message)


@pytest.mark.parametrize(("seconds", "reason"), [(1.0, "timeout"), (60.0, "interrupted")])
async def test_a_request_whose_adapter_ignores_its_cancellation_is_unknown_and_left_behind(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture, seconds: float, reason: str
) -> None:
    """At the end of its time, and as the engine is closed; its outcome is recorded once."""
    storage, carrier = open_storage(clock_of_loop()), Deaf()
    config = attrs.evolve(QUICK, provider_timeout_seconds=seconds, stop_grace_seconds=0.2)
    async with sending(storage, 1, carrier=carrier, config=config) as (rig, _):

        async def asked() -> bool:
            return carrier.task is not None

        await until(asked)
        await anyio.sleep(10)
        held = rig.worker.permits.requests.held
    assert held == (0 if reason == "timeout" else 1)
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        (workspace,) = await engine.workspaces.list()
        (before,) = await engine.dispatches.list_unknown(workspace.id)
        assert before.reason == reason
        carrier.released.set()
        assert carrier.task is not None
        await carrier.task
        assert list(await engine.dispatches.list_unknown(workspace.id)) == [before]
    lines = [record for record in caplog.records if record.__dict__.get("action") == "adapter_does_not_stop"]
    assert [line.__dict__["dispatch_id"] for line in lines] == [before.id]


async def test_stop_does_not_wait_for_a_place_at_a_provider_that_hangs(open_storage: OpenStorage) -> None:
    """`stop` keeps its grace also while a slice waits for one of the bounded places."""
    config = attrs.evolve(
        QUICK, max_queued_intents=1, max_requests_in_flight=1, stop_grace_seconds=0.2, provider_timeout_seconds=30.0
    )
    carrier = ScriptedCarrier([hang(), hang()])
    async with dispatching(open_storage(clock_of_loop()), carrier=carrier, config=config) as rig:
        workspace = await given_workspace(rig.engine)
        first = await given_campaign(rig.engine, workspace, 1)
        second = await given_campaign(rig.engine, workspace, contacts(1, first=50))
        for campaign in (first, second):
            await rig.engine.campaigns.start(workspace.id, campaign.id)
        await rig.engine.messages.send(workspace.id, NewMessage(to="+14155559999", body="x"))
        await rig.carrier.wait_for_requests(1)
        await anyio.sleep(0.3)
        stopped_at = anyio.current_time()
    assert anyio.current_time() - stopped_at < 15
    assert len(carrier.requests) == 1


async def test_no_more_intents_are_without_an_outcome_than_the_bound(open_storage: OpenStorage) -> None:
    """docs/delivery-contract.md#rule-1: intents without an outcome are bounded for each process."""
    # One account gets three of four requests: the last is for another. Once they hang no further intent is committed.
    config = attrs.evolve(QUICK, max_queued_intents=2, max_requests_in_flight=4, stop_grace_seconds=0.05)
    storage = open_storage(clock_of_loop())
    async with sending(storage, 9, carrier=ScriptedCarrier(lambda _: hang()), config=config) as (rig, campaign):
        await rig.carrier.wait_for_requests(3)
        await anyio.sleep(0.5)
        states = [one.status for one in await people(rig.engine, campaign)]
        assert 3 <= states.count(R.DISPATCHING) <= 3 + 2
        assert len(rig.carrier.requests) == 3


async def _settled(rig: Rig, workspace_id: str, campaign_id: str, count: int) -> bool:
    counters = (await rig.engine.campaigns.get(workspace_id, campaign_id)).counters
    return counters.completed >= count


async def _reason(engine: Outreach, workspace_id: str, campaign_id: str, position: int, reason: str) -> bool:
    found = [one async for one in engine.campaigns.iter_recipients(workspace_id, campaign_id)]
    return found[position].reason == reason


async def _closed(engine: Outreach, workspace_id: str, campaign_id: str) -> bool:
    return (await engine.campaigns.get(workspace_id, campaign_id)).counters.open == 0
