"""What is due, who does it, and what dispatching remembers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from outreach.models.work import DueWork, Home, Lease, Run, Unit
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.table import Place, Table


class WorkFeed:
    """What is due, and what has changed."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[Unit, DueWork](journal, "unit of work")
        self._due = self._rows.index(_due)
        self._by_change = self._rows.index(lambda row: (None, (row.change,)))
        self._forgettable = self._rows.index(_forgettable)
        # Kept apart from the units, so that forgetting one never takes a number back.
        self._last = Table[None, int](journal, "change number")

    def touch(self, unit: Unit, due_at: datetime | None) -> int:
        """Write when a unit is due, under a new change number; return that number."""
        change = self.last_change() + 1
        self._last.put(None, change)
        self._rows.put(unit, DueWork(unit=unit, due_at=due_at, change=change))
        return change

    def get(self, unit: Unit) -> DueWork | None:
        """Return when a unit is due."""
        return self._rows.get(unit)

    def due(self) -> Sequence[DueWork]:
        """Return every unit that has a due time, by (due_at, change)."""
        return self._rows.rows(self._due.keys(None))

    def since(self, change: int) -> Sequence[DueWork]:
        """Return the units changed after this number, by change."""
        return self._rows.rows(self._by_change.keys(None, after=(change,)))

    def last_change(self) -> int:
        """Return the highest change number; 0 in a new database."""
        return self._last.get(None) or 0

    def forget(self, *, limit: int) -> int:
        """Delete up to `limit` units of calls and messages with nothing due; return how many."""
        units = self._forgettable.keys(None, limit=limit)
        for unit in units:
            self._rows.delete(unit)
        return len(units)


def _due(row: DueWork) -> Place | None:
    return None if row.due_at is None else (None, (row.due_at, row.change))


def _forgettable(row: DueWork) -> Place | None:
    return (None, (row.change,)) if row.due_at is None and row.unit.kind != "campaign" else None


class Leases:
    """The right to dispatch from this database."""

    def __init__(self, journal: Journal) -> None:
        self._lease = Table[None, Lease](journal, "lease")
        self._home = Table[None, Home](journal, "home")

    def current(self) -> Lease | None:
        """Return the lease."""
        return self._lease.get(None)

    def put(self, lease: Lease) -> None:
        """Write the lease."""
        self._lease.put(None, lease)

    def database_id(self) -> str:
        """Return one name for all: no note outlives the memory that it tells of."""
        return "memory"

    def home(self) -> Home | None:
        """Return where the database was last confirmed to live."""
        return self._home.get(None)

    def set_home(self, home: Home) -> None:
        """Write where the database lives."""
        self._home.put(None, home)


@attrs.frozen(kw_only=True)
class SenderPace:
    """The pace of one sending number."""

    workspace_id: str
    phone: str
    next_slot_at: datetime


class Runs:
    """What dispatching a campaign remembers across restarts."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[tuple[str, str], Run](journal, "run")
        self._senders = Table[tuple[str, str], SenderPace](journal, "sending number")

    def get(self, workspace_id: str, campaign_id: str) -> Run | None:
        """Return what is remembered of a campaign."""
        return self._rows.get((workspace_id, campaign_id))

    def put(self, run: Run) -> None:
        """Write what is remembered of a campaign."""
        self._rows.put((run.workspace_id, run.campaign_id), run)

    def sender_slot(self, workspace_id: str, phone: str) -> datetime | None:
        """Return the first moment at which a sending number may send its next message."""
        pace = self._senders.get((workspace_id, phone))
        return None if pace is None else pace.next_slot_at

    def put_sender_slot(self, workspace_id: str, phone: str, next_slot_at: datetime) -> None:
        """Write that moment."""
        pace = SenderPace(workspace_id=workspace_id, phone=phone, next_slot_at=next_slot_at)
        self._senders.put((workspace_id, phone), pace)
