"""Campaigns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from outreach.clock import to_text
from outreach.convert.rows import Value, campaign_from_row, campaign_row, counters_from_row, counters_row
from outreach.models.campaign import Campaign, Counters
from outreach.models.carriers import Channel
from outreach.models.states import CampaignStatus
from outreach.policy.search import fold
from outreach.storage.sqlite.sql import load
from outreach.storage.sqlite.tables.base import Table, as_list

_MOST_OFFSET: Final = 2**63 - 1
"""The largest integer that SQLite takes."""


class Campaigns(Table):
    """Campaigns; one that is loading is seen by the methods that say so alone."""

    queries = load("campaigns")
    what = "campaign"

    def insert_loading(self, campaign: Campaign, *, loading_until: datetime) -> None:
        """Write a campaign that nobody sees yet."""
        self._change("insert_loading", _columns(campaign, loading_until=to_text(loading_until)))

    def extend_loading(self, workspace_id: str, campaign_id: str, *, loading_until: datetime) -> bool:
        """Move the moment at which it becomes a leftover; return whether it is still there and loading."""
        values: dict[str, Value] = {
            "workspace_id": workspace_id,
            "campaign_id": campaign_id,
            "loading_until": to_text(loading_until),
        }
        return self._change("extend_loading", values) == 1

    def get_loading(self, workspace_id: str, campaign_id: str) -> Campaign | None:
        """Return a campaign that is loading."""
        return _campaign(self._row("get_loading", workspace_id=workspace_id, campaign_id=campaign_id))

    def publish(self, campaign: Campaign) -> None:
        """Make a loading campaign visible, with the counters and fields given."""
        self._change_one("publish", _columns(campaign))

    def leftovers(self, now: datetime) -> Sequence[tuple[str, str]]:
        """Return (workspace, campaign) of those whose loading ended before now, the oldest first."""
        return [(row["workspace_id"], row["id"]) for row in self._rows("leftovers", now=to_text(now))]

    def delete_loading(self, workspace_id: str, campaign_id: str, *, limit: int) -> bool:
        """Delete up to `limit` recipients of a loading campaign, then the campaign; return whether all is gone."""
        row = self._row("loading_number", workspace_id=workspace_id, campaign_id=campaign_id)
        if row is None:
            return True
        self._change("delete_recipients", {"number": row["number"], "limit": limit})
        self._change("delete_trail", {"number": row["number"], "limit": limit})
        return self._change("delete_empty", {"number": row["number"]}) == 1

    def get(self, workspace_id: str, campaign_id: str) -> Campaign | None:
        """Return a campaign."""
        return _campaign(self._row("get", workspace_id=workspace_id, campaign_id=campaign_id))

    def find(self, campaign_id: str) -> Campaign | None:
        """Return a campaign of whatever workspace."""
        return _campaign(self._row("find", campaign_id=campaign_id))

    def update(self, campaign: Campaign) -> None:
        """Write over a campaign, but for its counters."""
        self._change_one("update", _columns(campaign))

    def add_counters(self, workspace_id: str, campaign_id: str, change: Counters) -> Counters:
        """Add to the counters and return them as they are then."""
        row = self._row("add_counters", workspace_id=workspace_id, campaign_id=campaign_id, **counters_row(change))
        if row is None:
            raise LookupError(f"There is no such {self.what}.")
        return counters_from_row(row)

    def page(
        self,
        workspace_id: str,
        *,
        channel: Channel | None,
        status: CampaignStatus | None,
        search: str | None,
        offset: int,
        limit: int,
    ) -> tuple[Sequence[Campaign], int]:
        """Return campaigns newest first, and how many match in all."""
        wanted: dict[str, Value] = {
            "workspace_id": workspace_id,
            "channel": channel,
            "status": None if status is None else status.value,
            "search": None if search is None else fold(search),
        }
        row = self._row("count", **wanted)
        total = 0 if row is None else int(row["total"])
        if offset > _MOST_OFFSET:
            return [], total
        rows = self._rows("page", **wanted, offset=offset, limit=limit)
        return [campaign_from_row(row) for row in rows], total

    def in_status(self, statuses: Collection[CampaignStatus], *, workspace_id: str | None = None) -> Sequence[Campaign]:
        """Return campaigns in these statuses, of one workspace or of all, oldest first."""
        rows = self._rows("in_status", statuses=as_list(sorted(set(statuses))), workspace_id=workspace_id)
        return [campaign_from_row(row) for row in rows]


def _columns(campaign: Campaign, **more: Value) -> dict[str, Value]:
    return {**campaign_row(campaign), "name_folded": fold(campaign.name), **more}


def _campaign(row: dict[str, Any] | None) -> Campaign | None:
    return None if row is None else campaign_from_row(row)
