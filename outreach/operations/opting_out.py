"""What an opt-out does to those who wait in campaigns (design, section 6, flows)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.models.trail import Rule
from outreach.operations.recipient_outcomes import store
from outreach.policy.settlement import ended
from outreach.working_set import Transaction

_GO_ON: Final = frozenset({CampaignStatus.ACTIVE, CampaignStatus.PAUSED})
"""Campaigns whose waiting recipients would be contacted again; those that are over close theirs themselves."""


def end_waiting(tx: Transaction, workspace_id: str, phones: Iterable[str], *, now: datetime) -> None:
    """End the recipients that wait with numbers that are on the register, as skipped.

    Otherwise they would wait on, perhaps for weeks, and be skipped only when they are due. Who opts in again
    meanwhile stays skipped: an opt-out ends what was under way. Those that are pending are skipped at their turn, and
    what is in flight keeps its true outcome.
    """
    for phone in phones:
        for recipient in tx.recipients.waiting_with(workspace_id, phone):
            campaign = tx.campaigns.get(workspace_id, recipient.campaign_id)
            if campaign is None or campaign.status not in _GO_ON:
                continue
            if tx.register.stopped(workspace_id, campaign.channel, {phone}):
                skipped = ended(recipient, RecipientStatus.SKIPPED, "opted_out", now)
                store(tx, recipient, skipped, campaign, rule=Rule.REGISTER, now=now)
