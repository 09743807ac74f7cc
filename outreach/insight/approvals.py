"""Approval of campaigns' starts by a second person, with the figures that the person has seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal

from outreach.ledger.campaigns import approvals
from outreach.ledger.common import campaign_of, workspace_of
from outreach.models.approval import Approval, PricedRevision, StartApproval, StartFigures
from outreach.models.campaign import Campaign
from outreach.models.forecast import Forecast
from outreach.models.preflight import Preflight
from outreach.models.states import UNSTARTED_STATUSES
from outreach.protocols.storage import Within
from outreach.rules.readiness import approval_reason
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction


class CampaignApprovals:
    """Says whether starts need approval, and approves them.

    Args:
        context: What services share.
        preflight: Returns what a campaign will do to its contacts, by workspace and campaign.
        forecast: Returns when it will be done.
    """

    def __init__(
        self,
        context: ServiceContext,
        *,
        preflight: Callable[[str, str], Awaitable[Preflight]],
        forecast: Callable[[str, str], Awaitable[Forecast]],
    ) -> None:
        self._context = context
        self._preflight = preflight
        self._forecast = forecast

    async def approval(self, workspace_id: str, campaign_id: str) -> StartApproval:
        """Return whether people need approval to start a campaign, and the approval that it has.

        Where the workspace has `approve_over_amount` and nothing else decides, it reads every contact, as `preflight`.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        priced = await self.price(workspace_id, campaign_id)
        return await self._context.storage.read(
            lambda tx: approvals.approval_of(tx, campaign_of(tx, workspace_id, campaign_id), priced)
        )

    async def approve(self, workspace_id: str, campaign_id: str, *, revision: int, actor: str = "library") -> Approval:
        """Approve the start of a campaign as it is now, and return the approval with its figures.

        A change of the campaign or of what it uses, or contacts that are added, take it away. The same approval again
        changes nothing.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign, which is ready.
            revision: The campaign's revision that the person has seen.
            actor: The person, as the audit trail names people: `user:ID`, or `host:ID` for ids of the application.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: The revision is not a number.
            Conflict: It is not ready, has changed since that revision, or this person has changed it last.
        """
        approvals.check_revision(revision)
        found = await self._preflight(workspace_id, campaign_id)
        course = await self._forecast(workspace_id, campaign_id)
        figures = StartFigures(
            contacts=found.contacts,
            contacted=found.contacted,
            messages=found.messages,
            segments=found.segments,
            amount=None if found.cost is None else found.cost.amount,
            currency=None if found.cost is None else found.cost.currency,
            ends_at=course.ends_at,
        )

        def operation(tx: Transaction) -> Approval:
            return approvals.approve(
                tx,
                workspace_id,
                campaign_id,
                revision=revision,
                figures=figures,
                now=self._context.now(),
                actor=actor,
            )

        return await self._context.storage.write(Within([workspace_id], operation))

    async def price(self, workspace_id: str, campaign_id: str) -> PricedRevision | None:
        """Return what a campaign costs; None where no decision depends on it.

        Raises:
            NotFound: The workspace has no such campaign.
        """

        def read(tx: Transaction) -> tuple[Campaign, bool]:
            campaign, workspace = campaign_of(tx, workspace_id, campaign_id), workspace_of(tx, workspace_id)
            unpriced = approval_reason(workspace, contacts=campaign.counters.total, amount=None)
            return campaign, unpriced == "amount_unknown"

        campaign, depends = await self._context.storage.read(read)
        if not depends or campaign.status not in UNSTARTED_STATUSES:
            return None
        cost = (await self._preflight(workspace_id, campaign_id)).cost
        amount: Decimal | None = None if cost is None or cost.unpriced else cost.amount
        return PricedRevision(revision=campaign.revision, contacts=campaign.counters.total, amount=amount)
