from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeAlias

import anyio
import attrs
import pytest

from outreach import AgentUpdate, NewCall, NewNumber, NewRecipient, NewTrunk
from outreach.core.config import EngineConfig
from outreach.errors import CannotStart
from outreach.models.campaign import CallerIdAllocation, Counters
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, RecipientStatus
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import (
    ScriptedVoice,
    Step,
    accept,
    hang,
    refuse,
)
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import (
    BUSY,
    CALLS,
    DECLINED,
    FAILED,
    NEGATIVE,
    NO_ANSWER,
    POSITIVE,
    VOICEMAIL,
    calling,
    calls_of,
    dispatches_of,
    ends,
    event,
    given_agent,
    given_call_settings,
    hear,
    start_calls,
)
from tests.engine.conftest import OpenStorage
from tests.engine.rig import Rig, dispatching, given_workspace, people, reaches, until

pytestmark = pytest.mark.virtual_time

SLOW = EngineConfig(
    change_poll_seconds=10.0, heartbeat_interval_seconds=60.0, lease_seconds=600.0, reconcile_interval_seconds=60.0
)
"""Looks around seldom, where hours pass."""

R: TypeAlias = RecipientStatus


async def test_no_more_calls_are_in_flight_than_the_campaign_allows(open_storage: OpenStorage) -> None:
    """docs/interface.md#2.2, batch_concurrency: a call that has ended frees its place, and the next one starts."""
    voice = ScriptedVoice(look_up="none")
    most, ended = 0, 0
    async with calling(open_storage(clock_of_loop()), 9, voice=voice, batch_concurrency=3) as (rig, campaign):
        for number in range(9):
            await voice.wait_for_requests(min(number + 3, 9))
            most = max(most, len(voice.requests) - ended)
            in_flight = await rig.storage.read(lambda tx: tx.recipients.in_flight(campaign.workspace_id, campaign.id))
            assert in_flight <= 3
            hear(voice, voice.requests[number], **POSITIVE)
            ended += 1
        done = await reaches(rig.engine, campaign, "completed")
        assert most == 3
        assert done.counters == Counters(total=9, completed=9, successful=9)
        assert len({request.to for request in voice.requests}) == 9


async def test_a_place_freed_by_a_refusal_is_taken(open_storage: OpenStorage) -> None:
    """A refused call has never been in flight: with one place, all the others are called all the same."""
    voice = ScriptedVoice(lambda request: accept() if request.to.endswith("3") else refuse("invalid_number"))
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        ends(voice, lambda request, _: NEGATIVE)
        workspace = await given_workspace(rig.engine)
        campaign = await start_calls(rig.engine, workspace, 4, batch_concurrency=1)
        await reaches(rig.engine, campaign, "completed")
        assert [(one.status, one.reason) for one in await people(rig.engine, campaign)] == [
            (R.FAILED, "invalid_number"),
            (R.FAILED, "invalid_number"),
            (R.FAILED, "invalid_number"),
            (R.COMPLETED, "negative"),
        ]


@pytest.mark.field(14)
async def test_busy_no_answer_and_voicemail_share_one_budget(open_storage: OpenStorage) -> None:
    """Field, test 14 (whispey PR #494: budgets stack, 1 becomes 3): three attempts are three, whatever each came to."""
    voice = ScriptedVoice()
    courses: dict[str, list[dict[str, Any]]] = {
        "0": [BUSY, NO_ANSWER, VOICEMAIL, POSITIVE],
        "1": [DECLINED, POSITIVE],
        "2": [FAILED],
        "3": [NEGATIVE],
        "4": [{"status": CallStatus.CANCELED}],
    }
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        ends(voice, lambda request, count: courses[request.to[-1]][count])
        workspace = await given_workspace(rig.engine)
        await given_call_settings(rig, workspace, attempts=3)
        campaign = await start_calls(rig.engine, workspace, 5)
        done = await reaches(rig.engine, campaign, "completed")
        assert [(one.status, one.reason, one.attempts) for one in await people(rig.engine, campaign)] == [
            (R.FAILED, "voicemail", 3),
            (R.COMPLETED, None, 2),
            (R.FAILED, "failed", 1),
            (R.COMPLETED, "negative", 1),
            (R.FAILED, "canceled_at_provider", 1),
        ]
        assert done.counters == Counters(total=5, completed=5, successful=1, failed=3)
        assert [call.attempt for call in await calls_of(rig, campaign)] == [1, 2, 3]
        assert [call.outcome for call in await calls_of(rig, campaign)] == ["busy", "no_answer", "voicemail"]


