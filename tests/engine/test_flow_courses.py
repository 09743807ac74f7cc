from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import MessageReport
from outreach.models.resources import FlowStep
from outreach.models.states import DispatchState, MessageStatus, RecipientStatus
from outreach.operations.settling import ledger
from outreach.policy.call_settlement import ProviderAnalyser
from outreach.protocols.storage import Storage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.builders import make_inbound, make_unsubscribe, make_workspace
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.flow_course import Course
from tests.engine.given import ACCEPTED, BACKOFF, given_settings, recipient, refused, reread, settle

pytestmark = pytest.mark.virtual_time

S, R = DispatchState, RecipientStatus

HELLO = FlowStep(kind="send", body="Hello")
AGAIN = FlowStep(kind="send", body="Again")
WAIT = FlowStep(kind="wait", wait_minutes=60)
STOP = FlowStep(kind="stop_if_replied")


async def report(
    storage: Storage, dispatch: Dispatch, status: MessageStatus, reason: str | None, at: ManualClock
) -> None:
    """Hand in a receipt."""
    event = MessageReport(
        workspace_id=THIS_WORKSPACE, provider=dispatch.provider, dispatch_id=dispatch.id, provider_id=None,
        status=status, reason=reason, at=at.now(),
    )  # fmt: skip
    await storage.write(
        lambda tx: ledger.apply_report(tx, event, backoff=BACKOFF, analyser=ProviderAnalyser(), now=at.now())
    )


async def test_a_step_that_is_refused_for_good_ends_the_recipient_as_failed(
    storage: Storage, clock: ManualClock
) -> None:
    """docs/rules.md#flows: a failed step ends the recipient as failed, though an earlier one was accepted."""
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN)
    (first,) = await course.wave()
    await settle(storage, first, ACCEPTED, now=clock.now())
    assert await course.rest()
    (second,) = await course.wave()
    await settle(storage, second, refused(), now=clock.now())
    after = await recipient(storage, course.campaign)
    assert (after.status, after.reason, after.successful) == (R.FAILED, "invalid_number", False)
    done = await reread(storage, course.campaign)
    assert (done.status, done.counters.failed, done.counters.completed) == ("completed", 1, 1)


async def test_a_step_is_tried_again_by_the_settings_with_attempts_of_its_own(
    storage: Storage, clock: ManualClock
) -> None:
    """docs/rules.md#retry: total attempts count for each step; only failures that may pass are retried."""
    await given_settings(storage, retry_enabled=True, retry_max_attempts=2, retry_delay_minutes=15)
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN)
    tried = []
    for outcome in (refused("temporary"), ACCEPTED, refused("temporary"), refused("temporary")):
        (dispatch,) = await course.wave()
        tried.append((dispatch.step, dispatch.attempt, dispatch.body))
        await settle(storage, dispatch, outcome, now=clock.now())
        await reread(storage, course.campaign)
        await course.rest()
    footer = "\nReply STOP to opt out"
    assert tried == [
        (0, 1, "Hello" + footer),
        (0, 2, "Hello" + footer),
        (2, 1, "Again" + footer),
        (2, 2, "Again" + footer),
    ]
    assert (await recipient(storage, course.campaign)).status is R.FAILED
    assert (await reread(storage, course.campaign)).status == "completed"


@pytest.mark.parametrize(
    "steps", [(HELLO, WAIT), (HELLO, STOP), (HELLO, WAIT, STOP), (HELLO, WAIT, WAIT), (WAIT, HELLO)]
)
async def test_a_flow_ends_whatever_its_last_step_is(
    storage: Storage, clock: ManualClock, steps: tuple[FlowStep, ...]
) -> None:
    """A wait at the end is waited for, a question at the end changes nothing."""
    course = await Course.begin(storage, clock, *steps, count=2)
    for _ in range(6):
        for dispatch in await course.wave():
            await settle(storage, dispatch, ACCEPTED, now=clock.now())
        await reread(storage, course.campaign)
        if not await course.rest():
            break
    done = await reread(storage, course.campaign)
    assert (done.status, done.counters.successful, done.counters.completed) == ("completed", 2, 2)
    assert clock.now() - course.campaign.started_at >= timedelta(hours=steps.count(WAIT))  # type: ignore[operator]


async def test_the_due_time_of_a_wait_is_stored(storage: Storage, clock: ManualClock) -> None:
    """It counts from the acceptance; the recipient stands at the step behind the wait."""
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN)
    (dispatch,) = await course.wave()
    clock.advance(7)
    await settle(storage, dispatch, ACCEPTED, now=clock.now())
    after = await recipient(storage, course.campaign)
    assert (after.status, after.reason, after.step) == (R.WAITING, "flow_wait", 2)
    assert after.due_at == clock.now() + timedelta(minutes=60)
    assert (after.attempts, after.dispatched, after.successful) == (0, True, True)


