"""The forecast against what then happens, on virtual time."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import anyio
import attrs
import pytest

from outreach import (
    CallSettingsUpdate,
    Campaign,
    FlowStep,
    InvalidRequest,
    NewAgent,
    NewCallCampaign,
    NewFlow,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    Outreach,
    SmsSettingsUpdate,
    Workspace,
)
from outreach.insight import forecast
from outreach.models import BusinessHours, Forecast, ForecastAssumptions, TimeWindow, WorkspaceUpdate
from outreach.models.settings import DAYS
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.voice import CallRequest
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, Step, accept, refuse
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, start_campaign
from tests.engine.test_preflight import SLOW

CALLS = attrs.evolve(SLOW, change_poll_seconds=3.0)
"""A place that a call has left is noticed after a second or two, which is little beside a call."""

SENDER = "+14155550199"
AREAS = ("212", "312", "310", "808", "415")


class Evenly:
    """Fails, or answers, a share of the requests of each attempt, evenly spread."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._asked: defaultdict[str, int] = defaultdict(int)
        self._carried: defaultdict[int, float] = defaultdict(lambda: 0.5)

    def draw(self, to: str) -> bool:
        """Return whether this request to a number is one of the share."""
        self._asked[to] += 1
        attempt = self._asked[to]
        self._carried[attempt] += self._share
        if self._carried[attempt] < 1:
            return False
        self._carried[attempt] -= 1
        return True


def drawn_moment(drawn: random.Random) -> datetime:
    """Draw a time of the year."""
    return datetime(2026, drawn.randrange(1, 13), drawn.randrange(1, 28), drawn.randrange(24), 11, tzinfo=UTC)


def drawn_contacts(drawn: random.Random, count: int, first: int) -> list[NewRecipient]:
    """Draw contacts from coast to coast, and beyond."""
    return [
        NewRecipient(phone_number=f"+1{drawn.choice(AREAS)}555{first + n:04d}", first_name="Ana") for n in range(count)
    ]


def drawn_hours(drawn: random.Random, *minutes: int, days: int) -> BusinessHours | None:
    """Draw the hours of an office, so many minutes on at least so many days."""
    if drawn.random() < 0.5:
        return None
    begin = drawn.randrange(7, 16) * 60
    window = TimeWindow(start_minute=begin, end_minute=begin + drawn.choice(minutes))
    days_open = drawn.sample(DAYS, drawn.randrange(days, 8))
    return BusinessHours(
        enabled=True, timezone="America/New_York", schedule=dict.fromkeys(days_open, (window,)), batch_concurrency=5
    )


async def completes(engine: Outreach, campaign: Campaign) -> Campaign:
    """Wait until a campaign has ended, however long that takes."""
    while not (found := await engine.campaigns.get(campaign.workspace_id, campaign.id)).is_terminal:  # noqa: ASYNC110
        await anyio.sleep(600)
    return found


def assert_close(told: Forecast, done: Campaign, share: float, seconds: float) -> None:
    """Check the end against the time that it takes from the forecast on."""
    assert told.ends_at is not None
    assert done.completed_at is not None
    wrong = abs((told.ends_at - done.completed_at).total_seconds())
    takes = (done.completed_at - told.at).total_seconds()
    assert wrong <= max(share * takes, seconds), (wrong / takes, wrong, told.ends_at, done.completed_at, told.phases)


