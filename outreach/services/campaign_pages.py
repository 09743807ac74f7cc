"""Pages of campaigns as JSON, made once and kept while they are true.

A page is kept with the number of the workspace's list at which it was read. Before it is given again that number is
looked at (`Storage.campaign_list_revision`): while it is the same, nothing that a list of this workspace shows has
changed, whoever writes. Where it is another one, the page is read, and only those campaigns are made anew that differ
from what they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import attrs
import orjson

from outreach.convert.json_responses import write_campaign
from outreach.errors import NotFound
from outreach.models.base import Channel, JsonPage
from outreach.models.states import CampaignStatus
from outreach.services.context import ServiceContext
from outreach.services.kept import SizeBoundedCache
from outreach.working_set import Transaction
from outreach.working_set.tables.campaign_lists import StoredCampaign

_MAX_PAGE_BYTES: Final = 16 * 2**20
_MAX_CAMPAIGN_BYTES: Final = 8 * 2**20
_EACH_BYTES: Final = 500
"""What keeping something takes beside its text."""

_ALWAYS: Final = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


class CampaignQuery(NamedTuple):
    """What is asked for; the workspace is part of it."""

    workspace_id: str
    channel: Channel | None
    status: CampaignStatus | None
    search: str | None
    page: int
    page_size: int


class _Found(NamedTuple):
    """What was read for a page: at which change of the list, the campaigns, and how many match in all."""

    change: int
    campaigns: Sequence[StoredCampaign]
    total: int


@attrs.frozen(kw_only=True)
class _RenderedCampaign:
    """The JSON of a campaign.

    Attributes:
        stored: What it was made of.
        expires: When its effective status becomes another one by itself; None for never.
        expired: Whether it had when this was made.
    """

    stored: StoredCampaign
    expires: datetime | None
    expired: bool
    text: bytes

    def is_of(self, stored: StoredCampaign, now: datetime) -> bool:
        """Return whether it would be the same if it were made now."""
        return self.stored == stored and self.expired == (self.expires is not None and now >= self.expires)


@attrs.frozen(kw_only=True)
class _CachedPage:
    """A page.

    Attributes:
        change: The number of the workspace's list at which it was read.
        since: It is true from then on, because no campaign of it has expired later.
        until: It is true until then, because none of it expires earlier.
    """

    change: int
    since: datetime
    until: datetime
    page: JsonPage


class CampaignPageCache:
    """Makes pages and keeps them."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._pages: SizeBoundedCache[CampaignQuery, _CachedPage] = SizeBoundedCache(_MAX_PAGE_BYTES)
        self._campaigns: SizeBoundedCache[str, _RenderedCampaign] = SizeBoundedCache(_MAX_CAMPAIGN_BYTES)

    async def get(self, asked: CampaignQuery) -> JsonPage:
        """Return a page as it is now.

        Raises:
            NotFound: There is no such workspace.
        """
        storage, now = self._context.storage, self._context.now()
        known = self._pages.get(asked)
        if known is not None and not known.since <= now < known.until:
            known = None
        if known is not None and known.change == storage.campaign_list_revision(asked.workspace_id):
            return known.page
        found = await storage.read(lambda tx: _read(tx, asked, None if known is None else known.change))
        if known is not None and found is None:
            return known.page
        assert found is not None  # noqa: S101 - nothing is left out that is not known
        made = self._make(asked, found, now)
        self._pages.put(asked, made, len(made.page.items) + len(asked.search or "") * 4 + _EACH_BYTES)
        return made.page

    def _make(self, asked: CampaignQuery, found: _Found, now: datetime) -> _CachedPage:
        campaigns = [self._campaign(stored, now) for stored in found.campaigns]
        moments = (*_ALWAYS, *(made.expires for made in campaigns if made.expires is not None))
        items = b"[" + b",".join(made.text for made in campaigns) + b"]"
        return _CachedPage(
            change=found.change,
            since=max(moment for moment in moments if moment <= now),
            until=min(moment for moment in moments if moment > now),
            page=JsonPage(items=items, page=asked.page, page_size=asked.page_size, total=found.total),
        )

    def _campaign(self, stored: StoredCampaign, now: datetime) -> _RenderedCampaign:
        known = self._campaigns.get(stored.id)
        if known is not None and known.is_of(stored, now):
            return known
        campaign = stored.campaign()
        expires = None if campaign.is_terminal else campaign.scheduled_expires_at
        made = _RenderedCampaign(
            stored=stored,
            expires=expires,
            expired=expires is not None and now >= expires,
            text=orjson.dumps(write_campaign(campaign, now=now)),
        )
        # The row that it was made of is about as large as what was made of it.
        self._campaigns.put(stored.id, made, 2 * len(made.text) + _EACH_BYTES)
        return made


def page_of(tx: Transaction, asked: CampaignQuery) -> tuple[Sequence[StoredCampaign], int]:
    """Return the campaigns of a page, and how many match in all."""
    return tx.campaign_lists.page(
        asked.workspace_id,
        channel=asked.channel,
        status=asked.status,
        search=asked.search,
        offset=(asked.page - 1) * asked.page_size,
        limit=asked.page_size,
    )


def _read(tx: Transaction, asked: CampaignQuery, known_change: int | None) -> _Found | None:
    """Return what is on a page; None where the list is what it was at a change."""
    change = tx.campaign_lists.revision(asked.workspace_id)
    if change is None:
        raise NotFound("workspace", asked.workspace_id)
    if change == known_change:
        return None
    campaigns, total = page_of(tx, asked)
    return _Found(change, campaigns, total)
