"""The rules that hold a contact back: it is not contacted at its turn, but later.

`HOLDING_RULES` is the one table of them. The waves, the preflight, the forecast and all texts go by it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
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
    hours_key,
    hours_of_place,
    narrower_hours,
    next_common_open,
    next_contact,
)
from outreach.rules.contact_places import place_of


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
        local_hours: For a rule by the contact's own time: the hours that a workspace's settings leave open in each time
            zone of a contact in these regions, all of which must be open; none if it closes nothing.
    """

    name: HeldBackRule
    trail_rule: TrailRule
    meaning: str
    why: str
    limit: str
    released_by: Literal["setting", "review"] = "setting"
    local_hours: Callable[[Workspace, Collection[str]], Sequence[LocalHours]] | None = None

    def hold(self, recipient: Recipient, until: datetime) -> Postponement:
        """Return the postponement of a recipient by this rule."""
        return Postponement(recipient=recipient, due_at=until, reason=self.name, rule=self.trail_rule)


def _contact_hours(workspace: Workspace, regions: Collection[str]) -> Sequence[LocalHours]:
    if not workspace.contact_hours:
        return ()
    return (EIGHT_TO_21, *map(hours_of_place, narrower_hours(workspace.narrower_hours, regions)))


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
                meaning="outside of the contact hours (8 to 21, or narrower) at the places where the contact may be",
                why="It is outside of the contact hours where they may be.",
                limit="contact hours",
                local_hours=_contact_hours,
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
        self._workspace = workspace
        self._found: dict[tuple[str, ...], RegionRules] = {}
        self.apply = bool(self.of(()).hours)

    def of(self, regions: tuple[str, ...]) -> RegionRules:
        """Return the rules for contacts in these regions."""
        # Few workspaces tell regions apart.
        key = regions if self._workspace.narrower_hours else ()
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = RegionRules(self._workspace, key)
        return found


class RegionRules:
    """The rules by the contact's own time for contacts in the same regions.

    Attributes:
        hours: The hours that must be open in each of their time zones; none if no rule applies.
    """

    def __init__(self, workspace: Workspace, regions: Collection[str]) -> None:
        self._rules = tuple((rule, hours) for rule, local in _LOCAL for hours in local(workspace, regions))
        self.hours = tuple(hours for _, hours in self._rules)

    def holding(self, zones: tuple[str, ...], now: datetime) -> HoldingRule:
        """Return the rule that closes a contact in these zones at a time at which they are not all open."""
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
    plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime
) -> Postponement | Ending | Closing | None:
    """Return what the workspace's settings decide about contacting a recipient now.

    Returns:
        `Postponement` until the cap allows a request, or the local hours and the campaign are open; `Ending` if the
        contact's zones are unknown or have no hours in common; otherwise the end of its local hours, None for no end.
    """
    capped = plan.capped_until.get(recipient.position)
    if capped is not None and capped > now:
        return FREQUENCY_CAP.hold(recipient, capped)
    if not local.apply:
        return None
    place = place_of(recipient)
    zones, rules = place.zones, local.of(place.regions)
    opening = next_contact(plan.campaign, zones, rules.hours, now)
    if opening is None:
        rule = rules.holding(zones, now).trail_rule
        return Ending(recipient=recipient, status=RecipientStatus.SKIPPED, reason="timezone_unknown", rule=rule)
    if opening > now:
        return rules.holding(zones, now).hold(recipient, opening)
    return rules.closing(zones, now)


def contact_rules_key(workspace: Workspace) -> str:
    """Return a workspace's contact rules as one text to compare."""
    rules = [f"{name}={getattr(workspace, name)}" for name in _SETTINGS]
    if workspace.narrower_hours:
        # Without such hours the text stays as earlier versions wrote it.
        rules.append(f"narrower_hours={hours_key(workspace.narrower_hours)}")
    return " ".join(rules)


def are_contact_rules_outdated(run: CampaignRunState | None, workspace: Workspace) -> bool:
    """Return whether recipients may wait under contact rules that have changed since."""
    return run is not None and run.postponed_under is not None and run.postponed_under != contact_rules_key(workspace)
