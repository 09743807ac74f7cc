"""The rules that hold a contact back: it is not contacted at its turn, but later.

`HOLDING_RULES` is the one table of them. The waves, the preflight, the forecast and all texts go by it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal

import attrs

from outreach.models.plans import Closing, Ending, Postponement, WavePlan
from outreach.models.recipient import Recipient
from outreach.models.states import RecipientStatus
from outreach.models.trail import HeldBackRule, TrailRule
from outreach.models.work import CampaignRunState
from outreach.models.workspace import Workspace
from outreach.rules.contact_hours import (
    EIGHT_TO_21,
    LocalHours,
    earliest_closing,
    next_common_open,
    next_contact,
    time_zones_of_phone,
)


@attrs.frozen(kw_only=True, eq=False)
class HoldingRule:
    """A rule that holds contacts back.

    Attributes:
        name: The reason of a contact that waits by it, and its name in preflight and forecast.
        trail_rule: Its name in the trail.
        meaning: Why a contact waits, as `describe_reason` says it.
        why: The same as the preflight says it, of several contacts.
        limit: What limits a campaign, as the forecast says it.
        released_by: What ends the wait early: a change of the workspace's setting of this name, or a person's review.
        local_hours: For a rule by the contact's own time: the hours that a workspace's setting leaves open in each time
            zone of the number; None if it closes none.
    """

    name: HeldBackRule
    trail_rule: TrailRule
    meaning: str
    why: str
    limit: str
    released_by: Literal["setting", "review"] = "setting"
    local_hours: Callable[[Workspace], LocalHours | None] | None = None

    def hold(self, recipient: Recipient, until: datetime) -> Postponement:
        """Return the postponement of a recipient by this rule."""
        return Postponement(recipient=recipient, due_at=until, reason=self.name, rule=self.trail_rule)


FREQUENCY_CAP: Final = HoldingRule(
    name="frequency_cap",
    trail_rule=TrailRule.FREQUENCY_CAP,
    meaning="the workspace's limit of contacts in 24 hours is reached for the number",
    why="They were contacted as often in 24 hours as the frequency cap allows.",
    limit="the frequency cap",
)

UNCLEAR_REPLY: Final = HoldingRule(
    name="unclear_reply",
    trail_rule=TrailRule.REGISTER,
    meaning="replied with a possible opt-out: held until somebody decides",
    why="They wrote what may be an opt-out; a person has to decide.",
    limit="a decision about a reply",
    released_by="review",
)

HOLDING_RULES: Final[Mapping[str, HoldingRule]] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            HoldingRule(
                name="contact_hours",
                trail_rule=TrailRule.CONTACT_HOURS,
                meaning="outside of the hours (8 to 21) at the places where the number may be",
                why="It is before 8 or after 21 o'clock where they may be.",
                limit="contact hours",
                local_hours=lambda workspace: EIGHT_TO_21 if workspace.contact_hours else None,
            ),
            FREQUENCY_CAP,
            UNCLEAR_REPLY,
        )
    }
)
"""All rules by name, in the order of the preflight. Of several rules by local time the first one is the reason."""

_LOCAL: Final = tuple((rule, rule.local_hours) for rule in HOLDING_RULES.values() if rule.local_hours is not None)
_SETTINGS: Final = tuple(rule.name for rule in HOLDING_RULES.values() if rule.released_by == "setting")


class LocalRules:
    """The rules by the contact's own time that a workspace has set: the same for all contacts of a plan."""

    def __init__(self, workspace: Workspace) -> None:
        found = ((rule, local_hours(workspace)) for rule, local_hours in _LOCAL)
        self._rules = tuple((rule, hours) for rule, hours in found if hours is not None)
        self.hours = tuple(hours for _, hours in self._rules)

    def holding(self, zones: tuple[str, ...], now: datetime) -> HoldingRule:
        """Return the rule that closes a number with these zones at a time at which they are not all open."""
        first = self._rules[0][0]
        closed = (rule for rule, hours in self._rules if next_common_open(zones, (hours,), now) != now)
        return next(closed, first)

    def closing(self, zones: tuple[str, ...], now: datetime) -> Closing | None:
        """Return when the first of the zones closes, from an open time on, and by which rule; None for never."""
        return _first_closing(self._rules, zones, now)


# The recipients of one wave share the time and a few sets of zones.
@functools.lru_cache(maxsize=4096)
def _first_closing(
    rules: tuple[tuple[HoldingRule, LocalHours], ...], zones: tuple[str, ...], now: datetime
) -> Closing | None:
    ends = ((earliest_closing(zones, (hours,), now), rule) for rule, hours in rules)
    closings = (Closing(at, rule.name, rule.trail_rule) for at, rule in ends if at is not None)
    return min(closings, key=lambda one: one.at, default=None)


def check_holding_rules(
    plan: WavePlan, local: LocalRules, recipient: Recipient, phone: str, now: datetime
) -> Postponement | Ending | Closing | None:
    """Return what the workspace's settings decide about contacting a recipient now.

    Returns:
        `Postponement` until the cap allows a request, or the local hours and the campaign are open; `Ending` if the
        number's zones are unknown or have no hours in common; otherwise the end of its local hours, None for no end.
    """
    capped = plan.capped_until.get(recipient.position)
    if capped is not None and capped > now:
        return FREQUENCY_CAP.hold(recipient, capped)
    if not local.hours:
        return None
    zones = time_zones_of_phone(phone)
    opening = next_contact(plan.campaign, zones, local.hours, now)
    if opening is None:
        rule = local.holding(zones, now).trail_rule
        return Ending(recipient=recipient, status=RecipientStatus.SKIPPED, reason="timezone_unknown", rule=rule)
    if opening > now:
        return local.holding(zones, now).hold(recipient, opening)
    return local.closing(zones, now)


def contact_rules_key(workspace: Workspace) -> str:
    """Return a workspace's contact rules as one text to compare."""
    return " ".join(f"{name}={getattr(workspace, name)}" for name in _SETTINGS)


def are_contact_rules_outdated(run: CampaignRunState | None, workspace: Workspace) -> bool:
    """Return whether recipients may wait under contact rules that have changed since."""
    return run is not None and run.postponed_under is not None and run.postponed_under != contact_rules_key(workspace)