@pytest.mark.virtual_time(max_run=timedelta(days=90))
@pytest.mark.sample(60, turn=32)
@pytest.mark.parametrize("seed", range(120))
async def test_messages_end_when_the_forecast_says(seed: int) -> None:
    """Within 2 %: pace, turns at a number, hours, contact hours, retries and flows, all drawn."""
    drawn = random.Random(seed)
    clock = ShiftedClock(drawn_moment(drawn))
    share = drawn.choice((0.0, 0.1, 0.25))
    # For each campaign by itself, which the thousands of its contacts' numbers tell.
    failing = defaultdict[str, Evenly](lambda: Evenly(share))

    def answer(message: OutboundMessage) -> Step:
        fails = failing[message.to[-4]].draw(message.to)
        return refuse("temporary") if fails else accept().delivered(after_seconds=5)

    async with dispatching(
        MemoryStorage(clock=clock), carrier=ScriptedCarrier(answer), config=SLOW, clock=clock
    ) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(contact_hours=drawn.random() < 0.6))
        retries = drawn.random() < 0.5
        settings = SmsSettingsUpdate(retry_enabled=retries, retry_max_attempts=3, retry_delay_minutes=10)
        await engine.sms_settings.update(workspace.id, settings)
        fields: dict[str, Any] = {
            "business_hours": drawn_hours(drawn, 30, 120, 480, days=4),
            "rate_per_minute": drawn.choice((20, 60, 240, 600)),
        }
        if drawn.random() < 0.3:
            wait = FlowStep(kind="wait", wait_minutes=drawn.choice((10, 300)))
            steps = (FlowStep(kind="send", body="One"), wait, FlowStep(kind="send", body="Two"))
            flow = await engine.flows.create(workspace.id, NewFlow(name="Flow", steps=steps))
            fields |= {"body": None, "message_source": "flow", "flow_id": flow.id}
            # A failure in a flow comes again at its next step: the plan of the carrier knows no steps.
            share = 0.0
        if drawn.random() < 0.4:
            await engine.numbers.create(
                workspace.id, NewNumber(phone=SENDER, carrier="twilio", rate_per_minute=drawn.choice((30, 90)))
            )
        campaigns = []
        for number in range(drawn.choice((1, 1, 2, 3))):
            contacts = drawn_contacts(drawn, drawn.randrange(100, 250), first=1000 * number)
            campaigns.append(await given_campaign(engine, workspace, contacts, **fields))
        for one in campaigns:
            await engine.campaigns.start(workspace.id, one.id)
        target = drawn.choice(campaigns)
        assumed = ForecastAssumptions(failure_rate=share if retries else 0.0, receipt_seconds=5)
        told = await engine.campaigns.forecast(workspace.id, target.id, assumptions=assumed)
        done = await completes(engine, target)
    assert_close(told, done, 0.02, 2.0)
    assert sum(one.requests for one in told.hours) == told.requests


@pytest.mark.virtual_time(max_run=timedelta(days=90))
@pytest.mark.sample(80, turn=32)
@pytest.mark.parametrize("seed", range(80))
async def test_calls_end_about_when_the_forecast_says(seed: int) -> None:
    """Within 10 %: places, lengths that differ from call to call, hours, retries and double dials, all drawn."""
    drawn = random.Random(seed)
    clock = ShiftedClock(drawn_moment(drawn))
    share, talk, ring = drawn.choice((0.3, 0.5, 0.8)), drawn.choice((120.0, 300.0)), drawn.choice((40.0, 60.0))
    answering = Evenly(share)

    def answer(request: CallRequest) -> Step:
        around = drawn.uniform(0.6, 1.4)
        if answering.draw(request.to):
            return accept().answered(after_seconds=5, talk_seconds=talk * around)
        return accept().no_answer(after_seconds=ring * around)

    async with dispatching(MemoryStorage(clock=clock), voice=ScriptedVoice(answer), config=CALLS, clock=clock) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(contact_hours=drawn.random() < 0.6))
        attempts = drawn.choice((1, 2, 3))
        await engine.call_settings.update(
            workspace.id, CallSettingsUpdate(retry_max_attempts=attempts, retry_delay_minutes=drawn.choice((10, 60)))
        )
        agent = await engine.agents.create(
            workspace.id, NewAgent(name="Ada", provider="simulator", direction="outbound")
        )
        new = NewCallCampaign(
            name="Calls",
            agent_id=agent.id,
            business_hours=drawn_hours(drawn, 240, 480, days=7),
            batch_concurrency=drawn.choice((5, 20)),
            double_dial=drawn.random() < 0.2,
        )
        contacts = drawn_contacts(drawn, drawn.randrange(60, 150), first=0)
        campaign = (await engine.campaigns.create_call(workspace.id, new, contacts)).campaign
        await engine.campaigns.start(workspace.id, campaign.id)
        assumed = ForecastAssumptions(answer_rate=share, call_seconds=talk + 5, ring_seconds=ring)
        told = await engine.campaigns.forecast(workspace.id, campaign.id, assumptions=assumed)
        done = await completes(engine, campaign)
    assert_close(told, done, 0.10, 5.0)