async def test_a_deferral_before_anything_was_sent_leaves_a_recipient_pending(
    storage: Storage, clock: ManualClock
) -> None:
    """docs/interface.md#counters: pending is never attempted; a wait that comes first is no attempt."""
    course = await Course.begin(storage, clock, WAIT, HELLO)
    await course.wave()
    await course.rest()
    (dispatch,) = await course.wave()
    await settle(storage, dispatch, DispatchOutcome(state=S.DEFERRED), now=clock.now())
    after = await recipient(storage, course.campaign)
    assert (after.reason, after.dispatched, after.attempts) == ("deferred", False, 0)
    assert (await reread(storage, course.campaign)).counters.pending == 1


async def test_a_deferral_in_a_later_step_forgets_nothing_of_the_first(storage: Storage, clock: ManualClock) -> None:
    """What was sent stays sent."""
    course = await Course.begin(storage, clock, HELLO, AGAIN)
    (first,) = await course.wave()
    await settle(storage, first, ACCEPTED, now=clock.now())
    (second,) = await course.wave()
    await settle(storage, second, DispatchOutcome(state=S.NOT_SENT), now=clock.now())
    after = await recipient(storage, course.campaign)
    assert (after.step, after.dispatched, after.successful) == (1, True, True)
    await reread(storage, course.campaign)


@pytest.mark.parametrize("step", [0, 2])
async def test_who_opts_out_during_a_request_is_skipped_at_once(
    storage: Storage, clock: ManualClock, step: int
) -> None:
    """docs/rules.md#flows: the opt-out ends the recipient; it does not wait for its next step before."""
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN, AGAIN)
    (dispatch,) = await course.wave()
    if step:
        await settle(storage, dispatch, ACCEPTED, now=clock.now())
        await course.rest()
        (dispatch,) = await course.wave()
    assert dispatch.step == step
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=dispatch.to)))
    await settle(storage, dispatch, ACCEPTED, now=clock.now())
    after = await recipient(storage, course.campaign)
    assert (after.status, after.reason, after.dispatched) == (R.SKIPPED, "opted_out", True)
    assert (await reread(storage, course.campaign)).status == "completed"


async def test_who_opts_out_after_the_last_message_has_completed(storage: Storage, clock: ManualClock) -> None:
    """There is nothing left to be spared."""
    course = await Course.begin(storage, clock, HELLO, STOP)
    (dispatch,) = await course.wave()
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=dispatch.to)))
    await settle(storage, dispatch, ACCEPTED, now=clock.now())
    assert (await recipient(storage, course.campaign)).status is R.COMPLETED


async def test_a_reply_that_comes_while_the_message_is_put_off_still_stops_it(
    storage: Storage, clock: ManualClock
) -> None:
    """docs/delivery-contract.md#rule-3: everything again at the commit; the question had been answered before."""
    course = await Course.begin(storage, clock, HELLO, STOP, AGAIN)
    (first,) = await course.wave()
    await settle(storage, first, ACCEPTED, now=clock.now())
    (second,) = await course.wave()
    await settle(storage, second, DispatchOutcome(state=S.DEFERRED), now=clock.now())
    await storage.write(lambda tx: tx.inbound.insert(make_inbound(from_number=first.to, received_at=clock.now())))
    await course.rest()
    assert await course.wave() == ()
    after = await recipient(storage, course.campaign)
    assert (after.status, after.reason) == (R.COMPLETED, "replied")
    assert (await reread(storage, course.campaign)).status == "completed"


@pytest.mark.parametrize(("retry", "status"), [(False, R.FAILED), (True, R.WAITING)])
async def test_a_failed_receipt_of_the_last_message_is_reported_and_retried_by_the_settings(
    storage: Storage, clock: ManualClock, retry: bool, status: RecipientStatus
) -> None:
    """docs/rules.md#retry: also failures that a receipt reports, as in a campaign without a flow."""
    await given_settings(storage, retry_enabled=retry)
    course = await Course.begin(storage, clock, HELLO, STOP)
    (dispatch,) = await course.wave()
    await settle(storage, dispatch, ACCEPTED, now=clock.now())
    assert (await recipient(storage, course.campaign)).status is (R.IN_PROGRESS if retry else R.COMPLETED)
    await report(storage, dispatch, MessageStatus.FAILED, "unreachable", clock)
    after = await recipient(storage, course.campaign)
    assert (after.status, after.successful) == (status, False)
    await reread(storage, course.campaign)


