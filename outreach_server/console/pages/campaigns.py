"""The campaigns of a workspace, with filters that stand in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach import CampaignStatus
from outreach.models import Channel
from outreach_server.console import words
from outreach_server.console.access import Right
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


async def show(visit: Visit) -> Response:
    """Show a page of the list."""
    asked = visit.request.query_params
    status, channel, text = asked.get("status", ""), asked.get("channel", ""), asked.get("q", "").strip()
    archived = asked.get("archived", "")
    if status not in {*words.STATES, ""} or channel not in {*words.CHANNELS, ""}:
        raise HTTPException(404)
    page = await visit.engine.campaigns.list(
        visit.place.id,
        status=CampaignStatus(status) if status else None,
        channel=cast(Channel, channel) if channel else None,
        search=text or None,
        archived=archived == "yes",
        after=asked.get("after") or None,
        limit=PAGE_SIZE,
    )
    kept = {"status": status, "channel": channel, "q": text, "archived": archived}
    total = page.total or 0
    return visit.page(
        "campaigns",
        title="Campaigns",
        current="campaigns",
        campaigns=[
            ListedCampaign(
                row=row_of(visit, one),
                buttons=[button for button in buttons_of(visit, one, page="campaigns") if not button.typed][:1],
            )
            for one in page.items
        ],
        total="10,000+" if total > _MOST_COUNTED else words.number(total),
        text=text,
        may_draft=visit.may(Right.DRAFT),
        archived=archived == "yes",
        filtered=any(kept.values()),
        statuses=_choices({name: word for name, (word, _, _) in words.STATES.items()}, status),
        channels=_choices(words.CHANNELS, channel),
        first_url=visit.url("campaigns", kept) if asked.get("after") else "",
        next_url=visit.url("campaigns", {**kept, "after": page.next}) if page.next else "",
    )


async def act(visit: Visit) -> Response:
    """Do what a row's button says."""
    action = await do_action(visit, visit.form.get("campaign", ""))
    return visit.go("campaigns", said=action.name)


def _choices(named: Mapping[str, str], chosen: str) -> Sequence[Choice]:
    return [Choice(value=value, word=word, chosen=value == chosen) for value, word in named.items()]
