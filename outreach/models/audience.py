"""Whom a new campaign leaves out, and how its list overlaps with other campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from outreach.models.fields import Checked, ListOf, Text, bounded, ruled

LeaveOutCause = Literal["in_other_campaign", "contacted_recently"]
"""Why `LeaveOut` leaves a contact out; the first one that applies."""


@attrs.frozen(kw_only=True)
class LeaveOut(Checked):
    """Whom a new campaign leaves out. All spellings of a number are one person.

    An empty one leaves nobody out; the overlaps are counted all the same.

    Attributes:
        campaigns: Ids of campaigns of the workspace, at most 20; each contact of theirs is left out, in whatever state.
        contacted_within_days: Who got a message or call of the workspace less than this many days ago is left out.
            Requests count as they do for the frequency cap: accepted, refused, unknown and current ones do; those that
            certainly reached nobody do not, nor do replies to keywords. Nor do those that were moved to an archive.
    """

    campaigns: Sequence[str] = ruled(ListOf(Text(1, 100), maximum=20), default=())
    contacted_within_days: int | None = bounded(1, 3650, default=None)


@attrs.frozen(kw_only=True)
class CampaignOverlap:
    """How many people of a list another campaign has.

    Attributes:
        left_out: Whether they are left out because of it.
    """

    campaign_id: str
    name: str
    people: int
    left_out: bool


@attrs.frozen(kw_only=True)
class AudienceCounts:
    """How a list of contacts overlaps with other campaigns. A person counts once, whatever the spelling of the number.

    Attributes:
        contacts: All contacts of the list, repeated ones and invalid numbers included.
        people: The people at its valid numbers.
        left_out: Contacts that are left out (`LeaveOut`); repeated ones count each time.
        campaigns: The campaigns to leave out, then the workspace's newest ones, at most 10; one campaign's people may
            be in others too.
        contacted: People who were contacted within the days of `LeaveOut`; None where it names none.
    """

    contacts: int
    people: int
    left_out: int
    campaigns: Sequence[CampaignOverlap]
    contacted: int | None