@pytest.mark.virtual_time(max_run=timedelta(days=9))
@pytest.mark.parametrize("cap", [pytest.param(1, marks=pytest.mark.turn(4, "plays days of a campaign")), 2])
async def test_the_frequency_cap_holds_back_the_later_steps_of_a_flow_in_the_forecast(cap: int) -> None:
    """As many as it allows come in a day."""
    clock = ShiftedClock(datetime(2026, 3, 2, 15, tzinfo=UTC))
    async with dispatching(MemoryStorage(clock=clock), config=SLOW, clock=clock) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(frequency_cap=cap))
        steps = [FlowStep(kind="send", body=text) for text in ("One", "Two", "Three")]
        flow = await engine.flows.create(workspace.id, NewFlow(name="Flow", steps=tuple(steps)))
        campaign = await given_campaign(
            engine, workspace, 5, body=None, message_source="flow", flow_id=flow.id, rate_per_minute=60
        )
        told = await engine.campaigns.forecast(workspace.id, campaign.id)
        await engine.campaigns.start(workspace.id, campaign.id)
        done = await completes(engine, campaign)
    assert_close(told, done, 0.0, 10.0)
    assert told.requests == 15
    assert "frequency_cap" in {phase.bound_by for phase in told.phases}


@pytest.mark.virtual_time(max_run=timedelta(days=9))
@pytest.mark.turn(4, "plays days of a campaign")
async def test_the_frequency_cap_holds_back_calls_in_the_forecast() -> None:
    """The next attempt waits for it, and the second call of a double dial is not made."""
    clock = ShiftedClock(datetime(2026, 3, 2, 15, tzinfo=UTC))
    voice = ScriptedVoice(lambda _: accept().no_answer(after_seconds=30))
    async with dispatching(MemoryStorage(clock=clock), voice=voice, config=CALLS, clock=clock) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(frequency_cap=1))
        agent = await engine.agents.create(
            workspace.id, NewAgent(name="Agent", provider="simulator", direction="outbound")
        )
        new = NewCallCampaign(name="Calls", agent_id=agent.id, double_dial=True)
        campaign = (
            await engine.campaigns.create_call(workspace.id, new, drawn_contacts(random.Random(7), 5, first=0))
        ).campaign
        assumed = ForecastAssumptions(answer_rate=0.0)
        told = await engine.campaigns.forecast(workspace.id, campaign.id, assumptions=assumed)
        await engine.campaigns.start(workspace.id, campaign.id)
        done = await completes(engine, campaign)
    assert told.requests == len(voice.requests) == 15
    assert_close(told, done, 0.0, 10.0)


@pytest.mark.virtual_time(max_run=timedelta(days=3))
async def test_what_has_been_measured_takes_the_place_of_what_was_assumed() -> None:
    """A quarter of the messages fails for now; half way through, what is left ends when it is told."""
    failing = Evenly(0.25)

    def answer(message: OutboundMessage) -> Step:
        return refuse("temporary") if failing.draw(message.to) else accept().delivered(after_seconds=5)

    clock = ShiftedClock(datetime(2026, 3, 2, 15, tzinfo=UTC))
    async with dispatching(
        MemoryStorage(clock=clock), carrier=ScriptedCarrier(answer), config=SLOW, clock=clock
    ) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        settings = SmsSettingsUpdate(retry_enabled=True, retry_max_attempts=3, retry_delay_minutes=10)
        await engine.sms_settings.update(workspace.id, settings)
        campaign = await given_campaign(engine, workspace, 240, rate_per_minute=60)
        before = await engine.campaigns.forecast(workspace.id, campaign.id)
        assert (before.measured, before.contacts, before.assumptions.failure_rate) == ((), 240, 0.02)
        await engine.campaigns.start(workspace.id, campaign.id)
        await anyio.sleep(120)
        told = await engine.campaigns.forecast(workspace.id, campaign.id)
        assert told.measured == ("failure_rate",)
        assert told.assumptions.failure_rate == pytest.approx(0.25, abs=0.02)
        assert 120 <= told.contacts < 170
        done = await completes(engine, campaign)
        after = await engine.campaigns.forecast(workspace.id, campaign.id)
    assert_close(told, done, 0.02, 2.0)
    assert (after.contacts, after.ends_at, after.hours) == (0, done.completed_at, ())


