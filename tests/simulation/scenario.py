"""What one simulation starts from: a workspace, its people, and its campaigns, all drawn from the seed."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from outreach.core.config import EngineConfig
from outreach.engine import Outreach
from outreach.models.base import ScheduleType
from outreach.models.campaign import CallerIdAllocation, NewCallCampaign, NewRecipient, NewSmsCampaign
from outreach.models.resources import FlowStep, NewAgent, NewFlow, NewNumber, NewTrunk
from outreach.models.settings import (
    DAYS,
    MINUTES_A_DAY,
    BusinessHours,
    CallSettingsUpdate,
    Holiday,
    HolidayCalendar,
    SmsSettingsUpdate,
    TimeWindow,
)
from outreach.models.workspace import NewWorkspace
from tests.simulation.invariants.numbers import NumberRates
from tests.simulation.loop import START

CONFIG: Final = EngineConfig(
    max_queued_intents=3,
    max_requests_in_flight=4,
    provider_timeout_seconds=12.0,
    change_poll_seconds=2.0,
    heartbeat_interval_seconds=5.0,
    lease_seconds=20.0,
    lock_retry_seconds=1.0,
    stop_grace_seconds=8.0,
    single_expiry_seconds=30.0,
    missed_start_grace_seconds=30.0,
    call_poll_seconds=15.0,
    call_timeout_seconds=120.0,
    reconcile_delay_seconds=20.0,
    reconcile_retry_seconds=30.0,
    reconcile_deadline_seconds=240.0,
    reconcile_interval_seconds=7.0,
    backoff_max_seconds=60.0,
    receipt_timeout_seconds=90.0,
)
"""Shorter waits than in earnest; nothing of the rules is different."""

CALM_CONFIG: Final = attrs.evolve(
    CONFIG,
    change_poll_seconds=8.0,
    heartbeat_interval_seconds=120.0,
    lease_seconds=400.0,
    reconcile_interval_seconds=30.0,
    cleanup_interval_seconds=600.0,
    call_poll_seconds=30.0,
)
"""For the time in which nothing goes wrong any more: it looks around less often."""


def shared(config: EngineConfig, workers: int) -> EngineConfig:
    """Return a configuration in which each worker's portion of the limits is what it is for one."""
    return attrs.evolve(
        config,
        max_queued_intents=config.max_queued_intents * workers,
        max_requests_in_flight=config.max_requests_in_flight * workers,
    )


SENDER: Final = "+14155550199"

_CALLERS: Final = ("+14155550191", "+14155550192", "+14155550193")
_POOL: Final = ("+14155550181", "+14155550182")
_POOLED: Final = 0.2
"""How many SMS campaigns have a pool of numbers."""

_ZONES: Final = ("UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati")
_MIDNIGHT_ZONE: Final = "Pacific/Fiji"
_NEAR: Final = tuple(f"+1415555{number:04d}" for number in range(100, 108))
_CROWD: Final = tuple(f"+1415555{number:04d}" for number in range(120, 142))
_CROWDED: Final = 0.05
"""How many campaigns have so many contacts that the last twenty requests can be judged."""

_FAR: Final = (
    "+17875550101",
    "+17875550102",
    "+81312345671",
    "+81312345672",
    "+442071234561",
    "+442071234562",
    "+442071234563",
    "+442071234564",
)


@attrs.define(kw_only=True)
class Scenario:
    """What a simulation has been set up with.

    Attributes:
        people: Numbers of contacts, for opt-outs, replies, single messages and calls.
        campaign_ids: The campaigns, in the order of their creation.
        with_hours: Whether the workspace has contact hours, now and then.
        with_cap: Whether it has a frequency cap.
        numbers: What the sending numbers may send a minute.
        sms_attempts: Attempts that a message may take.
        call_attempts: Attempts that a recipient of a calling campaign may take.
    """

    workspace_id: str
    agent_id: str
    people: list[str]
    campaign_ids: list[str] = attrs.field(factory=list)
    with_hours: bool
    with_cap: bool
    numbers: NumberRates = attrs.field(factory=NumberRates)
    sms_attempts: int
    call_attempts: int


