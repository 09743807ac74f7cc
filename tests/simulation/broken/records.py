"""Engines that do what they should and record something else, or act twice; each broken on purpose in one place."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach.dispatch import outbox
from outreach.dispatch.request_tasks import StartedRequest
from outreach.dispatch.worker import Worker
from outreach.errors import LeaseLost
from outreach.ledger.leases import leases
from outreach.ledger.opt_out import inbound
from outreach.ledger.sending import committing, singles
from outreach.ledger.settling import message_outcomes, recipient_outcomes, reconciling
from outreach.models.campaign import Campaign, PauseReason, Recipient
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.message import InboundMessage
from outreach.models.states import DispatchState, RecipientStatus
from outreach.models.work import WorkerLease
from outreach.providers.pool import ProviderRequest, SendRequest
from outreach.rules import settlement
from outreach.rules.settlement import ended_recipient
from outreach.storage.unit_of_work import Transaction


def fail_without_cause(patch: pytest.MonkeyPatch) -> None:
    """Record every fifth message that was accepted as a contact that has failed."""
    settle_recipient = settlement.settle_recipient

    def failing(recipient: Recipient, outcome: DispatchOutcome, **given: Any) -> Recipient:
        after = settle_recipient(recipient, outcome, **given)
        if outcome.state is DispatchState.ACCEPTED and recipient.position % 5 == 0:
            return ended_recipient(
                attrs.evolve(after, successful=False), RecipientStatus.FAILED, "rejected", given["now"]
            )
        return after

    patch.setattr(recipient_outcomes, "settle_recipient", failing)


def never_try_again(patch: pytest.MonkeyPatch) -> None:
    """Let a contact fail with its first attempt, whatever the settings say."""

    def failed(recipient: Recipient, reason: str, *, now: datetime, **_: Any) -> Recipient:
        return ended_recipient(attrs.evolve(recipient, successful=False), RecipientStatus.FAILED, reason, now)

    patch.setattr(settlement, "fail_attempt", failed)


def skip_without_cause(patch: pytest.MonkeyPatch) -> None:
    """Skip a contact as opted out that is put back."""
    update_recipient = recipient_outcomes.update_recipient

    def skipping(tx: Transaction, before: Recipient, after: Recipient, campaign: Campaign, **why: Any) -> None:
        if after.reason == "deferred":
            after = ended_recipient(after, RecipientStatus.SKIPPED, "opted_out", why["now"])
        update_recipient(tx, before, after, campaign, **why)

    patch.setattr(recipient_outcomes, "update_recipient", skipping)


def give_up_early(patch: pytest.MonkeyPatch) -> None:
    """End what nobody knows of as unconfirmed the first time that it is looked up, long before the deadline."""
    confirm = reconciling.reconcile

    def hasty(tx: Transaction, dispatch: Dispatch, evidence: DispatchOutcome | None, **given: Any) -> Dispatch | None:
        deadlines = attrs.evolve(given.pop("deadlines"), unconfirmed_after=timedelta())
        return confirm(tx, dispatch, evidence, deadlines=deadlines, **given)

    patch.setattr(reconciling, "reconcile", hasty)


def drop_what_comes_late(patch: pytest.MonkeyPatch) -> None:
    """Throw away what a worker was answered that has been replaced meanwhile."""
    settle = Worker.settle

    async def dropping(self: Worker, dispatch: Dispatch, outcome: DispatchOutcome) -> DispatchOutcome:
        if await self._storage.read(lambda tx: tx.workers.get(dispatch.epoch)) is not None:
            return await settle(self, dispatch, outcome)
        return outcome

    patch.setattr(Worker, "settle", dropping)


def take_singles_for_sent(patch: pytest.MonkeyPatch) -> None:
    """Mark a single message as accepted that was refused for now."""
    settle = message_outcomes.settle

    def believing(tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome, now: datetime) -> None:
        if outcome.state is DispatchState.DEFERRED:
            outcome = DispatchOutcome(state=DispatchState.ACCEPTED)
        settle(tx, dispatch, outcome, now)

    patch.setattr(message_outcomes, "settle", believing)


def confirm_every_stop(patch: pytest.MonkeyPatch) -> None:
    """Confirm an opt-out as often as it is written."""
    stop = inbound._stop

    def every(tx: Transaction, message: InboundMessage, *more: Any) -> bool:
        stop(tx, message, *more)
        return True

    patch.setattr(inbound, "_stop", every)


def send_from_a_copy(patch: pytest.MonkeyPatch) -> None:
    """Go on with a database that has been moved as if nothing had happened."""

    def not_moved(tx: Transaction, campaign: Campaign, *_: object, pause_reason: PauseReason, **__: object) -> Campaign:
        return attrs.evolve(campaign, pause_reason=pause_reason)

    patch.setattr(leases, "move", not_moved)


def ask_twice(patch: pytest.MonkeyPatch) -> None:
    """Ask a provider again that did not answer in time, as many a library does by itself."""
    ask = outbox.Outbox._call_provider

    async def insisting(
        self: outbox.Outbox, request: ProviderRequest, send: SendRequest, started: StartedRequest
    ) -> DispatchOutcome:
        first = await ask(self, request, send, started)
        return await ask(self, request, send, started) if first.reason == "timeout" else first

    patch.setattr(outbox.Outbox, "_call_provider", insisting)


def believe_in_a_lost_lease(patch: pytest.MonkeyPatch) -> None:
    """Let a worker that has lost its lease go on as if it had not, and commit."""

    def anyone(tx: Transaction, epoch: int) -> WorkerLease:
        now = tx.now()
        return WorkerLease(epoch=epoch, place=1, renewed_at=now, until=now)

    renew = Worker.renew

    async def deaf(self: Worker, epoch: int) -> None:
        with suppress(LeaseLost):
            await renew(self, epoch)

    for module in (committing, singles):
        patch.setattr(module, "require_worker", anyone)
    patch.setattr(Worker, "renew", deaf)
    patch.setattr(Worker, "lease_seconds_left", 15.0)
