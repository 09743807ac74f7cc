"""The decision trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.clock import to_text
from outreach.convert.rows import to_row
from outreach.models.trail import TrailEntry
from outreach.storage.sqlite.sql import load
from outreach.storage.sqlite.tables.base import Table


class Trail(Table):
    """The decision trail; append only, but for a hold that is prolonged."""

    queries = load("trail")
    what = "campaign"

    def append(self, entry: TrailEntry) -> None:
        """Write an entry under the next number, whatever number it has."""
        self._change_one("append", to_row(entry))

    def prolong(self, workspace_id: str, campaign_id: str, position: int, due_at: datetime) -> None:
        """Have the latest `held` entry of a recipient last until `due_at`, repeated once more; if there is one."""
        self._change(
            "prolong",
            {
                "workspace_id": workspace_id,
                "campaign_id": campaign_id,
                "position": position,
                "due_at": to_text(due_at),
            },
        )

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[TrailEntry]:
        """Return the entries of one recipient, by number."""
        return self._all(
            TrailEntry, "of_recipient", workspace_id=workspace_id, campaign_id=campaign_id, position=position
        )

    def of_campaign(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries of a campaign as a whole: the latest so many, by number."""
        return self._all(TrailEntry, "of_campaign", workspace_id=workspace_id, campaign_id=campaign_id, limit=limit)[
            ::-1
        ]

    def of_workspace(self, workspace_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries that tell of the workspace itself: the latest so many, by number."""
        return self._all(TrailEntry, "of_workspace", workspace_id=workspace_id, limit=limit)[::-1]

    def of_number(self, workspace_id: str, phone: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries that tell of a phone number: the latest so many, by number."""
        return self._all(TrailEntry, "of_number", workspace_id=workspace_id, phone=phone, limit=limit)[::-1]

    def between(self, workspace_id: str | None, after: int, until: int) -> Sequence[TrailEntry]:
        """Return those of a workspace, or of all, numbered above `after` and up to `until`, by number."""
        return self._all(TrailEntry, "between", workspace_id=workspace_id, after=after, until=until)

    def last_number(self) -> int:
        """Return the highest number that was ever given; 0 in a new database."""
        row = self._row("last_number")
        return 0 if row is None else int(row["seq"])
