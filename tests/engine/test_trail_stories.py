from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach import (
    BusinessHours,
    CallSettings,
    CampaignCreated,
    NewRecipient,
    NewSmsCampaign,
    NotFound,
    Outreach,
    SmsSettings,
    TimeWindow,
)
from outreach.ledger.campaigns import trail
from outreach.ledger.campaigns.histories import histories
from outreach.ledger.settling import ledger
from outreach.models import ContactHistory, Holiday, HolidayCalendar, TrailRule
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.plans import Advance, WaveResult
from outreach.models.settings import DAYS
from outreach.models.states import CallStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_agent, make_inbound, make_unsubscribe, new_id
from outreach.testing.clock import ManualClock, ShiftedClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.flow_course import Course
from tests.engine.given import ACCEPTED, commit_wave, given_active, make_wave, recipient, refused, settle
from tests.engine.rig import dispatching, given_campaign, given_workspace, reaches, sending, start_campaign, until
from tests.engine.test_flow_courses import AGAIN, HELLO, STOP, WAIT
from tests.engine.trail import history, lines, report_call, told

pytestmark = pytest.mark.virtual_time

LOADED = "loaded pending by load"
CALL = "intent dispatching by concurrency"
ONE, TWO = "+14155550101", "+14155550102"


def at(seconds: float) -> datetime:
    """Return a moment so many seconds after the campaign began."""
    return NOW + timedelta(seconds=seconds)


async def given_loaded(engine: Outreach, *numbers: str) -> tuple[str, CampaignCreated]:
    """Create a campaign with these contacts, as they are supplied; return it and its workspace."""
    workspace = await given_workspace(engine)
    fields: dict[str, Any] = {"name": "Spring", "body": "Hi", "carrier": "twilio", "from_number": TWO}
    people = [NewRecipient(phone_number=number) for number in numbers]
    return workspace.id, await engine.campaigns.create_sms(workspace.id, NewSmsCampaign(**fields), people)


async def test_a_number_that_comes_twice_has_a_history_for_each_place(engine: Outreach) -> None:
    """In whatever notation it is asked for; the later one was skipped as it was loaded."""
    workspace_id, created = await given_loaded(engine, "(415) 555-0101", ONE)
    for written in (ONE, "415-555-0101", " 1 415 555 0101"):
        first, second = await engine.campaigns.contact_history(workspace_id, created.campaign.id, written)
        assert (first.position, first.phone_number, first.phone) == (0, "(415) 555-0101", ONE)
        assert lines(first) == [LOADED]
        assert (second.position, second.phone_number, second.phone) == (1, ONE, ONE)
        assert lines(second) == [LOADED, "ended skipped (duplicate) by duplicate"]


async def test_what_is_no_number_is_found_as_it_was_supplied(engine: Outreach) -> None:
    """It has no normal form that it could be found by."""
    workspace_id, created = await given_loaded(engine, ONE, "call me")
    (found,) = await engine.campaigns.contact_history(workspace_id, created.campaign.id, "call me")
    assert (found.position, found.phone) == (1, None)
    assert lines(found) == [LOADED, "ended skipped (invalid_number) by invalid_number"]


async def test_who_was_left_out_stays_so_when_the_number_leaves_the_register(engine: Outreach) -> None:
    """The trail tells, whatever the register has today; who left it before the campaign was created was not."""
    workspace = await given_workspace(engine)
    await engine.unsubscribes.add(workspace.id, ONE, TWO)
    await engine.unsubscribes.remove(workspace.id, TWO, actor="cli:ann")
    campaign = await given_campaign(engine, workspace, 1)
    await engine.unsubscribes.remove(workspace.id, ONE, actor="cli:ann")
    (found,) = await engine.campaigns.contact_history(workspace.id, campaign.id, ONE)
    assert (found.position, found.status, found.phone) == (None, None, ONE)
    assert lines(found) == [
        "opted_out all (operator) by register",
        "left_out (opted_out) by register",
        "opted_in by register",
    ]
    assert found.steps[2].actor == "cli:ann"
    with pytest.raises(NotFound, match="recipient"):
        await engine.campaigns.contact_history(workspace.id, campaign.id, TWO)
    await engine.unsubscribes.add(workspace.id, TWO)
    (later,) = await engine.campaigns.contact_history(workspace.id, campaign.id, TWO)
    assert lines(later) == [
        "opted_out all (operator) by register",
        "opted_in by register",
        "opted_out all (operator) by register",
    ]


