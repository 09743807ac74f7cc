from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

import outreach.ledger
from outreach.errors import NotFound
from outreach.ledger import common
from outreach.ledger.campaigns import transitions as moves
from outreach.ledger.campaigns.histories import histories
from outreach.ledger.leases import clock_steps
from outreach.ledger.opt_out.entries import put_on_register, skip_waiting_recipients
from outreach.ledger.settling import ledger, reconciling
from outreach.ledger.settling.reconciling import Deadlines
from outreach.models.dispatch import ASSUMED_SENT, Dispatch, DispatchOutcome, OperatorDecision
from outreach.models.states import DispatchState, MessageStatus, RecipientStatus, WorkspaceStatus
from outreach.models.workspace import WorkspaceUpdate
from outreach.protocols.storage import Storage
from outreach.rules.settlement import RECEIPT_WAIT
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_dispatch, make_unsubscribe
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE
from tests.engine.given import (
    ACCEPTED,
    BACKOFF,
    commit,
    given_active,
    given_dispatch,
    given_settings,
    recipient,
    refused,
    settle,
)
from tests.engine.test_contact_hours import HONOLULU, NEW_YORK, NOON_IN_NEW_YORK, given_course
from tests.engine.trail import history, lines, report_message, told

pytestmark = pytest.mark.virtual_time

LOADED = "loaded pending by load"
INTENT = "intent dispatching by pace"
UNKNOWN = DispatchOutcome(state=DispatchState.UNKNOWN, reason="timeout")
DEADLINES = Deadlines(retry_after=timedelta(seconds=50), unconfirmed_after=timedelta(hours=1))


def at(seconds: float) -> datetime:
    """Return a moment so many seconds after the campaign began."""
    return NOW + timedelta(seconds=seconds)


async def given_unknown(storage: Storage, **changes: Any) -> tuple[Any, Dispatch]:
    """Return an active campaign, and its one dispatch of which nobody knows what became."""
    campaign = await given_active(storage, **changes)
    dispatch = await given_dispatch(storage, campaign, now=at(1))
    await settle(storage, dispatch, UNKNOWN, now=at(31))
    return campaign, dispatch


def given_a_steady_clock(tx: Transaction, until: datetime) -> None:
    """Have a worker vouch that nobody has set the clock: that so much time has passed."""
    lease = tx.leases.current()
    assert lease is not None
    tx.leases.put(attrs.evolve(lease, steady_since=at(0), steady_until=until))


async def confirm(storage: Storage, dispatch: Dispatch, evidence: DispatchOutcome | None, *, now: datetime) -> None:
    """Do what the reconciler does with what a look-up told."""
    await storage.write(lambda tx: given_a_steady_clock(tx, now))
    await storage.write(
        lambda tx: reconciling.reconcile(
            tx, dispatch, evidence, asked_at=now, overdue=False, deadlines=DEADLINES, backoff=BACKOFF, now=now
        )
    )


async def decide(storage: Storage, dispatch: Dispatch, decision: OperatorDecision, *, now: datetime) -> None:
    """Do what an operator decides."""
    await storage.write(lambda tx: given_a_steady_clock(tx, now))
    await storage.write(
        lambda tx: reconciling.resolve(
            tx, THIS_WORKSPACE, dispatch.id, decision, deadlines=DEADLINES, backoff=BACKOFF, now=now, actor="cli:ann"
        )
    )


async def test_a_message_that_is_accepted_and_delivered(storage: Storage) -> None:
    """Every step has its time, the request that it came by, and the attempt."""
    campaign = await given_active(storage)
    dispatch = await given_dispatch(storage, campaign, now=at(1))
    await settle(storage, dispatch, ACCEPTED, now=at(2))
    await report_message(storage, dispatch, MessageStatus.SENT, at=at(3))
    await report_message(storage, dispatch, MessageStatus.DELIVERED, at=at(4))
    found = await history(storage, campaign)
    assert lines(found) == [
        LOADED,
        INTENT,
        "outcome accepted by provider_answer",
        "ended completed by provider_answer",
        "reported sent by provider_report",
        "reported delivered by provider_report",
    ]
    assert [step.at for step in found.steps[1:]] == [at(1), at(2), at(2), at(3), at(4)]
    assert {step.dispatch_id for step in found.steps[1:]} == {dispatch.id}
    assert {(step.step, step.attempt, step.leg) for step in found.steps[1:]} == {(0, 1, 1)}
    assert found.steps[1].until == dispatch.slot_at
    assert (found.position, found.phone, found.campaign_id) == (0, dispatch.to, campaign.id)