@pytest.mark.virtual_time
async def test_a_campaign_that_was_paused_before_its_start_waits_for_it(engine: Outreach, workspace: Workspace) -> None:
    """Resumed it is scheduled again, and so the forecast and the preflight say."""
    start = engine.now() + timedelta(days=3)
    campaign = await start_campaign(engine, workspace, schedule_type="scheduled", scheduled_start_at=start)
    await engine.campaigns.pause(workspace.id, campaign.id)
    told = await engine.campaigns.forecast(workspace.id, campaign.id)
    assert told.starts_at == start
    assert (await engine.campaigns.preflight(workspace.id, campaign.id)).at == start
    resumed = await engine.campaigns.resume(workspace.id, campaign.id)
    assert (resumed.status, resumed.scheduled_start_at) == ("scheduled", start)


@pytest.mark.virtual_time
async def test_an_expiry_that_comes_first_is_the_end(engine: Outreach, workspace: Workspace) -> None:
    """With how many it leaves out."""
    soon = engine._clock.now() + timedelta(minutes=2)
    campaign = await given_campaign(engine, workspace, 300, rate_per_minute=60, scheduled_expires_at=soon)
    told = await engine.campaigns.forecast(workspace.id, campaign.id)
    assert (told.expires, told.ends_at) == (True, soon)
    assert abs(told.unreached - 180) <= 1
    assert told.requests + told.unreached == 300


@pytest.mark.virtual_time
async def test_a_long_list_is_judged_by_a_part_of_it(engine: Outreach, workspace: Workspace) -> None:
    """Each contact that is played through stands for several, and the end is the same."""
    contacts = [NewRecipient(phone_number=f"+1{415 + n % 2}{2000000 + n}") for n in range(30_000)]
    campaign = await given_campaign(engine, workspace, contacts, body="Hi", rate_per_minute=600)
    told = await engine.campaigns.forecast(workspace.id, campaign.id)
    assert told.sampled
    assert told.contacts == told.requests == 30_000
    assert told.ends_at is not None
    assert abs((told.ends_at - told.at).total_seconds() - 3000) < 1


@pytest.mark.virtual_time
async def test_assumptions_are_checked(engine: Outreach, workspace: Workspace) -> None:
    """Each is named."""
    campaign = await given_campaign(engine, workspace, 1)
    wrong = ForecastAssumptions(answer_rate=1.1, call_seconds=-1, failure_rate=True)
    with pytest.raises(InvalidRequest) as refused:
        await engine.campaigns.forecast(workspace.id, campaign.id, assumptions=wrong)
    assert [one.path for one in refused.value.details] == [
        *("assumptions.answer_rate", "assumptions.call_seconds", "assumptions.failure_rate"),
    ]


NIGHT = BusinessHours(
    enabled=True,
    timezone="America/New_York",
    schedule=dict.fromkeys(DAYS, (TimeWindow(start_minute=120, end_minute=180),)),
    batch_concurrency=5,
)
"""Open from 2 to 3 o'clock, when nobody in New York may be contacted."""


