"""Engines that share a database wrongly; each broken on purpose in one place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import attrs
import pytest

from outreach.core.clock import SharedClock
from outreach.dispatch.claims import WorkerPermits
from outreach.dispatch.worker import Worker
from outreach.ledger.leases import leases
from outreach.ledger.leases.leases import Granted, StaleLeaseDetector, Wanted
from outreach.ledger.sending import intents
from outreach.ledger.sending.intents import Permits
from outreach.ledger.settling import ledger
from outreach.models.campaign import Campaign
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.rules.settlement import Backoff
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import Key, Write
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork
from tests.simulation.faults import Fault
from tests.simulation.fence import Fences, Turn
from tests.simulation.statements import SteppingBackend


def drive_what_others_drive(patch: pytest.MonkeyPatch) -> None:
    """Grant every claim, and let everybody commit."""

    def granted(tx: Transaction, wanted: Sequence[Wanted], *, epoch: int, now: datetime) -> Sequence[Granted]:
        return [Granted(spacings={}) for _ in wanted]

    patch.setattr(leases, "claim_all", granted)
    patch.setattr(leases, "may_commit", lambda *_: True)


def keep_numbers_to_oneself(patch: pytest.MonkeyPatch) -> None:
    """Claim campaigns alone, so that each worker knows only of its own turns at a number."""
    patch.setattr(leases, "subjects_of", lambda campaign_id, sender: (campaign_id or leases.SINGLES,))


def begin_a_pace_anew(patch: pytest.MonkeyPatch) -> None:
    """Start at once what another worker has just driven."""

    def at_once(tx: Transaction, campaign: Campaign, epoch: int, now: datetime) -> Mapping[str, timedelta]:
        run = tx.runs.get(campaign.workspace_id, campaign.id)
        if run is not None:
            tx.runs.put(attrs.evolve(run, owner_epoch=epoch, next_slot_at=None))
        return {}

    patch.setattr(leases, "shift_campaign", at_once)


def go_by_ones_own_clock(patch: pytest.MonkeyPatch) -> None:
    """Let each machine go by its own clock, which differs from the database's."""
    patch.setattr(SharedClock, "follow", lambda *_: None)


def end_leases_by_another_clock(patch: pytest.MonkeyPatch) -> None:
    """Take a worker whose lease is over by a fast clock for lost, and its requests for not sent."""
    end_lost = leases.end_lost

    def hasty(tx: Transaction, **given: Any) -> Sequence[int]:
        now = tx.now() + timedelta(seconds=16)
        for worker in tx.workers.list():
            if worker.epoch != given["but"] and worker.until <= now:
                leases.end_worker(tx, worker.epoch)
        return end_lost(tx, **given)

    patch.setattr(leases, "end_lost", hasty)


def believe_a_clock_set_forth(patch: pytest.MonkeyPatch) -> None:
    """Take a worker whose lease is over by the database's clock for lost; that clock may have been set forth."""
    patch.setattr(StaleLeaseDetector, "look", lambda _, tx: {worker.epoch for worker in tx.workers.list()})


def keep_rows_of_others(patch: pytest.MonkeyPatch) -> None:
    """Keep what is known of rows when another node has committed."""
    patch.setattr(SteppingBackend, "changes", lambda _: None)


def take_no_fence(patch: pytest.MonkeyPatch) -> None:
    """Let transactions of several nodes begin whether or not another one has been committed."""

    async def take(self: Fences, note: Callable[[Fault], None], workspace_ids: frozenset[str] | None = None) -> Turn:
        return Turn()

    patch.setattr(Fences, "take", take)


def name_another_workspace(patch: pytest.MonkeyPatch) -> None:
    """Take the fence of another workspace, every other time, and write in this one all the same."""
    take = Fences.take
    turns = itertools.cycle((True, False))

    async def elsewhere(
        self: Fences, note: Callable[[Fault], None], workspace_ids: frozenset[str] | None = None
    ) -> Turn:
        if workspace_ids is not None and next(turns):
            workspace_ids = frozenset(f"not {one}" for one in workspace_ids)
        return await take(self, note, workspace_ids)

    patch.setattr(Fences, "take", elsewhere)


def count_stops_elsewhere(patch: pytest.MonkeyPatch) -> None:
    """Read the stops of another workspace: those of this one are counted, and nobody looks at that."""
    stop_count = UnitOfWork.stop_count
    patch.setattr(UnitOfWork, "stop_count", lambda self, workspace_id: stop_count(self, f"not {workspace_id}"))


