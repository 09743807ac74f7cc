"""What blocks active and scheduled campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.insight.status import dispatch_overview
from outreach.ledger.common import campaign_of, workspace_of
from outreach.ledger.provider_throttles import THROTTLED, throttle_of_campaign
from outreach.models.campaign import Campaign
from outreach.models.states import CampaignStatus, RecipientStatus, WorkspaceStatus
from outreach.models.status import CampaignBlocker
from outreach.models.trail import TrailRule
from outreach.rules.opening import opening_state
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

NO_DISPATCHER: Final = "no_dispatcher"

_MAX_UNKNOWN: Final = 1000

_CLOSED: Final = {
    TrailRule.HOLIDAYS: "Today is a holiday of the campaign.",
    TrailRule.BUSINESS_HOURS: "The campaign is outside of its business hours.",
}


class CampaignBlockers:
    """What campaigns and their recipients wait for."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def blockers(self, workspace_id: str, campaign_id: str) -> Sequence[CampaignBlocker]:
        """Return everything that blocks an active or scheduled campaign, most urgent first.

        Raises:
            NotFound: The workspace has no such campaign.
        """

        def operation(tx: Transaction) -> Sequence[CampaignBlocker]:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            if campaign.status not in {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}:
                return ()
            now = self._context.now()
            found = [self._of_workspace(tx, campaign), self._of_dispatching(tx, now)]
            if campaign.status is CampaignStatus.ACTIVE:
                found += [_of_provider(tx, campaign, now), _of_hours(campaign, now)]
            return tuple(holdup for holdup in found if holdup is not None)

        return await self._context.storage.read(operation)

    async def next_due_times(self, workspace_id: str, campaign_id: str) -> Mapping[tuple[str, str | None], datetime]:
        """Return when the first waiting recipient is due, for each state and reason with a known time.

        An unknown request is closed then, unless evidence arrives before; this looks at the workspace's oldest 1,000.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        given_up = timedelta(seconds=self._context.config.reconcile_deadline_seconds)

        def operation(tx: Transaction) -> Mapping[tuple[str, str | None], datetime]:
            now = self._context.now()
            first: dict[tuple[str, str | None], datetime] = {}
            for group in tx.recipients.groups(workspace_id, campaign_of(tx, workspace_id, campaign_id).id):
                if group.status is RecipientStatus.WAITING and group.reason is not None:
                    rows = tx.recipients.postponed(workspace_id, campaign_id, group.reason, now, limit=1)
                    if rows and rows[0].due_at is not None:
                        first[group.status, group.reason] = rows[0].due_at
                elif group.status is RecipientStatus.UNKNOWN:
                    oldest = _oldest_unknown(tx, workspace_id, campaign_id, group.reason)
                    if oldest is not None:
                        first[group.status, group.reason] = oldest + given_up
            return first

        return await self._context.storage.read(operation)

    def _of_workspace(self, tx: Transaction, campaign: Campaign) -> CampaignBlocker | None:
        status = workspace_of(tx, campaign.workspace_id).status
        if status is WorkspaceStatus.ACTIVE:
            return None
        why = f"The workspace is {status}: sending is stopped until it is active again."
        return CampaignBlocker(by=f"workspace_{status}", until=None, why=why)

    def _of_dispatching(self, tx: Transaction, now: datetime) -> CampaignBlocker | None:
        overview = dispatch_overview(self._context, tx, now)
        if overview.problem is None:
            return None
        by = NO_DISPATCHER if overview.copied_to is None else "database_copied"
        return CampaignBlocker(by=by, until=None, why=overview.problem)


def _oldest_unknown(tx: Transaction, workspace_id: str, campaign_id: str, reason: str | None) -> datetime | None:
    for dispatch in tx.dispatches.unknown(workspace_id, limit=_MAX_UNKNOWN):
        if (dispatch.campaign_id, dispatch.reason) == (campaign_id, reason):
            return dispatch.created_at
    return None


def _of_provider(tx: Transaction, campaign: Campaign, now: datetime) -> CampaignBlocker | None:
    throttle = throttle_of_campaign(tx, campaign, now)
    if throttle is None:
        return None
    why = f"{throttle.provider} throttles the account (429 or Retry-After): sending paused."
    return CampaignBlocker(by=THROTTLED, until=throttle.until, why=why)


def _of_hours(campaign: Campaign, now: datetime) -> CampaignBlocker | None:
    hours = opening_state(campaign, now)
    if hours.open or hours.rule is None:
        return None
    return CampaignBlocker(by=str(hours.rule), until=hours.reopens_at, why=_CLOSED[hours.rule])
