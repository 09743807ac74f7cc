from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.resources import FlowStep
from outreach.models.states import DispatchState, MessageStatus, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.builders import make_inbound, make_unsubscribe, make_workspace
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.flow_course import Course
from tests.engine.given import ACCEPTED, given_settings, receipt, recipient, refused, report, reread, settle

pytestmark = pytest.mark.virtual_time

S, R = DispatchState, RecipientStatus

HELLO = FlowStep(kind="send", body="Hello")
AGAIN = FlowStep(kind="send", body="Again")
WAIT = FlowStep(kind="wait", wait_minutes=60)
STOP = FlowStep(kind="stop_if_replied")
BLANK = FlowStep(kind="send", body="{{company}}")
LONG = FlowStep(kind="send", body="x" * 1500)

OUTCOMES = {
    "accepted": ACCEPTED,
    "refused": refused(),
    "refused for now": refused("temporary"),
    "deferred": DispatchOutcome(state=S.DEFERRED),
    "not sent": DispatchOutcome(state=S.NOT_SENT),
}


async def play(course: Course, script: str) -> list[Dispatch]:
    """Play what happens, and return what was sent; a receipt is of the message whose number it names."""
    storage, clock, sent = course.storage, course.clock, list[Dispatch]()
    for happens in script.split(", "):
        word, _, number = happens.partition(" of ")
        if word == "sent":
            sent += await course.wave()
        elif word == "nothing sent":
            assert await course.wave() == ()
        elif word == "rest":
            assert await course.rest()
        elif word == "opt-out":
            entry = make_unsubscribe(phone=sent[-1].to)
            await storage.write(lambda tx, entry=entry: tx.register.put(entry))  # type: ignore[misc]
        elif word == "reply":
            reply = make_inbound(from_number=sent[-1].to, received_at=clock.now())
            await storage.write(lambda tx, reply=reply: tx.inbound.insert(reply))  # type: ignore[misc]
        elif word in {"failed", "delivered"}:
            reason = "unreachable" if word == "failed" else None
            event = receipt(sent[int(number)], MessageStatus(word), reason=reason, at=clock.now())
            await report(storage, event, now=clock.now())
        else:
            await settle(storage, sent[-1], OUTCOMES[word], now=clock.now())
        await reread(storage, course.campaign)
    return sent


@pytest.mark.parametrize(
    ("retry", "steps", "script", "status", "reason", "more"),
    [
        # docs/rules.md#flows: a failed step ends the recipient as failed, though an earlier one was accepted.
        (False, [HELLO, WAIT, AGAIN], "sent, accepted, rest, sent, refused", R.FAILED, "invalid_number", {"step": 2}),
        (False, [HELLO, AGAIN], "sent, accepted, sent, refused, delivered of 0", R.FAILED, "invalid_number", {}),
        # docs/interface.md#counters: successful is accepted and not failed; an earlier step that arrives fixes it not.
        (False, [HELLO, BLANK], "sent, accepted, nothing sent, delivered of 0", R.FAILED, "empty_message", {}),
        (False, [HELLO, LONG], "sent, accepted, nothing sent, delivered of 0", R.FAILED, "over_segment_cap", {}),
        # docs/interface.md#counters: pending is never attempted; a wait that comes first is no attempt.
        (
            False,
            [WAIT, HELLO],
            "sent, rest, sent, deferred",
            R.WAITING,
            "deferred",
            {"dispatched": False, "attempts": 0},
        ),
        # What was sent stays sent.
        (
            False,
            [HELLO, AGAIN],
            "sent, accepted, sent, not sent",
            R.WAITING,
            "deferred",
            {"step": 1, "dispatched": True},
        ),
        # docs/rules.md#flows: the opt-out ends the recipient; it does not wait for its next step before.
        (False, [HELLO, WAIT, AGAIN], "sent, opt-out, accepted", R.SKIPPED, "opted_out", {"dispatched": True}),
        (
            False,
            [HELLO, WAIT, AGAIN, AGAIN],
            "sent, accepted, rest, sent, opt-out, accepted",
            R.SKIPPED,
            "opted_out",
            {"dispatched": True},
        ),
        # There is nothing left to be spared.
        (False, [HELLO, STOP], "sent, opt-out, accepted", R.COMPLETED, None, {}),
        # docs/delivery-contract.md#rule-3: everything again at the commit; the question had been answered before.
        (
            False,
            [HELLO, STOP, AGAIN],
            "sent, accepted, sent, deferred, reply, rest, nothing sent",
            R.COMPLETED,
            "replied",
            {},
        ),
        # docs/rules.md#retry: also failures that a receipt reports, as in a campaign without a flow.
        (False, [HELLO, STOP], "sent, accepted, failed of 0", R.FAILED, "unreachable", {"successful": False}),
        (True, [HELLO, STOP], "sent, accepted, failed of 0", R.WAITING, "retry", {"successful": False}),
        # docs/rules.md#flows: no second message to who did not get the first.
        (False, [HELLO, WAIT, AGAIN], "sent, accepted, failed of 0", R.FAILED, "unreachable", {"step": 0}),
        # `delivered` outranks `failed`: the step is not sent again, and the steps behind it are not lost.
        (
            True,
            [HELLO, WAIT, AGAIN],
            "sent, accepted, failed of 0, delivered of 0",
            R.WAITING,
            "flow_wait",
            {"step": 2, "successful": True},
        ),
        # The later message has been sent: it speaks for the recipient.
        (False, [HELLO, AGAIN, WAIT], "sent, accepted, sent, failed of 0, accepted", R.WAITING, "flow_wait", {}),
    ],
)
async def test_a_recipient_stands_as_its_course_has_it(
    storage: Storage,
    clock: ManualClock,
    retry: bool,
    steps: list[FlowStep],
    script: str,
    status: RecipientStatus,
    reason: str | None,
    more: dict[str, object],
) -> None:
    """Each row is a rule; a campaign with nobody left is completed, and who has failed is not successful."""
    await given_settings(storage, retry_enabled=retry, footer_enabled=False)
    course = await Course.begin(storage, clock, *steps)
    await play(course, script)
    after = await recipient(storage, course.campaign)
    assert (after.status, after.reason) == (status, reason)
    assert {name: getattr(after, name) for name in more} == more
    campaign = await reread(storage, course.campaign)
    assert campaign.status == ("active" if after.is_open else "completed")
    if status is R.FAILED:
        assert (campaign.counters.completed, campaign.counters.successful, campaign.counters.failed) == (1, 0, 1)


