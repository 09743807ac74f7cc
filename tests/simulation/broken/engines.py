"""Engines, each broken on purpose in one place, as patches of the real one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import attrs
import pytest

from outreach.dispatch.campaign_runner import CampaignRunner
from outreach.dispatch.outbox import CampaignChannel
from outreach.dispatch.reconciler import Reconciler
from outreach.dispatch.worker import Worker
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.leases import leases
from outreach.ledger.sending import committing, intents
from outreach.ledger.settling import ledger, recipient_outcomes
from outreach.models.campaign import Counters, Recipient
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.plans import (
    Intent,
    Wave,
    WavePlan,
    WaveResult,
)
from outreach.models.states import DispatchState
from outreach.models.work import CampaignRunState
from outreach.rules.settlement import Backoff
from outreach.storage.unit_of_work import Transaction
from tests.simulation.broken import clocks, records, sets, tenancy, waits


def ask_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Ask the provider first, and commit the intent once it has answered."""
    commit = CampaignRunner._commit

    async def asking(
        self: CampaignRunner,
        plan: WavePlan,
        channel: CampaignChannel,
        epoch: int,
        hours: Any,
        turns: Any,
        decisions: Any,
        decided_at: datetime,
    ) -> WaveResult:
        for intent in decisions:
            if not isinstance(intent, Intent):
                continue
            dispatch = _as_it_will_be(plan, intent, epoch, self._clock.now())
            ask = await channel.build_request(plan, intent, dispatch, not_after=None)()
            await ask()
        return await commit(self, plan, channel, epoch, hours, turns, decisions, decided_at)

    patch.setattr(CampaignRunner, "_commit", asking)


def count_in_a_transaction_of_its_own(patch: pytest.MonkeyPatch) -> None:
    """Write the recipient in one transaction and the counters in the next."""
    owed: list[tuple[str, str, Counters]] = []
    settle = Worker.settle

    def put_and_owe(tx: Transaction, workspace_id: str, before: Recipient, after: Recipient, **why: Any) -> Counters:
        owed.append((workspace_id, after.campaign_id, put_recipient(tx, workspace_id, before, after, **why)))
        return Counters()

    async def settle_and_pay(self: Worker, dispatch: Dispatch, outcome: DispatchOutcome) -> DispatchOutcome:
        outcome = await settle(self, dispatch, outcome)
        while owed:
            change = owed.pop()
            await self._storage.write(lambda tx, change=change: tx.campaigns.add_counters(*change))  # type: ignore[misc]
        return outcome

    patch.setattr(recipient_outcomes, "put_recipient", put_and_owe)
    patch.setattr(Worker, "settle", settle_and_pay)


def keep_the_pace_in_memory(patch: pytest.MonkeyPatch) -> None:
    """Remember the slots that were taken as long as the process lives, which has an epoch of its own."""
    commit_waves = committing.commit_waves
    taken: dict[tuple[int, str], datetime | None] = {}
    taken_by_number: dict[tuple[int, str], datetime] = {}

    class _Runs:
        def __init__(self, tx: Transaction, epoch: int) -> None:
            self._tx = tx
            self._epoch = epoch

        def get(self, workspace_id: str, campaign_id: str) -> CampaignRunState | None:
            run = self._tx.runs.get(workspace_id, campaign_id)
            return run and attrs.evolve(run, next_slot_at=taken.get((self._epoch, campaign_id)))

        def prefetch(self, workspace_and_campaign: Iterable[tuple[str, str]]) -> None:
            self._tx.runs.prefetch(workspace_and_campaign)

        def prefetch_sender_slots(self, workspace_and_phone: Iterable[tuple[str, str]]) -> None:
            self._tx.runs.prefetch_sender_slots(workspace_and_phone)

        def put(self, run: CampaignRunState) -> None:
            taken[self._epoch, run.campaign_id] = run.next_slot_at
            self._tx.runs.put(attrs.evolve(run, next_slot_at=None))

        def sender_slot(self, workspace_id: str, phone: str) -> datetime | None:
            return taken_by_number.get((self._epoch, phone))

        def put_sender_slot(self, workspace_id: str, phone: str, next_slot_at: datetime) -> None:
            taken_by_number[self._epoch, phone] = next_slot_at

    def forgetful(
        tx: Transaction, decided: Sequence[Wave], *, clock_now: Callable[[], datetime]
    ) -> Sequence[WaveResult]:
        runs = _Runs(tx, decided[0].epoch)
        return commit_waves(cast("Transaction", _With(tx, runs=runs)), decided, clock_now=clock_now)

    patch.setattr(committing, "commit_waves", forgetful)
    patch.setattr(leases, "first_slot", lambda noted, *_: noted)


