"""Campaigns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import attrs

from outreach.models.campaign import AgentSnapshot, Campaign, Counters
from outreach.models.carriers import Channel
from outreach.models.states import CampaignStatus
from outreach.policy.search import fold
from outreach.storage.memory.directory import Agents
from outreach.storage.memory.owned import by_age
from outreach.storage.memory.rows import CampaignRow, CampaignRows, RecipientRows
from outreach.storage.memory.trail import TrailRows


class Campaigns:
    """Campaigns; see `outreach.protocols.storage.Campaigns`."""

    def __init__(self, rows: CampaignRows, recipients: RecipientRows, trail: TrailRows, agents: Agents) -> None:
        self._rows = rows
        self._recipients = recipients
        self._trail = trail
        self._agents = agents

    def insert_loading(self, campaign: Campaign, *, loading_until: datetime) -> None:
        """Write a campaign that nobody sees yet."""
        self._rows.insert(campaign.id, _row(campaign, loading_until=loading_until))

    def extend_loading(self, workspace_id: str, campaign_id: str, *, loading_until: datetime) -> bool:
        """Move the moment at which it becomes a leftover; return whether it is still there and loading."""
        row = self._loading(workspace_id, campaign_id)
        if row is None:
            return False
        self._rows.put(campaign_id, attrs.evolve(row, loading_until=loading_until))
        return True

    def get_loading(self, workspace_id: str, campaign_id: str) -> Campaign | None:
        """Return a campaign that is loading."""
        row = self._loading(workspace_id, campaign_id)
        return None if row is None else self._read(row)

    def publish(self, campaign: Campaign) -> None:
        """Make a loading campaign visible, with the counters and fields given."""
        if self._loading(campaign.workspace_id, campaign.id) is None:
            raise self._rows.missing(campaign.id)
        self._rows.put(campaign.id, _row(campaign, loading_until=None))

    def leftovers(self, now: datetime) -> Sequence[tuple[str, str]]:
        """Return (workspace, campaign) of those whose loading ended before now without being published."""
        # A tuple that ends early sorts before every longer one that begins the same: exactly now is not over.
        rows = self._rows.rows(self._rows.loading.keys(None, until=(now,)))
        return [(row.campaign.workspace_id, row.campaign.id) for row in rows]

    def delete_loading(self, workspace_id: str, campaign_id: str, *, limit: int) -> bool:
        """Delete up to `limit` recipients of a loading campaign, then the campaign; return whether all is gone."""
        if self._loading(workspace_id, campaign_id) is None:
            return True
        owner = (workspace_id, campaign_id)
        for key in self._recipients.by_position.keys(owner, limit=limit):
            self._recipients.delete(key)
        for number in self._trail.by_campaign.keys(owner, limit=limit):
            self._trail.delete(number)
        if owner in self._recipients.by_position or owner in self._trail.by_campaign:
            return False
        self._rows.delete(campaign_id)
        return True

    def get(self, workspace_id: str, campaign_id: str) -> Campaign | None:
        """Return a campaign."""
        row = self._published(workspace_id, campaign_id)
        return None if row is None else self._read(row)

    def find(self, campaign_id: str) -> Campaign | None:
        """Return a campaign of whatever workspace."""
        row = self._rows.get(campaign_id)
        return None if row is None or row.loading_until is not None else self._read(row)

    def update(self, campaign: Campaign) -> None:
        """Write over a campaign, but for its counters."""
        row = self._published(campaign.workspace_id, campaign.id)
        if row is None:
            raise self._rows.missing(campaign.id)
        kept = attrs.evolve(campaign, counters=row.campaign.counters)
        self._rows.put(campaign.id, _row(kept, loading_until=None))

    def add_counters(self, workspace_id: str, campaign_id: str, change: Counters) -> Counters:
        """Add to the counters and return them as they are then."""
        row = self._published(workspace_id, campaign_id)
        if row is None:
            raise self._rows.missing(campaign_id)
        counters = row.campaign.counters + change
        self._rows.put(campaign_id, attrs.evolve(row, campaign=attrs.evolve(row.campaign, counters=counters)))
        return counters

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
        wanted = "" if search is None else fold(search)
        rows = [
            row
            for row in self._rows.rows(self._rows.by_workspace.keys(workspace_id))
            if (channel is None or row.campaign.channel == channel)
            and (status is None or row.campaign.status == status)
            and wanted in row.folded_name
        ]
        rows.reverse()
        return [self._read(row) for row in rows[offset : offset + limit]], len(rows)

    def in_status(self, statuses: Collection[CampaignStatus], *, workspace_id: str | None = None) -> Sequence[Campaign]:
        """Return campaigns in these statuses, of one workspace or of all, oldest first."""
        rows = [
            row
            for status in set(statuses)
            for row in self._rows.rows(self._rows.by_status.keys(status))
            if workspace_id is None or row.campaign.workspace_id == workspace_id
        ]
        rows.sort(key=lambda row: by_age(row.campaign))
        return [self._read(row) for row in rows]

    def _loading(self, workspace_id: str, campaign_id: str) -> CampaignRow | None:
        row = self._rows.within(workspace_id, campaign_id)
        return row if row is not None and row.loading_until is not None else None

    def _published(self, workspace_id: str, campaign_id: str) -> CampaignRow | None:
        row = self._rows.within(workspace_id, campaign_id)
        return row if row is not None and row.loading_until is None else None

    def _read(self, row: CampaignRow) -> Campaign:
        campaign, snapshot = _detached(row.campaign), None
        if campaign.agent_id is not None:
            agent = self._agents.get(campaign.workspace_id, campaign.agent_id)
            if agent is not None:
                snapshot = AgentSnapshot(
                    id=agent.id, name=agent.name, provider=agent.provider, is_active=agent.is_active
                )
        return attrs.evolve(campaign, agent=snapshot)


def _row(campaign: Campaign, *, loading_until: datetime | None) -> CampaignRow:
    return CampaignRow(campaign=_detached(campaign), loading_until=loading_until, folded_name=fold(campaign.name))


def _detached(campaign: Campaign) -> Campaign:
    """Return a campaign that shares nothing that can be changed with the one given."""
    hours = campaign.business_hours
    if hours is None:
        return campaign
    return attrs.evolve(campaign, business_hours=attrs.evolve(hours, schedule=dict(hours.schedule)))
