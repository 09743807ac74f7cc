"""The leases of the workers: beginning, renewing, ending, and who of them leads.

A lease ends by the clock of the database (`Transaction.now`), because those of the workers may differ. That clock may
be set forth, past the end of every lease. So another worker ends a lease only if it has seen it unrenewed for as long
as it lasts, by its own monotonic clock, or if the place of its worker is free. The price: what a worker drove that
hangs with its lock waits for a whole lease.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.core.clock import Clock
from outreach.ledger.common import require_worker
from outreach.models.work import WorkerLease
from outreach.storage.unit_of_work import Transaction

DEFAULT_LEASE: Final = timedelta(seconds=15)

_AHEAD: Final = timedelta(seconds=1)
"""A heartbeat farther ahead than this was written before the clock of the database was set back."""


class StaleLeaseDetector:
    """Detects leases that were not renewed for as long as they last, by the process's monotonic clock.

    Args:
        clock: The source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: Mapping[int, tuple[datetime, float]] = {}

    def look(self, tx: Transaction) -> Collection[int]:
        """Return the epochs of the leases that were not renewed for as long as they last; called at each heartbeat."""
        now, before, unrenewed = self._clock.monotonic(), self._first, []
        self._first = {}
        for worker in tx.workers.list():
            renewed_at, since = before.get(worker.epoch, (None, now))
            if renewed_at != worker.renewed_at:
                since = now
            elif now - since >= (worker.until - worker.renewed_at).total_seconds():
                unrenewed.append(worker.epoch)
            self._first[worker.epoch] = (worker.renewed_at, since)
        return frozenset(unrenewed)


def begin(tx: Transaction, *, epoch: int, place: int, lasts: timedelta) -> None:
    """Write the lease of a new worker."""
    now = tx.now()
    tx.workers.put(WorkerLease(epoch=epoch, place=place, renewed_at=now, until=now + lasts))


def renew(tx: Transaction, *, epoch: int, lasts: timedelta) -> None:
    """Renew a worker's lease, or raise `LeaseLost` if it has ended."""
    worker, now = require_worker(tx, epoch), tx.now()
    tx.workers.put(attrs.evolve(worker, renewed_at=now, until=now + lasts))


def leads(tx: Transaction, epoch: int) -> bool:
    """Return whether a worker is the one that does what only one is to do."""
    return all(epoch <= worker.epoch for worker in tx.workers.list())


def end(tx: Transaction, epoch: int) -> None:
    """End a worker's lease: from now on it commits nothing, and what it drove is free."""
    tx.workers.delete(epoch)
    tx.claims.free(epoch)


def seem_over(tx: Transaction, *, place: int) -> Mapping[int, int]:
    """Return the places, by epoch, of workers in other places whose leases have ended by the database's clock."""
    now = tx.now()
    return {one.epoch: one.place for one in tx.workers.list() if one.until <= now and one.place != place}


def end_lost(
    tx: Transaction,
    *,
    but: int | None,
    unrenewed: Collection[int] = (),
    is_gone: Callable[[WorkerLease], bool] = lambda _: False,
) -> Sequence[int]:
    """End the leases of other workers that are over, and of those that are gone; return their epochs.

    Args:
        tx: The transaction.
        but: The epoch of the worker that asks, if it has one.
        unrenewed: The epochs of the leases that it has seen unrenewed for long (`StaleLeaseDetector`).
        is_gone: Returns whether a worker is certainly gone.
    """
    now, lost = tx.now(), []
    for worker in tx.workers.list():
        if worker.epoch == but:
            continue
        if is_gone(worker) or (worker.until <= now and worker.epoch in unrenewed):
            end(tx, worker.epoch)
            lost.append(worker.epoch)
        elif worker.renewed_at > now + _AHEAD:
            lasts = worker.until - worker.renewed_at
            tx.workers.put(attrs.evolve(worker, renewed_at=now, until=now + lasts))
    return lost