@pytest.mark.field(14)
async def test_a_double_dial_calls_twice_within_one_attempt(open_storage: OpenStorage) -> None:
    """Field, test 14 (newfies #14: wrong interval): the second call follows at once and counts as the same attempt."""
    voice = ScriptedVoice()
    courses: dict[str, list[dict[str, Any]]] = {"0": [NO_ANSWER, POSITIVE], "1": [NO_ANSWER] * 9, "2": [BUSY] * 9}
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        ends(voice, lambda request, count: courses[request.to[-1]][count])
        workspace = await given_workspace(rig.engine)
        await given_call_settings(rig, workspace, attempts=2)
        campaign = await start_calls(rig.engine, workspace, 3, double_dial=True)
        await reaches(rig.engine, campaign, "completed")
        legs = [[(one.attempt, one.leg) for one in await dispatches_of(rig, campaign, n)] for n in range(3)]
        assert legs == [[(1, 1), (1, 2)], [(1, 1), (1, 2), (2, 1), (2, 2)], [(1, 1), (2, 1)]]
        assert [one.attempts for one in await people(rig.engine, campaign)] == [1, 2, 2]


async def test_each_number_of_a_group_gets_its_recipients_and_a_retry_keeps_its_number(
    open_storage: OpenStorage,
) -> None:
    """docs/interface.md#2.2, cli_group_config: `count` recipients to each number in turn, kept for retries."""
    voice = ScriptedVoice()
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        ends(voice, lambda _, count: (NO_ANSWER, POSITIVE)[count])
        workspace = await given_workspace(rig.engine)
        await given_call_settings(rig, workspace, attempts=2)
        numbers = [await rig.engine.numbers.create(workspace.id, NewNumber(phone=f"+1415555999{n}")) for n in range(2)]
        group = tuple(
            CallerIdAllocation(number_id=number.id, phone=number.phone, count=count)
            for number, count in zip(numbers, (2, 1), strict=True)
        )
        campaign = await start_calls(rig.engine, workspace, 5, cli_mode="group", cli_group=group, batch_concurrency=2)
        await reaches(rig.engine, campaign, "completed")
        senders = [[one.from_number for one in await dispatches_of(rig, campaign, n)] for n in range(5)]
        first, second = numbers[0].phone, numbers[1].phone
        assert senders == [[first] * 2, [first] * 2, [second] * 2, [first] * 2, [first] * 2]
        assert {request.from_number for request in voice.requests} == {first, second}


