"""Only one worker at a time drives a campaign, a workspace's rated numbers, or its single messages and calls."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.ledger.leases.leases import NUMBERS, SINGLES
from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState
from outreach.storage.unit_of_work import Transaction
from tests.simulation.faults import Faults
from tests.simulation.invariants.ledger import Broken, Ledger
from tests.simulation.invariants.numbers import NumberRates
from tests.simulation.invariants.outside_records import OutsideRecords


class ClaimChecks:
    """Checks each new intent against what the other workers do.

    Args:
        ledger: What has been written, the intent included.
        records: What really happened.
        faults: Counts what workers have taken over from each other.

    Attributes:
        numbers: The rates of sending numbers.
    """

    def __init__(self, ledger: Ledger, records: OutsideRecords, faults: Faults) -> None:
        self._ledger = ledger
        self._records = records
        self._faults = faults
        self.numbers = NumberRates()
        self._last: dict[str, int] = {}

    def check(self, tx: Transaction, intent: Dispatch) -> None:
        """Check one intent.

        Raises:
            Broken: Its worker does not drive what it belongs to, or another one has something of that waiting.
        """
        for subject in self._subjects(intent):
            claim = tx.claims.get(intent.workspace_id, subject)
            if claim is None or not claim.held or claim.epoch != intent.epoch:
                raise Broken(f"Intent {intent.id} was committed by epoch {intent.epoch}; of {subject} it has {claim}.")
            before = self._last.get(subject, intent.epoch)
            self._last[subject] = intent.epoch
            if before == intent.epoch:
                continue
            living = tx.workers.get(before) is not None
            self._faults.note("handed_over" if living else "taken_over")
            waits = self._waiting(subject, before) if living else None
            if waits is not None:
                raise Broken(f"Intent {intent.id} was committed while {waits.id} of epoch {before} waits for its slot.")

    def _subjects(self, intent: Dispatch) -> Sequence[str]:
        rated = intent.channel == "sms" and self.numbers.rate(intent.from_number) is not None
        of_numbers = (NUMBERS,) if rated else ()
        if intent.campaign_id is not None:
            return (*of_numbers, intent.campaign_id)
        return of_numbers or (SINGLES,)

    def _waiting(self, subject: str, epoch: int) -> Dispatch | None:
        """Return an intent of a worker and a subject whose request may still begin."""
        for one in self._ledger.dispatches.values():
            waits = one.epoch == epoch and one.state is DispatchState.DISPATCHING and one.id not in self._records.begun
            if waits and subject in self._subjects(one):
                return one
        return None