def ask_the_register_only_at_creation(patch: pytest.MonkeyPatch) -> None:
    """Leave the numbers out that are on the register when a campaign is created, and never ask it again."""
    commit_waves, withdrawal_reason = committing.commit_waves, intents.withdrawal_reason

    class _Empty:
        def stopped(self, *_: object) -> frozenset[str]:
            return frozenset()

        def restrictions(self, *_: object) -> dict[str, str]:
            return {}

        def get(self, *_: object) -> None:
            return None

        def prefetch(self, *_: object) -> None:
            return None

    def deaf(tx: Transaction) -> Any:
        return _With(tx, register=_Empty())

    patch.setattr(committing, "commit_waves", lambda tx, decided, **given: commit_waves(deaf(tx), decided, **given))
    patch.setattr(intents, "withdrawal_reason", lambda tx, dispatch: withdrawal_reason(deaf(tx), dispatch))


def take_not_found_as_not_sent(patch: pytest.MonkeyPatch) -> None:
    """Believe a provider that it has not taken what it does not find, although it does not vouch for that."""

    async def believing(self: Reconciler, dispatch: Dispatch) -> DispatchOutcome | None:
        workspace = await self._storage.read(lambda tx: tx.workspaces.get(dispatch.workspace_id))
        assert workspace is not None
        try:
            provider = await self._look_ups._provider(workspace, dispatch)
            return await provider.look_up(self._look_ups._lookup_request(dispatch))
        except ConnectionError:
            return None

    patch.setattr(Reconciler, "_look_up", believing)


def commit_on_what_was_true(patch: pytest.MonkeyPatch) -> None:
    """Commit what was decided, whatever has been stopped or changed since."""
    patch.setattr(committing, "_is_basis_current", lambda *_: True)


def send_what_was_left(patch: pytest.MonkeyPatch) -> None:
    """Take what a dead worker has left without an outcome as not sent."""

    def abandon(tx: Transaction, *, backoff: Backoff, now: datetime, limit: int) -> int:
        left = tx.dispatches.abandoned({worker.epoch for worker in tx.workers.list()}, limit=limit)
        for dispatch in left:
            lost = DispatchOutcome(state=DispatchState.NOT_SENT, reason="worker_lost")
            ledger.settle(tx, dispatch.workspace_id, dispatch.id, lost, backoff=backoff, now=now)
        return len(left)

    patch.setattr(ledger, "mark_abandoned", abandon)


def go_on_in_trouble(patch: pytest.MonkeyPatch) -> None:
    """Let a campaign go on however many of its requests fail."""
    patch.setattr(ledger, "is_spent", lambda _: False)


def charge_nothing_to_receipts(patch: pytest.MonkeyPatch) -> None:
    """Charge failures in answers to the error budget, and not those in receipts of accepted requests."""
    charge = ledger.charge_error_budget

    def charging(tx: Transaction, dispatch: Dispatch, now: datetime) -> None:
        if dispatch.state is not DispatchState.ACCEPTED:
            charge(tx, dispatch, now)

    patch.setattr(ledger, "charge_error_budget", charging)


