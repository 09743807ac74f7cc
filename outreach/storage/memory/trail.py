"""The decision trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from outreach.models.trail import TrailEntry, What
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.rows import CampaignRows
from outreach.storage.memory.table import Place, Table


class TrailRows(Table[int, TrailEntry]):
    """Entries under their numbers."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal, "entry of the trail")
        self.in_order = self.index(lambda row: (None, (row.number,)))
        self.by_campaign = self.index(_of_campaign)
        self.by_recipient = self.index(_of_recipient)
        self.by_workspace = self.index(_of_workspace)
        self.by_phone = self.index(_of_phone)


class Trail:
    """The decision trail; append only, but for a hold that is prolonged."""

    def __init__(self, rows: TrailRows, campaigns: CampaignRows, journal: Journal) -> None:
        self._rows = rows
        self._campaigns = campaigns
        # Kept apart from the entries, so that deleting one never takes a number back.
        self._last = Table[None, int](journal, "number of the trail")

    def append(self, entry: TrailEntry) -> None:
        """Write an entry under the next number, whatever number it has."""
        if entry.campaign_id is not None and self._campaigns.within(entry.workspace_id, entry.campaign_id) is None:
            raise self._campaigns.missing(entry.campaign_id)
        number = self.last_number() + 1
        self._last.put(None, number)
        self._rows.insert(number, attrs.evolve(entry, number=number))

    def prolong(self, workspace_id: str, campaign_id: str, position: int, due_at: datetime) -> None:
        """Have the latest `held` entry of a recipient last until `due_at`, repeated once more; if there is one."""
        entries = self.of_recipient(workspace_id, campaign_id, position)
        held = next((entry for entry in reversed(entries) if entry.what is What.HELD), None)
        if held is not None:
            self._rows.put(held.number, attrs.evolve(held, due_at=due_at, repeats=held.repeats + 1))

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[TrailEntry]:
        """Return the entries of one recipient, by number."""
        return self._rows.rows(self._rows.by_recipient.keys((workspace_id, campaign_id, position)))

    def of_campaign(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries of a campaign as a whole: the latest so many, by number."""
        return self._latest(self._rows.by_recipient.keys((workspace_id, campaign_id, None)), limit)

    def of_workspace(self, workspace_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries that tell of the workspace itself: the latest so many, by number."""
        return self._latest(self._rows.by_workspace.keys(workspace_id), limit)

    def of_number(self, workspace_id: str, phone: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the entries that tell of a phone number: the latest so many, by number."""
        return self._latest(self._rows.by_phone.keys((workspace_id, phone)), limit)

    def between(self, workspace_id: str | None, after: int, until: int) -> Sequence[TrailEntry]:
        """Return those of a workspace, or of all, numbered above `after` and up to `until`, by number."""
        rows = self._rows.rows(self._rows.in_order.keys(None, after=(after,), until=(until,)))
        return [row for row in rows if workspace_id in {None, row.workspace_id}]

    def last_number(self) -> int:
        """Return the highest number that was ever given; 0 in a new database."""
        return self._last.get(None) or 0

    def _latest(self, numbers: Sequence[int], limit: int) -> Sequence[TrailEntry]:
        return self._rows.rows(numbers[max(len(numbers) - limit, 0) :])


def _of_campaign(row: TrailEntry) -> Place | None:
    return None if row.campaign_id is None else ((row.workspace_id, row.campaign_id), (row.number,))


def _of_recipient(row: TrailEntry) -> Place | None:
    return None if row.campaign_id is None else ((row.workspace_id, row.campaign_id, row.position), (row.number,))


def _of_phone(row: TrailEntry) -> Place | None:
    return None if row.phone is None else ((row.workspace_id, row.phone), (row.number,))


def _of_workspace(row: TrailEntry) -> Place | None:
    return (row.workspace_id, (row.number,)) if row.what is What.WORKSPACE else None
