"""When a new campaign sends: start, end, hours, pace and number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import time
from typing import Any, Final

import attrs
from starlette.responses import Response

from outreach import BusinessHours, Campaign, CampaignUpdate, InvalidRequest
from outreach.errors import Conflict
from outreach.models import DAYS, CallerIdAllocation, TimeWindow
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.moments import NO_ZONE, is_zone_known, moment_in, typed
from outreach_server.console.pages.new.holidays import holidays_of, read_holidays
from outreach_server.console.pages.new.reach import reach_of
from outreach_server.console.pages.new.steps import Choice, go_to, key_of, of_draft, problems_of, stale_of, steps_of

_MOST_NUMBERS: Final = 200
_CALLER: Final = "caller_"
_OPENS, _CLOSES = time(9), time(17)
_NO_RATE: Final = "The rate must be a whole number."


@attrs.frozen(kw_only=True)
class DayView:
    """A day of the week on which it may send."""

    name: str
    word: str
    open: bool


@of_draft
async def show(visit: Visit, campaign: Campaign) -> Response:
    """Show the form."""
    return await _page(visit, campaign)


@of_draft
async def act(visit: Visit, campaign: Campaign) -> Response:
    """Save it, and go on to the check."""
    key_of(visit)
    if stale := stale_of(visit, campaign):
        return await _page(visit, campaign, status=409, problems={"": stale})
    problems: dict[str, str] = {}
    changes = _changes(visit.form, campaign, problems, visit.now.year)
    if campaign.channel == "call":
        changes["cli_group"] = await _caller_ids(visit, campaign)
    if not problems:
        try:
            change = CampaignUpdate(**changes)
            await visit.engine.campaigns.update(
                visit.place.id, campaign.id, change, revision=campaign.revision, actor=visit.actor
            )
        except InvalidRequest as error:
            problems = problems_of(error)
        except Conflict as error:
            campaign = await visit.engine.campaigns.get(visit.place.id, campaign.id)
            return await _page(visit, campaign, status=409, problems={"": error.message})
    if problems:
        return await _page(visit, campaign, status=422, problems=problems)
    return go_to(visit, "when" if visit.form.get("action") == "save" else "check", campaign)


def _changes(form: Mapping[str, str], campaign: Campaign, problems: dict[str, str], this_year: int) -> dict[str, Any]:
    """Return what a form changes; what is wrong with it is added to `problems`."""
    zone = form.get("zone", "").strip() or "UTC"
    if not is_zone_known(zone):
        problems["zone"] = NO_ZONE
        return {}
    changes: dict[str, Any] = {"scheduled_start_at": None, "scheduled_expires_at": None}
    if form.get("start") == "at":
        changes["scheduled_start_at"] = moment_in(form, "start_at", zone, problems)
    if form.get("expires_at", "").strip():
        changes["scheduled_expires_at"] = moment_in(form, "expires_at", zone, problems)
    rate = form.get("rate", "").strip()
    if not (rate.isascii() and rate.isdecimal() and len(rate) < 6):
        problems["rate"] = _NO_RATE
        return {}
    calls = campaign.channel == "call"
    changes["batch_concurrency" if calls else "rate_per_minute"] = int(rate)
    changes["stay_open"] = bool(form.get("stay_open"))
    if holidays_of({}, campaign, this_year).plain:
        changes["holidays"] = read_holidays(form, this_year, problems)
    if _has_plain_hours(campaign):
        changes["business_hours"] = _hours(form, zone, int(rate) if calls else None, problems)
    if not calls:
        phone, _, carrier = form.get("number", "").partition(" ")
        changes["carrier"] = carrier or None
        if not campaign.from_numbers or phone != campaign.from_number:
            changes["from_number"] = phone or None
    return changes


def _hours(
    form: Mapping[str, str], zone: str, concurrency: int | None, problems: dict[str, str]
) -> BusinessHours | None:
    days = [day for day in DAYS if form.get(f"day_{day}")]
    if not days:
        return None
    try:
        window = TimeWindow.between(
            time.fromisoformat(form.get("opens", "")), time.fromisoformat(form.get("closes", ""))
        )
    except ValueError:
        problems["opens"] = "Give a time at which it opens, and a later one at which it closes."
        return None
    hours = BusinessHours(timezone=zone, schedule=dict.fromkeys(days, (window,)))
    return hours if concurrency is None else attrs.evolve(hours, batch_concurrency=concurrency)


def _has_plain_hours(campaign: Campaign) -> bool:
    """Return whether the form can show the hours of a campaign: the same window on each open day."""
    hours = campaign.business_hours
    return hours is None or (hours.enabled and len(set(_windows(hours))) == 1 and len(_windows(hours)[0]) == 1)


def _windows(hours: BusinessHours) -> Sequence[tuple[TimeWindow, ...]]:
    return [tuple(windows) for windows in hours.schedule.values() if windows]


async def _page(
    visit: Visit, campaign: Campaign, *, status: int = 200, problems: Mapping[str, str] | None = None
) -> Response:
    form = visit.form
    calls = campaign.channel == "call"
    numbers = [] if calls else await _numbers(visit, campaign)
    zone = form.get("zone", campaign.business_hours.timezone if campaign.business_hours else visit.zone())
    return visit.page(
        "new/when",
        title="Time of a new campaign",
        current="campaigns",
        status=status,
        steps=steps_of(visit, "when", campaign),
        problems=problems or {},
        campaign=campaign,
        calls=calls,
        scheduled=form.get("start", "at" if campaign.scheduled_start_at else "now") == "at",
        start_at=form.get("start_at", typed(campaign.scheduled_start_at, zone)),
        expires_at=form.get("expires_at", typed(campaign.scheduled_expires_at, zone)),
        zone=zone,
        days=_days(form, campaign),
        opens=form.get("opens", _window(campaign, opens=True)),
        closes=form.get("closes", _window(campaign, opens=False)),
        plain_hours=_has_plain_hours(campaign),
        holidays=holidays_of(form, campaign, visit.now.year),
        stay_open=bool(form.get("stay_open")) if form else campaign.stay_open,
        reach=await reach_of(visit, campaign),
        rate=form.get("rate", str(campaign.batch_concurrency if calls else campaign.rate_per_minute or 60)),
        numbers=numbers,
        sends=bool(campaign.from_number) or len(numbers) > 1,
        numbers_url=visit.url("numbers") if visit.may(Right.SET_UP) and visit.has("numbers") else "",
        callers=await _callers(visit, campaign) if calls else [],
        key=visit.new_key(),
    )


def _days(form: Mapping[str, str], campaign: Campaign) -> Sequence[DayView]:
    schedule = campaign.business_hours.schedule if campaign.business_hours is not None else {}
    return [
        DayView(name=day, word=day.capitalize(), open=bool(form.get(f"day_{day}") if form else schedule.get(day)))
        for day in DAYS
    ]


def _window(campaign: Campaign, *, opens: bool) -> str:
    hours = campaign.business_hours
    if hours is None or not _has_plain_hours(campaign):
        return f"{_OPENS if opens else _CLOSES:%H:%M}"
    window = _windows(hours)[0][0]
    hour, minute = divmod(window.start_minute if opens else window.end_minute, 60)
    return f"{hour % 24:02}:{minute:02}"


async def _callers(visit: Visit, campaign: Campaign) -> Sequence[Choice]:
    """Return the numbers that a calling campaign can call from in turn."""
    found = (await visit.engine.numbers.list(visit.place.id, limit=_MOST_NUMBERS)).items
    own = {one.number_id for one in campaign.cli_group or ()}
    form = visit.form
    return [
        Choice(
            value=one.id,
            word=one.phone,
            chosen=bool(form.get(f"{_CALLER}{one.id}")) if form else one.id in own,
        )
        for one in found
    ]


async def _caller_ids(visit: Visit, campaign: Campaign) -> Sequence[CallerIdAllocation] | None:
    """Return the numbers that were chosen, with the turns that they have; None for the usual one."""
    turns = {one.number_id: one.count for one in campaign.cli_group or ()}
    chosen = [
        CallerIdAllocation(number_id=one.value, phone=one.word, count=turns.get(one.value, 1))
        for one in await _callers(visit, campaign)
        if one.chosen
    ]
    return chosen or None


async def _numbers(visit: Visit, campaign: Campaign) -> Sequence[Choice]:
    """Return the numbers of the workspace that can send, and that of the campaign."""
    found = (await visit.engine.numbers.list(visit.place.id, limit=_MOST_NUMBERS)).items
    own = visit.form.get("number", f"{campaign.from_number or ''} {campaign.carrier or ''}".strip())
    known = {f"{one.phone} {one.carrier}": f"{one.phone} ({one.carrier})" for one in found if one.carrier is not None}
    if own not in known:
        known = {own: own or "none yet", **known}
    return [Choice(value=value, word=word, chosen=value == own) for value, word in known.items()]