async def test_everything_that_the_campaign_says_reaches_the_provider(open_storage: OpenStorage) -> None:
    """docs/interface.md#2.2: trunk, IVR, call screening, and the contact's variables for the agent."""
    async with dispatching(open_storage(clock_of_loop()), config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        agent_id = await given_agent(
            rig.engine,
            workspace,
            provider_agent_id="asst_1",
            from_number="+14155550177",
            voicemail="leave_message",
            voicemail_message="Please call back.",
            max_call_seconds=120,
        )
        trunk = await rig.engine.trunks.create(workspace.id, NewTrunk(name="Main", address="sip.example.com"))
        person = NewRecipient(
            phone_number="(415) 555-0102", first_name="Ann", last_name="Lee", custom_variables={"plan": "gold", "n": 3}
        )
        campaign = await start_calls(
            rig.engine,
            workspace,
            [person],
            agent_id=agent_id,
            trunk_id=trunk.id,
            ivr_enabled=True,
            call_screen_enabled=True,
        )
        await rig.voice.wait_for_requests(1)
        (request,) = rig.voice.requests
        assert (request.to, request.from_number, request.provider_agent_id) == (
            "+14155550102",
            "+14155550177",
            "asst_1",
        )
        assert (request.provider_trunk, request.ivr_enabled, request.call_screen_enabled) == (
            "sip.example.com",
            True,
            True,
        )
        assert (request.screen_identity, request.screen_purpose) == (workspace.name, campaign.name)
        assert (request.voicemail, request.voicemail_message) == ("leave_message", "Please call back.")
        assert request.max_seconds == 120
        wanted = {"first_name": "Ann", "last_name": "Lee", "plan": "gold", "n": "3"}
        assert wanted.items() <= request.variables.items()
        hear(rig.voice, request, **POSITIVE)
        await reaches(rig.engine, campaign, "completed")
        (call,) = await calls_of(rig, campaign)
        assert (call.campaign_id, call.agent_id, call.to) == (campaign.id, agent_id, "+14155550102")
        assert (call.status, call.outcome, call.summary) == (CallStatus.COMPLETED, "positive", "Will come.")
        assert wanted.items() <= call.variables.items()
        assert None not in {call.provider_call_id, call.dialed_at, call.ended_at}


async def test_who_answered_is_known_at_the_end_from_an_earlier_event(open_storage: OpenStorage) -> None:
    """A machine that answered is a voicemail, also when the last event does not say so again."""
    async with calling(open_storage(clock_of_loop()), 1, attempts=1) as (rig, campaign):
        await rig.voice.wait_for_requests(1)
        (request,) = rig.voice.requests
        rig.voice.report(event(request, CallStatus.IN_PROGRESS, answered_by="machine"))
        rig.voice.report(event(request, CallStatus.COMPLETED))
        await reaches(rig.engine, campaign, "completed")
        assert [(one.status, one.reason) for one in await people(rig.engine, campaign)] == [(R.FAILED, "voicemail")]


@pytest.mark.parametrize("trouble", ["silent", "raises", "hangs", "no report", "no status", "foreign"])
async def test_a_call_without_any_report_ends_as_unconfirmed(open_storage: OpenStorage, trouble: str) -> None:
    """What cannot be known is said: a provider that forgets a call keeps no place and no campaign for ever."""
    asked = 0

    async def status(**_: object) -> object:
        nonlocal asked
        asked += 1
        if trouble == "raises":
            raise RuntimeError("Out of order.")
        if trouble == "hangs":
            await anyio.sleep_forever()
        if trouble == "no status":
            wrong: Any = trouble
            return attrs.evolve(event(voice.requests[0], CallStatus.IN_PROGRESS), status=wrong)
        if trouble == "foreign":
            return event(voice.requests[0], CallStatus.IN_PROGRESS, workspace_id="another")
        return {"status": "in-progress"} if trouble == "no report" else None

    voice = ScriptedVoice()
    voice.status = status  # type: ignore[assignment, method-assign]
    config = attrs.evolve(CALLS, call_timeout_seconds=0.5, call_status_seconds=0.1)
    async with calling(open_storage(clock_of_loop()), 1, voice=voice, config=config) as (rig, campaign):
        await reaches(rig.engine, campaign, "completed")
        (one,) = await people(rig.engine, campaign)
        assert (one.status, one.reason) == (R.UNCONFIRMED, "no_news")
        assert asked > 1
        hear(voice, voice.requests[0], **POSITIVE)
        await until(lambda: people(rig.engine, campaign), lambda found: found[0].successful)
        assert (await reaches(rig.engine, campaign, "completed")).counters.successful == 1


@pytest.mark.virtual_time(max_run=timedelta(hours=1))
async def test_a_call_may_last_as_long_as_its_agent_allows(open_storage: OpenStorage) -> None:
    """It keeps its place, and its contact is not called by others; a provider that forgets it ends it later."""

    async def status(**_: object) -> None:
        return None

    voice = ScriptedVoice()
    voice.status = status  # type: ignore[method-assign]
    config = attrs.evolve(SLOW, call_timeout_seconds=60.0, call_poll_seconds=20.0)
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=config) as rig:
        workspace = await given_workspace(rig.engine)
        agent = await given_agent(rig.engine, workspace, max_call_seconds=600)
        campaign = await start_calls(rig.engine, workspace, 1, agent_id=agent)
        await voice.wait_for_requests(1)
        await anyio.sleep(14 * 60)
        assert [one.status for one in await people(rig.engine, campaign)] == [R.IN_PROGRESS]
        await anyio.sleep(2 * 60)
        assert [one.reason for one in await people(rig.engine, campaign)] == ["no_news"]