async def test_a_failed_receipt_during_a_wait_ends_the_recipient_as_failed(
    storage: Storage, clock: ManualClock
) -> None:
    """docs/rules.md#flows: a failed step ends as failed: no second message to who did not get the first."""
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN)
    (dispatch,) = await course.wave()
    await settle(storage, dispatch, ACCEPTED, now=clock.now())
    await report(storage, dispatch, MessageStatus.FAILED, "unreachable", clock)
    after = await recipient(storage, course.campaign)
    assert (after.status, after.reason, after.step) == (R.FAILED, "unreachable", 0)
    assert (await reread(storage, course.campaign)).status == "completed"


async def test_a_failed_receipt_during_a_wait_has_the_step_tried_again_by_the_settings(
    storage: Storage, clock: ManualClock
) -> None:
    """With retry on, the step is sent anew when the failure may pass, and the flow goes on from there."""
    await given_settings(storage, retry_enabled=True, retry_max_attempts=2)
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN)
    (first,) = await course.wave()
    await settle(storage, first, ACCEPTED, now=clock.now())
    await report(storage, first, MessageStatus.FAILED, "unreachable", clock)
    await course.rest()
    (second,) = await course.wave()
    assert (second.step, second.attempt, second.body) == (0, 2, first.body)
    await settle(storage, second, ACCEPTED, now=clock.now())
    assert (await recipient(storage, course.campaign)).reason == "flow_wait"
    await report(storage, first, MessageStatus.DELIVERED, None, clock)
    assert (await recipient(storage, course.campaign)).reason == "flow_wait"
    await course.rest()
    (third,) = await course.wave()
    assert third.step == 2
    await reread(storage, course.campaign)


async def test_delivery_after_all_takes_a_recipient_on_to_its_next_step(storage: Storage, clock: ManualClock) -> None:
    """`delivered` outranks `failed`: the step is not sent again, and the steps behind it are not lost."""
    await given_settings(storage, retry_enabled=True)
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN)
    (first,) = await course.wave()
    await settle(storage, first, ACCEPTED, now=clock.now())
    await report(storage, first, MessageStatus.FAILED, "unreachable", clock)
    assert (await recipient(storage, course.campaign)).reason == "retry"
    await report(storage, first, MessageStatus.DELIVERED, None, clock)
    after = await recipient(storage, course.campaign)
    assert (after.status, after.reason, after.step, after.successful) == (R.WAITING, "flow_wait", 2, True)
    await reread(storage, course.campaign)


@pytest.mark.parametrize("status", [MessageStatus.SENT, MessageStatus.DELIVERED])
async def test_a_good_receipt_during_a_wait_changes_nothing(
    storage: Storage, clock: ManualClock, status: MessageStatus
) -> None:
    """The recipient goes on waiting for its next step."""
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN)
    (dispatch,) = await course.wave()
    await settle(storage, dispatch, ACCEPTED, now=clock.now())
    before = await recipient(storage, course.campaign)
    await report(storage, dispatch, status, None, clock)
    assert await recipient(storage, course.campaign) == before


async def test_a_failed_receipt_of_a_step_that_was_followed_by_another_changes_nothing(
    storage: Storage, clock: ManualClock
) -> None:
    """The later message has been sent: it speaks for the recipient."""
    course = await Course.begin(storage, clock, HELLO, AGAIN, WAIT)
    (first,) = await course.wave()
    await settle(storage, first, ACCEPTED, now=clock.now())
    (second,) = await course.wave()
    await report(storage, first, MessageStatus.FAILED, "unreachable", clock)
    assert (await recipient(storage, course.campaign)).status is R.DISPATCHING
    await settle(storage, second, ACCEPTED, now=clock.now())
    assert (await recipient(storage, course.campaign)).reason == "flow_wait"
    await reread(storage, course.campaign)


async def test_the_delivery_of_an_earlier_step_does_not_mend_a_later_one(storage: Storage, clock: ManualClock) -> None:
    """docs/rules.md#flows: a failed step ends the recipient as failed, whatever is told of those before it."""
    course = await Course.begin(storage, clock, HELLO, AGAIN)
    (first,) = await course.wave()
    await settle(storage, first, ACCEPTED, now=clock.now())
    (second,) = await course.wave()
    await settle(storage, second, refused(), now=clock.now())
    failed = await recipient(storage, course.campaign)
    assert (failed.status, failed.reason) == (R.FAILED, "invalid_number")
    await report(storage, first, MessageStatus.DELIVERED, None, clock)
    assert await recipient(storage, course.campaign) == failed
    await reread(storage, course.campaign)


