"""All simulated workspaces: each event is checked by the invariants of its workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import Report
from outreach.models.states import DispatchState
from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.ledger import Broken
from tests.simulation.invariants.outside_records import Reached
from tests.simulation.invariants.workspace import Invariants
from tests.simulation.writes import Writes


class AllWorkspaces:
    """Invariants by workspace; an event that belongs to no simulated workspace, or to two, breaks them."""

    def __init__(self) -> None:
        self._of: dict[str, Invariants] = {}

    def add(self, workspace_id: str, invariants: Invariants) -> None:
        """Check one more workspace."""
        self._of[workspace_id] = invariants

    @property
    def checked(self) -> int:
        """How many commits have been checked; one that wrote in two workspaces counts twice."""
        return sum(one.checked for one in self._all)

    @property
    def trace(self) -> str:
        """Fingerprints of what was seen, one for each workspace."""
        return "-".join(one.trace for one in self._all)

    @property
    def singles_open(self) -> bool:
        """Whether a single message or call has not ended."""
        return any(one.singles_open() for one in self._all)

    def after_commit(self, tx: Transaction, writes: Mapping[str, Writes]) -> None:
        """Check what a commit has written.

        Raises:
            Broken: Something does not hold.
        """
        for workspace_id, written in writes.items():
            self._in(workspace_id).after_commit(tx, written)

    def at_request(self, tx: Transaction, workspace_id: str, dispatch_id: str, not_after: datetime | None) -> None:
        """Check a request that begins now, in the name of a workspace."""
        self._in(workspace_id).at_request(tx, dispatch_id, not_after)

    def after_report(self, report: Report) -> None:
        """Check that what a process was told stands in the ledger."""
        self._in(report.workspace_id).after_report(report)

    def after_answer(self, dispatch_id: str, outcome: DispatchOutcome) -> None:
        """Check what has become of an answer that a process got a good while ago, and has lived since."""
        self._that_asked(dispatch_id).after_answer(dispatch_id, outcome)

    def state_of(self, dispatch_id: str) -> DispatchState:
        """Return how a dispatch stands in the ledger."""
        return self._that_asked(dispatch_id).ledger.dispatches[dispatch_id].state

    def at_reach(self, entry: Reached) -> None:
        """Check something that a provider has taken."""
        self._that_asked(entry.dispatch_id).at_reach(entry)

    @property
    def _all(self) -> Iterable[Invariants]:
        return self._of.values()

    def _in(self, workspace_id: str) -> Invariants:
        found = self._of.get(workspace_id)
        if found is None:
            raise Broken(f"Something happened in workspace {workspace_id}, where nobody does anything.")
        return found

    def _that_asked(self, dispatch_id: str) -> Invariants:
        found = [one for one in self._all if dispatch_id in one.ledger.dispatches]
        if len(found) != 1:
            raise Broken(f"Dispatch {dispatch_id} stands in the ledgers of {len(found)} workspaces.")
        return found[0]
