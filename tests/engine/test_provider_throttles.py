from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import attrs
import pytest

from outreach import NewMessage
from outreach.ledger import provider_throttles
from outreach.ledger.sending import singles
from outreach.models.account import ProviderThrottle
from outreach.models.campaign import Recipient
from outreach.models.dispatch import DispatchOutcome
from outreach.models.message import Message
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.models.work import WorkUnit
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.storage import Storage
from outreach.rules.settlement import Backoff
from outreach.testing.builders import (
    NOW,
    make_account,
    make_agent,
    make_call,
    make_dispatch,
    make_message,
    make_provider_throttle,
    new_id,
)
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import (
    ScriptedCarrier,
    Step,
    accept,
    defer,
)
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.given import (
    SECOND,
    commit,
    given_active,
    given_singles,
    intent_terms,
    plan_wave,
    recipient,
    reread,
    settle,
)
from tests.engine.rig import QUICK, contacts, dispatching, given_campaign, given_workspace, people, reaches, until
from tests.engine.trail import lines

pytestmark = pytest.mark.virtual_time

BACKOFF: Final = Backoff(first=SECOND, longest=timedelta(seconds=60))
ACCEPTED: Final = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id="p1")
BUSY: Final = DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited")
DAY: Final = timedelta(days=1)
HOUR: Final = timedelta(hours=1)
FEW: Final = attrs.evolve(QUICK, max_queued_intents=4, max_requests_in_flight=4)
"""An account gets three of four places (`FairLimiter`): no more are in flight when its provider says stop."""

MAX_ON_THEIR_WAY: Final = 3


def throttling(seconds: float, *, state: DispatchState = DispatchState.DEFERRED) -> DispatchOutcome:
    """Return the answer of a provider that names a time."""
    reason = "rate_limited" if state is DispatchState.DEFERRED else "provider_error"
    return DispatchOutcome(state=state, reason=reason, retry_after_seconds=seconds)


async def hears(
    storage: Storage, outcome: DispatchOutcome, *, at: datetime, asked_at: datetime
) -> ProviderThrottle | None:
    """Have the engine learn from an answer; return what holds then."""
    dispatch = make_dispatch(created_at=asked_at)
    await storage.write(lambda tx: provider_throttles.update_throttle(tx, dispatch, outcome, backoff=BACKOFF, now=at))
    return await storage.read(lambda tx: tx.provider_throttles.get(THIS_WORKSPACE, dispatch.provider))


@pytest.mark.parametrize(
    ("outcome", "seconds"),
    [
        (throttling(30), 30),
        (throttling(30, state=DispatchState.UNKNOWN), 30),
        (BUSY, 1),
        (throttling(0), 1),
        (throttling(1e9), DAY.total_seconds()),
    ],
)
async def test_a_throttle_lasts_as_long_as_the_provider_says(
    storage: Storage, outcome: DispatchOutcome, seconds: float
) -> None:
    """For at most a day; for a first back-off where it names no time, or one that has passed."""
    throttle = await hears(storage, outcome, at=NOW, asked_at=NOW)
    assert throttle == make_provider_throttle(since=NOW, until=NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    "outcome",
    [
        ACCEPTED,
        DispatchOutcome(state=DispatchState.UNKNOWN, reason="timeout"),
        DispatchOutcome(state=DispatchState.REFUSED, reason="temporary"),
        DispatchOutcome(state=DispatchState.NOT_SENT, reason="not_connected"),
        attrs.evolve(BUSY, account_wide=False),
        attrs.evolve(BUSY, account_wide=False, retry_after_seconds=30),
    ],
)
async def test_what_asks_for_nothing_holds_nothing(storage: Storage, outcome: DispatchOutcome) -> None:
    """An acceptance, a doubt, a refusal, a request that was never written, and the limit of one sending number."""
    assert await hears(storage, outcome, at=NOW, asked_at=NOW) is None


@pytest.mark.parametrize(("connected", "asked", "holds"), [(1, 0, True), (2, 1, False), (0, -1, False), (0, 0, True)])
async def test_an_answer_to_earlier_credentials_holds_nothing(
    storage: Storage, connected: int, asked: int, holds: bool
) -> None:
    """Times in hours from now; those of an account that was connected before the clock was set back lie ahead."""
    await storage.write(lambda tx: tx.accounts.insert(make_account(updated_at=NOW + connected * HOUR)))
    throttle = await hears(storage, throttling(30), at=NOW, asked_at=NOW + asked * HOUR)
    assert (throttle is not None) is holds


