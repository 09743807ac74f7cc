"""What is due, who does it, and what dispatching remembers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from outreach.models.work import CampaignRunState, DatabaseHome, Lease, WorkItem, WorkUnit
from outreach.working_set.kinds import HOME, LEASE, RUNS, SENDER_PACES, SINGLE_ROW_KEY, WORK
from outreach.working_set.tables.base import Table


class WorkQueue(Table):
    """What is due, and what has changed; the change numbers go up over the whole database."""

    def schedule(self, unit: WorkUnit, due_at: datetime | None) -> int:
        """Write when a unit is due, under a new change number; return that number."""
        change = self._rows.next_change()
        self._rows.put(WORK, tuple(unit), WorkItem(unit=unit, due_at=due_at, change=change))
        return change

    def get(self, unit: WorkUnit) -> WorkItem | None:
        """Return when a unit is due."""
        return self._rows.get(WORK, tuple(unit))

    def due(self) -> Sequence[WorkItem]:
        """Return every unit that has a due time, by (due_at, change)."""
        return self._list(WORK, "work.due")

    def since(self, change: int) -> Sequence[WorkItem]:
        """Return the units changed after this number, by change."""
        return self._list(WORK, "work.since", change=change)

    def last_change(self) -> int:
        """Return the highest change number; 0 in a new database."""
        return self._rows.present_change()

    def delete_idle(self, *, limit: int) -> int:
        """Delete up to `limit` units of calls and messages with nothing due; return how many.

        The highest change number is never lost by this.
        """
        return self._rows.execute_on(WORK, "work.forget", limit=limit)


class Leases(Table):
    """The right to dispatch from this database."""

    def current(self) -> Lease | None:
        """Return the lease."""
        return self._rows.get(LEASE, SINGLE_ROW_KEY)

    def put(self, lease: Lease) -> None:
        """Write the lease; another epoch is a stop for all that was committed under the one before."""
        known = self.current()
        if known is None or known.epoch != lease.epoch:
            self._rows.count_stop()
        self._rows.put(LEASE, SINGLE_ROW_KEY, lease)

    def database_id(self) -> str:
        """Return what tells this database from others: given at its creation, shared by its copies."""
        [row] = self._rows.query("leases.database_id")
        return str(row[0])

    def home(self) -> DatabaseHome | None:
        """Return where the database was last confirmed to live."""
        return self._rows.get(HOME, SINGLE_ROW_KEY)

    def set_home(self, home: DatabaseHome) -> None:
        """Write where the database lives."""
        self._rows.put(HOME, SINGLE_ROW_KEY, home)


class Stops(Table):
    """How many stops there have been, over the whole database.

    Every stop counts in its own transaction: who comes onto the register, a campaign that is active no more, a changed
    workspace or account, a provider that asks to wait, a takeover. While the number is the same, nothing that was
    checked at a commit has been forbidden since.
    """

    def count(self) -> int:
        """Return how many there have been."""
        return self._rows.stop_count()

    def increment(self) -> None:
        """Count one that no table knows of."""
        self._rows.count_stop()


class Runs(Table):
    """What dispatching a campaign remembers across restarts."""

    def get(self, workspace_id: str, campaign_id: str) -> CampaignRunState | None:
        """Return what is remembered of a campaign."""
        if self._rows.ref(workspace_id, campaign_id) is None:
            return None
        return self._rows.get(RUNS, (campaign_id,))

    def prefetch(self, campaign_ids: Iterable[str]) -> None:
        """Read those of many campaigns, which must be loaded, at once: each `get` of one of them asks nobody then."""
        self._rows.prefetch(RUNS, ((campaign_id,) for campaign_id in campaign_ids))

    def put(self, run: CampaignRunState) -> None:
        """Write what is remembered of a campaign.

        Raises:
            LookupError: The workspace has no such campaign.
        """
        if self._rows.ref(run.workspace_id, run.campaign_id) is None:
            raise LookupError("There is no such campaign.")
        self._rows.put(RUNS, (run.campaign_id,), run)

    def sender_slot(self, workspace_id: str, phone: str) -> datetime | None:
        """Return the first moment at which a sending number may send its next message; None for any."""
        return self._rows.get(SENDER_PACES, (workspace_id, phone))

    def put_sender_slot(self, workspace_id: str, phone: str, next_slot_at: datetime) -> None:
        """Write that moment."""
        self._rows.put(SENDER_PACES, (workspace_id, phone), next_slot_at)
