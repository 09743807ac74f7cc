"""`engine.status`: who dispatches, what runs, and what needs a person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import anyio
import attrs
import pytest
from cryptography.fernet import Fernet

from outreach import (
    Campaign,
    EngineStatus,
    NewCall,
    NewCallCampaign,
    NewMessage,
    NewNumber,
    NewRecipient,
    NewWorkspace,
    NotFound,
    Outreach,
    Workspace,
    WorkspaceMode,
)
from outreach.core.config import EngineConfig
from outreach.core.vault import Vault
from outreach.insight import status as looking
from outreach.ledger.campaigns.transitions import move
from outreach.ledger.leases import leases
from outreach.models import UnknownDispatchCount
from outreach.models.campaign import PauseReason
from outreach.models.states import CallStatus, CampaignAction, DispatchState, RecipientStatus
from outreach.models.work import Lease, WorkerLease
from outreach.protocols.storage import Storage
from outreach.rules.explanations import PAUSE_REASONS
from outreach.rules.settlement import MAX_RETRY_AFTER
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_dispatch, make_message, make_provider_throttle, make_unsubscribe, new_id
from outreach.testing.clock import ManualClock, ShiftedClock
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import given_agent, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import (
    dispatching,
    given_campaign,
    given_workspace,
    sending,
    start_campaign,
    stored_account,
    until,
)

pytestmark = pytest.mark.virtual_time

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> ManualClock:
    """Noon of a Wednesday, until the test moves it."""
    return ManualClock(NOON)


@pytest.fixture
def storage(open_storage: OpenStorage, clock: ManualClock) -> Storage:
    """The database of the engine."""
    return open_storage(clock)


@pytest.fixture
async def engine(storage: Storage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """An engine that does not dispatch."""
    async with Outreach(storage, clock=clock) as engine:
        yield engine


def given_unknown(tx: Transaction, workspace_id: str, at: datetime) -> None:
    """Write a request of which nobody knows what became."""
    message = make_message(workspace_id=workspace_id)
    tx.messages.insert(message)
    tx.dispatches.insert(
        make_dispatch(workspace_id=workspace_id, message_id=message.id, created_at=at, state=DispatchState.UNKNOWN)
    )


def pause(tx: Transaction, campaign: Campaign, reason: PauseReason) -> None:
    """Pause a campaign as the engine does."""
    move(tx, campaign, CampaignAction.PAUSE, now=NOON, actor="engine", pause_reason=reason)


def beat(tx: Transaction, at: datetime, *, epoch: int = 1) -> None:
    """Write the heartbeat of a worker."""
    tx.leases.put(Lease(epoch=epoch, home=None, renewed_at=at))
    lasts = timedelta(seconds=EngineConfig().lease_seconds)
    tx.workers.put(WorkerLease(epoch=epoch, place=1, renewed_at=at, until=at + lasts))


async def test_the_leases_say_who_dispatches(engine: Outreach, storage: Storage) -> None:
    """Nobody ever; another process; nobody since; and no heartbeat of a wrong clock lies ahead of now."""
    told = (await engine.status()).dispatching
    assert (told.by, told.epoch, told.heartbeat_at, told.heartbeat_seconds_ago) == ("no_process", None, None, None)
    assert told.problem is not None
    assert told.problem.message == "No process sends from this database, and none ever has."
    for ago, by in ((10.0, "another_process"), (0.0, "another_process"), (16.0, "no_process"), (-60.0, "")):
        at = NOON - timedelta(seconds=ago)
        await storage.write(lambda tx, at=at: beat(tx, at, epoch=3))  # type: ignore[misc]
        told = (await engine.status()).dispatching
        assert (told.by, told.epoch) == (by or "another_process", 3)
        assert (told.heartbeat_at, told.heartbeat_seconds_ago) == (at, max(ago, 0.0))
        assert (told.problem and told.problem.message) == (
            "No process sends from this database, since 2026-11-18 11:59:44 UTC." if by == "no_process" else None
        )


async def test_who_has_stopped_dispatches_no_more(open_storage: OpenStorage) -> None:
    """At once, and not when its last heartbeat is old; beside others, these go on."""
    clock = clock_of_loop()
    storage = open_storage(clock)
    async with Outreach(storage, clock=clock) as engine:
        await storage.write(lambda tx: beat(tx, clock.now(), epoch=1))
        await storage.write(lambda tx: beat(tx, clock.now(), epoch=2))
        await storage.write(lambda tx: leases.end_worker(tx, 1))
        assert (await engine.status()).dispatching.by == "another_process"
        await storage.write(lambda tx: leases.end_worker(tx, 2))
        told = (await engine.status()).dispatching
        assert told.by == "no_process"
        assert told.heartbeat_seconds_ago is not None
        assert told.heartbeat_seconds_ago < 1
        assert told.problem is not None


async def test_the_process_that_dispatches_names_itself(open_storage: OpenStorage) -> None:
    """No heartbeat is needed for that."""
    storage = open_storage(clock_of_loop())
    async with Outreach(storage, dispatch=True, clock=clock_of_loop()) as engine:
        await until(engine.status, lambda found: found.dispatching.by == "this_process")
        assert (await engine.status()).severity is None


async def test_a_workspace_in_which_nothing_happens(engine: Outreach, workspace: Workspace, storage: Storage) -> None:
    """A workspace in which nothing happens, while somebody dispatches."""
    assert (await engine.status(workspace.id)).severity == "warning"
    await storage.write(lambda tx: beat(tx, NOON))
    found = await engine.status(workspace.id)
    assert found.findings == []
    assert found == EngineStatus(
        at=NOON,
        workspace_id=workspace.id,
        dispatching=found.dispatching,
        active_campaigns=0,
        scheduled_campaigns=0,
        paused=[],
        taken_back=[],
        schedules=[],
        blocked_runs=[],
        webhooks=[],
        failing=[],
        unknown=[],
        throttles=[],
        held=[],
        truncated=[],
        adapter_problems=[],
        running=[],
        accounts=[],
        silent=[],
        findings=[],
        disk=found.disk,
    )
    with pytest.raises(NotFound):
        await engine.status("nobody")


async def test_a_workspace_has_its_own_figures_and_all_have_the_sum(
    engine: Outreach, storage: Storage, clock: ManualClock
) -> None:
    """Campaigns that run, those that the engine paused, requests in doubt, providers that wait, numbers held back."""
    ours, theirs = await given_workspace(engine), await engine.workspaces.create(NewWorkspace(name="Other"))

    async def given(workspace: Workspace, name: str) -> Campaign:
        campaign = await given_campaign(engine, workspace, name=name)
        return await engine.campaigns.start(workspace.id, campaign.id)

    await given(ours, "runs")
    stopped, by_us = await given(ours, "stopped"), await given(ours, "paused by somebody")
    await engine.campaigns.pause(ours.id, by_us.id)
    await start_campaign(engine, ours, schedule_type="scheduled", scheduled_start_at=NOON + HOUR, name="later")
    hold = make_provider_throttle(workspace_id=ours.id, provider="twilio", since=NOON, until=NOON + HOUR)
    held = make_unsubscribe(workspace_id=ours.id, scope="held", source="unclear", evidence="bus stop?")

    def trouble(tx: Transaction) -> None:
        pause(tx, stopped, "provider_auth")
        given_unknown(tx, ours.id, NOON - HOUR)
        given_unknown(tx, ours.id, NOON)
        given_unknown(tx, theirs.id, NOON)
        tx.provider_throttles.put(hold)
        tx.provider_throttles.put(attrs.evolve(hold, workspace_id=theirs.id, until=NOON))
        # Written before the clock was set back: it keeps nobody from anything.
        tx.provider_throttles.put(attrs.evolve(hold, provider="telnyx", until=NOON + MAX_RETRY_AFTER + HOUR))
        tx.register.put(held)

    await storage.write(trouble)
    found = await engine.status(ours.id)
    assert (found.active_campaigns, found.scheduled_campaigns) == (1, 1)
    [one] = found.paused
    assert (one.id, one.workspace_id, one.name, one.channel) == (stopped.id, ours.id, "stopped", "sms")
    assert (one.provider, one.agent_id) == ("twilio", None)
    assert (one.reason, one.why) == ("provider_auth", PAUSE_REASONS["provider_auth"])
    in_doubt = UnknownDispatchCount(workspace_id=ours.id, count=2, since=NOON - HOUR)
    assert list(found.unknown) == [in_doubt]
    [wait] = found.throttles
    assert (wait.workspace_id, wait.provider, wait.until) == (ours.id, "twilio", NOON + HOUR)
    assert list(found.held) == [held]
    assert found.truncated == []
    other = await engine.status(theirs.id)
    assert (other.active_campaigns, other.scheduled_campaigns) == (0, 0)
    assert (list(other.paused), list(other.throttles), list(other.held)) == ([], [], [])
    everything = await engine.status()
    assert everything.workspace_id is None
    assert list(everything.unknown) == [in_doubt, *other.unknown]
    assert (everything.active_campaigns, everything.paused, everything.held) == (1, found.paused, found.held)
    await engine.campaigns.resume(ours.id, stopped.id)
    assert (await engine.status()).paused == []
    assert (await engine.status()).active_campaigns == 2


async def test_long_lists_are_cut_and_named(open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look is bounded; what goes on beyond it says so."""
    monkeypatch.setattr(looking, "MAX_LISTED", 2)
    monkeypatch.setattr(looking, "MAX_COUNTED", 2)
    clock = ManualClock(NOON)
    storage = open_storage(clock)
    async with Outreach(storage, clock=clock) as engine:
        workspace = await given_workspace(engine)
        campaigns = [await given_campaign(engine, workspace, name=f"c{number}") for number in range(3)]
        for campaign in campaigns:
            await engine.campaigns.start(workspace.id, campaign.id)

        def add(tx: Transaction, number: int) -> None:
            pause(tx, tx.campaigns.get(workspace.id, campaigns[number].id) or campaigns[number], "error_budget")
            given_unknown(tx, workspace.id, NOON)
            provider = ("twilio", "telnyx", "vonage")[number]
            tx.provider_throttles.put(
                make_provider_throttle(workspace_id=workspace.id, provider=provider, since=NOON, until=NOON + HOUR)
            )
            tx.register.put(make_unsubscribe(workspace_id=workspace.id, scope="held", phone=f"+1415555010{number}"))

        for number in range(3):
            await storage.write(lambda tx, number=number: add(tx, number))  # type: ignore[misc]
            found = await engine.status()
            counted = (len(found.paused), found.unknown[0].count, len(found.throttles), len(found.held))
            assert counted == (min(number + 1, 2),) * 4
            assert found.truncated == (["paused", "unknown", "throttles", "held"] if number == 2 else [])