async def set_up(engine: Outreach, rng: random.Random) -> Scenario:
    """Make a workspace with everything that campaigns need, but for the campaigns."""
    with_hours = rng.random() < 0.3
    cap = rng.choice((2, 3)) if rng.random() < 0.25 else None
    workspace = await engine.workspaces.create(
        NewWorkspace(name="Simulated", default_region="US", contact_hours=with_hours, frequency_cap=cap)
    )
    agent = await engine.agents.create(workspace.id, NewAgent(name="Agent"))
    people = rng.sample(_FAR + _NEAR[:2] if with_hours else _NEAR + _FAR, rng.randint(5, 8))
    rate = rng.choice((10, 20, 60)) if rng.random() < 0.6 else None
    scenario = Scenario(
        workspace_id=workspace.id,
        agent_id=agent.id,
        people=people,
        with_hours=with_hours,
        with_cap=cap is not None,
        sms_attempts=rng.choice((2, 3)),
        call_attempts=rng.choice((1, 2, 3)),
    )
    await _number(engine, scenario, SENDER, rate)
    await engine.sms_settings.update(
        workspace.id,
        SmsSettingsUpdate(
            retry_enabled=rng.random() < 0.6, retry_delay_minutes=5, retry_max_attempts=scenario.sms_attempts
        ),
    )
    await engine.call_settings.update(
        workspace.id, CallSettingsUpdate(retry_max_attempts=scenario.call_attempts, retry_delay_minutes=1)
    )
    return scenario


async def make_campaigns(engine: Outreach, scenario: Scenario, rng: random.Random) -> None:
    """Make the campaigns, and start most of them."""
    workspace = await engine.workspaces.get(scenario.workspace_id)
    ends_late = scenario.with_hours or scenario.with_cap
    for number in range(rng.randint(3, 5)):
        kind = rng.choice(("sms", "sms", "flow", "call", "call"))
        people = _people(scenario, rng)
        terms = _Terms.drawn(rng, ends_late=ends_late)
        if kind == "call":
            calling = NewCallCampaign(
                name=f"Calls {number}",
                agent_id=scenario.agent_id,
                batch_concurrency=rng.choice((1, 2)),
                double_dial=rng.random() < 0.5,
                **await _callers(engine, scenario, rng),
                **attrs.asdict(terms, recurse=False),
            )
            created = await engine.campaigns.create_call(workspace.id, calling, people)
        else:
            messages = NewSmsCampaign(
                name=f"SMS {number}",
                body="Hello",
                carrier="twilio",
                **await _senders(engine, scenario, rng),
                rate_per_minute=rng.choice((7, 15, 30, 120)),
                message_source="flow" if kind == "flow" else "custom",
                flow_id=await _flow(engine, scenario, rng) if kind == "flow" else None,
                **attrs.asdict(terms, recurse=False),
            )
            created = await engine.campaigns.create_sms(workspace.id, messages, people)
        scenario.campaign_ids.append(created.campaign.id)
        if rng.random() < 0.75:
            await engine.campaigns.start(workspace.id, created.campaign.id)


async def _senders(engine: Outreach, scenario: Scenario, rng: random.Random) -> dict[str, Any]:
    """Draw what a campaign sends from: a number in one of two notations, or a pool with it."""
    sender = rng.choice((SENDER, "(415) 555-0199"))
    # Drawn apart, so that a seed goes on as it did without pools.
    apart = random.Random(f"pool {scenario.workspace_id} {len(scenario.campaign_ids)}")
    if apart.random() >= _POOLED:
        return {"from_number": sender}
    pool = _POOL[: apart.randint(1, 2)]
    known = {number.phone async for number in engine.numbers.iter_all(scenario.workspace_id)}
    for phone in pool:
        if phone not in known:
            await _number(engine, scenario, phone, apart.choice((3, 12, None)))
    return {"from_numbers": apart.sample([sender, *pool], len(pool) + 1)}


async def _number(engine: Outreach, scenario: Scenario, phone: str, rate: int | None) -> None:
    scenario.numbers.put(phone, rate)
    await engine.numbers.create(scenario.workspace_id, NewNumber(phone=phone, carrier="twilio", rate_per_minute=rate))


