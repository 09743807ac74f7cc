"""In which hours contacts can be reached: by the campaign's hours, holidays and expiry, and by their own time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.models.clock import ClockHour, ClosedBy
from outreach.models.states import TrailRule
from outreach.rules.contact_hours import next_contact
from outreach.rules.contact_places import ContactPlace
from outreach.rules.forecast import OpenCampaign
from outreach.rules.opening import opening_state

HOURS: Final = 24

_HOUR: Final = timedelta(hours=1)


def hours_of_audience(target: OpenCampaign) -> tuple[ClockHour, ...]:
    """Return how many contacts can be reached in each of the hours from the start of a campaign on."""
    first = target.starts_at.replace(minute=0, second=0, microsecond=0)
    begins = [first + number * _HOUR for number in range(HOURS)]
    groups = _groups(target, begins)
    return tuple(_hour(target, at, groups) for at in begins)


def _groups(target: OpenCampaign, begins: Sequence[datetime]) -> Counter[tuple[ContactPlace | None, datetime]]:
    """Return how many contacts have which place, and from which hour on they are due."""
    groups: Counter[tuple[ContactPlace | None, datetime]] = Counter()
    for one in target.contacts:
        due = one.due_at
        hour = begins[0] if due is None else max(begins[0], due.replace(minute=0, second=0, microsecond=0))
        groups[one.place, hour] += target.weight
    return groups


def _hour(target: OpenCampaign, at: datetime, groups: Counter[tuple[ContactPlace | None, datetime]]) -> ClockHour:
    campaign, ends = target.campaign, at + _HOUR
    moment = max(at, target.starts_at)
    expiry = campaign.scheduled_expires_at
    if expiry is not None and moment >= expiry:
        return ClockHour(at=at, contacts=0, closed_by="expiry")
    state = opening_state(campaign, moment)
    if state.reopens_at >= ends:
        rule: ClosedBy = "holidays" if state.rule is TrailRule.HOLIDAYS else "business_hours"
        return ClockHour(at=at, contacts=0, closed_by=rule)
    reached = 0
    for (place, due), count in groups.items():
        if due > at:
            continue
        opening = state.reopens_at
        if place is not None:
            found = next_contact(campaign, place.zones, target.local.of(place.regions).hours, opening)
            if found is None:
                continue
            opening = found
        if opening < ends and (expiry is None or opening < expiry):
            reached += count
    return ClockHour(at=at, contacts=reached, closed_by=None)
