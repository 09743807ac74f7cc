"""The last step of a new campaign: its contacts, its cost, its end, and the button that sends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach import Campaign
from outreach.errors import Conflict, Problem
from outreach.models import Forecast, Preflight, StartApproval
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.actions import ACTIONS
from outreach_server.console.clocks import Clocks
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_actions import may_send
from outreach_server.console.pages.new.forecast_view import forecast_view
from outreach_server.console.pages.new.last_run import last_run_of
from outreach_server.console.pages.new.steps import (
    go_to,
    is_draft,
    key_of,
    of_draft,
    sentence_of,
    stale_of,
    step_url,
    steps_of,
)
from outreach_server.console.pages.new.text import cost_of
from outreach_server.console.people import names_of
from outreach_server.console.security.forms import ACTION_FIELD

_TEXT: Final = frozenset({"body", "flow_id", "agent_id", "agent", "message_body", "placeholders", "max_segments"})
_SET_UP: Final[Mapping[str, tuple[str, Right]]] = {
    "account": ("accounts", Right.OWN),
    "trunk_id": ("trunks", Right.SET_UP),
}
"""The fields that are corrected in the set-up: the page, and the right that it takes."""

_EXAMPLES: Final = 3
_APPROVE: Final = "approve"


@attrs.frozen(kw_only=True)
class ObstacleView:
    """A problem that prevents the start.

    Attributes:
        url: The page where it is corrected; empty without one.
    """

    text: str
    url: str


@attrs.frozen(kw_only=True)
class RuleView:
    """The contacts that a rule leaves out, or holds back."""

    why: str
    count: int
    examples: str


@of_draft
async def show(visit: Visit, campaign: Campaign) -> Response:
    """Show the check."""
    return await _page(visit, campaign)


@of_draft
async def act(visit: Visit, campaign: Campaign) -> Response:
    """Start or schedule it, or approve that, exactly as the page has shown it."""
    action, name = ACTIONS["start"], visit.form.get(ACTION_FIELD)
    if name not in {action.name, _APPROVE}:
        raise HTTPException(400, words.NO_SUCH_ACTION)
    visit.require(action.right)
    if stale := stale_of(visit, campaign):
        return await _page(visit, campaign, status=409, problem=stale)
    try:
        if name == _APPROVE:
            await visit.engine.campaigns.approve(
                visit.place.id, campaign.id, revision=campaign.revision, actor=visit.actor
            )
            return go_to(visit, "check", campaign)
        key = key_of(visit)
        started = await action.do(visit.engine, campaign, key=key, actor=visit.actor, revision=campaign.revision)
    except Conflict as error:
        campaign = await visit.engine.campaigns.get(visit.place.id, campaign.id)
        if not is_draft(campaign):
            # Somebody else was faster.
            return visit.go("campaign", campaign=campaign.id)
        return await _page(visit, campaign, status=409, problem=error.message)
    return visit.go("campaign", said="start" if started.started_at else "", campaign=campaign.id)


async def _page(visit: Visit, campaign: Campaign, *, status: int = 200, problem: str = "") -> Response:
    place = (visit.place.id, campaign.id)
    found = await visit.engine.campaigns.preflight(*place)
    forecast = await visit.engine.campaigns.forecast(*place)
    obstacles = _obstacles(visit, campaign, found)
    clocks = visit.clocks(campaign.timezone)
    approval = await visit.engine.campaigns.approval(*place)
    can_start = visit.may(Right.START) and may_send(visit, ACTIONS["start"]) and not obstacles and found.contacted > 0
    return visit.page(
        "new/check",
        title="Check of a new campaign",
        current="campaigns",
        status=status,
        steps=steps_of(visit, "check", campaign),
        problem=problem,
        campaign=campaign,
        obstacles=obstacles,
        warnings=[one.message for one in found.warnings],
        found=found,
        left_out=[
            RuleView(why=one.why, count=one.count, examples=", ".join(e.phone_number for e in one.examples[:_EXAMPLES]))
            for one in found.left_out
        ],
        held_back=[RuleView(why=one.why, count=one.count, examples="") for one in found.held_back],
        placeholders=[(one.name, one.count) for one in found.placeholder_problems],
        cost=cost_of(found),
        cost_note=found.cost_note,
        begins="" if forecast.starts_at is None else clocks.moment(forecast.starts_at, visit.now),
        ends=_end(visit, forecast, clocks),
        zone=clocks.name,
        label=_label(visit, campaign, found, forecast, clocks),
        forecast=forecast_view(visit, forecast, clocks, _forecast_says(visit, campaign, forecast, clocks)),
        last=await last_run_of(visit, campaign, found),
        may_send=can_start and not approval.is_missing,
        may_approve=can_start and approval.is_missing and approval.changed_by != visit.actor,
        waits="" if obstacles or not approval.is_missing else words.WAITS_FOR_APPROVAL,
        approved=await _approved(visit, approval, clocks),
        key=visit.new_key(),
    )


async def _approved(visit: Visit, approval: StartApproval, clocks: Clocks) -> str:
    """Return who has approved it, and when; empty if nobody has, or has to."""
    found = approval.approval
    if approval.reason is None or found is None:
        return ""
    names = await names_of(visit.engine, [found.approved_by])
    return f"Approved by {names[found.approved_by]}, {clocks.moment(found.approved_at, visit.now)} ({clocks.name})."


def _label(visit: Visit, campaign: Campaign, found: Preflight, forecast: Forecast, clocks: Clocks) -> str:
    """Return the words of the button: its effect, the cost, and the end."""
    ahead = campaign.scheduled_start_at is not None and campaign.scheduled_start_at > visit.now
    if campaign.channel == "call":
        what = f"{'Schedule calls to' if ahead else 'Call'} {words.plural(found.contacted, 'contact')}"
    else:
        what = f"{'Schedule' if ahead else 'Send'} {words.plural(found.messages, 'message')}"
    cost = cost_of(found)
    parts = [f"{what} for {cost}" if cost else what]
    if ahead and forecast.starts_at is not None:
        parts.append(f"from {clocks.moment(forecast.starts_at, visit.now)}")
    if forecast.ends_at is not None:
        parts.append(f"done {clocks.moment(forecast.ends_at, visit.now)}")
    return ", ".join(parts)


def _forecast_says(visit: Visit, campaign: Campaign, forecast: Forecast, clocks: Clocks) -> str:
    noun = "call" if campaign.channel == "call" else "message"
    begins = "" if forecast.starts_at is None else f" from {clocks.moment(forecast.starts_at, visit.now)}"
    ends = "" if forecast.ends_at is None else f" until {clocks.moment(forecast.ends_at, visit.now)}"
    return f"By the forecast {words.plural(forecast.requests, noun)}{begins}{ends} ({clocks.name})."


def _end(visit: Visit, forecast: Forecast, clocks: Clocks) -> str:
    if forecast.ends_at is None:
        return "not within 400 days" if forecast.contacts else ""
    expires = ", when it expires before it is done" if forecast.expires else ""
    return f"{clocks.moment(forecast.ends_at, visit.now)}{expires}"


def _obstacles(visit: Visit, campaign: Campaign, found: Preflight) -> Sequence[ObstacleView]:
    return [ObstacleView(text=sentence_of(one), url=_mending(visit, campaign, one)) for one in found.problems]


def _mending(visit: Visit, campaign: Campaign, one: Problem) -> str:
    path = one.path.partition(".")[0]
    if path in _TEXT:
        return step_url(visit, "text", campaign)
    if path in _SET_UP:
        page, right = _SET_UP[path]
        return visit.url(page) if visit.may(right) and visit.has(page) else ""
    return step_url(visit, "when", campaign) if path else ""
