"""Due work, the dispatch lease, and the state of dispatching."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.models.work import CampaignRunState, Claim, DatabaseHome, Lease, WorkerLease, WorkItem, WorkUnit
from outreach.storage.base.schema import FIRST
from outreach.storage.unit_of_work.kinds import (
    ALL_WORKSPACES,
    CALLS,
    CLAIMS,
    HOME,
    LEASE,
    MESSAGES,
    RUNS,
    SENDER_PACES,
    SINGLE_ROW_KEY,
    STOPS,
    UNNUMBERED,
    WORK,
    WORKERS,
)
from outreach.storage.unit_of_work.tables.base import Table


class WorkQueue(Table):
    """Due times of units of work; change numbers rise over the whole database."""

    def schedule(self, unit: WorkUnit, due_at: datetime | None) -> None:
        """Write when a unit is due, under a new change number, which it has once it is read again."""
        self._rows.schedule(WorkItem(unit=unit, due_at=due_at, change=UNNUMBERED))

    def get(self, unit: WorkUnit) -> WorkItem | None:
        """Return a unit's due time and change number."""
        return self._rows.get(WORK, tuple(unit))

    def due(self) -> Sequence[WorkItem]:
        """Return every unit with a due time, by (due_at, change)."""
        return self._list(WORK, "work.due")

    def oldest_single(self, workspace_id: str | None, now: datetime) -> datetime | None:
        """Return the earliest due time up to now of a queued message or call, of one workspace or all; or None."""
        rows = self._rows.query(
            "work.oldest_single", WORK, MESSAGES, CALLS, workspace_id=workspace_id, now=format_timestamp(now)
        )
        return parse_timestamp(rows[0][0]) if rows else None

    def since(self, change: int) -> Sequence[WorkItem]:
        """Return the units changed after this number, by change."""
        return self._list(WORK, "work.since", change=change)

    def last_change(self) -> int:
        """Return the highest change number; 0 in a new database."""
        return self._rows.present_change()

    def delete_idle(self, *, limit: int) -> int:
        """Delete up to `limit` idle units of calls and messages; return how many. The last change number stays."""
        return self._rows.execute_on(WORK, "work.forget", limit=limit)


class Workers(Table):
    """The leases of the workers."""

    def get(self, epoch: int) -> WorkerLease | None:
        """Return a worker's lease; None if it has ended."""
        return self._rows.get(WORKERS, (epoch,))

    def put(self, worker: WorkerLease) -> None:
        """Insert or replace a worker's lease."""
        self._rows.put(WORKERS, (worker.epoch,), worker)

    def delete(self, epoch: int) -> bool:
        """Delete a worker's lease, which counts as a stop for all workspaces; return whether it existed."""
        self._rows.count_stop(ALL_WORKSPACES)
        return self._rows.delete(WORKERS, (epoch,))

    def list(self) -> Sequence[WorkerLease]:
        """Return all, by epoch."""
        return self._list(WORKERS, "workers.list")


class Claims(Table):
    """Which worker drives what."""

    def get(self, workspace_id: str, subject: str) -> Claim | None:
        """Return a claim."""
        return self._rows.get(CLAIMS, (workspace_id, subject))

    def prefetch(self, workspace_and_subject: Iterable[tuple[str, str]]) -> None:
        """Read many in one go, for `get`."""
        self._rows.prefetch(CLAIMS, workspace_and_subject)

    def put(self, claim: Claim) -> None:
        """Insert or replace a claim."""
        self._rows.put(CLAIMS, (claim.workspace_id, claim.subject), claim)

    def held(self) -> Sequence[Claim]:
        """Return those that are held, by epoch, workspace and subject."""
        return self._list(CLAIMS, "claims.held")

    def free(self, epoch: int) -> None:
        """Free those that a worker holds."""
        self._rows.execute_on(CLAIMS, "claims.free", epoch=epoch)

    def clear(self) -> None:
        """Delete all."""
        self._rows.execute_on(CLAIMS, "claims.clear")


