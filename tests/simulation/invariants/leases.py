"""What must hold of the leases of workers side by side: nobody ends one that is in force."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.ledger import Broken
from tests.simulation.storage import ProcessStorage


@attrs.frozen(kw_only=True)
class _Known:
    """A lease as it was last seen.

    Attributes:
        owner: The database as its worker sees it.
        tenure: Which of the places that its worker has had it belongs to.
        renewed_at: Its last heartbeat, by the database's clock.
        ends: When it is over at the earliest, by the monotonic clock.
    """

    owner: ProcessStorage
    tenure: int
    renewed_at: datetime
    ends: float


class LeaseChecks:
    """Checks after each commit which leases it has ended.

    Args:
        monotonic: Returns the time by a clock that nobody sets.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[int, _Known] = {}

    def check(self, tx: Transaction, by: ProcessStorage) -> None:
        """Check the leases after a commit of a process.

        Raises:
            Broken: It has ended the lease of a process that has its place, before the length of that lease had passed.
        """
        now, before, self._known = self._monotonic(), self._known, {}
        for lease in tx.workers.list():
            known = before.pop(lease.epoch, None)
            if known is None or known.renewed_at != lease.renewed_at:
                ends = now + (lease.until - lease.renewed_at).total_seconds()
                owner, tenure = (known.owner, known.tenure) if known else (by, by.lock.tenure)
                known = _Known(owner=owner, tenure=tenure, renewed_at=lease.renewed_at, ends=ends)
            self._known[lease.epoch] = known
        for epoch, ended in before.items():
            # Who has lost its place while it stood still ends the lease of who has that now, or has its own one ended.
            # One that does not know whether it got a lease leaves it, with its place, and takes another one.
            kept = ended.owner.lock.held and ended.owner.lock.tenure == ended.tenure
            have_places = by.lock.held and kept
            if ended.owner is not by and have_places and now < ended.ends:
                raise Broken(f"The lease of epoch {epoch} was ended {ended.ends - now:.3f} s before its time.")