@pytest.mark.virtual_time(max_run=timedelta(days=3))
@pytest.mark.parametrize("channel", ["sms", "call"])
async def test_a_campaign_that_can_reach_nobody_ends_at_its_first_opening(channel: str) -> None:
    """Its contacts are skipped when their turn comes, which is not before it opens."""
    clock = ShiftedClock(datetime(2026, 3, 4, 15, 11, tzinfo=UTC))
    contacts = [NewRecipient(phone_number=f"+1212555010{number}") for number in range(3)]
    async with dispatching(MemoryStorage(clock=clock), config=SLOW, clock=clock) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(contact_hours=True))
        if channel == "sms":
            campaign = await given_campaign(engine, workspace, contacts, business_hours=NIGHT)
        else:
            agent = await engine.agents.create(
                workspace.id, NewAgent(name="Ada", provider="simulator", direction="outbound")
            )
            new = NewCallCampaign(name="Calls", agent_id=agent.id, business_hours=NIGHT)
            campaign = (await engine.campaigns.create_call(workspace.id, new, contacts)).campaign
        before = await engine.campaigns.forecast(workspace.id, campaign.id)
        await engine.campaigns.start(workspace.id, campaign.id)
        told = await engine.campaigns.forecast(workspace.id, campaign.id)
        done = await completes(engine, campaign)
    assert (told.requests, told.starts_at) == (0, None)
    assert before.ends_at == told.ends_at == datetime(2026, 3, 5, 7, tzinfo=UTC)
    assert (done.counters.total, done.counters.completed, done.counters.open) == (3, 0, 0)
    assert_close(told, done, 0.02, 5.0)


@pytest.mark.virtual_time
async def test_a_campaign_that_expires_before_it_skips_its_contacts_ends_with_its_expiry(engine: Outreach) -> None:
    """It is closed until then."""
    workspace = await given_workspace(engine)
    await engine.workspaces.update(workspace.id, WorkspaceUpdate(contact_hours=True))
    expires = engine.now() + timedelta(minutes=30)
    contacts = [NewRecipient(phone_number="+12125550100")]
    closed = attrs.evolve(NIGHT, schedule={"monday": (TimeWindow(start_minute=0, end_minute=1),)})
    campaign = await given_campaign(engine, workspace, contacts, business_hours=closed, scheduled_expires_at=expires)
    told = await engine.campaigns.forecast(workspace.id, campaign.id)
    assert (told.expires, told.ends_at) == (True, expires)


@pytest.mark.virtual_time
@pytest.mark.parametrize("expires", [False, True])
async def test_contacts_who_wait_for_a_decision_have_no_end(expires: bool) -> None:
    """The others' end is told while they are left; then the expiry, or none."""
    clock = ShiftedClock(datetime(2026, 3, 2, 15, tzinfo=UTC))
    async with dispatching(MemoryStorage(clock=clock), carrier=ScriptedCarrier(), config=CALLS, clock=clock) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        expiry = clock.now() + timedelta(days=2) if expires else None
        campaign = await given_campaign(engine, workspace, 3, scheduled_expires_at=expiry)
        contacts = await people(engine, campaign)
        held = contacts[1].phone or ""
        await engine.messages.receive(workspace.id, from_number=held, to=SENDER, body="Can I cancel my appointment?")
        before = await engine.campaigns.forecast(workspace.id, campaign.id)
        assert (before.held, before.contacts, before.requests, before.expires) == (1, 2, 2, False)
        assert before.ends_at is not None
        assert before.ends_at - before.at < timedelta(minutes=1)
        await engine.campaigns.start(workspace.id, campaign.id)
        while (await engine.campaigns.get(workspace.id, campaign.id)).counters.open > 1:  # noqa: ASYNC110
            await anyio.sleep(1)
        told = await engine.campaigns.forecast(workspace.id, campaign.id)
        assert (told.held, told.contacts, told.requests, told.starts_at) == (1, 0, 0, None)
        assert (told.ends_at, told.expires) == (expiry, expires)
        await engine.unsubscribes.resolve(workspace.id, held, opted_out=False)
        after = await engine.campaigns.forecast(workspace.id, campaign.id)
        assert (after.held, after.contacts, after.expires) == (0, 1, False)
        done = await completes(engine, campaign)
    assert_close(after, done, 0.02, 5.0)


