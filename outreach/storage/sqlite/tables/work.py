"""What is due, who does it, and what dispatching remembers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from outreach.clock import from_text, to_text
from outreach.convert.rows import to_row
from outreach.models.work import DueWork, Home, Lease, Run, Unit
from outreach.storage.sqlite.sql import load
from outreach.storage.sqlite.tables.base import Table


class WorkFeed(Table):
    """What is due, and what has changed."""

    queries = load("work")
    what = "unit of work"

    def touch(self, unit: Unit, due_at: datetime | None) -> int:
        """Write when a unit is due, under a new change number; return that number."""
        [row] = self._rows("next_change")
        change = int(row["change"])
        self._change(
            "touch",
            {
                "change": change,
                "kind": unit.kind,
                "workspace_id": unit.workspace_id,
                "unit_id": unit.id,
                "due_at": None if due_at is None else to_text(due_at),
            },
        )
        return change

    def get(self, unit: Unit) -> DueWork | None:
        """Return when a unit is due."""
        row = self._row("get", kind=unit.kind, workspace_id=unit.workspace_id, unit_id=unit.id)
        return None if row is None else _due_work(row)

    def due(self) -> Sequence[DueWork]:
        """Return every unit that has a due time, by (due_at, change)."""
        return [_due_work(row) for row in self._rows("due")]

    def since(self, change: int) -> Sequence[DueWork]:
        """Return the units changed after this number, by change."""
        return [_due_work(row) for row in self._rows("since", change=change)]

    def last_change(self) -> int:
        """Return the highest change number; 0 in a new database."""
        [row] = self._rows("last_change")
        return int(row["change"])

    def forget(self, *, limit: int) -> int:
        """Delete up to `limit` units of calls and messages with nothing due; return how many."""
        return self._change("forget", {"limit": limit})


def _due_work(row: dict[str, Any]) -> DueWork:
    return DueWork(
        unit=Unit(row["kind"], row["workspace_id"], row["unit_id"]),
        due_at=None if row["due_at"] is None else from_text(row["due_at"]),
        change=row["change"],
    )


class Leases(Table):
    """The right to dispatch from this database."""

    queries = load("leases")
    what = "lease"

    def current(self) -> Lease | None:
        """Return the lease."""
        row = self._row("current")
        if row is None:
            return None
        home = None if row["host"] is None else Home(host=row["host"], path=row["path"])
        return Lease(
            epoch=row["epoch"],
            home=home,
            renewed_at=from_text(row["renewed_at"]),
            held_reason=row["held_reason"],
            held_epoch=row["held_epoch"],
        )

    def put(self, lease: Lease) -> None:
        """Write the lease."""
        home = lease.home
        self._change(
            "put",
            {
                "epoch": lease.epoch,
                "host": None if home is None else home.host,
                "path": None if home is None else home.path,
                "renewed_at": to_text(lease.renewed_at),
                "held_reason": lease.held_reason,
                "held_epoch": lease.held_epoch,
            },
        )

    def database_id(self) -> str:
        """Return what tells this database from others."""
        [row] = self._rows("database_id")
        return str(row["id"])

    def home(self) -> Home | None:
        """Return where the database was last confirmed to live."""
        return self._one(Home, "home")

    def set_home(self, home: Home) -> None:
        """Write where the database lives."""
        self._change("set_home", to_row(home))


class Runs(Table):
    """What dispatching a campaign remembers across restarts."""

    queries = load("runs")
    what = "campaign"

    def get(self, workspace_id: str, campaign_id: str) -> Run | None:
        """Return what is remembered of a campaign."""
        return self._one(Run, "get", workspace_id=workspace_id, campaign_id=campaign_id)

    def put(self, run: Run) -> None:
        """Write what is remembered of a campaign."""
        self._change_one("put", to_row(run))

    def sender_slot(self, workspace_id: str, phone: str) -> datetime | None:
        """Return the first moment at which a sending number may send its next message."""
        row = self._row("sender_slot", workspace_id=workspace_id, phone=phone)
        return None if row is None else from_text(row["next_slot_at"])

    def put_sender_slot(self, workspace_id: str, phone: str, next_slot_at: datetime) -> None:
        """Write that moment."""
        self._change(
            "put_sender_slot", {"workspace_id": workspace_id, "phone": phone, "next_slot_at": to_text(next_slot_at)}
        )
