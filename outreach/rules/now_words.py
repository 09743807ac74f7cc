"""Sentences that say why a campaign waits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

from outreach.core.clock import is_zone
from outreach.errors import Problem
from outreach.models.campaign import Recipient
from outreach.rules.contact_hours import next_common_open
from outreach.rules.contact_places import place_of
from outreach.rules.deciding import LocalRules
from outreach.rules.explanations import LIMITS

MAX_COUNTED: Final = 100_000
"""The most contacts that are counted for a sentence."""

_UTC: Final = "UTC"
_SOON: Final = timedelta(hours=24)
_TICK: Final = timedelta(microseconds=1)
_WAITS_FOR: Final = MappingProxyType({"retry": "another attempt", "flow": "the next step of their flow"})


_NEEDS: Final = MappingProxyType(
    {
        "flow_id": "a flow",
        "body": "a text",
        "from_number": "a number to send from",
        "carrier": "a carrier",
        "agent_id": "an agent",
        "agent.is_active": "an agent that is active",
        "agent.allow_outbound": "an agent that may call out",
    }
)


def waits_for_setup(missing: Sequence[Problem], contacts: int) -> str:
    """Return a sentence such as `Waits for a text and a carrier, before it can start: 3 contacts`.

    Args:
        missing: The problems that `missing_requirements` returns.
        contacts: How many wait.
    """
    *most, last = [_NEEDS[one.path or ""] for one in missing] or ["the rest of its set-up"]
    needs = f"{', '.join(most)} and {last}" if most else last
    return f"Waits for {needs}, before it can start: {contacts_text(contacts)}."


def waits_for_opening(until: datetime, zone: str, contacts: int, now: datetime, *, why: str = "") -> str:
    """Return a sentence such as `Waits for 08:00 in Denver: 412 contacts.`; `why` follows the time."""
    return f"Waits for {clock_words(until, zone, now)}{f' ({why})' if why else ''}: {contacts_text(contacts)}."


def waits_for_times(rule: str, until: datetime | None, zone: str, contacts: int, now: datetime) -> str:
    """Return the sentence of contacts that each wait for a time of their own, or for a person."""
    first = "" if until is None else f", the first until {clock_words(until, zone, now)}"
    words = _WAITS_FOR.get(rule) or LIMITS[rule]  # type: ignore[index]
    return f"Waits for {words}: {contacts_text(contacts)}{first}."


def clock_words(moment: datetime, zone: str, now: datetime) -> str:
    """Return a time of day with its place, such as `08:00 in Denver`, and its date if that is not soon."""
    known = zone if is_zone(zone) else _UTC
    local = moment.astimezone(ZoneInfo(known))
    day = "" if moment - now < _SOON else f" on {local.day} {local:%B}"
    place = _UTC if known == _UTC else f"in {known.rpartition('/')[2].replace('_', ' ')}"
    return f"{local:%H:%M}{day} {place}"


def contacts_text(count: int) -> str:
    """Return a number of contacts in words."""
    if count >= MAX_COUNTED:
        return f"{MAX_COUNTED:,} contacts or more"
    return f"{count:,} contact{'' if count == 1 else 's'}"


def opening_zone(recipient: Recipient, local: LocalRules, opens_at: datetime) -> str:
    """Return the time zone of a contact whose local hours begin at a time; of several that do, the first."""
    place = place_of(recipient)
    zones, hours = place.zones, local.of(place.regions).hours
    opening = (zone for zone in zones if next_common_open((zone,), hours, opens_at - _TICK) == opens_at)
    return next(opening, zones[0] if zones else _UTC)