async def test_the_register_tells_what_the_trail_does_not_have(storage: Storage) -> None:
    """An entry that came without the trail still stops."""
    campaign = await given_active(storage)
    known = make_unsubscribe(phone=ONE, created_at=NOW - timedelta(days=1))
    await storage.write(lambda tx: tx.register.put(known))
    (found,) = await storage.read(lambda tx: histories(tx, THIS_WORKSPACE, campaign.id, ONE))
    assert lines(found) == ["opted_out all (operator) by register", "left_out (opted_out) by register"]


async def test_who_is_not_in_the_campaign(engine: Outreach) -> None:
    """Not found; one that came onto the register later was not left out by it."""
    workspace_id, created = await given_loaded(engine, ONE)
    campaign_id = created.campaign.id
    for written in (TWO, "nobody"):
        with pytest.raises(NotFound, match="recipient"):
            await engine.campaigns.contact_history(workspace_id, campaign_id, written)
    await engine.unsubscribes.add(workspace_id, TWO, scope="call")
    with pytest.raises(NotFound, match="recipient"):
        await engine.campaigns.contact_history(workspace_id, campaign_id, TWO)
    await engine.unsubscribes.add(workspace_id, TWO)
    (found,) = await engine.campaigns.contact_history(workspace_id, campaign_id, TWO)
    assert lines(found) == ["opted_out all (operator) by register"]
    with pytest.raises(NotFound, match="campaign"):
        await engine.campaigns.contact_history(workspace_id, new_id(), ONE)


@pytest.mark.parametrize(
    ("people", "changes", "ending"),
    [
        ("x" * 100, {"body": "{{first_name}}" * 16}, "ended failed (over_segment_cap) by segment_cap"),
        ("", {"body": "{{first_name}}"}, "ended failed (empty_message) by rendering"),
    ],
)
async def test_a_text_that_cannot_be_sent(
    open_storage: OpenStorage, people: str, changes: dict[str, Any], ending: str
) -> None:
    """docs/rules.md#rendering: nothing was asked of any carrier for it; another contact's can be sent."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        await rig.storage.write(lambda tx: tx.settings.put(workspace.id, SmsSettings(footer_enabled=False)))
        contacts = [
            NewRecipient(phone_number=ONE, first_name=people),
            NewRecipient(phone_number="+14155550177", first_name="Ann"),
        ]
        campaign = await start_campaign(rig.engine, workspace, contacts, **changes)
        await reaches(rig.engine, campaign, "completed")
        (found,) = await rig.engine.campaigns.contact_history(workspace.id, campaign.id, ONE)
        assert lines(found) == [LOADED, "campaign active by operator", ending]


WEDNESDAY = datetime(2026, 11, 18, 20, tzinfo=UTC)
NINE_TO_FIVE = BusinessHours(
    enabled=True,
    timezone="UTC",
    schedule={day: (TimeWindow(start_minute=9 * 60, end_minute=17 * 60),) for day in DAYS},
    batch_concurrency=1,
)
HOLIDAY = HolidayCalendar(country="US", holidays=(Holiday(date=WEDNESDAY.date(), name="Founding Day", enabled=True),))


@pytest.mark.parametrize(
    ("changes", "rule", "again"),
    [
        ({"business_hours": NINE_TO_FIVE}, "business_hours", datetime(2026, 11, 19, 9, tzinfo=UTC)),
        ({"holidays": HOLIDAY}, "holidays", datetime(2026, 11, 19, tzinfo=UTC)),
    ],
)
async def test_a_campaign_that_is_closed_says_until_when(
    open_storage: OpenStorage, changes: dict[str, Any], rule: str, again: datetime
) -> None:
    """docs/rules.md#hours: told once for the night to everybody who waits, however often it is looked at."""
    clock = ShiftedClock(WEDNESDAY)
    async with sending(open_storage(clock), [NewRecipient(phone_number=ONE)], clock=clock, **changes) as (
        rig,
        campaign,
    ):

        async def why() -> ContactHistory:
            (found,) = await rig.engine.campaigns.contact_history(campaign.workspace_id, campaign.id, ONE)
            return found

        await until(why, lambda found: len(found.steps) == 3)
        found = await why()
        assert lines(found) == [LOADED, "campaign active by operator", f"held active by {rule}"]
        assert found.steps[2].until == again
        clock.shift(again - clock.now())
        await reaches(rig.engine, campaign, "completed")
        assert lines(await why())[3:] == [
            "intent dispatching by pace",
            "outcome accepted by provider_answer",
            "ended completed by provider_answer",
        ]