async def test_the_wait_doubles_until_something_is_accepted(storage: Storage) -> None:
    """By refusals in a row; what was accepted of what was on its way before says nothing of after."""
    first = await hears(storage, BUSY, at=NOW, asked_at=NOW)
    assert first is not None
    second = await hears(storage, BUSY, at=first.until, asked_at=first.until)
    assert second is not None
    assert (second.refusals, second.until - second.since) == (2, 2 * SECOND)
    assert await hears(storage, ACCEPTED, at=second.until, asked_at=second.until - TICK) == second
    assert await hears(storage, ACCEPTED, at=second.until, asked_at=second.until) is None
    third = await hears(storage, BUSY, at=second.until, asked_at=second.until)
    assert third is not None
    assert (third.refusals, third.until - third.since) == (1, SECOND)


async def test_an_account_that_names_a_time_is_not_asked_before_it(storage: Storage) -> None:
    """Its own time is the better one; that it refuses again and again counts only where it names none."""
    moment = NOW
    for times in range(1, 9):
        throttle = await hears(storage, throttling(3), at=moment, asked_at=moment)
        assert throttle is not None
        assert (throttle.refusals, throttle.until - throttle.since) == (times, 3 * SECOND)
        moment = throttle.until
    throttle = await hears(storage, throttling(0), at=moment, asked_at=moment)
    assert throttle is not None
    assert throttle.until - throttle.since == timedelta(seconds=60)


async def test_what_was_on_its_way_counts_once_and_may_ask_for_more(storage: Storage) -> None:
    """A burst of refusals is one refusal; the latest end that any of them asked for counts."""
    throttle = await hears(storage, throttling(30), at=NOW, asked_at=NOW)
    assert await hears(storage, BUSY, at=NOW + SECOND, asked_at=NOW) == throttle
    assert await hears(storage, throttling(10), at=NOW + SECOND, asked_at=NOW) == throttle
    longer = await hears(storage, throttling(30), at=NOW + SECOND, asked_at=NOW)
    assert longer == make_provider_throttle(until=NOW + 31 * SECOND)


async def test_what_was_taken_of_before_the_clock_was_set_back_ends_no_hold(storage: Storage) -> None:
    """It was committed ahead of now, and looks as if it had been asked after the throttle."""
    throttle = await hears(storage, throttling(30), at=NOW, asked_at=NOW)
    assert await hears(storage, ACCEPTED, at=NOW + SECOND, asked_at=NOW + DAY) == throttle
    assert await hears(storage, ACCEPTED, at=NOW + DAY, asked_at=NOW + DAY) is None


async def test_a_throttle_extended_after_the_clock_was_set_back_keeps_its_end(storage: Storage) -> None:
    """It begins anew with the extension, so that the repair after the step does not shorten it."""
    await hears(storage, throttling(10), at=NOW + HOUR, asked_at=NOW + HOUR)
    longer = await hears(storage, throttling(30), at=NOW, asked_at=NOW + HOUR)
    assert longer == make_provider_throttle(since=NOW, until=NOW + 30 * SECOND)
    await storage.write(lambda tx: provider_throttles.restart_throttle(tx, THIS_WORKSPACE, "twilio", NOW + SECOND))
    assert await storage.read(lambda tx: tx.provider_throttles.get(THIS_WORKSPACE, "twilio")) == longer


async def test_a_hold_from_before_the_clock_was_set_back_does_not_last(storage: Storage) -> None:
    """No throttle lasts more than a day, whatever the clock did."""
    await storage.write(lambda tx: tx.provider_throttles.put(make_provider_throttle(until=NOW + DAY)))
    assert (
        await storage.read(lambda tx: provider_throttles.active_throttle(tx, THIS_WORKSPACE, "twilio", NOW)) is not None
    )
    assert (
        await storage.read(lambda tx: provider_throttles.active_throttle(tx, THIS_WORKSPACE, "twilio", NOW - TICK))
        is None
    )
    assert (
        await storage.read(lambda tx: provider_throttles.active_throttle(tx, THIS_WORKSPACE, "twilio", NOW + DAY))
        is None
    )
    assert await storage.read(lambda tx: provider_throttles.active_throttle(tx, THIS_WORKSPACE, None, NOW)) is None


