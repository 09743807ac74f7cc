"""The clock of an audience: how many contacts can be reached in which hour."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import attrs

ClosedBy = Literal["business_hours", "holidays", "expiry"]
"""The cause that closes a whole hour for all contacts."""


@attrs.frozen(kw_only=True)
class ClockHour:
    """One hour.

    Attributes:
        at: Its beginning, on the hour in UTC.
        contacts: Contacts that can be reached in some part of it.
        closed_by: Why it is closed for all; None if it is open for the campaign, whatever the contacts' own hours are.
    """

    at: datetime
    contacts: int
    closed_by: ClosedBy | None


@attrs.frozen(kw_only=True)
class AudienceClock:
    """How many of a campaign's contacts can be reached in each of the 24 hours from its start, or from now on.

    Attributes:
        timezone: The IANA zone of the campaign's own times.
        contacts: Contacts that wait for their turn or a time; held ones are not among them.
        hours: The hours.
        sampled: Whether the contacts' time zones were taken from a sample of them.
    """

    campaign_id: str
    timezone: str
    contacts: int
    hours: tuple[ClockHour, ...]
    sampled: bool