async def test_a_night_is_logged_once(storage: Storage) -> None:
    """However often a closed campaign is looked at; another night is another one."""
    campaign = await given_active(storage)
    for until_when in (at(100), at(100), at(200), at(200)):
        await storage.write(
            lambda tx, moment=until_when: trail.record_campaign_closure(  # type: ignore[misc]
                tx, THIS_WORKSPACE, campaign.id, rule=TrailRule.BUSINESS_HOURS, until=moment, now=at(1)
            )
        )
    found = await history(storage, campaign)
    assert [step.until for step in found.steps[1:]] == [at(100), at(200)]


async def test_a_flow_is_reported_step_by_step(storage: Storage, clock: ManualClock) -> None:
    """Its wait with its end, and that a reply ended it; each message has the step that it was."""
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN, WAIT, STOP, AGAIN)
    (first,) = await course.wave()
    clock.advance(1)
    await settle(storage, first, ACCEPTED, now=clock.now())
    waits_until = clock.now() + timedelta(hours=1)
    assert await course.rest()
    (second,) = await course.wave()
    clock.advance(1)
    await settle(storage, second, ACCEPTED, now=clock.now())
    clock.advance(1)
    for before in (timedelta(days=1), timedelta()):
        reply = make_inbound(id=new_id(), from_number=first.to, received_at=clock.now() - before)
        await storage.write(lambda tx, reply=reply: (tx.inbound.insert(reply), trail.record_reply(tx, reply)))  # type: ignore[misc]
    assert await course.rest()
    assert await course.wave() == ()
    found = await history(storage, course.campaign)
    sent = ["intent dispatching by pace", "outcome accepted by provider_answer", "held waiting (flow_wait) by flow"]
    assert lines(found) == [LOADED, *sent, *sent, "replied by provider_report", "ended completed (replied) by flow"]
    assert found.steps[3].until == waits_until
    assert [step.step for step in found.steps[1:7]] == [0, 0, 0, 2, 2, 2]


async def given_calls(storage: Storage, **changes: Any) -> Campaign:
    """Write an active calling campaign with one contact."""
    agent = make_agent()
    await storage.write(lambda tx: tx.agents.insert(agent))
    return await given_active(
        storage, channel="call", agent_id=agent.id, message_mode=None, carrier=None, cli_mode="default", **changes
    )


async def call(storage: Storage, campaign: Campaign, now: datetime, outcome: DispatchOutcome = ACCEPTED) -> Dispatch:
    """Commit the intent of a call and have it accepted a second later; return its dispatch."""

    def operation(tx: Transaction) -> WaveResult:
        one = tx.recipients.get(THIS_WORKSPACE, campaign.id, 0)
        assert one is not None
        wave = make_wave(tx, campaign, [one], now=now)
        (intent,) = wave.intents
        wave = attrs.evolve(
            wave, basis=attrs.evolve(wave.basis, agent=0), intents=[attrs.evolve(intent, call_id=new_id(), body=None)]
        )
        return commit_wave(tx, wave, clock_now=lambda: now)

    (dispatch,) = (await storage.write(operation)).dispatches
    return await settle(storage, dispatch, outcome, now=now + timedelta(seconds=1))


async def test_a_call_that_is_busy_and_then_answered(storage: Storage) -> None:
    """Each call with its events, its end and its attempt; the wait between them with its end."""
    campaign = await given_calls(storage)
    first = await call(storage, campaign, at(1))
    await report_call(storage, first, CallStatus.RINGING, at=at(3))
    await report_call(storage, first, CallStatus.BUSY, at=at(4))
    waits_until = (await recipient(storage, campaign)).due_at or NOW
    second = await call(storage, campaign, waits_until)
    later = waits_until + timedelta(seconds=9)
    await report_call(storage, second, CallStatus.IN_PROGRESS, at=later)
    await report_call(storage, second, CallStatus.COMPLETED, at=later, outcome="positive")
    found = await history(storage, campaign)
    accepted = [CALL, "outcome accepted by provider_answer"]
    assert lines(found) == [
        LOADED,
        *accepted,
        "reported ringing by provider_report",
        "call_ended busy (busy) by provider_report",
        "held waiting (retry_busy) by retry_budget",
        *accepted,
        "reported in-progress by provider_report",
        "call_ended completed (positive) by provider_report",
        "ended completed by provider_report",
    ]
    assert found.steps[5].until == waits_until
    assert [step.attempt for step in found.steps[1:]] == [1] * 5 + [2] * 5
    assert {step.call_id for step in found.steps[1:5]} == {first.call_id}