async def test_no_intent_is_committed_while_it_lasts(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-3: again at the commit. Holds of others do not count."""
    campaign = await given_active(storage)
    for throttle in (
        make_provider_throttle(provider="vonage"),
        make_provider_throttle(workspace_id=OTHER_WORKSPACE),
        make_provider_throttle(),
    ):
        await storage.write(lambda tx, throttle=throttle: tx.provider_throttles.put(throttle))  # type: ignore[misc]
    committed = await commit(storage, campaign)
    assert (committed.stale, committed.unclaimed, committed.dispatches) == (True, False, ())
    plan = await storage.read(lambda tx: plan_wave(tx, THIS_WORKSPACE, campaign.id, now=NOW, limit=1))
    assert plan is not None
    assert plan.provider_throttle == make_provider_throttle()
    await storage.write(lambda tx: tx.provider_throttles.delete(THIS_WORKSPACE, "twilio"))
    assert len((await commit(storage, campaign)).dispatches) == 1


async def test_an_intent_that_was_committed_before_is_withdrawn(storage: Storage) -> None:
    """Nobody was asked, no attempt is spent, and it is told by which rule."""
    campaign = await given_active(storage)
    (dispatch,) = (await commit(storage, campaign)).dispatches
    assert await storage.read(lambda tx: provider_throttles.throttle_reason(tx, dispatch, NOW)) is None
    await storage.write(lambda tx: tx.provider_throttles.put(make_provider_throttle()))
    reason = await storage.read(lambda tx: provider_throttles.throttle_reason(tx, dispatch, NOW))
    assert reason == "provider_throttle"
    await settle(storage, dispatch, DispatchOutcome(state=DispatchState.WITHDRAWN, reason=reason))
    after = await recipient(storage, campaign)
    assert (after.status, after.reason, after.attempts) == (RecipientStatus.WAITING, "withdrawn", 0)
    held = await storage.read(lambda tx: tx.trail.of_recipient(THIS_WORKSPACE, campaign.id, 0))
    assert [entry.rule for entry in held] == ["provider_throttle"]
    assert (await reread(storage, campaign)).status is CampaignStatus.ACTIVE


async def test_what_waits_is_looked_at_when_its_hold_is_lifted(storage: Storage) -> None:
    """What is queued for this provider, of this workspace; what polls, and what waits for others, is left as it is."""
    later = NOW + DAY
    mine = [make_message(), make_message(carrier="telnyx"), make_message(status=MessageStatus.ACCEPTED)]
    agent = make_agent()
    await storage.write(lambda tx: tx.agents.insert(agent))
    calls = [
        make_call(agent_id=agent.id, **changes)
        for changes in ({"provider": "vapi"}, {}, {"provider": "vapi", "status": CallStatus.RINGING})
    ]
    theirs = make_message(workspace_id=OTHER_WORKSPACE)
    units = [WorkUnit("message", THIS_WORKSPACE, one.id) for one in mine] + [
        WorkUnit("call", THIS_WORKSPACE, one.id) for one in calls
    ]
    units.append(WorkUnit("message", OTHER_WORKSPACE, theirs.id))
    for message in (*mine, theirs):
        await storage.write(lambda tx, message=message: tx.messages.insert(message))  # type: ignore[misc]
    for call in calls:
        await storage.write(lambda tx, call=call: tx.calls.insert(call))  # type: ignore[misc]
    for unit in units:
        await storage.write(lambda tx, unit=unit: tx.work.schedule(unit, later))  # type: ignore[misc]
    for provider, waiting in (("twilio", units[0]), ("vapi", units[3])):
        throttle = make_provider_throttle(provider=provider, until=later)
        await storage.write(lambda tx, throttle=throttle: tx.provider_throttles.put(throttle))  # type: ignore[misc]
        at = NOW + SECOND if provider == "vapi" else NOW
        await storage.write(
            lambda tx, name=provider, at=at: provider_throttles.clear_throttle(tx, THIS_WORKSPACE, name, at)  # type: ignore[misc]
        )
        assert await storage.read(lambda tx, name=provider: tx.provider_throttles.get(THIS_WORKSPACE, name)) is None  # type: ignore[misc]
        due = await storage.read(lambda tx: tx.work.due())
        assert [work.unit for work in due if work.due_at == at] == [waiting]


async def test_single_messages_and_calls_wait_too(storage: Storage) -> None:
    """Until it is over, or until they are stale if that comes first."""
    _, call, message = await given_singles(storage)
    for provider, seconds in ((call.provider, 30), (message.carrier, 900)):
        throttle = make_provider_throttle(provider=provider, until=NOW + timedelta(seconds=seconds))
        await storage.write(lambda tx, throttle=throttle: tx.provider_throttles.put(throttle))  # type: ignore[misc]
    terms = intent_terms()
    for unit in (WorkUnit("message", THIS_WORKSPACE, message.id), WorkUnit("call", THIS_WORKSPACE, call.id)):
        commit = partial(singles.commit_single, unit=unit, terms=terms, clock_now=lambda: NOW)
        assert await storage.write(commit) is None

    def due(unit: WorkUnit) -> object:
        return storage.read(lambda tx: (work := tx.work.get(unit)) and work.due_at)

    assert await due(WorkUnit("call", THIS_WORKSPACE, call.id)) == NOW + 30 * SECOND  # type: ignore[misc]
    assert await due(WorkUnit("message", THIS_WORKSPACE, message.id)) == NOW + timedelta(minutes=10)  # type: ignore[misc]


async def test_a_throttle_holds_for_its_workspace_alone(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """docs/delivery-contract.md#rule-7: nobody fails, no attempt is spent, and all goes on by itself."""
    caplog.set_level(logging.WARNING)
    clock = ShiftedClock()
    busy_until = clock.now() + timedelta(seconds=300)
    busy, free, elsewhere = "+14155550197", "+14155550198", "+14155550199"

    def answer(message: OutboundMessage) -> Step:
        return defer(300) if message.from_number == busy and clock.now() < busy_until else accept()

    carrier = ScriptedCarrier(answer)

    async with dispatching(open_storage(clock), carrier=carrier, config=FEW, clock=clock) as rig:
        engine = rig.engine
        here, there = await given_workspace(engine), await given_workspace(engine)
        held = [await given_campaign(engine, here, contacts(10, first=first), from_number=busy) for first in (0, 10)]
        other = await given_campaign(engine, here, contacts(3, first=20), from_number=free, carrier="telnyx")
        theirs = await given_campaign(engine, there, contacts(3, first=30), from_number=elsewhere)

        def asked() -> list[str]:
            return [one.to for one in carrier.requests if one.from_number == busy]

        await engine.campaigns.start(here.id, held[0].id)
        await until(lambda: engine.campaigns.throttled_until(here.id, held[0].id), lambda found: found is not None)
        single = await engine.messages.send(
            here.id, NewMessage(to="+14155550150", body="Hi", from_number=busy, carrier="twilio")
        )
        for campaign in (held[1], other, theirs):
            await engine.campaigns.start(campaign.workspace_id, campaign.id)
        for campaign in (other, theirs):
            assert await engine.campaigns.throttled_until(campaign.workspace_id, campaign.id) is None
            await reaches(engine, campaign, "completed")

        async def told() -> list[str]:
            (story,) = await engine.campaigns.contact_history(here.id, held[1].id, "+14155550010")
            return lines(story)

        await until(told, lambda found: "held active by provider_throttle" in found)
        assert len(asked()) <= MAX_ON_THEIR_WAY
        waiting: list[Recipient] = [one for campaign in held for one in await people(engine, campaign)]
        assert {one.status for one in waiting} <= {RecipientStatus.PENDING, RecipientStatus.WAITING}
        assert {one.attempts for one in waiting} == {0}
        assert (await engine.messages.get(here.id, single.id)).status is MessageStatus.QUEUED
        tried = len(asked())
        clock.shift(timedelta(seconds=301))
        for campaign in held:
            done = await reaches(engine, campaign, "completed")
            assert (done.counters.failed, done.counters.successful) == (0, 10)

        async def is_sent() -> Message | None:
            found = await engine.messages.get(here.id, single.id)
            return found if found.status is MessageStatus.ACCEPTED else None

        await until(is_sent)
        assert sorted(asked()[tried:]) == sorted([*(f"+1415555{n:04d}" for n in range(20)), "+14155550150"])
        holds = [record for record in caplog.records if getattr(record, "action", None) == "provider_throttle"]
        assert [(one.provider, one.workspace_id) for one in holds] == [("twilio", here.id)]  # type: ignore[attr-defined]
        assert (await told()).count("held active by provider_throttle") == 1


async def test_only_what_runs_is_held(open_storage: OpenStorage) -> None:
    """A campaign that is not active waits for somebody, not for its provider."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_campaign(rig.engine, workspace, 1)
        throttle = make_provider_throttle(workspace_id=workspace.id, until=clock_of_loop().now() + timedelta(hours=1))
        await rig.storage.write(lambda tx: tx.provider_throttles.put(throttle))
        assert await rig.engine.campaigns.throttled_until(workspace.id, campaign.id) is None
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        assert await rig.engine.campaigns.throttled_until(workspace.id, campaign.id) == throttle.until


async def test_a_time_that_is_named_after_the_clock_was_set_back_counts_from_then(storage: Storage) -> None:
    """The throttle from before the step still looks longer, and is shortened when the step is repaired."""
    dispatch = make_dispatch(message_id=new_id(), created_at=NOW)
    throttle = make_provider_throttle(provider=dispatch.provider, since=NOW, until=NOW + timedelta(seconds=5))
    await storage.write(lambda tx: tx.provider_throttles.put(throttle))
    early = NOW - timedelta(minutes=10)
    outcome = DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited", retry_after_seconds=20.0)
    await storage.write(
        lambda tx: provider_throttles.update_throttle(tx, dispatch, outcome, backoff=BACKOFF, now=early)
    )
    await storage.write(
        lambda tx: provider_throttles.restart_throttle(tx, THIS_WORKSPACE, dispatch.provider, early + SECOND)
    )
    kept = await storage.read(lambda tx: tx.provider_throttles.get(THIS_WORKSPACE, dispatch.provider))
    assert kept is not None
    assert kept.until >= early + timedelta(seconds=20)
