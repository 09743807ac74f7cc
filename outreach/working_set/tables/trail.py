"""The decision trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.clock import format_timestamp
from outreach.models.trail import TrailEntry
from outreach.working_set.kinds import TRAIL
from outreach.working_set.tables.base import Table


class Trail(Table):
    """The decision trail; append only, but for a hold that is prolonged.

    Entries are numbered from 1, over the whole database, in the order in which they are committed; a number that
    has been given is never given again, whatever is deleted.
    """

    def append(self, entry: TrailEntry) -> None:
        """Write an entry under the next number, whatever number it has.

        Raises:
            LookupError: The workspace has no such campaign.
        """
        row = TRAIL.row((), entry)
        if entry.campaign_id is not None:
            number = self._rows.number(entry.workspace_id, entry.campaign_id)
            if number is None:
                raise LookupError("There is no such campaign.")
            row[TRAIL.campaign or 0] = number
        self._rows.append("trail", "append", row)

    def prolong(self, workspace_id: str, campaign_id: str, position: int, due_at: datetime) -> None:
        """Have the latest `held` entry of a recipient last until `due_at`, repeated once more; if there is one."""
        number = self._rows.number(workspace_id, campaign_id)
        if number is not None:
            self._rows.append("trail", "prolong", (format_timestamp(due_at), number, position))

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[TrailEntry]:
        """Return the entries of one recipient, by number."""
        number = self._rows.number(workspace_id, campaign_id)
        return self._entries(TRAIL, "trail.of_recipient", number=number, position=position)

    def of_campaign(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries of a campaign as a whole, those of no recipient: the latest so many, by number."""
        number = self._rows.number(workspace_id, campaign_id)
        return self._entries(TRAIL, "trail.of_campaign", number=number, limit=limit)[::-1]

    def of_workspace(self, workspace_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries that tell of the workspace itself: the latest so many, by number."""
        return self._entries(TRAIL, "trail.of_workspace", workspace_id=workspace_id, limit=limit)[::-1]

    def of_number(self, workspace_id: str, phone: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries that tell of a phone number: the latest so many, by number."""
        return self._entries(TRAIL, "trail.of_number", workspace_id=workspace_id, phone=phone, limit=limit)[::-1]

    def between(self, workspace_id: str | None, after: int, until: int) -> Sequence[TrailEntry]:
        """Return those of a workspace, or of all, numbered above `after` and up to `until`, by number."""
        return self._entries(TRAIL, "trail.between", workspace_id=workspace_id, after=after, until=until)

    def last_number(self) -> int:
        """Return the highest number that was ever given; 0 in a new database."""
        rows = self._rows.query("trail.last_number", TRAIL)
        return int(rows[0][0]) if rows else 0