class Leases(Table):
    """The state of dispatching as a whole, and the home of this database."""

    def current(self) -> Lease | None:
        """Return the state of dispatching; None if no worker has ever begun."""
        return self._rows.get(LEASE, SINGLE_ROW_KEY)

    def put(self, lease: Lease) -> None:
        """Write the state of dispatching; a new epoch counts as a stop for all workspaces."""
        known = self.current()
        if known is None or known.epoch != lease.epoch:
            self._rows.count_stop(ALL_WORKSPACES)
        self._rows.put(LEASE, SINGLE_ROW_KEY, lease)

    def database_id(self) -> str:
        """Return the identifier given to the database at its creation, which its copies share."""
        [row] = self._rows.query("leases.database_id")
        return str(row[0])

    def versions(self) -> tuple[str, str]:
        """Return what the database is, such as `SQLite 3.46.1`, and the name of its latest migration.

        A database with the migrations that `FIRST` replaces has the same schema as a new one.
        """
        [row] = self._rows.query("leases.versions")
        return str(row[0]), max(str(row[1]), FIRST[-1])

    def home(self) -> DatabaseHome | None:
        """Return the last confirmed home of the database."""
        return self._rows.get(HOME, SINGLE_ROW_KEY)

    def set_home(self, home: DatabaseHome) -> None:
        """Write the home of the database."""
        self._rows.put(HOME, SINGLE_ROW_KEY, home)


class Stops(Table):
    """The stop counts of workspaces.

    A stop is counted in its own transaction: a register entry, a changed active campaign, workspace or account, a
    throttle; a takeover, for all workspaces. While the count of a workspace is the same, nothing checked at a commit of
    it was forbidden since.
    """

    def prefetch(self, workspace_ids: Iterable[str]) -> None:
        """Read the counts of many workspaces in one go, for `count`."""
        self._rows.prefetch(STOPS, ((whose,) for whose in (ALL_WORKSPACES, *sorted(workspace_ids))))

    def count(self, workspace_id: str) -> int:
        """Return the stops of a workspace and those for all."""
        return self._rows.stop_count(workspace_id)

    def increment(self, workspace_id: str) -> None:
        """Count a stop of a workspace that no table counts by itself."""
        self._rows.count_stop(workspace_id)


class Runs(Table):
    """The dispatch state of campaigns and sending numbers across restarts."""

    def get(self, workspace_id: str, campaign_id: str) -> CampaignRunState | None:
        """Return a campaign's dispatch state."""
        if self._rows.ref(workspace_id, campaign_id) is None:
            return None
        return self._rows.get(RUNS, (campaign_id,))

    def prefetch(self, workspace_and_campaign: Iterable[tuple[str, str]]) -> None:
        """Read those of many campaigns in one go, for `get`."""
        wanted = list(workspace_and_campaign)
        self._rows.prefetch_refs(campaign_id for _, campaign_id in wanted)
        self._rows.prefetch(RUNS, ((id_,) for workspace_id, id_ in wanted if self._rows.ref(workspace_id, id_)))

    def put(self, run: CampaignRunState) -> None:
        """Write a campaign's dispatch state, or raise `LookupError`."""
        if self._rows.ref(run.workspace_id, run.campaign_id) is None:
            raise LookupError("There is no such campaign.")
        self._rows.put(RUNS, (run.campaign_id,), run)

    def sender_slot(self, workspace_id: str, phone: str) -> datetime | None:
        """Return the earliest next slot of a sending number; None for any."""
        return self._rows.get(SENDER_PACES, (workspace_id, phone))

    def prefetch_sender_slots(self, workspace_and_phone: Iterable[tuple[str, str]]) -> None:
        """Read those of many sending numbers in one go, for `sender_slot`."""
        self._rows.prefetch(SENDER_PACES, workspace_and_phone)

    def put_sender_slot(self, workspace_id: str, phone: str, next_slot_at: datetime) -> None:
        """Write a sending number's next slot."""
        self._rows.put(SENDER_PACES, (workspace_id, phone), next_slot_at)