BROKEN: Mapping[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "the provider is called before the intent is committed": (ask_before_the_commit, "without an intent"),
    "the counters move outside of the transaction": (count_in_a_transaction_of_its_own, "recount"),
    "the pace is kept in memory only": (keep_the_pace_in_memory, "the one before at"),
    "opt-outs are heard only when a campaign is created": (ask_the_register_only_at_creation, "on the register"),
    "a look-up that finds nothing proves that nothing was sent": (take_not_found_as_not_sent, "is not_sent"),
    "what was stopped meanwhile is committed all the same": (commit_on_what_was_true, "was committed"),
    "what a dead worker has left is sent again": (send_what_was_left, r"is not_sent \(worker_lost\)"),
    "a campaign in trouble goes on": (go_on_in_trouble, "in trouble"),
    "what a receipt says of the account is not heard": (charge_nothing_to_receipts, "goes on after|in trouble"),
    "a slot recedes after the clock was set back": (clocks.let_slots_recede, "at the end"),
    "a slot of a wrong clock is waited for": (clocks.trust_every_slot, "at the end"),
    "a due time of a wrong clock is waited for": (clocks.trust_every_due_time, "at the end"),
    "a contact has failed whose message was accepted": (records.fail_without_cause, "nothing explains it"),
    "a contact has failed who had attempts left": (records.never_try_again, "nothing explains it"),
    "a contact is skipped who never opted out": (records.skip_without_cause, "nothing explains it"),
    "what nobody knows of is given up before its deadline": (records.give_up_early, "is unconfirmed at"),
    "the answers of a worker that was replaced are lost": (
        records.drop_what_comes_late,
        "the ledger says|has had no outcome",
    ),
    "a single message counts as accepted that was not": (records.take_singles_for_sent, "its last request is"),
    "an opt-out is confirmed again and again": (records.confirm_every_stop, "needs no confirmation"),
    "a database that was moved goes on sending": (records.send_from_a_copy, "has moved"),
    "that time which a clock has jumped over counts as passed": (
        clocks.take_jumps_for_time,
        r"not_sent|has intent \S+ after|is reached \d times|is unconfirmed at|the ledger says unconfirmed",
    ),
    "that nothing has arrived is believed too early": (waits.believe_too_early, r"not_sent|is reached \d times"),
    "what is reported of an unknown request is ignored": (waits.ignore_reports_of_unknown, "has told of"),
    "what a look-up has found is thrown away": (waits.ignore_look_ups, "the ledger says"),
    "another attempt is made without a delay": (waits.retry_at_once, "until"),
    "others go on without credentials or funds": (waits.go_on_without_an_account, "goes on after"),
    "one trouble stops a campaign": (waits.stop_at_the_first_trouble, "not in trouble enough"),
    "a scheduled campaign starts too early": (waits.start_before_its_time, "scheduled for|is expired at"),
    "one number of a group makes all calls": (waits.call_from_one_number, "is called from"),
    "a contact of a pool gets another number": (waits.forget_numbers_of_a_pool, "has heard from"),
    "too many calls are in flight": (waits.call_more_at_a_time, "in flight of"),
    "the epoch is not checked": (records.believe_in_a_lost_lease, "whose lease has ended"),
    "a request without an answer is made again": (records.ask_twice, "began at"),
    "a row is kept after a stop": (sets.keep_a_row_after_a_stop, "at the end|committed while|recount"),
    "a buffered write is lost": (sets.lose_a_buffered_write, "A recipient is|recount|in flight of"),
    "the stops are counted too early": (
        sets.count_the_stops_too_early,
        "begins while|begins; its number is on the register|wants to be left until|it throttles until",
    ),
    "a report of a group is left out": (sets.leave_one_of_a_group_out, "has told of|which nobody"),
    "a cap does not count what is committed with it": (sets.count_no_others_of_the_commit, "in a day"),
    "two campaigns take one slot of a number": (sets.share_a_slot, "the one before at"),
    "what a failed operation wrote is left behind": (sets.undo_by_halves, "recount"),
    "an opt-out from one workspace counts in all": (tenancy.opt_out_everywhere, "nothing explains it"),
}
"""What is wrong with each engine: the patch, and a pattern of what the simulation says when it has found out."""


class _With:
    """A transaction, some of whose tables are others."""

    def __init__(self, tx: Any, **tables: object) -> None:
        self._tx = tx
        self._tables = tables

    def __getattr__(self, name: str) -> Any:
        return self._tables[name] if name in self._tables else getattr(self._tx, name)


def _as_it_will_be(plan: WavePlan, intent: Intent, epoch: int, now: datetime) -> Dispatch:
    return Dispatch(
        id=intent.dispatch_id,
        workspace_id=plan.workspace.id,
        channel=plan.campaign.channel,
        provider=intent.provider,
        from_number=intent.from_number,
        to=intent.to,
        body=intent.body,
        slot_at=now,
        valid_until=now,
        epoch=epoch,
        created_at=now,
    )
