"""Changing a campaign that has not ended: what has not been sent goes out as it is then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from outreach import Campaign, CampaignStatus, CampaignUpdate, Conflict, InvalidRequest
from outreach.server_support import limits_starts
from outreach_server.console import words
from outreach_server.console.context import Visit
from outreach_server.console.pages.moments import NO_ZONE, is_zone_known, moment_in, typed
from outreach_server.console.pages.new.steps import key_of, problems_of, stale_of

_NOT_UNDER_WAY: Final = frozenset({CampaignStatus.DRAFT, CampaignStatus.READY})
_NO_RATE: Final = "The rate must be a whole number."


async def show(visit: Visit) -> Response:
    """Show the form; a campaign that has ended has none."""
    campaign = visit.subject
    return visit.go("campaign", campaign=campaign.id) if campaign.is_terminal else await _page(visit, campaign)


async def act(visit: Visit) -> Response:
    """Save what was changed."""
    campaign = visit.subject
    name = visit.chosen("edit")
    key_of(visit)
    if stale := stale_of(visit, campaign):
        return await _page(visit, campaign, status=409, problems={"": stale})
    problems: dict[str, str] = {}
    changes = _changes(visit.form, campaign, _zone(visit, campaign), problems)
    if not problems and changes:
        try:
            await visit.engine.campaigns.update(
                visit.place.id,
                campaign.id,
                CampaignUpdate(**changes),
                revision=campaign.revision,
                actor=visit.actor,
            )
        except InvalidRequest as error:
            problems = problems_of(error)
        except Conflict as error:
            changed = await visit.engine.campaigns.get(visit.place.id, campaign.id)
            return await _page(visit, changed, status=409, problems={"": error.message})
    if problems:
        return await _page(visit, campaign, status=422, problems=problems)
    return visit.go("campaign", said=name, campaign=campaign.id)


def _zone(visit: Visit, campaign: Campaign) -> str:
    return visit.form.get("zone", "").strip() or visit.zone(campaign.timezone)


def _changes(form: Mapping[str, str], campaign: Campaign, zone: str, problems: dict[str, str]) -> Mapping[str, Any]:
    """Return the fields that differ from the campaign's; what is wrong with the form is added to `problems`."""
    if not is_zone_known(zone):
        problems["zone"] = NO_ZONE
        return {}
    wanted: dict[str, Any] = {
        "name": form.get("name", "").strip(),
        "description": form.get("description", "").strip() or None,
    }
    if _has_text(campaign):
        # Browsers send a line break as two characters, which would count in each message.
        wanted["body"] = form.get("body", "").replace("\r\n", "\n")
    rate = form.get("rate", "").strip()
    if rate.isascii() and rate.isdecimal() and len(rate) < 6:
        wanted["batch_concurrency" if campaign.channel == "call" else "rate_per_minute"] = int(rate)
    else:
        problems["rate"] = _NO_RATE
    if campaign.started_at is None:
        wanted["scheduled_start_at"] = _moment(form, campaign.scheduled_start_at, "start_at", zone, problems)
    wanted["scheduled_expires_at"] = _moment(form, campaign.scheduled_expires_at, "expires_at", zone, problems)
    return {name: value for name, value in wanted.items() if value != getattr(campaign, name)}


def _moment(form: Mapping[str, str], before: Any, name: str, zone: str, problems: dict[str, str]) -> Any:
    """Return the moment of a field: the campaign's own, with its seconds, where the field says the same."""
    text = form.get(name, "").strip()
    if not text:
        return None
    return before if text == typed(before, zone) else moment_in(form, name, zone, problems)


def _has_text(campaign: Campaign) -> bool:
    return campaign.channel == "sms" and campaign.message_source == "custom"


async def _page(
    visit: Visit, campaign: Campaign, *, status: int = 200, problems: Mapping[str, str] | None = None
) -> Response:
    form, zone = visit.form, _zone(visit, campaign)
    calls = campaign.channel == "call"
    return visit.page(
        "edit",
        title=f"Edit · {words.visible(campaign.name)}",
        current="campaigns",
        status=status,
        problems=problems or {},
        campaign=campaign,
        has_text=_has_text(campaign),
        calls=calls,
        started=campaign.started_at is not None,
        text_stays=campaign.status not in _NOT_UNDER_WAY and limits_starts(visit.place),
        name=form.get("name", campaign.name),
        description=form.get("description", campaign.description or ""),
        body=form.get("body", campaign.body or ""),
        rate=form.get("rate", str((campaign.batch_concurrency if calls else campaign.rate_per_minute) or "")),
        start_at=form.get("start_at", typed(campaign.scheduled_start_at, zone)),
        expires_at=form.get("expires_at", typed(campaign.scheduled_expires_at, zone)),
        zone=zone,
        key=visit.new_key(),
    )