@pytest.mark.virtual_time(max_run=timedelta(hours=16))
async def test_a_call_that_its_provider_says_goes_on_is_not_ended() -> None:
    """A provider's own setting may allow 12 hours, of which the engine does not know."""
    voice = ScriptedVoice()

    async def status(**_: object) -> CallReport:
        return event(voice.requests[0], CallStatus.IN_PROGRESS)

    voice.status = status  # type: ignore[method-assign]
    config = attrs.evolve(SLOW, call_poll_seconds=60.0)
    async with calling(MemoryStorage(clock=clock_of_loop()), 1, voice=voice, config=config) as (rig, campaign):
        await voice.wait_for_requests(1)
        await anyio.sleep(12 * 3600)
        assert [one.status for one in await people(rig.engine, campaign)] == [R.IN_PROGRESS]
        await anyio.sleep(10 * 60)
        assert [one.reason for one in await people(rig.engine, campaign)] == ["no_news"]


async def test_a_silence_that_began_by_a_wrong_time_ends_by_the_right_one(open_storage: OpenStorage) -> None:
    """A call that was dialed an hour ahead of the present is not waited for until that hour comes."""

    async def status(**_: object) -> None:
        return None

    voice = ScriptedVoice()
    voice.status = status  # type: ignore[method-assign]
    clock = ShiftedClock()
    config = attrs.evolve(CALLS, call_timeout_seconds=0.5, call_status_seconds=0.1)
    async with dispatching(open_storage(clock), voice=voice, config=config, clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        agent = await given_agent(rig.engine, workspace)
        clock.shift(timedelta(hours=1))
        call = await rig.engine.calls.create(workspace.id, NewCall(agent_id=agent, to="+14155550101"))

        async def is_now(*statuses: str) -> bool:
            return (await rig.engine.calls.get(workspace.id, call.id)).status in statuses

        await until(lambda: is_now("initiated"))
        clock.shift(-timedelta(hours=1))
        await until(lambda: is_now("unconfirmed"))


async def test_time_that_a_clock_jumps_over_does_not_end_a_call(open_storage: OpenStorage) -> None:
    """The provider has just said that it is in progress, and what it says then still counts."""
    clock = ShiftedClock()
    voice = ScriptedVoice()
    async with calling(open_storage(clock), 1, voice=voice, clock=clock) as (rig, campaign):
        await voice.wait_for_requests(1)
        (request,) = voice.requests
        asked = 0

        async def status(**_: object) -> CallReport:
            nonlocal asked
            asked += 1
            return event(request, CallStatus.IN_PROGRESS)

        async def is_asked(times: int) -> bool:
            return asked >= times

        voice.status = status  # type: ignore[method-assign]
        await until(lambda: is_asked(1))
        clock.shift(timedelta(hours=5))
        seen = asked + 3
        await until(lambda: is_asked(seen))
        (one,) = await people(rig.engine, campaign)
        assert one.status is R.IN_PROGRESS
        voice.report(event(request, CallStatus.COMPLETED, answered_by="human", outcome="positive"))
        await reaches(rig.engine, campaign, "completed")
        assert [one.status for one in await people(rig.engine, campaign)] == [R.COMPLETED]


@pytest.mark.virtual_time(max_run=timedelta(hours=8))
async def test_a_call_that_a_provider_never_ends_is_given_up_after_a_clock_step_too() -> None:
    """An hour after the step at the latest, so that it keeps its place no longer."""
    clock = ShiftedClock()
    voice = ScriptedVoice()
    config = attrs.evolve(SLOW, call_poll_seconds=60.0)
    async with calling(MemoryStorage(clock=clock), 1, voice=voice, config=config, clock=clock) as (rig, campaign):
        await voice.wait_for_requests(1)
        (request,) = voice.requests

        asked = anyio.Event()

        async def status(**_: object) -> CallReport:
            asked.set()
            return event(request, CallStatus.IN_PROGRESS)

        voice.status = status  # type: ignore[method-assign]
        await asked.wait()
        # Longer than any call may last: until then the provider's word that it goes on counts.
        clock.shift(timedelta(hours=13))
        await anyio.sleep(40 * 60)
        assert [one.status for one in await people(rig.engine, campaign)] == [R.IN_PROGRESS]
        await anyio.sleep(60 * 60)
        (one,) = await people(rig.engine, campaign)
        assert (one.status, one.reason) == (R.UNCONFIRMED, "no_news")


async def test_stopping_does_not_wait_for_a_provider_that_does_not_tell(open_storage: OpenStorage) -> None:
    """A hanging question about a call must not keep the dispatcher from ending."""
    asked = anyio.Event()

    async def status(**_: object) -> None:
        asked.set()
        await anyio.sleep_forever()

    voice = ScriptedVoice()
    voice.status = status  # type: ignore[method-assign]
    with anyio.fail_after(20):
        async with calling(open_storage(clock_of_loop()), 1, voice=voice):
            await asked.wait()


async def test_an_agent_that_is_switched_off_pauses_its_campaign(open_storage: OpenStorage) -> None:
    """Nothing more is placed, the reason is shown, and nothing spins; a resume says what is in the way."""
    async with dispatching(open_storage(clock_of_loop()), config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        agent_id = await given_agent(rig.engine, workspace)
        campaign = await start_calls(rig.engine, workspace, 3, agent_id=agent_id, batch_concurrency=1)
        await rig.voice.wait_for_requests(1)
        await rig.engine.agents.update(workspace.id, agent_id, AgentUpdate(is_active=False))
        hear(rig.voice, rig.voice.requests[0], **POSITIVE)
        paused = await reaches(rig.engine, campaign, "paused")
        assert (paused.pause_reason, paused.counters.pending) == ("agent_unavailable", 2)
        await _rests(rig)
        assert len(rig.voice.requests) == 1
        with pytest.raises(CannotStart, match="is inactive"):
            await rig.engine.campaigns.resume(workspace.id, campaign.id)
        await rig.engine.agents.update(workspace.id, agent_id, AgentUpdate(is_active=True))
        await rig.engine.campaigns.resume(workspace.id, campaign.id)
        await rig.voice.wait_for_requests(2)


async def test_a_request_without_an_answer_keeps_its_place(open_storage: OpenStorage) -> None:
    """A call that may be ringing takes a place until that is known."""
    config = attrs.evolve(CALLS, provider_timeout_seconds=0.1)
    steps: list[Step] = [hang()]
    voice = ScriptedVoice(steps)
    async with calling(open_storage(clock_of_loop()), 2, voice=voice, config=config, batch_concurrency=1) as (
        rig,
        campaign,
    ):
        await until(lambda: people(rig.engine, campaign), lambda found: found[0].status is R.UNKNOWN)
        await _rests(rig)
        assert len(voice.requests) == 1


async def _rests(rig: Rig) -> None:
    """Wait until the dispatcher has looked around several times, and check that it does not spin."""
    failures, before, began = rig.dispatcher.health().failures, rig.storage.writes, anyio.current_time()
    # That nothing happens can only be seen by watching for a while: this is a measure, not a wait.
    await anyio.sleep(25 * CALLS.change_poll_seconds)
    assert rig.storage.writes - before < 20 + (anyio.current_time() - began) / CALLS.heartbeat_interval_seconds
    assert rig.dispatcher.health().failures == failures
