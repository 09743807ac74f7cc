"""Reports of campaigns."""

from __future__ import annotations

from outreach.models.campaign_report import CampaignReport
from outreach.operations.campaigns.reporting import report_of
from outreach.operations.common import campaign_of
from outreach.services.context import ServiceContext


class CampaignReports:
    """What became of campaigns."""

    _context: ServiceContext

    async def report(self, workspace_id: str, campaign_id: str) -> CampaignReport:
        """Return what became of a campaign's contacts, and what was sent for it, from one snapshot of the ledger.

        It reads every request of the campaign once: a million take half a second of computing, and with prices by
        country a second. An erased or archived campaign has the report of
        the moment before.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        now = self._context.now()
        return await self._context.storage.read(
            lambda tx: report_of(tx, campaign_of(tx, workspace_id, campaign_id), now)
        )
