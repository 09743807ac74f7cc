"""When the contacts of a new campaign can be reached: a strip of 24 hours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
from markupsafe import Markup

from outreach import Campaign
from outreach.models import AudienceClock, ClockHour
from outreach.reasons import LIMITS
from outreach_server.console import words
from outreach_server.console.clocks import Clocks
from outreach_server.console.context import Visit
from outreach_server.console.drawing.strip import Column, strip

_CLOSED: Final = {"business_hours": LIMITS["business_hours"], "holidays": LIMITS["holidays"], "expiry": "the end"}


@attrs.frozen(kw_only=True)
class ReachRow:
    """One hour in words."""

    at: str
    contacts: int
    note: str


@attrs.frozen(kw_only=True)
class ReachView:
    """The hours in which contacts can be reached.

    Attributes:
        drawing: The strip; empty if nobody is left.
        says: The same in a sentence.
    """

    drawing: Markup
    says: str
    zone: str
    rows: Sequence[ReachRow]


async def reach_of(visit: Visit, campaign: Campaign) -> ReachView:
    """Return when the contacts of a campaign can be reached, by what was saved of it."""
    found = await visit.engine.campaigns.clock(visit.place.id, campaign.id)
    clocks = visit.clocks(campaign.timezone)
    says = _says(visit, found, clocks)
    columns = [
        Column(
            hour=clocks.dates.hour(clocks.local(one.at)),
            value=one.contacts,
            words=f"{clocks.moment(one.at, visit.now)}: {_note(one, found)}",
            shut=one.closed_by is not None,
        )
        for one in found.hours
    ]
    return ReachView(
        drawing=strip(columns, whole=found.contacts, label=says) if found.contacts else Markup(""),
        says=says,
        zone=clocks.name,
        rows=[
            ReachRow(
                at=clocks.moment(one.at, visit.now),
                contacts=one.contacts,
                note=f"closed: {_CLOSED[one.closed_by]}" if one.closed_by is not None else "",
            )
            for one in found.hours
        ],
    )


def _note(one: ClockHour, found: AudienceClock) -> str:
    if one.closed_by is not None:
        return f"closed: {_CLOSED[one.closed_by]}"
    return f"{one.contacts:,} of {words.plural(found.contacts, 'contact')}"


def _says(visit: Visit, found: AudienceClock, clocks: Clocks) -> str:
    """Return the first hours with all, or with most, of the contacts."""
    if not found.contacts:
        return "Nobody is left to be contacted."
    most = max(one.contacts for one in found.hours)
    if not most:
        return "Nobody can be reached within 24 hours of the start."
    first = next(one for one in found.hours if one.contacts == most)
    at = clocks.moment(first.at, visit.now)
    who = "All contacts" if most == found.contacts else f"{most:,} of {words.plural(found.contacts, 'contact')}"
    return f"{who} can be reached from {at} ({clocks.name})."