async def test_a_refusal_that_passes_is_tried_again_until_the_attempts_are_spent(storage: Storage) -> None:
    """docs/rules.md#retry: each attempt, how long it waits, and that the budget is spent."""
    await given_settings(storage, retry_enabled=True, retry_max_attempts=2, retry_delay_minutes=15)
    campaign = await given_active(storage)
    first = await given_dispatch(storage, campaign, now=at(1))
    await settle(storage, first, refused("temporary"), now=at(2))
    second = await given_dispatch(storage, campaign, now=at(1000))
    await settle(storage, second, ACCEPTED, now=at(1001))
    await report_message(storage, second, MessageStatus.FAILED, at=at(1002), reason="unreachable")
    found = await history(storage, campaign)
    assert lines(found) == [
        LOADED,
        INTENT,
        "outcome refused (temporary) by provider_answer",
        "held waiting (retry) by retry_budget",
        INTENT,
        "outcome accepted by provider_answer",
        "reported failed (unreachable) by provider_report",
        "ended failed (unreachable) by retry_budget",
    ]
    assert [step.attempt for step in found.steps[1:]] == [1, 1, 1, 2, 2, 2, 2]
    assert found.steps[3].until == at(2) + timedelta(minutes=15)


async def test_a_refusal_for_good_ends_by_the_providers_answer(storage: Storage) -> None:
    """docs/rules.md#retry: permanent failures are never retried."""
    campaign = await given_active(storage)
    await settle(storage, await given_dispatch(storage, campaign), refused(), now=at(1))
    assert (await told(storage, campaign))[-1] == "ended failed (invalid_number) by provider_answer"


