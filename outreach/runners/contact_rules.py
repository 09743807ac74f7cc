"""Whether a person may be contacted now, by the clocks where the number may be."""

from __future__ import annotations

import functools
from datetime import date, datetime

import attrs

from outreach.models.business_hours import BusinessHours
from outreach.models.campaign import Campaign
from outreach.models.recipient import Recipient
from outreach.models.states import RecipientStatus
from outreach.models.trail import Rule
from outreach.operations.holds import CONTACT_HOURS, FREQUENCY_CAP
from outreach.operations.wave import Ending, Hold, Plan
from outreach.policy.contact_hours import first_to_close, next_common_open, next_open_for_both, zones_of
from outreach.policy.holidays import closed_dates


def contact_window(plan: Plan, recipient: Recipient, phone: str, now: datetime) -> Hold | Ending | datetime | None:
    """Return what the workspace's frequency cap and contact hours say of a person.

    Returns:
        `Hold` until the cap lets another request go, or both the hours and the campaign's own are open; `Ending` when
        nobody can say where the number is, or no common hour is in sight; the moment at which the hours close, when
        they are open; None when the workspace has no such rule.
    """
    capped = plan.capped.get(recipient.position)
    if capped is not None and capped > now:
        return Hold(recipient=recipient, due_at=capped, reason=FREQUENCY_CAP, rule=Rule.FREQUENCY_CAP)
    if not plan.workspace.contact_hours:
        return None
    zones = zones_of(phone)
    opening = next_common_open(zones, now)
    if opening is not None and opening > now:
        # The campaign is open now; it may not be when the contact's morning comes.
        opening = _open_for_both(_Question(zones, now, plan.campaign.id, plan.campaign.revision, plan.campaign))
    if opening is None:
        return Ending(
            recipient=recipient, status=RecipientStatus.SKIPPED, reason="timezone_unknown", rule=Rule.CONTACT_HOURS
        )
    if opening > now:
        return Hold(recipient=recipient, due_at=opening, reason=CONTACT_HOURS, rule=Rule.CONTACT_HOURS)
    return first_to_close(zones, now)


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
