"""The campaigns of a workspace, with filters that stand in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Self, cast

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach import Campaign, CampaignStatus, Page
from outreach.models import Channel
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.actions import ACTIONS, FOR_MANY
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_actions import ButtonView, buttons_of, do_action
from outreach_server.console.pages.campaign_views import CampaignRow, row_of
from outreach_server.console.pages.new.steps import Choice

PAGE_SIZE: Final = 50
_MOST_COUNTED: Final = 10_000


@attrs.frozen(kw_only=True)
class ListedCampaign:
    """A campaign with the buttons of its row."""

    row: CampaignRow
    buttons: Sequence[ButtonView]


@attrs.frozen(kw_only=True)
class CampaignFilter:
    """Which campaigns the address of a page is about.

    Attributes:
        status: Their status; empty for all.
        channel: Their channel; empty for both.
        text: What is in their names; empty for all.
        archived: Whether archived ones are meant instead of the others.
        after: The cursor of the page before; empty for the first page.
    """

    status: str
    channel: str
    text: str
    archived: bool
    after: str

    @classmethod
    def of(cls, visit: Visit) -> Self:
        """Return that of a request.

        Raises:
            HTTPException: There is no such status or channel.
        """
        query = visit.request.query_params
        status, channel = query.get("status", ""), query.get("channel", "")
        if status not in {*words.STATES, ""} or channel not in {*words.CHANNELS, ""}:
            raise HTTPException(404)
        return cls(
            status=status,
            channel=channel,
            text=query.get("q", "").strip(),
            archived=query.get("archived") == "yes",
            after=query.get("after", ""),
        )

    @property
    def kept(self) -> Mapping[str, str]:
        """The fields of the query, without the page."""
        archived = "yes" if self.archived else ""
        return {"status": self.status, "channel": self.channel, "q": self.text, "archived": archived}

    async def read(self, visit: Visit, *, limit: int) -> Page[Campaign]:
        """Return a page of the campaigns that match."""
        return await visit.engine.campaigns.list(
            visit.place.id,
            status=CampaignStatus(self.status) if self.status else None,
            channel=cast(Channel, self.channel) if self.channel else None,
            search=self.text or None,
            archived=self.archived,
            after=self.after or None,
            limit=limit,
        )


async def show(visit: Visit) -> Response:
    """Show a page of the list."""
    filters = CampaignFilter.of(visit)
    page = await filters.read(visit, limit=PAGE_SIZE)
    kept = filters.kept
    total = page.total or 0
    return visit.page(
        "campaigns",
        title="Campaigns",
        current="campaigns",
        campaigns=[
            ListedCampaign(
                row=row_of(visit, one),
                buttons=[
                    button for button in buttons_of(visit, one, page="campaigns") if not (button.typed or button.asks)
                ][:1],
            )
            for one in page.items
        ],
        total="10,000+" if total > _MOST_COUNTED else words.number(total),
        text=filters.text,
        may_draft=visit.may(Right.DRAFT),
        archived=filters.archived,
        filtered=any(kept.values()),
        statuses=_choices({name: word for name, (word, _, _) in words.STATES.items()}, filters.status),
        channels=_choices(words.CHANNELS, filters.channel),
        first_url=visit.url("campaigns", kept) if filters.after else "",
        next_url=visit.url("campaigns", {**kept, "after": page.next}) if page.next else "",
        many_url=visit.url("campaigns-many", kept),
        may_change=any(visit.may(ACTIONS[name].right) for name in FOR_MANY),
    )


async def act(visit: Visit) -> Response:
    """Do what a row's button says."""
    action = await do_action(visit, visit.form.get("campaign", ""))
    return visit.go("campaigns", said=action.name)


def _choices(named: Mapping[str, str], chosen: str) -> Sequence[Choice]:
    return [Choice(value=value, word=word, chosen=value == chosen) for value, word in named.items()]
