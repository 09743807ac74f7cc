"""The page of one campaign: what it does now and why, its figures, and what can be done to it."""

from __future__ import annotations

from datetime import datetime

import attrs
from starlette.responses import Response

from outreach import Campaign, CampaignStatus
from outreach.errors import Conflict
from outreach.reasons import SAFE_RESUME_OPTIONS
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit, not_found
from outreach_server.console.live.stream import LiveResponse
from outreach_server.console.live.views import (
    CAMPAIGN_REGIONS,
    campaign_renderer,
    campaign_view,
    overview_renderer,
    webhook_renderer,
)
from outreach_server.console.pages.campaign_actions import WrongName, buttons_of, do_action
from outreach_server.console.pages.follow_up import clone
from outreach_server.console.pages.set_up.schedule_forms import LIKE
from outreach_server.console.security.forms import ACTION_FIELD
from outreach_server.words import CONTACTED_TWICE


@attrs.frozen(kw_only=True)
class Fact:
    """A part of the set-up."""

    name: str
    value: str


@attrs.frozen(kw_only=True)
class CancelView:
    """The form that cancels a campaign.

    Attributes:
        name: The name to type.
        typed: What was typed; empty at first.
        wrong: Whether it was another name.
        effect: What cancelling does, with its figure.
    """

    name: str
    typed: str
    wrong: bool
    effect: str


async def show(visit: Visit) -> Response:
    """Show the campaign."""
    return await _page(visit, visit.request.path_params["campaign"])


async def act(visit: Visit) -> Response:
    """Do what a button says."""
    campaign_id = visit.request.path_params["campaign"]
    try:
        if visit.form.get(ACTION_FIELD) == "clone":
            return await clone(visit, campaign_id)
        action = await do_action(visit, campaign_id)
    except WrongName as wrong:
        return await _page(visit, campaign_id, status=422, typed=wrong.typed, wrong=True)
    except Conflict as error:
        return await _page(visit, campaign_id, status=409, problem=error.message)
    return visit.go("campaign", said=action.name, campaign=campaign_id)


async def _page(
    visit: Visit, campaign_id: str, *, status: int = 200, problem: str = "", typed: str = "", wrong: bool = False
) -> Response:
    campaign = visit.subject
    if visit.request.method == "POST":
        # Somebody else may have changed it just before.
        campaign = await visit.engine.campaigns.get(visit.place.id, campaign_id)
    view = await campaign_view(visit, campaign, is_first=True)
    buttons = buttons_of(visit, campaign)
    erased = campaign.erased_at is not None
    return visit.page(
        "campaign",
        title=words.visible(campaign.name),
        current="campaigns",
        status=status,
        live=not view.ended,
        view=view,
        regions=CAMPAIGN_REGIONS,
        campaign_id=campaign_id,
        fits=campaign.status,
        name=campaign.name,
        description=campaign.description or "",
        archived=campaign.archived_at is not None,
        buttons=[one for one in buttons if one.name != "start" or not view.awaits_approval],
        stays_open=any(one.name == "close" for one in buttons),
        cancel=CancelView(
            name=campaign.name,
            typed=typed,
            wrong=wrong,
            effect=f"{words.plural(campaign.counters.open, 'contact')} will not be contacted any more.",
        ),
        contacted_twice=CONTACTED_TWICE,
        safe_option=SAFE_RESUME_OPTIONS.get(campaign.pause_reason or ""),
        problem=problem,
        set_up_url=visit.url("new-text", {"campaign": campaign_id})
        if visit.may(Right.DRAFT) and campaign.status in {CampaignStatus.DRAFT, CampaignStatus.READY}
        else "",
        check_url=visit.url("new-check", {"campaign": campaign_id})
        if visit.may(Right.DRAFT) and campaign.status is CampaignStatus.READY
        else "",
        report_url=visit.url("report", campaign=campaign_id),
        edit_url=visit.url("edit", campaign=campaign_id) if visit.may(Right.DRAFT) and not campaign.is_terminal else "",
        follow_up_url=visit.url("follow-up", campaign=campaign_id)
        if visit.may(Right.DRAFT) and campaign.started_at is not None and not erased
        else "",
        clone_key=visit.new_key() if visit.may(Right.DRAFT) and not erased else "",
        recur_url=visit.url("schedules", {LIKE: campaign_id})
        if visit.may(Right.START) and visit.has("schedules") and not erased
        else "",
        text=campaign.body or "",
        facts=_facts(visit, campaign),
        stream_url=visit.url("live", {"of": f"campaign:{campaign_id}"}),
    )


async def stream(visit: Visit) -> Response:
    """Send what changes on a live page.

    Raises:
        HTTPException: There is no such live page.
    """
    of = visit.request.query_params.get("of", "")
    kind, _, identifier = of.partition(":")
    if of == "overview":
        render = overview_renderer(visit)
    elif kind == "campaign" and identifier:
        # What is not there is answered before the stream begins.
        await visit.engine.campaigns.get(visit.place.id, identifier)
        render = campaign_renderer(visit, identifier)
    elif kind == "webhook" and identifier:
        visit.require(Right.OWN)
        await visit.engine.webhooks.get(visit.place.id, identifier)
        render = webhook_renderer(visit, identifier)
    else:
        raise not_found()
    workspace, role, root = visit.place.id, visit.role, visit.request.scope.get("root_path", "")

    async def may_go_on() -> bool:
        user = await visit.console.identify(visit.request)
        return user is not None and user.subject == visit.user.subject and user.role_in(workspace) == role

    return LiveResponse(
        streams=visit.console.streams,
        fan_out=visit.console.fan_out,
        subject=visit.user.subject,
        # Roles differ in where the overview leads them.
        key=(of, workspace, str(role) if of == "overview" else "", visit.user.time_zone, visit.look.dates, root),
        render=render,
        may_go_on=may_go_on,
    )


def _facts(visit: Visit, campaign: Campaign) -> list[Fact]:
    """Return the set-up of a campaign in words."""
    hours = campaign.business_hours
    found = {
        "Channel": words.CHANNELS[campaign.channel],
        "From": ", ".join(campaign.senders),
        "Carrier": campaign.carrier or "",
        "Agent": campaign.agent.name if campaign.agent is not None else "",
        "Rate": f"{campaign.rate_per_minute:,} a minute" if campaign.rate_per_minute else "",
        "Calls at a time": f"{campaign.batch_concurrency}" if campaign.channel == "call" else "",
        "Hours": f"by the clocks of {hours.timezone or 'UTC'}" if hours is not None and hours.enabled else "",
        "Planned start": _moment(visit, campaign, campaign.scheduled_start_at),
        "Expires": _moment(visit, campaign, campaign.scheduled_expires_at),
        "Created": _moment(visit, campaign, campaign.created_at),
    }
    return [Fact(name=name, value=words.visible(value)) for name, value in found.items() if value]


def _moment(visit: Visit, campaign: Campaign, at: datetime | None) -> str:
    if at is None:
        return ""
    clocks = visit.clocks(campaign.timezone)
    return f"{clocks.moment(at, visit.now)} ({clocks.name})"
