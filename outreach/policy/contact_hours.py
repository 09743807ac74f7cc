"""When a person may be contacted: by the clocks of every place where the number may be (docs/rules.md#contact-hours).

The rule is that of 47 CFR 64.1200(c)(1): not before 8 in the morning and not after 9 in the evening, local time
at the called party's location. A number does not tell one location: all its time zones must be open.
"""

from __future__ import annotations

import functools
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import attrs

from outreach.models.campaign import Campaign
from outreach.models.hours import DAYS, BusinessHours, TimeWindow
from outreach.models.plans import Ending, Postponement, WavePlan
from outreach.models.recipient import Recipient
from outreach.models.states import RecipientStatus
from outreach.models.trail import TrailRule
from outreach.models.work import CampaignRunState
from outreach.models.workspace import Workspace
from outreach.policy.holidays import closed_dates
from outreach.policy.number_zones import number_zones
from outreach.policy.opening import closes_at, is_zone, next_open

FIRST_MINUTE: Final = 8 * 60
LAST_MINUTE: Final = 21 * 60
SEARCH_WINDOW: Final = timedelta(days=7)
"""A number whose zones, and the campaign, have no common open time within this is not contacted."""

_HOURS: Final = BusinessHours(
    enabled=True,
    timezone="UTC",
    schedule={day: (TimeWindow(start_minute=FIRST_MINUTE, end_minute=LAST_MINUTE),) for day in DAYS},
    batch_concurrency=1,
)


@functools.lru_cache(maxsize=65_536)
def time_zones_of_phone(phone: str) -> tuple[str, ...]:
    """Return the time zones in which a number may be, sorted; empty when none is known.

    Args:
        phone: E.164.
    """
    names = number_zones(phone)
    return tuple(sorted(names)) if all(is_zone(name) for name in names) else ()


# One wave asks for one moment and, of many numbers, for few sets of zones.
@functools.lru_cache(maxsize=4096)
def next_common_open(zones: tuple[str, ...], now: datetime) -> datetime | None:
    """Return the first moment from now on at which all zones are open; None when there is none within the search."""
    if not zones:
        return None
    moment = now
    while moment - now <= SEARCH_WINDOW:
        openings = [next_open(_HOURS, moment, ZoneInfo(zone)) for zone in zones]
        latest = max((opening for opening in openings if opening is not None), default=None)
        if latest is None:
            return None
        if latest == moment:
            return moment
        moment = latest
    return None


def next_open_for_both(
    zones: tuple[str, ...], now: datetime, hours: BusinessHours, closed_dates: AbstractSet[date]
) -> datetime | None:
    """Return the first moment from now on at which all zones and a campaign are open.

    Each turn leaves one opening of the zones behind, of which the search has about one a day.

    Args:
        zones: Where the number may be.
        now: Where to start, aware.
        hours: The campaign's hours.
        closed_dates: The campaign's holidays.

    Returns:
        None when there is none within the search.
    """
    opening = next_common_open(zones, now)
    while opening is not None and opening - now <= SEARCH_WINDOW:
        found = next_open(hours, opening, limit_days=SEARCH_WINDOW.days, closed_dates=closed_dates)
        if found is None or found == opening:
            return found
        opening = next_common_open(zones, found)
    return None


@functools.lru_cache(maxsize=4096)
def earliest_closing(zones: tuple[str, ...], now: datetime) -> datetime | None:
    """Return when the first of the zones closes, from an open moment on."""
    closings = [closes_at(_HOURS, now, ZoneInfo(zone)) for zone in zones]
    return min((closing for closing in closings if closing is not None), default=None)


def check_contact_rules(
    plan: WavePlan, recipient: Recipient, phone: str, now: datetime
) -> Postponement | Ending | datetime | None:
    """Return what the workspace's frequency cap and contact hours say of a person.

    Returns:
        `Postponement` until the cap lets another request go, or both the hours and the campaign's own are open;
        `Ending` when nobody can say where the number is, or no common hour is in sight; the moment at which the hours
        close, when they are open; None when the workspace has no such rule.
    """
    capped = plan.capped_until.get(recipient.position)
    if capped is not None and capped > now:
        return Postponement(recipient=recipient, due_at=capped, reason=FREQUENCY_CAP, rule=TrailRule.FREQUENCY_CAP)
    if not plan.workspace.contact_hours:
        return None
    zones = time_zones_of_phone(phone)
    opening = next_common_open(zones, now)
    if opening is not None and opening > now:
        # The campaign is open now; it may not be when the contact's morning comes.
        opening = _open_for_both(_Question(zones, now, plan.campaign.id, plan.campaign.revision, plan.campaign))
    if opening is None:
        return Ending(
            recipient=recipient, status=RecipientStatus.SKIPPED, reason="timezone_unknown", rule=TrailRule.CONTACT_HOURS
        )
    if opening > now:
        return Postponement(recipient=recipient, due_at=opening, reason=CONTACT_HOURS, rule=TrailRule.CONTACT_HOURS)
    return earliest_closing(zones, now)


@attrs.frozen
class _Question:
    """What one wave asks for many numbers; the campaign's hours can be no part of a key, and its revision stands in."""

    zones: tuple[str, ...]
    now: datetime
    campaign_id: str
    revision: int
    campaign: Campaign = attrs.field(eq=False)


# Many numbers of a wave have the same zones, and a week of odd hours takes a millisecond to look through.
@functools.lru_cache(maxsize=1024)
def _open_for_both(asked: _Question) -> datetime | None:
    zones, now, campaign = asked.zones, asked.now, asked.campaign
    if campaign.business_hours is None and campaign.holidays is None:
        return next_common_open(zones, now)
    hours = campaign.business_hours or BusinessHours(
        enabled=False, timezone="UTC", schedule={}, batch_concurrency=campaign.batch_concurrency
    )
    dates = closed_dates(campaign.holidays) if campaign.holidays is not None else frozenset[date]()
    return next_open_for_both(zones, now, hours, dates)


CONTACT_HOURS: Final = "contact_hours"


FREQUENCY_CAP: Final = "frequency_cap"


def contact_rules_key(workspace: Workspace) -> str:
    """Return the rules by which a workspace puts recipients off, as one text to compare."""
    return f"{CONTACT_HOURS}={workspace.contact_hours} {FREQUENCY_CAP}={workspace.frequency_cap}"


def are_contact_rules_outdated(run: CampaignRunState | None, workspace: Workspace) -> bool:
    """Return whether recipients may wait under rules that have changed since they were put off."""
    return run is not None and run.held_under is not None and run.held_under != contact_rules_key(workspace)
