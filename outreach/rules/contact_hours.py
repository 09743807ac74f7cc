"""Contact hours, by every time zone in which a number may be (docs/rules.md#contact-hours).

47 CFR 64.1200(c)(1) allows contact from 8 to 21 o'clock local time at the called party's location. A number does not
tell one location: all its time zones must be open.
"""

from __future__ import annotations

import functools
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

import attrs

from outreach.core.clock import is_zone
from outreach.models.campaign import Campaign
from outreach.models.hours import DAYS, BusinessHours, TimeWindow
from outreach.models.plans import Ending, Postponement, WavePlan
from outreach.models.recipient import Recipient
from outreach.models.states import RecipientStatus
from outreach.models.trail import TrailRule
from outreach.models.work import CampaignRunState
from outreach.models.workspace import Workspace
from outreach.rules.holidays import closed_dates
from outreach.rules.number_zones import number_zones
from outreach.rules.opening import closes_at, next_open

FIRST_MINUTE: Final = 8 * 60
LAST_MINUTE: Final = 21 * 60
SEARCH_WINDOW: Final = timedelta(days=7)
"""A number without a common open time within this is not contacted."""

_HOURS: Final = BusinessHours(
    enabled=True,
    timezone="UTC",
    schedule={day: (TimeWindow(start_minute=FIRST_MINUTE, end_minute=LAST_MINUTE),) for day in DAYS},
    batch_concurrency=1,
)


def time_zones_of_phone(phone: str) -> tuple[str, ...]:
    """Return the time zones in which an E.164 number may be, sorted; empty if none is known."""
    return _known_zones(number_zones(phone))


@functools.lru_cache(maxsize=4096)
def _known_zones(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(names)) if all(is_zone(name) for name in names) else ()


# The recipients of one wave share the time and a few sets of zones.
@functools.lru_cache(maxsize=4096)
def next_common_open(zones: tuple[str, ...], now: datetime) -> datetime | None:
    """Return the first time from now on at which all zones are open; None within the search window."""
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
    """Return the first time from now on at which all zones and a campaign are open; None within the search window."""
    opening = next_common_open(zones, now)
    while opening is not None and opening - now <= SEARCH_WINDOW:
        found = next_open(hours, opening, limit_days=SEARCH_WINDOW.days, closed_dates=closed_dates)
        if found is None or found == opening:
            return found
        opening = next_common_open(zones, found)
    return None


@functools.lru_cache(maxsize=4096)
def earliest_closing(zones: tuple[str, ...], now: datetime) -> datetime | None:
    """Return when the first of the zones closes, from an open time on."""
    closings = [closes_at(_HOURS, now, ZoneInfo(zone)) for zone in zones]
    return min((closing for closing in closings if closing is not None), default=None)


def check_contact_rules(
    plan: WavePlan, recipient: Recipient, phone: str, now: datetime
) -> Postponement | Ending | datetime | None:
    """Return the result of the workspace's frequency cap and contact hours for a recipient.

    Returns:
        `Postponement` until the cap allows a request or the hours of contact and campaign are open; `Ending` if the
        number's zones are unknown or have no common hours; the closing time while they are open; None without such
        rules.
    """
    capped = plan.capped_until.get(recipient.position)
    if capped is not None and capped > now:
        return Postponement(recipient=recipient, due_at=capped, reason=FREQUENCY_CAP, rule=TrailRule.FREQUENCY_CAP)
    if not plan.workspace.contact_hours:
        return None
    zones = time_zones_of_phone(phone)
    opening = next_contact(plan.campaign, zones, now)
    if opening is None:
        return Ending(
            recipient=recipient, status=RecipientStatus.SKIPPED, reason="timezone_unknown", rule=TrailRule.CONTACT_HOURS
        )
    if opening > now:
        return Postponement(recipient=recipient, due_at=opening, reason=CONTACT_HOURS, rule=TrailRule.CONTACT_HOURS)
    return earliest_closing(zones, now)


def next_contact(campaign: Campaign, zones: tuple[str, ...], now: datetime) -> datetime | None:
    """Return when a campaign that is open now may next contact numbers in these zones; None within the window."""
    opening = next_common_open(zones, now)
    if opening is not None and opening > now:
        # The campaign may be closed when the contact's morning comes.
        return _open_for_both(_CacheKey(zones, now, campaign.id, campaign.revision, campaign))
    return opening


UnreachableReason = Literal["timezone_unknown", "no_common_hours", "hours_never_fit"]


def unreachable_reason(zones: tuple[str, ...], now: datetime) -> UnreachableReason:
    """Return why a number with these zones can never be contacted, where `next_contact` is None.

    The number's zones are unknown; they are never open together; or never while the campaign is.
    """
    if not zones:
        return "timezone_unknown"
    return "no_common_hours" if next_common_open(zones, now) is None else "hours_never_fit"


@attrs.frozen
class _CacheKey:
    """A cache key in which the revision stands for the campaign, whose hours cannot be hashed."""

    zones: tuple[str, ...]
    now: datetime
    campaign_id: str
    revision: int
    campaign: Campaign = attrs.field(eq=False)


# Many numbers of a wave share their zones, and a week of odd hours takes a millisecond.
@functools.lru_cache(maxsize=1024)
def _open_for_both(key: _CacheKey) -> datetime | None:
    zones, now, campaign = key.zones, key.now, key.campaign
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
    """Return a workspace's contact rules as one text to compare."""
    return f"{CONTACT_HOURS}={workspace.contact_hours} {FREQUENCY_CAP}={workspace.frequency_cap}"


def are_contact_rules_outdated(run: CampaignRunState | None, workspace: Workspace) -> bool:
    """Return whether recipients may wait under contact rules that have changed since."""
    return run is not None and run.postponed_under is not None and run.postponed_under != contact_rules_key(workspace)