@pytest.mark.parametrize(("body", "reason"), [("{{company}}", "empty_message"), ("x" * 1500, "over_segment_cap")])
async def test_a_step_that_cannot_be_composed_ends_the_recipient_as_failed_and_not_as_successful(
    storage: Storage, clock: ManualClock, body: str, reason: str
) -> None:
    """docs/interface.md#counters: successful is accepted and not failed; an earlier step that arrives fixes it not."""
    await given_settings(storage, footer_enabled=False)
    course = await Course.begin(storage, clock, HELLO, FlowStep(kind="send", body=body))
    (first,) = await course.wave()
    await settle(storage, first, ACCEPTED, now=clock.now())
    assert (await reread(storage, course.campaign)).counters.successful == 1
    assert await course.wave() == ()
    failed = await recipient(storage, course.campaign)
    assert (failed.status, failed.reason, failed.successful) == (R.FAILED, reason, False)
    await report(storage, first, MessageStatus.DELIVERED, None, clock)
    assert await recipient(storage, course.campaign) == failed
    done = (await reread(storage, course.campaign)).counters
    assert (done.completed, done.successful, done.failed) == (1, 0, 1)


steps = st.lists(st.sampled_from([HELLO, AGAIN, WAIT, STOP]), min_size=1, max_size=6).filter(
    lambda flow: HELLO in flow or AGAIN in flow
)
outcomes = st.lists(
    st.sampled_from(
        [
            ACCEPTED,
            refused("temporary"),
            refused(),
            DispatchOutcome(state=S.DEFERRED, retry_after_seconds=3),
            DispatchOutcome(state=S.NOT_SENT),
            DispatchOutcome(state=S.WITHDRAWN),
            DispatchOutcome(state=S.UNKNOWN, reason="timeout"),
        ]
    ),
    max_size=25,
)
happenings = st.lists(
    st.sampled_from(["reply", "opt_out", "failed", "delivered", "evidence", "not_found", "deadline", None]), max_size=25
)


@settings(max_examples=60)
@given(steps, outcomes, happenings, st.booleans())
async def test_no_step_is_sent_twice_and_every_flow_ends(
    flow: list[FlowStep], planned: list[DispatchOutcome], events: list[str | None], retry: bool
) -> None:
    """Whatever the flow, the provider and the contacts do: counters equal a recount, and the ledger has no doubles."""
    clock = ManualClock()
    async with MemoryStorage(clock=clock) as storage:
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace(id=THIS_WORKSPACE)))
        await given_settings(storage, retry_enabled=retry, retry_max_attempts=2, retry_delay_minutes=1)
        course = await Course.begin(storage, clock, *flow, count=2)
        sent: list[Dispatch] = []
        for _ in range(60):
            for dispatch in await course.wave():
                sent.append(dispatch)
                await settle(storage, dispatch, planned.pop() if planned else ACCEPTED, now=clock.now())
            if sent:
                await _happen(storage, clock, sent, events.pop() if events else "evidence")
            if (await reread(storage, course.campaign)).status == "completed":
                break
            await course.rest()
        done = await reread(storage, course.campaign)
        assert done.status == "completed"
        assert done.counters.open == 0
        accepted: dict[tuple[int | None, int], list[Dispatch]] = defaultdict(list)
        for dispatch in sent:
            known = await storage.read(lambda tx, one=dispatch: tx.dispatches.get(THIS_WORKSPACE, one.id))  # type: ignore[misc]
            if known is not None and known.state is S.ACCEPTED and known.report is None:
                accepted[known.position, known.step].append(known)
        assert all(len(group) == 1 for group in accepted.values())


async def _happen(storage: Storage, clock: ManualClock, sent: list[Dispatch], event: str | None) -> None:
    """Let something happen to the last message, or settle every one in doubt."""
    last = sent[-1]
    match event:
        case "reply":
            await storage.write(
                lambda tx: tx.inbound.insert(make_inbound(from_number=last.to, received_at=clock.now()))
            )
        case "opt_out":
            await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=last.to, created_at=clock.now())))
        case "failed" | "delivered":
            known = await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, last.id))
            if known is not None and known.state is S.ACCEPTED:
                await report(storage, last, MessageStatus(event), "unreachable", clock)
        case "evidence" | "not_found" | "deadline":
            state = {"evidence": S.ACCEPTED, "not_found": S.NOT_SENT, "deadline": S.UNCONFIRMED}[event]
            for dispatch in await storage.read(lambda tx: tx.dispatches.unknown(THIS_WORKSPACE, limit=99)):
                await settle(storage, dispatch, DispatchOutcome(state=state), now=clock.now())
