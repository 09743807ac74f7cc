"""Campaigns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

import attrs

from outreach.core.clock import format_timestamp
from outreach.models.campaign import AgentSnapshot, Campaign, Counters
from outreach.models.database import CampaignGroup
from outreach.models.resources import Agent
from outreach.models.states import CampaignStatus
from outreach.storage.unit_of_work.journal import AlreadyExists
from outreach.storage.unit_of_work.kinds import AGENTS, CAMPAIGNS, LOADING_CAMPAIGNS
from outreach.storage.unit_of_work.tables.base import Table, json_list


class Campaigns(Table):
    """Campaigns, each returned with the snapshot of its agent.

    Only `get_loading`, `publish`, `delete_loading` and the methods of additions see a loading campaign. Only
    `add_counters` and `publish` write counters.
    """

    def insert_loading(self, campaign: Campaign, *, loading_until: datetime) -> None:
        """Write a hidden campaign, which is a leftover once `loading_until` has passed."""
        key = CAMPAIGNS.key_of(campaign)
        there = self._rows.get(CAMPAIGNS, key) is not None
        if there or not self._rows.insert_many_now(LOADING_CAMPAIGNS, [(key, (campaign, loading_until))]):
            raise AlreadyExists(f"There is such a {CAMPAIGNS.noun} already.")
        self._rows.evict_ref(campaign.id)
        self._rows.evict(LOADING_CAMPAIGNS, key)

    def extend_loading(self, workspace_id: str, campaign_id: str, *, loading_until: datetime) -> bool:
        """Extend the lease of a loading campaign; return whether it still exists and loads."""
        written = self._rows.execute(
            "campaigns.extend_loading",
            workspace_id=workspace_id,
            campaign_id=campaign_id,
            loading_until=format_timestamp(loading_until),
        )
        return written == 1

    def prefetch(self, workspace_and_campaign: Iterable[tuple[str, str]]) -> None:
        """Read many campaigns and their references in one go, for `get`."""
        keys = list(workspace_and_campaign)
        self._rows.prefetch_refs(campaign_id for _, campaign_id in keys)
        self._rows.prefetch(CAMPAIGNS, keys)

    def get_loading(self, workspace_id: str, campaign_id: str) -> Campaign | None:
        """Return a loading campaign."""
        rows = self._rows.query("campaigns.get_loading", workspace_id=workspace_id, campaign_id=campaign_id)
        found = self._rows.models(CAMPAIGNS, rows)
        return self._with_agent(found[0]) if found else None

    def publish(self, campaign: Campaign) -> None:
        """Make a loading campaign visible, with the counters and fields given."""
        counters = {f"recipients_{name}": value for name, value in attrs.asdict(campaign.counters).items()}
        published = self._rows.execute(
            "campaigns.publish", workspace_id=campaign.workspace_id, campaign_id=campaign.id, **counters
        )
        if not published:
            raise LookupError(f"There is no such {CAMPAIGNS.noun}.")
        self._rows.evict(CAMPAIGNS, CAMPAIGNS.key_of(campaign))
        self.update(campaign)

    def stage_addition(self, workspace_id: str, campaign_id: str, target_id: str) -> None:
        """Let the contacts of a loading campaign be moved to another campaign, or raise `LookupError`."""
        staged = self._rows.execute(
            "campaigns.stage_addition", workspace_id=workspace_id, campaign_id=campaign_id, target_id=target_id
        )
        if not staged:
            raise LookupError(f"There is no such {CAMPAIGNS.noun}.")

    def addition_target(self, workspace_id: str, campaign_id: str) -> str | None:
        """Return the campaign that the contacts of a loading one are moved to; None if they are not."""
        rows = self._rows.query("campaigns.addition_target", workspace_id=workspace_id, campaign_id=campaign_id)
        return rows[0][0] if rows else None

    def has_additions(self, workspace_id: str, campaign_id: str) -> bool:
        """Return whether contacts are still to be moved to a campaign."""
        return bool(self._rows.query("campaigns.any_addition", workspace_id=workspace_id, campaign_id=campaign_id))

    def leftovers(self, now: datetime) -> Sequence[tuple[str, str]]:
        """Return (workspace, campaign) of those whose `loading_until` has passed, by (loading_until, id)."""
        return [(row[0], row[1]) for row in self._rows.query("campaigns.leftovers", now=format_timestamp(now))]

    def delete_loading(self, workspace_id: str, campaign_id: str, *, limit: int) -> bool:
        """Delete up to `limit` recipients and trail entries of a loading campaign, then the campaign.

        Returns whether nothing is left, which is so for a campaign that is not loading.
        """
        rows = self._rows.query("campaigns.loading_number", workspace_id=workspace_id, campaign_id=campaign_id)
        if not rows:
            return True
        number = rows[0][0]
        self._rows.execute("campaigns.delete_recipients", number=number, limit=limit)
        self._rows.execute("campaigns.delete_trail", number=number, limit=limit)
        if self._rows.execute("campaigns.delete_empty", number=number) == 0:
            return False
        self._rows.evict_ref(campaign_id)
        return True

    def get(self, workspace_id: str, campaign_id: str) -> Campaign | None:
        """Return a campaign."""
        campaign = self._rows.get(CAMPAIGNS, (workspace_id, campaign_id))
        return None if campaign is None else self._with_agent(campaign)

    def find(self, campaign_id: str) -> Campaign | None:
        """Return a campaign of any workspace, for operators' commands."""
        campaign = self._one(CAMPAIGNS, "campaigns.find", campaign_id=campaign_id)
        return None if campaign is None else self._with_agent(campaign)

    def update(self, campaign: Campaign) -> None:
        """Replace a campaign, except for its counters; a change of an active one counts as a stop."""
        key = CAMPAIGNS.key_of(campaign)
        known = self._rows.get(CAMPAIGNS, key)
        if known is None:
            raise LookupError(f"There is no such {CAMPAIGNS.noun}.")
        if known.status is CampaignStatus.ACTIVE:
            self._rows.count_stop(campaign.workspace_id)
        self._rows.update(CAMPAIGNS, key, attrs.evolve(campaign, counters=known.counters, agent=None))

    def add_counters(self, workspace_id: str, campaign_id: str, change: Counters) -> Counters:
        """Add to the counters and return them."""
        return self._rows.add_counters((workspace_id, campaign_id), change)

    def in_status(self, statuses: Collection[CampaignStatus], *, workspace_id: str | None = None) -> Sequence[Campaign]:
        """Return campaigns in these statuses, of one workspace or all, oldest first by (created_at, id)."""
        found = self._list(
            CAMPAIGNS, "campaigns.in_status", statuses=json_list(sorted(set(statuses))), workspace_id=workspace_id
        )
        return self._all_with_agents(found)

    def count_in_status(
        self, statuses: Collection[CampaignStatus], *, workspace_id: str | None = None
    ) -> Mapping[CampaignStatus, int]:
        """Return the number of campaigns in each of these statuses, of one workspace or all."""
        rows = self._rows.query(
            "campaigns.count_in_status", CAMPAIGNS, statuses=json_list(sorted(set(statuses))), workspace_id=workspace_id
        )
        return {**dict.fromkeys(statuses, 0), **{CampaignStatus(status): count for status, count in rows}}

    def open_groups(self) -> Sequence[CampaignGroup]:
        """Return the active, scheduled and paused campaigns of all workspaces, by status and reason of the pause."""
        return [CampaignGroup(*row) for row in self._rows.query("campaigns.open_groups", CAMPAIGNS)]

    def running(self, *, workspace_id: str | None = None, limit: int) -> Sequence[Campaign]:
        """Return active campaigns of one workspace or all, oldest first by (created_at, id)."""
        found = self._list(CAMPAIGNS, "campaigns.running", workspace_id=workspace_id, limit=limit)
        return self._all_with_agents(found)

    def paused_by_engine(self, *, workspace_id: str | None = None, limit: int) -> Sequence[Campaign]:
        """Return campaigns that the engine has paused, of one workspace or all, oldest first by (created_at, id)."""
        found = self._list(CAMPAIGNS, "campaigns.paused_by_engine", workspace_id=workspace_id, limit=limit)
        return self._all_with_agents(found)

    def _all_with_agents(self, campaigns: Sequence[Campaign]) -> Sequence[Campaign]:
        self._rows.prefetch(AGENTS, ((it.workspace_id, it.agent_id) for it in campaigns if it.agent_id is not None))
        return [self._with_agent(campaign) for campaign in campaigns]

    def _with_agent(self, campaign: Campaign) -> Campaign:
        """Return a campaign with the current snapshot of its agent."""
        if campaign.agent_id is None:
            return campaign
        agent = snapshot(self._rows.get(AGENTS, (campaign.workspace_id, campaign.agent_id)))
        return campaign if agent is None else attrs.evolve(campaign, agent=agent)


def snapshot(agent: Agent | None) -> AgentSnapshot | None:
    """Return the compact view of an agent for its campaigns."""
    if agent is None:
        return None
    return AgentSnapshot(id=agent.id, name=agent.name, provider=agent.provider, is_active=agent.is_active)