async def test_a_double_dial(storage: Storage) -> None:
    """Two legs of one attempt, and that the budget is spent after the second."""
    await storage.write(lambda tx: tx.call_settings.put(THIS_WORKSPACE, CallSettings(retry_max_attempts=1)))
    campaign = await given_calls(storage, double_dial=True)
    await report_call(storage, await call(storage, campaign, at(1)), CallStatus.NO_ANSWER, at=at(30))
    await report_call(storage, await call(storage, campaign, at(31)), CallStatus.NO_ANSWER, at=at(60))
    found = await history(storage, campaign)
    rang = [CALL, "outcome accepted by provider_answer", "call_ended no-answer (no_answer) by provider_report"]
    assert lines(found) == [
        LOADED,
        *rang,
        "held waiting (double_dial) by double_dial",
        *rang,
        "ended failed (no_answer) by retry_budget",
    ]
    assert [(step.attempt, step.leg) for step in found.steps[1:]] == [(1, 1)] * 4 + [(1, 2)] * 4


async def test_a_second_leg_that_comes_too_late_is_dropped(storage: Storage) -> None:
    """The attempt is over with the first one's no answer."""
    campaign = await given_calls(storage, double_dial=True)
    await report_call(storage, await call(storage, campaign, at(1)), CallStatus.NO_ANSWER, at=at(30))
    waiting = await recipient(storage, campaign)

    def drop(tx: Transaction) -> WaveResult:
        wave = make_wave(tx, campaign, [], now=at(60), advances=[Advance(recipient=waiting, kind="drop_second_leg")])
        wave = attrs.evolve(wave, basis=attrs.evolve(wave.basis, agent=0))
        return commit_wave(tx, wave, clock_now=lambda: at(60))

    await storage.write(drop)
    assert (await told(storage, campaign))[-2:] == [
        "held waiting (double_dial) by double_dial",
        "held waiting (retry_no_answer) by retry_budget",
    ]


async def test_a_call_that_was_never_placed_has_one_end(storage: Storage) -> None:
    """Its record ends with the refusal, which is told as such and not a second time."""
    campaign = await given_calls(storage)
    await call(storage, campaign, at(1), refused("bad_sender"))
    assert await told(storage, campaign) == [
        LOADED,
        CALL,
        "outcome refused (bad_sender) by provider_answer",
        "ended failed (bad_sender) by provider_answer",
    ]


async def test_a_call_that_falls_silent(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-6: no more reports come, and one that comes after all is in the history too."""
    campaign = await given_calls(storage)
    dispatch = await call(storage, campaign, at(1))

    def end(tx: Transaction) -> None:
        lease = tx.leases.current()
        assert lease is not None
        tx.leases.put(attrs.evolve(lease, steady_since=at(0), steady_until=at(14_500)))
        assert ledger.end_silent_call(tx, dispatch, silence=timedelta(hours=4), now=at(14_500))

    await storage.write(end)
    silent = ["call_ended unconfirmed (no_news) by call_silence", "ended unconfirmed (no_news) by call_silence"]
    assert (await told(storage, campaign))[3:] == silent
    await report_call(storage, dispatch, CallStatus.COMPLETED, at=at(15_000), outcome="negative")
    assert (await told(storage, campaign))[3:] == [
        *silent,
        "call_ended completed (negative) by provider_report",
        "ended completed (negative) by provider_report",
    ]


async def test_a_verdict_that_comes_after_the_end(storage: Storage) -> None:
    """What it came to is told again, in other words; the call's end is, too."""
    campaign = await given_calls(storage)
    dispatch = await call(storage, campaign, at(1))
    await report_call(storage, dispatch, CallStatus.COMPLETED, at=at(9))
    await report_call(storage, dispatch, CallStatus.COMPLETED, at=at(20), outcome="negative")
    assert (await told(storage, campaign))[3:] == [
        "call_ended completed by provider_report",
        "ended completed by provider_report",
        "call_ended completed (negative) by provider_report",
        "ended completed (negative) by provider_report",
    ]
