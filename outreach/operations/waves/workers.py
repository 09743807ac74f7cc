"""The leases of the workers: beginning, renewing, ending, and who of them leads.

Only the clock of the database decides about them (`Transaction.now`): those of the workers may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

import attrs

from outreach.models.work import WorkerLease
from outreach.operations.common import require_worker
from outreach.working_set import Transaction

DEFAULT_LEASE: Final = timedelta(seconds=15)

_AHEAD: Final = timedelta(seconds=1)
"""A heartbeat farther ahead than this was written before the clock of the database was set back."""


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


def end_lost(
    tx: Transaction, *, but: int | None, is_gone: Callable[[WorkerLease], bool] = lambda _: False
) -> Sequence[int]:
    """End the leases of other workers that are over, and of those that are gone; return their epochs.

    Args:
        tx: The transaction.
        but: The epoch of the worker that asks, if it has one.
        is_gone: Returns whether a worker is certainly gone.
    """
    now, lost = tx.now(), []
    for worker in tx.workers.list():
        if worker.epoch == but:
            continue
        if worker.until <= now or is_gone(worker):
            end(tx, worker.epoch)
            lost.append(worker.epoch)
        elif worker.renewed_at > now + _AHEAD:
            lasts = worker.until - worker.renewed_at
            tx.workers.put(attrs.evolve(worker, renewed_at=now, until=now + lasts))
    return lost
