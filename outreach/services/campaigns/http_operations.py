"""What an application needs that serves the engine over HTTP itself: numbered pages as bytes, and the request limit."""

from __future__ import annotations

from typing import Unpack

from outreach.models.base import JsonPage
from outreach.models.campaign import CampaignFilters
from outreach.models.work import RateLimitState
from outreach.models.workspace import Workspace
from outreach.services.campaigns.pages import CampaignPageCache, numbered_page
from outreach.services.tenants.rate_limits import RateLimiter


class HttpOperations:
    """What only an HTTP interface needs: `Outreach.http`."""

    def __init__(self, *, pages: CampaignPageCache, rate_limits: RateLimiter) -> None:
        self._pages = pages
        self._rate_limits = rate_limits

    async def count_request(self, workspace: Workspace) -> RateLimitState | None:
        """Count a request against its workspace's limit; return what is left, None without a limit.

        Raises:
            RateLimited: The limit is reached.
            StorageBusy: The database takes no writes, and the allowance for that is used up.
        """
        return await self._rate_limits.acquire(workspace)

    async def list_campaigns(
        self,
        workspace_id: str,
        *,
        page: int = 1,
        page_size: int = 20,
        **filters: Unpack[CampaignFilters],
    ) -> JsonPage:
        """Return a page of campaigns as JSON with the interface's fields, newest first, archived ones among them.

        A rendered page is reused until any process changes what it shows.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: An argument is invalid.
        """
        query = numbered_page(workspace_id, filters, page, page_size)
        return await self._pages.get(query)
