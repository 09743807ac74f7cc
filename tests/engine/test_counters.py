from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, ClassVar

import attrs
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from outreach.errors import OutreachError
from outreach.ledger.campaigns import transitions as moves
from outreach.ledger.settling import ledger
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.plans import Ending
from outreach.models.settings import SmsSettings
from outreach.models.states import CampaignStatus, DispatchState, MessageStatus, RecipientStatus, TrailRule
from outreach.protocols.storage import Storage
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.rules.settlement import NOT_REACHED
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_campaign,
    make_lease,
    make_message_report,
    make_prepared,
    make_unsubscribe,
    make_worker,
    make_workspace,
)
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, pending, publish
from tests.engine.given import BACKOFF, commit_wave, make_wave
from tests.engine.trail import check_history

COUNT = 4
UNSETTLED = {DispatchState.DISPATCHING, DispatchState.UNKNOWN}
OUTCOMES = [state for state in DispatchState if state is not DispatchState.DISPATCHING]
REPORTS = [MessageStatus.SENT, MessageStatus.FAILED, MessageStatus.DELIVERED]
MOVES = [moves.pause, moves.resume, moves.resume, moves.resume, moves.resume, moves.cancel]
"""Mostly such that the campaign goes on: one that never runs tells nothing."""


class CountersMachine(RuleBasedStateMachine):
    """Does what may happen to a campaign, and compares its counters with a recount after each step."""

    reached: ClassVar[set[RecipientStatus]]

    def __init__(self) -> None:
        super().__init__()
        self._stack = AsyncExitStack()
        self._portal_context = start_blocking_portal("asyncio")
        self._portal: BlockingPortal = self._portal_context.__enter__()
        self._now = NOW
        self._ids = 0
        self._sent: list[str] = []
        self._storage: Storage | None = None

    @initialize(retry=st.booleans(), attempts=st.integers(1, 3))
    def begin(self, retry: bool, attempts: int) -> None:
        """Write a campaign."""
        self._storage = self._portal.call(self._stack.enter_async_context, MemoryStorage(clock=ManualClock()))
        self._campaign = make_campaign(status=CampaignStatus.ACTIVE, started_at=NOW)
        people = [make_prepared() for _ in range(COUNT)]
        self._phones = [one.phone for one in people]
        wanted = attrs.evolve(SmsSettings(), retry_enabled=retry, retry_max_attempts=attempts)

        def operation(tx: Transaction) -> None:
            tx.workspaces.insert(make_workspace())
            tx.settings.put(THIS_WORKSPACE, wanted)
            tx.leases.put(make_lease())
            tx.workers.put(make_worker())
            publish(tx, self._campaign, pending(*people))

        self._do(operation)

    @rule(move=st.sampled_from(MOVES))
    def move(self, move: Callable[..., Campaign]) -> None:
        """Pause, resume or cancel."""
        self._do(lambda tx: move(tx, THIS_WORKSPACE, self._campaign.id, now=self._now, actor="test"))

    @rule(positions=st.lists(st.integers(0, COUNT - 1), unique=True, max_size=3), end=st.none() | st.integers(0, 3))
    def wave(self, positions: list[int], end: int | None) -> None:
        """Commit a wave over the contacts that are due."""
        self._ids += 10

        def operation(tx: Transaction) -> list[Any]:
            due = {
                one.position: one for one in tx.recipients.due(THIS_WORKSPACE, self._campaign.id, self._now, limit=99)
            }
            rows = [due[position] for position in positions if position in due and position != end]
            endings = (
                [
                    Ending(
                        recipient=due[end],
                        status=RecipientStatus.FAILED,
                        reason="over_segment_cap",
                        rule=TrailRule.SEGMENT_CAP,
                    )
                ]
                if end in due
                else []
            )
            wave = make_wave(tx, self._campaign, rows, endings=endings, now=self._now)
            intents = [
                attrs.evolve(intent, dispatch_id=f"d{self._ids + n:06d}") for n, intent in enumerate(wave.intents)
            ]
            committed = commit_wave(tx, attrs.evolve(wave, intents=intents), clock_now=lambda: self._now)
            for dispatch in committed.dispatches:
                self._check_nobody_is_contacted_again(tx, dispatch)
            return [dispatch.id for dispatch in committed.dispatches]

        self._sent.extend(self._do(operation) or [])

    @rule(which=st.integers(0, 5), state=st.sampled_from(OUTCOMES), reason=st.sampled_from(["temporary", "rejected"]))
    def settle(self, which: int, state: DispatchState, reason: str) -> None:
        """Merge an outcome of one of the latest dispatches."""
        if not self._sent:
            return
        dispatch_id = self._sent[-1 - which % len(self._sent)]
        outcome = DispatchOutcome(state=state, reason=None if state is DispatchState.ACCEPTED else reason)
        self._do(
            lambda tx: ledger.settle(tx, THIS_WORKSPACE, dispatch_id, outcome, backoff=BACKOFF, now=self._now) and None
        )

    @rule(which=st.integers(0, 5), status=st.sampled_from(REPORTS))
    def report(self, which: int, status: MessageStatus) -> None:
        """Merge a receipt of one of the latest dispatches."""
        if not self._sent:
            return
        told = {"dispatch_id": self._sent[-1 - which % len(self._sent)], "provider_id": None, "at": self._now}
        reason = "unreachable" if status is MessageStatus.FAILED else None
        event = make_message_report(status=status, reason=reason, **told)
        self._do(lambda tx: ledger.apply_report(tx, event, backoff=BACKOFF, analyser=ProviderAnalyser(), now=self._now))

    @rule(position=st.integers(0, COUNT - 1))
    def opt_out(self, position: int) -> None:
        """Put a contact on the register."""
        entry = make_unsubscribe(phone=self._phones[position], created_at=self._now)
        self._do(lambda tx: tx.register.put(entry))

    @rule(limit=st.integers(1, 3))
    def close(self, limit: int) -> None:
        """Close a slice, and end the waits for receipts."""
        self._do(
            lambda tx: ledger.close_open_recipients(tx, THIS_WORKSPACE, self._campaign.id, now=self._now, limit=limit)
        )
        self._do(
            lambda tx: ledger.expire_receipt_waits(tx, THIS_WORKSPACE, self._campaign.id, now=self._now, limit=limit)
        )

    @rule(minutes=st.sampled_from([0, 1, 20, 300]))
    def wait(self, minutes: int) -> None:
        """Let time pass."""
        self._now += timedelta(minutes=minutes, seconds=1)

    @invariant()
    def counters_equal_a_recount(self) -> None:
        """docs/delivery-contract.md#rule-9, and what else must hold whatever has happened."""
        if self._storage is None:
            return
        campaign, rows = self._do(self._look)
        self.reached.update(one.status for one in rows)
        by_state = {one.position: one for one in rows}
        for position, opened in self._do(self._opened).items():
            # An earlier one may turn out to have been accepted: of a request that was denied a report may come late.
            assert not {one.state for one in opened[:-1]} & UNSETTLED
            in_flight = any(one.state in UNSETTLED for one in opened)
            assert (by_state[position].status in {RecipientStatus.DISPATCHING, RecipientStatus.UNKNOWN}) == in_flight
        assert campaign.status != "completed" or campaign.counters.open == 0

    @invariant()
    def the_trail_tells_how_it_is(self) -> None:
        """Whatever has happened, its last word on each recipient and each dispatch is the ledger's."""
        if self._storage is not None:
            self._do(
                lambda tx: [
                    check_history(tx, THIS_WORKSPACE, one)
                    for one in tx.recipients.page(THIS_WORKSPACE, self._campaign.id)
                ]
            )

    def teardown(self) -> None:
        """Close it."""
        self._portal.call(self._stack.aclose)
        self._portal_context.__exit__(None, None, None)

    def _look(self, tx: Transaction) -> tuple[Campaign, list[Recipient]]:
        campaign = tx.campaigns.get(THIS_WORKSPACE, self._campaign.id)
        assert campaign is not None
        assert campaign.counters == tx.recipients.recount(THIS_WORKSPACE, campaign.id)
        return campaign, list(tx.recipients.page(THIS_WORKSPACE, campaign.id))

    def _opened(self, tx: Transaction) -> dict[int, list[Dispatch]]:
        return {
            position: list(tx.dispatches.of_recipient(THIS_WORKSPACE, self._campaign.id, position))
            for position in range(COUNT)
        }

    def _check_nobody_is_contacted_again(self, tx: Transaction, dispatch: Dispatch) -> None:
        """At the moment of an intent no earlier message may have arrived: each was denied, or a receipt said failed."""
        assert dispatch.position is not None
        *earlier, latest = self._opened(tx)[dispatch.position]
        assert latest == dispatch
        for one in earlier:
            assert one.state in NOT_REACHED or (one.state, one.report) == (
                DispatchState.ACCEPTED,
                MessageStatus.FAILED,
            )

    def _do(self, operation: Callable[[Transaction], Any]) -> Any:
        assert self._storage is not None
        try:
            return self._portal.call(self._storage.write, operation)
        except OutreachError:
            return None


