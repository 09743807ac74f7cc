"""Engines whose unit of work is broken; each on purpose in one place."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from outreach.dispatch.worker import Worker
from outreach.ledger.sending import committing, intents
from outreach.ledger.sending.intents import CommittedIntent
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Wave, WaveResult
from outreach.models.reports import Report
from outreach.models.states import CampaignStatus
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import CAMPAIGNS, RECIPIENTS
from outreach.storage.unit_of_work.tables.work import Runs
from outreach.storage.unit_of_work.unit_of_work import Journal, Rows, UnitOfWork


def keep_a_row_after_a_stop(patch: pytest.MonkeyPatch) -> None:
    """Know an active campaign as it was at its first transaction, whatever is committed of it later."""
    begin, commit = UnitOfWork.begin, UnitOfWork.commit
    kept: dict[tuple[int, Any], Campaign] = {}

    def remember(self: UnitOfWork) -> None:
        begin(self)
        for row in self.cached_rows(CAMPAIGNS):
            if row is not None and row.status is CampaignStatus.ACTIVE:
                kept.setdefault((id(self), CAMPAIGNS.key_of(row)), row)

    def restore(self: UnitOfWork) -> None:
        commit(self)
        known = self._rows[CAMPAIGNS.table].known
        for (owner, key), row in kept.items():
            if owner == id(self) and key in known:
                known[key] = row

    patch.setattr(UnitOfWork, "begin", remember)
    patch.setattr(UnitOfWork, "commit", restore)


def lose_a_buffered_write(patch: pytest.MonkeyPatch) -> None:
    """Write all changed recipients but the last one of several."""
    by_change = Rows.by_change

    def all_but_one(self: Rows) -> Any:
        changes = by_change(self)
        if self.kind is RECIPIENTS and len(changes.get("update", ())) > 1:
            changes["update"].pop()
        return changes

    patch.setattr(Rows, "by_change", all_but_one)


def count_the_stops_too_early(patch: pytest.MonkeyPatch) -> None:
    """Compare the stops of the commit with those of the commit, and not with those of now."""
    withdrawal_reasons = intents.withdrawal_reasons

    def deaf(tx: Transaction, intents: Sequence[CommittedIntent], now: datetime) -> Sequence[str | None]:
        unknown = [one for one in intents if one.stops is None]
        looked_at = iter(withdrawal_reasons(tx, unknown, now))
        return [next(looked_at) if one.stops is None else None for one in intents]

    patch.setattr(intents, "withdrawal_reasons", deaf)


def undo_by_halves(patch: pytest.MonkeyPatch) -> None:
    """Undo what a failed operation knows, and not what it was going to write."""
    undo = Journal.undo

    def leaking(self: Journal, mark: int) -> None:
        kept = [(where, key, where[key]) for where, key, _ in self._entries[mark:] if isinstance(where, dict)]
        undo(self, mark)
        for where, key, value in kept:
            where.setdefault(key, value)

    patch.setattr(Journal, "undo", leaking)


def leave_one_of_a_group_out(patch: pytest.MonkeyPatch) -> None:
    """Answer the last report of a group as taken in without merging it, and merge the others."""
    merge = Worker._merge

    async def all_but_one(self: Worker, events: Sequence[Report]) -> Sequence[tuple[Dispatch | None, Report | None]]:
        merged = await merge(self, events[: max(len(events) - 1, 1)])
        return [*merged, *[(None, None)] * (len(events) - len(merged))]

    patch.setattr(Worker, "_merge", all_but_one)


def count_no_others_of_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Count against the cap what is in the ledger, and not what goes to the same number by the same commit."""
    begin = committing._begin

    def alone(tx: Transaction, wave: Wave, _: set[tuple[str, str]], now: datetime) -> Any:
        return begin(tx, wave, set(), now)

    patch.setattr(committing, "_begin", alone)


def share_a_slot(patch: pytest.MonkeyPatch) -> None:
    """Take the slots of a number only once all campaigns of a commit have theirs."""
    commit_waves, put = committing.commit_waves, Runs.put_sender_slot

    def together(tx: Transaction, decided: Sequence[Wave], **given: Any) -> Sequence[WaveResult]:
        taken: list[tuple[str, str, datetime]] = []
        with pytest.MonkeyPatch.context() as later:
            later.setattr(Runs, "put_sender_slot", lambda _, *slot: taken.append(slot))
            committed = commit_waves(tx, decided, **given)
        for slot in taken:
            put(tx.runs, *slot)
        return committed

    patch.setattr(committing, "commit_waves", together)
