"""What blocks a campaign, and the times that its recipients wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.errors import Problem
from outreach.insight.status import dispatch_overview
from outreach.ledger.campaigns.results import results_of
from outreach.ledger.common import campaign_of, workspace_of
from outreach.ledger.provider_throttles import THROTTLED, throttle_of_campaign
from outreach.models.campaign import Campaign
from outreach.models.states import CampaignStatus, RecipientStatus, TrailRule, WorkspaceStatus
from outreach.rules.opening import opening_state
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

_MAX_UNKNOWN: Final = 1000

_CLOSED: Final = {
    TrailRule.HOLIDAYS: "Today is a holiday of the campaign.",
    TrailRule.BUSINESS_HOURS: "The campaign is outside of its business hours.",
}


class CampaignBlockers:
    """The blockers of campaigns, and the times that their recipients wait for."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def blockers(self, workspace_id: str, campaign_id: str) -> Sequence[Problem]:
        """Return everything that blocks an active or scheduled campaign, most urgent first.

        The codes: `workspace_suspended` (or another status of the workspace), `no_dispatcher`, `database_copied`,
        `provider_throttle`, `business_hours`, `holidays`.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read(
            lambda tx: blockers_of(self._context, tx, campaign_of(tx, workspace_id, campaign_id), self._context.now())
        )

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
            for group in results_of(tx, campaign_of(tx, workspace_id, campaign_id)):
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


def blockers_of(context: ServiceContext, tx: Transaction, campaign: Campaign, now: datetime) -> Sequence[Problem]:
    """Return everything that blocks an active or scheduled campaign, most urgent first; see `blockers`."""
    if campaign.status not in {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}:
        return ()
    found = [_of_workspace(tx, campaign), dispatch_overview(context, tx, now).problem]
    if campaign.status is CampaignStatus.ACTIVE:
        found += [_of_provider(tx, campaign, now), _of_hours(campaign, now)]
    return tuple(one for one in found if one is not None)


def _oldest_unknown(tx: Transaction, workspace_id: str, campaign_id: str, reason: str | None) -> datetime | None:
    for dispatch in tx.dispatches.unknown(workspace_id, limit=_MAX_UNKNOWN):
        if (dispatch.campaign_id, dispatch.reason) == (campaign_id, reason):
            return dispatch.created_at
    return None


def _of_workspace(tx: Transaction, campaign: Campaign) -> Problem | None:
    status = workspace_of(tx, campaign.workspace_id).status
    if status is WorkspaceStatus.ACTIVE:
        return None
    message = f"The workspace is {status}: sending is stopped until it is active again."
    return Problem(code=f"workspace_{status}", message=message)


def _of_provider(tx: Transaction, campaign: Campaign, now: datetime) -> Problem | None:
    throttle = throttle_of_campaign(tx, campaign, now)
    if throttle is None:
        return None
    message = f"{throttle.provider} throttles the account (429 or Retry-After): sending paused."
    return Problem(code=THROTTLED, until=throttle.until, message=message)


def _of_hours(campaign: Campaign, now: datetime) -> Problem | None:
    hours = opening_state(campaign, now)
    if hours.open or hours.rule is None:
        return None
    return Problem(code=str(hours.rule), until=hours.reopens_at, message=_CLOSED[hours.rule])