@pytest.mark.field(16)
def test_counters_equal_a_recount_whatever_happens() -> None:
    """Field, test 16 (Dograh: a batch writes one number for all): a recount.

    docs/delivery-contract.md#rule-2 and #rule-9.
    """
    reached: set[RecipientStatus] = set()
    machine: Any = type("Machine", (CountersMachine,), {"reached": reached})
    plain_course(machine())
    assert reached >= {RecipientStatus.DISPATCHING, RecipientStatus.WAITING, RecipientStatus.COMPLETED}
    run = machine.TestCase
    run.settings = settings(
        max_examples=40,
        stateful_step_count=30,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    run("runTest").runTest()


def plain_course(machine: CountersMachine) -> None:
    """Play one course that is not drawn, so that what the checks are about is there in every run."""

    def step(*_: None) -> None:
        machine.counters_equal_a_recount()
        machine.the_trail_tells_how_it_is()

    try:
        step(machine.begin(retry=True, attempts=3))
        step(machine.wave([0, 1, 2], end=3))
        step(machine.settle(0, DispatchState.ACCEPTED, "temporary"))
        step(machine.settle(1, DispatchState.DEFERRED, "temporary"))
        step(machine.report(0, MessageStatus.DELIVERED))
        step(machine.wait(20))
        step(machine.wave([0, 1, 2], end=None))
        # The first request of that contact was taken after all, when another is out already.
        step(machine.report(2, MessageStatus.SENT))
        step(machine.settle(0, DispatchState.ACCEPTED, "temporary"))
    finally:
        machine.teardown()
