"""How a dispatch may move, and what must have happened outside for it to have moved so (docs/states.md#dispatches)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach.models.dispatch import ASSUMED_SENT, Dispatch, DispatchOutcome
from outreach.models.states import DispatchState, MessageStatus
from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.ledger import Broken
from tests.simulation.invariants.outside_records import OutsideRecords

_D = DispatchState
_MOVES: Final = {
    _D.DISPATCHING: frozenset(
        {_D.ACCEPTED, _D.REFUSED, _D.NOT_SENT, _D.WITHDRAWN, _D.DEFERRED, _D.UNKNOWN},
    ),
    _D.UNKNOWN: frozenset(
        {_D.ACCEPTED, _D.REFUSED, _D.NOT_SENT, _D.WITHDRAWN, _D.DEFERRED, _D.UNCONFIRMED, _D.GIVEN_UP}
    ),
    _D.UNCONFIRMED: frozenset({_D.ACCEPTED, _D.REFUSED}),
    _D.GIVEN_UP: frozenset({_D.ACCEPTED, _D.REFUSED}),
    _D.DEFERRED: frozenset({_D.ACCEPTED}),
    _D.NOT_SENT: frozenset({_D.ACCEPTED}),
    _D.REFUSED: frozenset({_D.ACCEPTED}),
}
NOT_TAKEN: Final = frozenset({_D.REFUSED, _D.NOT_SENT, _D.WITHDRAWN, _D.DEFERRED})
"""What says that no provider has taken it."""

_ANSWERED: Final = frozenset({_D.REFUSED, _D.NOT_SENT, _D.DEFERRED})
"""What only the provider can have told."""

_STANDS_AFTER: Final = {
    # By now a look-up may have proved it, or an operator have decided; nothing else may stand in its place.
    _D.REFUSED: frozenset({_D.REFUSED, _D.NOT_SENT, _D.ACCEPTED}),
    _D.ACCEPTED: frozenset({_D.ACCEPTED}),
}


class DispatchStateChecks:
    """Checks how dispatches move.

    Args:
        records: What really happened.
        bounds: The bounds that hold.
    """

    def __init__(self, records: OutsideRecords, bounds: Bounds) -> None:
        self._records = records
        self._bounds = bounds

    def check(self, tx: Transaction, before: Dispatch, after: Dispatch, now: datetime, really: datetime) -> None:
        """Check a move against what has happened outside.

        Raises:
            Broken: It must not move so, or what it says is not true.
        """
        if before.report is not after.report:
            self._check_report(after)
        if before.state is after.state:
            return
        if after.state not in _MOVES.get(before.state, frozenset()):
            raise Broken(f"Dispatch {after.id} moved from {before.state} to {after.state}.")
        entries = self._records.entries(after.id)
        taken = bool(entries)
        if taken and after.state in NOT_TAKEN and not all(entry.denied for entry in entries):
            raise Broken(f"Dispatch {after.id} is {after.state} ({after.reason}), and the provider has taken it.")
        if after.state is _D.ACCEPTED:
            self._check_accepted(after, taken=taken)
        elif after.state in _ANSWERED and not self._is_told(after):
            raise Broken(f"Dispatch {after.id} is {after.state} ({after.reason}), and nobody has told so.")
        elif after.state is _D.WITHDRAWN and after.id in self._records.begun:
            raise Broken(f"Dispatch {after.id} is withdrawn ({after.reason}); its request had begun.")
        elif after.state is _D.UNKNOWN:
            self._check_unknown(tx, after, now, really)
        elif after.state is _D.UNCONFIRMED and self._is_too_early(after, now, really):
            raise Broken(f"Dispatch {after.id} is unconfirmed at {now}; it was committed at {after.created_at}.")
        elif after.state is _D.GIVEN_UP and self._records.decided.get(after.id) != "retry":
            raise Broken(f"Dispatch {after.id} was given up, and no operator has decided so.")

    def _is_told(self, after: Dispatch) -> bool:
        """Return whether the provider has told this, or the process that the check before the request has failed."""
        if after.state is _D.NOT_SENT and after.reason == "not_asked":
            return after.id not in self._records.begun
        return self._records.was_reported(after.id, after.state, after.reason)

    def _is_too_early(self, after: Dispatch, now: datetime, really: datetime) -> bool:
        """Return whether nobody had the time to find out what became of a dispatch, by either clock."""
        committed = self._records.committed.get(after.id, after.created_at)
        wait = self._bounds.unconfirmed_after
        return now < after.created_at + wait and really < committed + wait

    def check_answered(self, dispatch: Dispatch, outcome: DispatchOutcome) -> None:
        """Check that an answer that a process has got, and had time to record, stands in the ledger.

        Raises:
            Broken: It was lost.
        """
        stands = _STANDS_AFTER.get(outcome.state)
        lost = dispatch.state is _D.DISPATCHING or (
            dispatch.state not in stands
            if stands is not None
            else outcome.state is not _D.UNKNOWN and dispatch.state in {_D.UNKNOWN, _D.UNCONFIRMED}
        )
        if lost:
            raise Broken(
                f"The answer to dispatch {dispatch.id} was {outcome.state} ({outcome.reason}); the ledger says "
                f"{dispatch.state} ({dispatch.reason})."
            )

    def _check_accepted(self, after: Dispatch, *, taken: bool) -> None:
        if after.reason == ASSUMED_SENT:
            if self._records.decided.get(after.id) != "assume_sent":
                raise Broken(f"Dispatch {after.id} is assumed sent, and no operator has decided so.")
        elif not taken:
            raise Broken(f"Dispatch {after.id} is accepted, and the provider knows nothing of it.")

    def _check_unknown(self, tx: Transaction, after: Dispatch, now: datetime, really: datetime) -> None:
        begun = self._records.begun.get(after.id)
        match after.reason:
            case "worker_lost":
                explained = tx.workers.get(after.epoch) is None
            case "interrupted":
                # A worker that has lost its lease while it stood still gives it the grace of a stop.
                has_had_grace = begun is not None and really >= begun + self._bounds.stop_grace
                explained = has_had_grace and self._records.has_stood_still(after.id)
            case "timeout":
                explained = begun is not None and really >= begun + self._bounds.request_may_take
            case reason:
                explained = self._records.was_reported(after.id, _D.UNKNOWN, reason)
        if not explained:
            raise Broken(f"Dispatch {after.id} is unknown ({after.reason}) at {now}, and nothing explains it.")

    def _check_report(self, after: Dispatch) -> None:
        entries = self._records.entries(after.id)
        failed = after.report is MessageStatus.FAILED
        if not entries or (
            after.report in {MessageStatus.FAILED, MessageStatus.DELIVERED}
            and failed is not any(entry.failed for entry in entries)
        ):
            raise Broken(f"Dispatch {after.id} is reported {after.report}, which nobody has told.")
        reasons = {entry.why for entry in entries if entry.failed} if failed else {None, ASSUMED_SENT}
        if after.reason not in reasons:
            raise Broken(f"Dispatch {after.id} is reported {after.report} for {after.reason}, which nobody has told.")