@pytest.mark.parametrize(
    ("steps", "status", "reason"),
    [([HELLO, WAIT, AGAIN], R.WAITING, "flow_wait"), ([HELLO, STOP], R.COMPLETED, None)],
)
async def test_a_delivery_after_a_failure_goes_on_with_the_next_step(
    storage: Storage, clock: ManualClock, steps: list[FlowStep], status: RecipientStatus, reason: str | None
) -> None:
    """Also while retry is off, so that the contact had failed."""
    course = await Course.begin(storage, clock, *steps, count=2)
    await play(course, "sent, accepted, failed of 1, delivered of 1")
    after = await recipient(storage, course.campaign, 1)
    assert (after.status, after.reason, after.successful) == (status, reason, True)


async def test_a_delivery_after_a_failure_opens_no_campaign_that_has_ended(
    storage: Storage, clock: ManualClock
) -> None:
    """The contact counts as reached, and gets no further step."""
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN)
    await play(course, "sent, accepted, failed of 0, delivered of 0")
    after = await recipient(storage, course.campaign)
    assert (after.status, after.reason, after.successful) == (R.COMPLETED, None, True)
    assert (await reread(storage, course.campaign)).status == "completed"


async def test_a_failed_receipt_during_a_wait_has_the_step_tried_again_by_the_settings(
    storage: Storage, clock: ManualClock
) -> None:
    """With retry on, the step is sent anew when the failure may pass, and the flow goes on from there."""
    await given_settings(storage, retry_enabled=True, retry_max_attempts=2)
    course = await Course.begin(storage, clock, HELLO, WAIT, AGAIN)
    script = "sent, accepted, failed of 0, rest, sent, accepted, delivered of 0, rest, sent"
    assert [(one.step, one.attempt) for one in await play(course, script)] == [(0, 1), (0, 2), (2, 1)]


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


async def test_what_a_contact_wrote_before_it_was_added_is_no_reply(storage: Storage, clock: ManualClock) -> None:
    """Both wrote after the start: one was there, the other was added later, and gets its next step."""
    course = await Course.begin(storage, clock, HELLO, STOP, AGAIN, count=2)
    clock.advance(60)
    for position in range(2):
        phone = (await recipient(storage, course.campaign, position)).phone
        reply = make_inbound(from_number=phone, received_at=clock.now())
        await storage.write(lambda tx, reply=reply: tx.inbound.insert(reply))  # type: ignore[misc]
    clock.advance(60)
    await storage.write(
        lambda tx: tx.recipients.mark_added(THIS_WORKSPACE, course.campaign.id, first=1, now=clock.now())
    )
    for dispatch in await course.wave():
        await settle(storage, dispatch, ACCEPTED, now=clock.now())
    found = [await recipient(storage, course.campaign, position) for position in range(2)]
    assert [(one.status, one.reason) for one in found] == [(R.COMPLETED, "replied"), (R.WAITING, "flow")]
    assert [one.position for one in await course.wave()] == [1]


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
                reason = "unreachable" if event == "failed" else None
                told = receipt(last, MessageStatus(event), reason=reason, at=clock.now())
                await report(storage, told, now=clock.now())
        case "evidence" | "not_found" | "deadline":
            state = {"evidence": S.ACCEPTED, "not_found": S.NOT_SENT, "deadline": S.UNCONFIRMED}[event]
            for dispatch in await storage.read(lambda tx: tx.dispatches.unknown(THIS_WORKSPACE, limit=99)):
                await settle(storage, dispatch, DispatchOutcome(state=state), now=clock.now())