async def _callers(engine: Outreach, scenario: Scenario, rng: random.Random) -> dict[str, Any]:
    """Draw what a campaign calls from: a group of numbers, a trunk, or what the agent has."""
    if rng.random() < 0.6:
        return {}
    if rng.random() < 0.3:
        trunk = await engine.trunks.create(scenario.workspace_id, NewTrunk(name="Trunk", address="sip.example.com"))
        return {"trunk_id": trunk.id}
    known = {number.phone: number async for number in engine.numbers.iter_all(scenario.workspace_id)}
    group = []
    for phone in _CALLERS[: rng.randint(1, 3)]:
        number = known.get(phone) or await engine.numbers.create(scenario.workspace_id, NewNumber(phone=phone))
        group.append(CallerIdAllocation(number_id=number.id, phone=phone, count=rng.randint(1, 2)))
    return {"cli_mode": "group", "cli_group": group}


@attrs.frozen(kw_only=True)
class _Terms:
    """When a campaign starts, ends and may reach anybody."""

    schedule_type: ScheduleType
    scheduled_start_at: datetime | None
    scheduled_expires_at: datetime | None
    business_hours: BusinessHours | None
    holidays: HolidayCalendar | None

    @classmethod
    def drawn(cls, rng: random.Random, *, ends_late: bool) -> _Terms:
        start = START + timedelta(seconds=rng.uniform(20, 100)) if rng.random() < 0.3 else None
        hours, holidays, ends_late = _hours(rng, ends_late=ends_late)
        expires = rng.uniform(120, 400) if ends_late or rng.random() < 0.3 else None
        return cls(
            schedule_type="scheduled" if start else "immediate",
            scheduled_start_at=start,
            scheduled_expires_at=START + timedelta(seconds=expires) if expires else None,
            business_hours=hours,
            holidays=holidays,
        )


def _hours(rng: random.Random, *, ends_late: bool) -> tuple[BusinessHours | None, HolidayCalendar | None, bool]:
    """Draw hours that close for a few minutes, or a holiday that begins or ends, in the midst of the simulation."""
    what = rng.random()
    if what < 0.65:
        return None, None, ends_late
    if what < 0.85:
        zone = rng.choice(_ZONES)
        local = START.astimezone(ZoneInfo(zone))
        closes = local.hour * 60 + local.minute + rng.randint(0, 2)
        windows = (
            TimeWindow(start_minute=0, end_minute=closes or 1),
            TimeWindow(start_minute=closes + rng.randint(1, 3), end_minute=MINUTES_A_DAY),
        )
        return _every_day(zone, windows), None, ends_late
    day = date(2026, 3, rng.choice((2, 3)))
    calendar = HolidayCalendar(country=None, holidays=(Holiday(date=day, name="Holiday", enabled=True),))
    # The one that begins lasts a day.
    return (
        _every_day(_MIDNIGHT_ZONE, (TimeWindow(start_minute=0, end_minute=MINUTES_A_DAY),)),
        calendar,
        (ends_late or day.day == 3),
    )


def _every_day(zone: str, windows: tuple[TimeWindow, ...]) -> BusinessHours:
    return BusinessHours(enabled=True, timezone=zone, schedule=dict.fromkeys(DAYS, windows), batch_concurrency=2)


def _people(scenario: Scenario, rng: random.Random) -> list[NewRecipient]:
    phones = list(scenario.people)
    if rng.random() < _CROWDED:
        phones += _CROWD
    if rng.random() < 0.3:
        phones.append(rng.choice(phones))
    if rng.random() < 0.2:
        phones.append("12")
    return [NewRecipient(phone_number=phone) for phone in phones]


async def _flow(engine: Outreach, scenario: Scenario, rng: random.Random) -> str:
    steps = [FlowStep(kind="send", body="one")]
    if rng.random() < 0.7:
        steps.append(FlowStep(kind="wait", wait_minutes=1))
    if rng.random() < 0.7:
        steps.append(FlowStep(kind="stop_if_replied"))
    flow = await engine.flows.create(
        scenario.workspace_id, NewFlow(name="Flow", steps=[*steps, FlowStep(kind="send", body="two")])
    )
    return flow.id