async def test_what_runs_is_listed_with_how_far_it_is(
    engine: Outreach, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one workspace or of all, oldest first; more than a list holds is said."""
    ours, theirs = await given_workspace(engine), await given_workspace(engine)
    campaigns: list[Campaign] = []
    for workspace in (ours, theirs, ours):
        campaign = await given_campaign(engine, workspace, name=f"c{len(campaigns)}")
        campaigns.append(await engine.campaigns.start(workspace.id, campaign.id))
        clock.advance(1)
    found = await engine.status(ours.id)
    assert [(one.id, one.name, one.recipients, one.ended) for one in found.running] == [
        (campaigns[0].id, "c0", 3, 0),
        (campaigns[2].id, "c2", 3, 0),
    ]
    assert [one.id for one in (await engine.status()).running] == [one.id for one in campaigns]
    monkeypatch.setattr(looking, "MAX_LISTED", 2)
    everything = await engine.status()
    assert (len(everything.running), everything.truncated) == (2, ["running"])


async def test_what_is_due_and_waits_is_the_lag(engine: Outreach, storage: Storage, clock: ManualClock) -> None:
    """Of campaigns that may contact somebody now, and of single messages; not of what has to wait."""
    workspace = await given_workspace(engine)
    campaign = await start_campaign(engine, workspace)
    assert (await engine.status()).lag_seconds == 0
    clock.advance(90)
    found = await engine.status(workspace.id)
    assert (found.lag_seconds, found.running[0].lag_seconds) == (90, 90)
    assert [(one.code, one.severity) for one in found.findings] == [("no_dispatcher", "critical")]
    await storage.write(lambda tx: beat(tx, clock.now()))
    assert [(one.code, one.severity) for one in (await engine.status()).findings] == [("behind", "warning")]
    # A throttle and hours that are over are no lag, nor is a paused campaign.
    hold = make_provider_throttle(workspace_id=workspace.id, provider="twilio", since=NOON, until=NOON + HOUR)
    await storage.write(lambda tx: tx.provider_throttles.put(hold))
    assert (await engine.status()).lag_seconds == 0
    await storage.write(lambda tx: tx.provider_throttles.delete(workspace.id, "twilio"))
    await engine.campaigns.pause(workspace.id, campaign.id)
    assert (await engine.status()).lag_seconds == 0
    await engine.messages.send(
        workspace.id, NewMessage(to="+14155550101", body="Hi", from_number=None, carrier="twilio")
    )
    clock.advance(30)
    assert (await engine.status(workspace.id)).lag_seconds == 30
    other = await given_workspace(engine)
    assert (await engine.status(other.id)).lag_seconds == 0


@pytest.mark.parametrize("written", ["+14155550199", "(415) 555-0199"])
async def test_who_waits_for_a_turn_of_the_number_is_no_lag(
    engine: Outreach, workspace: Workspace, storage: Storage, clock: ManualClock, written: str
) -> None:
    """Campaigns that send from one number share its turns, however each of them writes it."""
    await engine.numbers.create(workspace.id, NewNumber(phone="+14155550199", carrier="twilio", rate_per_minute=1))
    await start_campaign(engine, workspace, from_number=written)
    await storage.write(lambda tx: tx.runs.put_sender_slot(workspace.id, "+14155550199", NOON + HOUR))
    clock.advance(90)
    assert (await engine.status()).lag_seconds == 0


async def test_a_campaign_that_is_dispatched_has_no_lag(open_storage: OpenStorage) -> None:
    """The next slot of its pace is ahead of it."""
    async with sending(open_storage(clock_of_loop()), 5, rate_per_minute=1) as (rig, _):
        await rig.carrier.wait_for_requests(1)
        await anyio.sleep(45)
        assert (await rig.engine.status()).lag_seconds == 0


async def test_a_call_under_way_is_no_lag(open_storage: OpenStorage) -> None:
    """However long it lasts without an event: it is due only to be asked about."""
    async with dispatching(open_storage(clock_of_loop()), config=EngineConfig(call_poll_seconds=30)) as rig:
        workspace = await given_workspace(rig.engine)
        agent_id = await given_agent(rig.engine, workspace)
        call = await rig.engine.calls.create(workspace.id, NewCall(agent_id=agent_id, to="+14155550101"))
        assert call.status is CallStatus.INITIATED
        await anyio.sleep(90)
        status = await rig.engine.status()
        assert (status.lag_seconds, status.findings) == (0, [])


async def test_who_waits_for_the_morning_is_no_lag(open_storage: OpenStorage) -> None:
    """All night; nor is who waits for a person's decision, for days."""
    night = datetime(2026, 7, 1, 6, tzinfo=UTC)
    clock = ShiftedClock(night)
    async with dispatching(open_storage(clock), clock=clock, config=EngineConfig()) as rig:
        workspace = await given_workspace(rig.engine, contact_hours=True)
        agent_id = await given_agent(rig.engine, workspace)
        held = make_unsubscribe(workspace_id=workspace.id, scope="held", source="unclear", phone="+14155550199")
        await rig.storage.write(lambda tx: tx.register.put(held))
        asleep = await given_campaign(rig.engine, workspace, [NewRecipient(phone_number="+12125552368")])
        undecided = await given_calls(
            rig.engine, workspace, [NewRecipient(phone_number="+14155550199")], agent_id=agent_id
        )
        for campaign in (asleep, undecided):
            await rig.engine.campaigns.start(workspace.id, campaign.id)

            async def waits(campaign: Campaign = campaign) -> bool:
                found = await rig.engine.campaigns.get_recipient(workspace.id, campaign.id, 0)
                return found.status is RecipientStatus.WAITING

            await until(waits)
        await anyio.sleep(90)
        status = await rig.engine.status()
        assert (status.active_campaigns, status.lag_seconds) == (2, 0)
        assert [one.code for one in status.findings] == ["number_held"]


async def test_an_account_that_cannot_be_used_here_is_reported(open_storage: OpenStorage) -> None:
    """Its adapter is not installed, or its key is another one; one that can be used is not told."""
    storage = open_storage(clock_of_loop())
    credentials = {"account_sid": f"AC{'0' * 32}", "auth_token": "0" * 32}
    async with Outreach(storage, vault=Vault(keys=Fernet.generate_key().decode())) as engine:
        workspace = await given_workspace(engine)
        account = await engine.accounts.connect(workspace.id, "twilio", credentials)
        assert (await engine.status(workspace.id)).accounts == []
        known = await engine._storage.read(lambda tx: stored_account(tx, account))
        gone = attrs.evolve(known, id=new_id(), provider="nowhere")
        await engine._storage.write(lambda tx: tx.accounts.insert(gone))
        [found] = (await engine.status()).accounts
        assert (found.id, found.provider, found.installed) == (gone.id, "nowhere", False)
        assert "no adapter for nowhere is installed" in found.why
        engine.status._vault = Vault(keys=Fernet.generate_key().decode())
        [found] = [one for one in (await engine.status(workspace.id)).accounts if one.id == account.id]
        assert (found.id, found.workspace_id, found.installed) == (account.id, workspace.id, True)
        assert "another key" in found.why
        assert "0" * 32 not in found.why


async def test_a_wrong_key_is_not_the_providers_fault_nor_given_to_other_processes(open_storage: OpenStorage) -> None:
    """To connect the account here would take it from the process that dispatches; where none does, it is a repair.

    So it is beside a database file, where all processes have one key.
    """
    clock = ManualClock(NOON)
    async with Outreach(open_storage(clock), clock=clock) as engine:
        workspace = await given_workspace(engine, mode=WorkspaceMode.LIVE, sms_campaigns_enabled=True)
        await engine.numbers.create(workspace.id, NewNumber(phone="+14155550100", carrier="twilio"))
        credentials = {"account_sid": f"AC{'0' * 32}", "auth_token": "0" * 32}
        account = await engine.accounts.connect(workspace.id, "twilio", credentials)
        campaign = await start_campaign(engine, workspace)
        await engine._storage.write(lambda tx: pause(tx, campaign, "provider_auth"))
        engine.status._vault = Vault(keys=Fernet.generate_key().decode())
        connect = f"outreach-server accounts connect {workspace.id} twilio"
        resume = f"outreach-server campaigns resume {campaign.id}"
        for dispatches in (False, True):
            if dispatches:
                await engine._storage.write(lambda tx: beat(tx, NOON))
            status = await engine.status()
            elsewhere = dispatches and status.disk is None
            found = {one.code: one for one in status.findings}
            assert "secret key" in found["campaign_paused"].message
            assert "provider rejects" not in found["campaign_paused"].message
            assert (found["account_not_usable"].path, found["account_not_usable"].commands) == (
                account.id,
                [] if elsewhere else [connect],
            )
            assert found["campaign_paused"].commands == ([resume] if elsewhere else [connect, resume])


async def test_calls_are_behind_only_while_there_is_a_place_for_another(
    engine: Outreach, workspace: Workspace, storage: Storage, clock: ManualClock
) -> None:
    """As many as may be under way at a time are no lag, however long they last."""
    agent = await given_agent(engine, workspace)
    new = NewCallCampaign(name="Calls", agent_id=agent, batch_concurrency=1)
    people = [{"phone_number": f"+1415555010{last}"} for last in range(3)]
    made = await engine.campaigns.create_call(workspace.id, new, people)
    campaign = await engine.campaigns.start(workspace.id, made.campaign.id)
    clock.advance(30)
    assert (await engine.status()).lag_seconds == 30
    first = await engine.campaigns.get_recipient(workspace.id, campaign.id, 0)
    calling = attrs.evolve(first, status=RecipientStatus.IN_PROGRESS, reason="calling", attempts=1, dispatched=True)
    await storage.write(lambda tx: tx.recipients.put(workspace.id, calling))
    assert (await engine.status()).lag_seconds == 0