def draw_changes_early(patch: pytest.MonkeyPatch) -> None:
    """Go on from the change number that was the latest one when a transaction first needed one."""
    begin, draw_change_for = UnitOfWork.begin, UnitOfWork._draw_change_for
    numbered_writes = UnitOfWork._numbered_writes
    latest: dict[UnitOfWork, int] = {}

    def begin_anew(self: UnitOfWork) -> None:
        latest.pop(self, None)
        begin(self)

    def look_first(self: UnitOfWork, key: Key | None) -> None:
        if self not in latest:
            [(latest[self],)] = self.backend.query("work.last_change", {})
        draw_change_for(self, key)

    def go_on(self: UnitOfWork) -> Iterator[Write]:
        for write in numbered_writes(self):
            if write.statement == "work.draw_changes":
                [(last,)] = self.backend.query("work.last_change", {})
                latest[self] += cast("int", write.rows[0][0])
                write = write._replace(rows=[[latest[self] - last]])
            yield write

    patch.setattr(UnitOfWork, "begin", begin_anew)
    patch.setattr(UnitOfWork, "_draw_change_for", look_first)
    patch.setattr(UnitOfWork, "_numbered_writes", go_on)


def grant_what_others_have(patch: pytest.MonkeyPatch) -> None:
    """Let each worker have as many intents without an outcome as if it were alone."""
    patch.setattr(intents, "_portion", lambda most, _: most)


def go_by_an_earlier_portion(patch: pytest.MonkeyPatch) -> None:
    """Go on with as many permits as there were when the worker began, and give none back."""
    take_in = WorkerPermits.take_in

    def once(self: WorkerPermits, portion: Permits) -> None:
        if portion.intents + portion.requests > self.intents.in_use + self.requests.in_use:
            take_in(self, portion)

    patch.setattr(WorkerPermits, "take_in", once)
    patch.setattr(WorkerPermits, "in_use", lambda _: Permits(intents=0, requests=0))


def abandon_what_others_do(patch: pytest.MonkeyPatch) -> None:
    """Take what any other worker has in flight for abandoned when one is lost."""

    def abandon(tx: Transaction, *, backoff: Backoff, now: datetime, limit: int) -> int:
        left = tx.dispatches.abandoned((), limit=limit)
        lost = DispatchOutcome(state=DispatchState.UNKNOWN, reason="worker_lost")
        for dispatch in left:
            ledger.settle(tx, dispatch.workspace_id, dispatch.id, lost, backoff=backoff, now=now)
        return len(left)

    patch.setattr(ledger, "mark_abandoned", abandon)


def leave_what_is_lost(patch: pytest.MonkeyPatch) -> None:
    """Do not look whether another worker is lost."""
    patch.setattr(leases, "end_lost", lambda tx, **_: [])


def tell_nobody_what_is_free(patch: pytest.MonkeyPatch) -> None:
    """Look once at what is due, as a worker may that is alone."""
    since = Worker.since

    async def once(self: Worker, change: int) -> Any:
        self._reload = False
        return await since(self, change)

    patch.setattr(Worker, "since", once)


CLUSTERS: Mapping[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "claims exclude nobody": (drive_what_others_drive, "of .* it has None"),
    "the turns at a number are kept in memory": (keep_numbers_to_oneself, "of .* it has None"),
    "a pace begins anew at a handover": (begin_a_pace_anew, "the one before at|began in the minute"),
    "each machine goes by its own clock": (go_by_ones_own_clock, "has its slot at|begins at|was unknown"),
    "a lease is over by another clock": (end_leases_by_another_clock, "nothing explains it|at the end|ended"),
    "a lease is over when the clock was set forth": (believe_a_clock_set_forth, "before its time"),
    "rows are kept when another node has stopped them": (
        keep_rows_of_others,
        "at the end|committed|recount|A recipient is|begins|in flight|had ended|its last request|UNIQUE constraint"
        "|before its time",
    ),
    "no transaction takes the fence": (
        take_no_fence,
        "at the end|committed|recount|A recipient is|begins|in flight|had ended|UNIQUE constraint failed|of .* it has"
        "|moved from accepted",
    ),
    "transactions take the fence of another workspace": (
        name_another_workspace,
        "at the end|committed|recount|A recipient is|begins|in flight|had ended|UNIQUE constraint failed|of .* it has"
        "|moved from accepted",
    ),
    "a stop is counted in another workspace": (count_stops_elsewhere, "begins while|asked for"),
    "change numbers are drawn early": (draw_changes_early, "at the end|UNIQUE constraint failed: work.change"),
    "each worker has all permits": (grant_what_others_have, "together more than"),
    "permits are not given back": (go_by_an_earlier_portion, "intents without an outcome; it may have"),
    "what living workers do is taken for abandoned": (abandon_what_others_do, "nothing explains it"),
    "what a lost worker drove is left": (leave_what_is_lost, "at the end"),
    "nobody is told what is free": (tell_nobody_what_is_free, "at the end"),
}
"""What is wrong with each cluster: the patch, and a pattern of what the simulation says when it has found out."""