async def test_a_deferral_is_reported_as_one(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-7: a wait, by the rule of deferral, with its end."""
    campaign = await given_active(storage)
    busy = DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited", retry_after_seconds=30)
    await settle(storage, await given_dispatch(storage, campaign, now=at(1)), busy, now=at(2))
    unsent = DispatchOutcome(state=DispatchState.NOT_SENT, reason="connect")
    await settle(storage, await given_dispatch(storage, campaign, now=at(40)), unsent, now=at(41))
    found = await history(storage, campaign)
    assert lines(found) == [
        LOADED,
        INTENT,
        "outcome deferred (rate_limited) by deferral",
        "held waiting (deferred) by deferral",
        INTENT,
        "outcome not_sent (connect) by deferral",
        "held waiting (deferred) by deferral",
    ]
    assert found.steps[3].until == at(32)


@pytest.mark.parametrize(
    ("obstacle", "rule"),
    [
        ("too_late", "valid_until"),
        ("lease_over", "valid_until"),
        ("campaign_stopped", "stop"),
        ("workspace_unavailable", "stop"),
        ("stopped", "stop"),
        ("opted_out", "register"),
    ],
)
async def test_an_intent_that_is_withdrawn_names_the_obstacle(storage: Storage, obstacle: str, rule: str) -> None:
    """docs/delivery-contract.md#rule-4: what stood against it at the last moment."""
    campaign = await given_active(storage)
    withdrawn = DispatchOutcome(state=DispatchState.WITHDRAWN, reason=obstacle)
    await settle(storage, await given_dispatch(storage, campaign), withdrawn, now=at(1))
    assert (await told(storage, campaign))[2:] == [
        f"outcome withdrawn ({obstacle}) by {rule}",
        f"held waiting (withdrawn) by {rule}",
    ]


@pytest.mark.parametrize(
    ("evidence", "ending"),
    [
        (ACCEPTED, ["outcome accepted by reconciliation", "ended completed by reconciliation"]),
        (
            DispatchOutcome(state=DispatchState.NOT_SENT),
            ["outcome not_sent by reconciliation", "held waiting (deferred) by deferral"],
        ),
    ],
)
async def test_an_unknown_one_is_looked_up(storage: Storage, evidence: DispatchOutcome, ending: list[str]) -> None:
    """docs/delivery-contract.md#rule-6: that it was unknown is still told when it no longer is."""
    campaign, dispatch = await given_unknown(storage)
    assert (await told(storage, campaign))[1:] == [INTENT, "outcome unknown (timeout) by once"]
    await confirm(storage, dispatch, None, now=at(70))
    await confirm(storage, dispatch, evidence, now=at(190))
    found = await history(storage, campaign)
    assert lines(found) == [LOADED, INTENT, "outcome unknown (timeout) by once", *ending]
    assert [step.at for step in found.steps[2:]] == [at(31), at(190), at(190)]


async def test_an_unknown_one_that_a_callback_settles(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-6: a callback that carries the dispatch id is evidence."""
    campaign, dispatch = await given_unknown(storage)
    await report_message(storage, dispatch, MessageStatus.DELIVERED, at=at(40))
    assert (await told(storage, campaign))[3:] == [
        "outcome accepted by provider_report",
        "ended completed by provider_report",
        "reported delivered by provider_report",
    ]


async def test_an_unknown_one_ends_as_unconfirmed_at_the_deadline(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-6: never sent again; evidence that comes after all is told too."""
    campaign, dispatch = await given_unknown(storage)
    await confirm(storage, dispatch, None, now=at(4000))
    ended = ["outcome unconfirmed (no_evidence) by reconciliation", "ended unconfirmed (no_evidence) by reconciliation"]
    assert (await told(storage, campaign))[3:] == ended
    await settle(storage, dispatch, ACCEPTED, now=at(5000))
    assert (await told(storage, campaign))[3:] == [
        *ended,
        "outcome accepted by provider_answer",
        "ended completed by provider_answer",
    ]


async def test_an_operator_has_an_unknown_one_tried_again(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-6: two requests, and whose decision it was."""
    campaign, dispatch = await given_unknown(storage)
    await decide(storage, dispatch, "retry", now=at(100))
    second = await given_dispatch(storage, campaign, now=at(101))
    await settle(storage, second, ACCEPTED, now=at(102))
    found = await history(storage, campaign)
    assert lines(found)[3:] == [
        "outcome given_up (operator_retry) by operator",
        "held waiting (operator_retry) by operator",
        INTENT,
        "outcome accepted by provider_answer",
        "ended completed by provider_answer",
    ]
    assert [step.dispatch_id for step in found.steps[3:]] == [dispatch.id] * 2 + [second.id] * 3


async def test_an_operator_takes_an_unknown_one_as_sent(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-6: the end is the operator's word, not the provider's."""
    campaign, dispatch = await given_unknown(storage)
    await decide(storage, dispatch, "assume_sent", now=at(100))
    assert (await told(storage, campaign))[3:] == [
        f"outcome accepted ({ASSUMED_SENT}) by operator",
        "ended completed by operator",
    ]


async def test_a_worker_that_was_killed_leaves_unknown(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-5: after a crash an intent without an outcome is unknown."""
    campaign = await given_active(storage)
    await given_dispatch(storage, campaign)
    await storage.write(lambda tx: tx.workers.delete(1))
    await storage.write(lambda tx: ledger.mark_abandoned(tx, backoff=BACKOFF, now=at(9), limit=9))
    assert (await told(storage, campaign))[2:] == ["outcome unknown (worker_lost) by once"]


async def test_a_pause_and_a_resume_are_in_the_history_of_open_contacts_alone(storage: Storage) -> None:
    """The history says who paused it. Contacts that had ended, or of other campaigns, have no such step."""
    campaign, other = await given_active(storage, 2), await given_active(storage)
    await settle(storage, await given_dispatch(storage, campaign, 0), ACCEPTED, now=at(1))
    here = (THIS_WORKSPACE, campaign.id)
    await storage.write(lambda tx: moves.pause(tx, *here, now=at(2), actor="cli:ann"))
    await storage.write(lambda tx: moves.resume(tx, *here, now=at(3), actor="cli:bob"))
    await settle(storage, await given_dispatch(storage, campaign, 1, now=at(4)), ACCEPTED, now=at(5))
    assert not any("campaign" in step for step in await told(storage, campaign, 0))
    found = await history(storage, campaign, 1)
    assert lines(found)[:4] == [
        LOADED,
        "campaign paused (operator) by operator",
        "campaign active by operator",
        INTENT,
    ]
    assert [step.actor for step in found.steps[:4]] == [None, "cli:ann", "cli:bob", None]
    assert lines(found)[-1] == "ended completed by provider_answer"
    assert await told(storage, other) == [LOADED]


async def test_the_engine_pauses_with_its_reason(storage: Storage) -> None:
    """docs/rules.md#error-budget: five in a row; the one who waits sees why, and that nobody did it by hand."""
    campaign = await given_active(storage, 6)
    for position in range(5):
        dispatch = await given_dispatch(storage, campaign, position, now=at(1))
        await settle(storage, dispatch, refused("bad_sender"), now=at(2 + position))
    found = await history(storage, campaign, 5)
    assert lines(found) == [LOADED, "campaign paused (error_budget) by error_budget"]
    assert found.steps[1].actor is None


async def test_a_campaign_that_is_cancelled_closes_its_open_contacts(storage: Storage) -> None:
    """docs/states.md#recipients: what waits is canceled; what was in flight keeps its true outcome."""
    campaign = await given_active(storage, 2)
    dispatch = await given_dispatch(storage, campaign, 0, now=at(1))
    await storage.write(lambda tx: moves.cancel(tx, THIS_WORKSPACE, campaign.id, now=at(2), actor="library"))
    await storage.write(lambda tx: ledger.close_open_recipients(tx, THIS_WORKSPACE, campaign.id, now=at(3), limit=9))
    await settle(storage, dispatch, ACCEPTED, now=at(4))
    cancelled = "campaign cancelled by operator"
    assert await told(storage, campaign, 1) == [LOADED, cancelled, "ended canceled by cancellation"]
    assert (await told(storage, campaign, 0))[2:] == [
        cancelled,
        "outcome accepted by provider_answer",
        "ended completed by provider_answer",
    ]


async def test_a_campaign_that_expires_closes_its_open_contacts(storage: Storage) -> None:
    """docs/states.md#campaigns: the clock expires it, and no person does."""
    campaign = await given_active(storage, scheduled_expires_at=at(10))
    grace = timedelta(hours=1)
    await storage.write(lambda tx: moves.apply_schedule(tx, THIS_WORKSPACE, campaign.id, now=at(10), grace=grace))
    await storage.write(lambda tx: ledger.close_open_recipients(tx, THIS_WORKSPACE, campaign.id, now=at(11), limit=9))
    assert await told(storage, campaign) == [LOADED, "campaign expired by expiry", "ended expired by expiry"]


async def test_a_workspace_that_is_suspended_is_reported(storage: Storage) -> None:
    """docs/interface.md#5: its campaigns keep their states, and the reason is shown; other workspaces' is not."""
    campaign = await given_active(storage)
    for workspace_id, status, moment in (
        (THIS_WORKSPACE, WorkspaceStatus.SUSPENDED, at(1)),
        (OTHER_WORKSPACE, WorkspaceStatus.PAYWALLED, at(2)),
        (THIS_WORKSPACE, WorkspaceStatus.ACTIVE, at(3)),
    ):
        change = WorkspaceUpdate(status=status)
        await storage.write(
            lambda tx, given=(workspace_id, change, moment): common.update_workspace(  # type: ignore[misc]
                tx, given[0], given[1], now=given[2], actor="cli:ann"
            )
        )
    found = await history(storage, campaign)
    assert lines(found) == [LOADED, "workspace suspended by workspace", "workspace active by workspace"]
    assert found.steps[1].actor == "cli:ann"


async def test_who_has_night_is_held_and_then_sent(storage: Storage, clock: ManualClock) -> None:
    """docs/rules.md#hours: until when; put off night after night it is one step that says how often."""
    course = await given_course(storage, clock, NOON_IN_NEW_YORK, NEW_YORK, HONOLULU)
    await course.wave()
    for nights in (1, 2):
        clock.set(NOON_IN_NEW_YORK + timedelta(days=nights))
        await course.wave()
    found = await history(storage, course.campaign, 1)
    assert lines(found) == [LOADED, "held waiting (contact_hours) by contact_hours"]
    held = found.steps[1]
    assert (held.until, held.repeats) == (datetime(2026, 7, 3, 18, tzinfo=UTC), 2)
    assert (found.due_at, found.status) == (held.until, RecipientStatus.WAITING)
    clock.set(held.until or NOW)
    (dispatch,) = await course.wave()
    clock.advance(1)
    await settle(storage, dispatch, ACCEPTED, now=clock.now())
    assert (await told(storage, course.campaign, 1))[1:] == [
        "held waiting (contact_hours) by contact_hours",
        INTENT,
        "outcome accepted by provider_answer",
        "ended completed by provider_answer",
    ]


async def test_the_frequency_cap_holds(storage: Storage) -> None:
    """docs/rules.md#frequency-cap: until the window lets another one through."""
    change = WorkspaceUpdate(frequency_cap=1)
    await storage.write(lambda tx: common.update_workspace(tx, THIS_WORKSPACE, change, now=at(0), actor="library"))
    campaign = await given_active(storage)
    sent = make_dispatch(
        to=(await recipient(storage, campaign)).phone or "", created_at=at(1), state=DispatchState.ACCEPTED
    )
    await storage.write(lambda tx: tx.dispatches.insert(sent))
    await commit(storage, campaign, now=at(2))
    found = await history(storage, campaign)
    assert lines(found) == [
        LOADED,
        "workspace active (contact_hours=False frequency_cap=1) by workspace",
        "held waiting (frequency_cap) by frequency_cap",
    ]
    assert found.due_at == at(1) + timedelta(hours=24)
    freer = WorkspaceUpdate(frequency_cap=None)
    await storage.write(lambda tx: common.update_workspace(tx, THIS_WORKSPACE, freer, now=at(3), actor="library"))
    await storage.write(
        lambda tx: clock_steps.release_postponed(
            tx, THIS_WORKSPACE, campaign.id, receipt=RECEIPT_WAIT, now=at(4), limit=9
        )
    )
    found = await history(storage, campaign)
    assert lines(found)[2:] == [
        "held waiting (frequency_cap) by frequency_cap",
        "workspace active (contact_hours=False frequency_cap=None) by workspace",
    ]
    assert (found.steps[2].until, found.steps[2].repeats) == (at(4), 1)


async def test_who_opts_out_while_waiting_ends_at_once(storage: Storage) -> None:
    """The wait, the opt-out, and the end that came of it."""
    await given_settings(storage, retry_enabled=True)
    campaign = await given_active(storage)
    dispatch = await given_dispatch(storage, campaign, now=at(1))
    await settle(storage, dispatch, refused("temporary"), now=at(2))
    entry = make_unsubscribe(phone=dispatch.to, source="keyword", created_at=at(3))

    def opt_out(tx: Transaction) -> None:
        put_on_register(tx, entry)
        skip_waiting_recipients(tx, THIS_WORKSPACE, [dispatch.to], now=at(3))

    await storage.write(opt_out)
    assert (await told(storage, campaign))[3:] == [
        "held waiting (retry) by retry_budget",
        "opted_out all (keyword) by register",
        "ended skipped (opted_out) by register",
    ]


async def test_another_workspace_learns_nothing(storage: Storage) -> None:
    """SECURITY.md: every query carries its workspace."""
    campaign = await given_active(storage)
    phone = (await recipient(storage, campaign)).phone or ""
    with pytest.raises(NotFound, match="campaign"):
        await storage.read(lambda tx: histories(tx, OTHER_WORKSPACE, campaign.id, phone))


def test_recipients_are_changed_in_one_place() -> None:
    """What changes a recipient without its trail cannot be written by mistake."""
    package = Path(outreach.ledger.__file__ or "").parent.parent
    writers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "testing" not in path.parts and re.search(r"\.recipients\.put\(", path.read_text(encoding="utf-8"))
    }
    assert writers == {"ledger/campaigns/recipients.py"}


async def test_what_a_look_up_finds_counts_past_an_answer_that_put_it_off(storage: Storage) -> None:
    """The answer came while it was looked up: the provider has it all the same, and it is not sent again."""
    campaign, dispatch = await given_unknown(storage)
    await settle(storage, dispatch, DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited"), now=at(40))
    assert (await recipient(storage, campaign)).status is RecipientStatus.WAITING
    await confirm(storage, dispatch, ACCEPTED, now=at(41))
    assert (await recipient(storage, campaign)).status is RecipientStatus.COMPLETED
