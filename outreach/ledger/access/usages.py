"""The campaigns that use an agent, number, trunk or flow, as text: what is in use is not removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from outreach.models.campaign import Campaign
from outreach.models.states import TERMINAL_CAMPAIGN_STATUSES, CampaignStatus
from outreach.storage.unit_of_work import Transaction

OPEN: Final = frozenset(CampaignStatus) - TERMINAL_CAMPAIGN_STATUSES
STARTED: Final = frozenset({CampaignStatus.SCHEDULED, CampaignStatus.ACTIVE, CampaignStatus.PAUSED})


def campaigns_using(
    tx: Transaction, workspace_id: str, uses: Callable[[Campaign], bool], statuses: Collection[CampaignStatus] = OPEN
) -> Sequence[str]:
    """Return the campaigns in these statuses, by default all open ones, that use something."""
    return [
        f"campaign {campaign.name!r} ({campaign.status})"
        for campaign in tx.campaigns.in_status(statuses, workspace_id=workspace_id)
        if uses(campaign)
    ]
