"""Pages of campaigns as JSON, cached while they are current.

A page is cached with the revision of the workspace's list (`Storage.campaign_list_revision`). While the revision is
the same, no writer has changed anything on the page; otherwise it is read again, and only changed campaigns are
rendered again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import attrs
import orjson

from outreach.errors import InvalidRequest, NotFound
from outreach.models.base import JsonPage
from outreach.models.campaign import CampaignFilters, NewSmsCampaign
from outreach.models.fields import check_field, check_value, fields_of
from outreach.models.metadata import metadata_pair
from outreach.protocols.storage import OneQuery
from outreach.serialization.campaigns import write_campaign
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables.campaigns import StoredCampaign

MAX_PAGE_SIZE: Final = 100

_MAX_PAGE_BYTES: Final = 16 * 2**20
_MAX_CAMPAIGN_BYTES: Final = 8 * 2**20
_EACH_BYTES: Final = 500
"""Memory that a cached value takes beside its text."""

_ALWAYS: Final = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class CampaignQuery(NamedTuple):
    """A page request, with its workspace."""

    workspace_id: str
    filters: tuple[tuple[str, Any], ...]
    page: int
    page_size: int


class _Found(NamedTuple):
    """The campaigns of a page with the revision of the list and the number of matches."""

    change: int
    campaigns: Sequence[StoredCampaign]
    total: int


@attrs.frozen(kw_only=True)
class _RenderedCampaign:
    """The JSON of a campaign.

    Attributes:
        stored: The row that was rendered.
        expires: When its effective status changes by time alone; None for never.
        expired: Whether that had happened when this was rendered.
    """

    stored: StoredCampaign
    expires: datetime | None
    expired: bool
    text: bytes

    def is_of(self, stored: StoredCampaign, now: datetime) -> bool:
        """Return whether rendering now would give the same."""
        return self.stored == stored and self.expired == (self.expires is not None and now >= self.expires)


@attrs.frozen(kw_only=True)
class _CachedPage:
    """A page.

    Attributes:
        change: The revision of the workspace's list.
        since: Valid from then on, since the last expiry of one of its campaigns.
        until: Valid until then, the next expiry.
    """

    change: int
    since: datetime
    until: datetime
    page: JsonPage


class CampaignPageCache:
    """Renders and caches pages."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._pages: SizeBoundedCache[CampaignQuery, _CachedPage] = SizeBoundedCache(_MAX_PAGE_BYTES)
        self._campaigns: SizeBoundedCache[str, _RenderedCampaign] = SizeBoundedCache(_MAX_CAMPAIGN_BYTES)

    async def get(self, query: CampaignQuery) -> JsonPage:
        """Return a page in its current state.

        Raises:
            NotFound: The workspace does not exist.
        """
        storage, now = self._context.storage, self._context.now()
        known = self._pages.get(query)
        if known is not None and not known.since <= now < known.until:
            known = None
        if known is not None and known.change == await self._revision(query.workspace_id):
            return known.page
        found = await storage.read(lambda tx: _read_page(tx, query))
        made = self._make(query, found, now)
        self._pages.put(query, made, len(made.page.items) + len(str(query.filters)) * 4 + _EACH_BYTES)
        return made.page

    async def _revision(self, workspace_id: str) -> int | None:
        """Return the revision of a workspace's lists, by a query where the storage does not know it at once."""
        storage = self._context.storage
        revision = storage.campaign_list_revision(workspace_id)
        if revision is None:
            revision = await storage.read(OneQuery(lambda tx: tx.campaign_lists.revision(workspace_id)))
        return revision

    def _make(self, query: CampaignQuery, found: _Found, now: datetime) -> _CachedPage:
        campaigns = [self._campaign(stored, now) for stored in found.campaigns]
        moments = (*_ALWAYS, *(made.expires for made in campaigns if made.expires is not None))
        items = b"[" + b",".join(made.text for made in campaigns) + b"]"
        return _CachedPage(
            change=found.change,
            since=max(moment for moment in moments if moment <= now),
            until=min(moment for moment in moments if moment > now),
            page=JsonPage(items=items, page=query.page, page_size=query.page_size, total=found.total),
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
        # The row is about as large as its JSON.
        self._campaigns.put(stored.id, made, 2 * len(made.text) + _EACH_BYTES)
        return made


def _read_page(tx: Transaction, query: CampaignQuery) -> _Found:
    """Return a page's campaigns."""
    change = tx.campaign_lists.revision(query.workspace_id)
    if change is None:
        raise NotFound("workspace", query.workspace_id)
    campaigns, total = tx.campaign_lists.page(
        query.workspace_id,
        offset=(query.page - 1) * query.page_size,
        limit=query.page_size,
        **cast("CampaignFilters", dict(query.filters)),
    )
    return _Found(change, campaigns, total)


class SizeBoundedCache(Generic[K, V]):
    """Values by key, up to a number of bytes; the least recently used go first.

    Args:
        most_bytes: The limit for all values together, by the sizes given to `put`.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return a cached value, if any."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Cache a value, unless it is larger than an eighth of the limit."""
        self._drop(key)
        if size > self._most // 8:
            return
        self._values[key] = (value, size)
        self._bytes += size
        while self._bytes > self._most:
            self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        _, size = self._values.pop(key, (None, 0))
        self._bytes -= size


def numbered_page(workspace_id: str, filters: CampaignFilters, page: object, page_size: object) -> CampaignQuery:
    """Return what a page of the HTTP interface is asked for, or raise `InvalidRequest`."""
    wanted = check_filters(filters)
    if type(page) is not int or page < 1:
        raise InvalidRequest.at("page", "must be an integer of at least 1")
    if type(page_size) is not int or page_size < 1:
        raise InvalidRequest.at("page_size", "must be an integer of at least 1")
    size = min(page_size, MAX_PAGE_SIZE)
    return CampaignQuery(workspace_id, tuple(wanted.items()), page, size)


def check_filters(filters: CampaignFilters) -> CampaignFilters:
    """Return the filters that are given, the status as such though it may be given as text.

    Raises:
        InvalidRequest: A value is wrong; the details name its filter.
        TypeError: There is no such filter.
    """
    fields, given = fields_of(CampaignFilters), dict[str, Any]()
    for name, value in filters.items():
        if name not in fields:
            raise TypeError(f"There is no filter {name!r} of campaigns.")
        if value is not None:
            given[name] = check_value(name, value, fields[name].rule)
    if "external_id" in given:
        check_field(NewSmsCampaign, "external_id", given["external_id"])
    if "metadata" in given:
        check_value("metadata", given["metadata"], metadata_pair)
    if given.get("search") == "":
        del given["search"]
    return cast("CampaignFilters", given)