@pytest.mark.virtual_time(max_run=timedelta(days=3))
@pytest.mark.parametrize(
    ("agent", "again", "rate"),
    [("leave_message", False, 1.0), ("leave_message", True, 0.0), ("hang_up", False, 0.0)],
)
async def test_a_voicemail_that_got_the_message_is_not_called_again_in_the_forecast(
    agent: Literal["leave_message", "hang_up"], again: bool, rate: float
) -> None:
    """What the calls so far tell goes on for the others, unless the campaign calls voicemails again."""
    clock = ShiftedClock(datetime(2026, 3, 2, 15, tzinfo=UTC))
    voice = ScriptedVoice(lambda request: accept().voicemail(after_seconds=30))
    async with dispatching(MemoryStorage(clock=clock), voice=voice, config=CALLS, clock=clock) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        await engine.call_settings.update(
            workspace.id, CallSettingsUpdate(retry_max_attempts=2, retry_delay_minutes=60)
        )
        message = "Please call us back." if agent == "leave_message" else None
        made = await engine.agents.create(
            workspace.id,
            NewAgent(
                name="Ada", provider="simulator", direction="outbound", voicemail=agent, voicemail_message=message
            ),
        )
        new = NewCallCampaign(name="Calls", agent_id=made.id, batch_concurrency=5, retry_voicemail=again)
        contacts = [NewRecipient(phone_number=f"+1212555{n:04d}") for n in range(100, 200)]
        campaign = (await engine.campaigns.create_call(workspace.id, new, contacts)).campaign
        await engine.campaigns.start(workspace.id, campaign.id)
        await voice.wait_for_requests(35, timeout_seconds=600)
        told = await engine.campaigns.forecast(workspace.id, campaign.id)
        done = await completes(engine, campaign)
        assert "answer_rate" in told.measured
        assert told.assumptions.answer_rate == rate
        assert len(voice.requests) == (100 if rate else 200)
    assert_close(told, done, 0.1, 10.0)


@pytest.mark.virtual_time
@pytest.mark.parametrize("played", [20_000, 10])
async def test_a_list_has_the_forecast_and_the_problems_of_the_campaign_that_it_makes(
    engine: Outreach, played: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the campaign's id; of a long list, each contact that is played through stands for several."""
    monkeypatch.setattr(forecast, "_MAX_PLAYED", played)
    workspace = await given_workspace(engine)
    new = NewSmsCampaign(name="Spring", body="Hi {{first_name}} {{plan}}", carrier="twilio", rate_per_minute=600)
    listed = [NewRecipient(phone_number=f"+1415{2_000_000 + n}", first_name="Ana") for n in range(45)]
    assumed = ForecastAssumptions(failure_rate=0.0)
    planned = await engine.campaigns.preflight_new(workspace.id, new, listed, assumptions=assumed)
    made = await engine.campaigns.create_sms(workspace.id, new, listed)
    found = await engine.campaigns.forecast(workspace.id, made.campaign.id, assumptions=assumed)
    assert planned.forecast is not None
    if played > len(listed):
        # The clock goes on between the two.
        moments = {name: getattr(planned.forecast, name) for name in ("at", "starts_at", "ends_at")}
        assert planned.forecast == attrs.evolve(found, campaign_id=None, **moments)
        assert found.ends_at is not None
        assert planned.forecast.ends_at is not None
        assert abs((found.ends_at - planned.forecast.ends_at).total_seconds()) < 1
    assert planned.forecast.campaign_id is None
    assert planned.forecast.requests == (45 if played > len(listed) else 46)
    assert planned.problems == await engine.campaigns.start_problems(workspace.id, made.campaign.id)
    assert {one.path for one in planned.problems} == {"from_number", "placeholders"}
    assert (await engine.campaigns.preflight_new(workspace.id, new, listed)).forecast is None
    wrong = ForecastAssumptions(failure_rate=2.0)
    with pytest.raises(InvalidRequest, match="failure_rate"):
        await engine.campaigns.preflight_new(workspace.id, new, listed, assumptions=wrong)
