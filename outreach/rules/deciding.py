"""The decision about one contact of a campaign: when it may be reached, what it gets, or why it is left out.

`HOLDING_RULES` is the one table of the rules that hold a contact back: it is not contacted at its turn, but later. The
planner decides by these rules at the contact's turn, and the preflight before the start; the forecast, the trail and
all texts go by them. Requests start at slots so far apart that no minute exceeds the rate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import attrs

from outreach.models.campaign import CallerIdAllocation, Campaign, PauseReason, PreparedRecipient, Recipient
from outreach.models.dispatch import ASSUMED_SENT
from outreach.models.plans import Advance, Closing, Ending, Postponement, WavePlan
from outreach.models.resources import FlowStep
from outreach.models.settings import SmsSettings
from outreach.models.states import CampaignAction, DispatchState, HeldBackRule, RecipientStatus, TrailRule
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
from outreach.rules.flows import current_send_step
from outreach.rules.numbering import person_key
from outreach.rules.phones import NUMBER_BUSY
from outreach.rules.rendering import compose, template_of, values_of
from outreach.rules.segments import Encoding, count_segments, plain_form
from outreach.rules.settlement import DOUBLE_DIAL, RETRYABLE_OUTCOMES, TRANSIENT_FAILURES, second_leg_is_late


@attrs.frozen(kw_only=True, eq=False)
class HoldingRule:
    """A rule that holds contacts back.

    Attributes:
        name: The reason of a contact that waits by it, and its name in preflight and forecast.
        trail_rule: Its name in the trail.
        meaning: Why a contact waits, as `describe_reason` says it.
        why: The same as the preflight says it, of several contacts.
        limit: The limit of a campaign, as the forecast names it.
        released_by: Ends the wait early: a change of the workspace's setting of this name, or a person's review.
        local_hours: For a rule by the contact's own time: the hours that a workspace's settings leave open in each time
            zone of a contact in these regions; all zones must be open. None if it closes nothing.
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

FREQUENCY_WINDOW: Final = timedelta(hours=24)

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


_WAITS: Final[Mapping[str, TrailRule]] = MappingProxyType(
    {
        "retry": TrailRule.RETRY_BUDGET,
        **{f"retry_{reason}": TrailRule.RETRY_BUDGET for reason in RETRYABLE_OUTCOMES | TRANSIENT_FAILURES},
        DOUBLE_DIAL: TrailRule.DOUBLE_DIAL,
        "flow": TrailRule.FLOW,
        "flow_wait": TrailRule.FLOW,
        "deferred": TrailRule.DEFERRAL,
        NUMBER_BUSY: TrailRule.PACE,
        "operator_retry": TrailRule.OPERATOR,
    }
)
"""Waits whose reason implies their rule."""

_ENDS: Final[Mapping[tuple[RecipientStatus, str | None], TrailRule]] = MappingProxyType(
    {
        (RecipientStatus.SKIPPED, "opted_out"): TrailRule.REGISTER,
        (RecipientStatus.SKIPPED, "duplicate"): TrailRule.DUPLICATE,
        (RecipientStatus.SKIPPED, "invalid_number"): TrailRule.INVALID_NUMBER,
        (RecipientStatus.COMPLETED, "replied"): TrailRule.FLOW,
        (RecipientStatus.COMPLETED, "no_receipt"): TrailRule.RECEIPT_WAIT,
        (RecipientStatus.COMPLETED, ASSUMED_SENT): TrailRule.OPERATOR,
        (RecipientStatus.UNCONFIRMED, "no_evidence"): TrailRule.RECONCILIATION,
        (RecipientStatus.UNCONFIRMED, "no_news"): TrailRule.CALL_SILENCE,
        (RecipientStatus.CANCELED, None): TrailRule.CANCELLATION,
        (RecipientStatus.EXPIRED, None): TrailRule.EXPIRY,
        # A transient or retryable failure ends a recipient when its attempts are used up.
        **{
            (RecipientStatus.FAILED, reason): TrailRule.RETRY_BUDGET
            for reason in TRANSIENT_FAILURES | RETRYABLE_OUTCOMES
        },
    }
)

_WITHDRAWN: Final[Mapping[str | None, TrailRule]] = MappingProxyType(
    {
        "opted_out": TrailRule.REGISTER,
        UNCLEAR_REPLY.name: UNCLEAR_REPLY.trail_rule,
        "too_late": TrailRule.VALID_UNTIL,
        "lease_over": TrailRule.VALID_UNTIL,
        "clock_set_back": TrailRule.VALID_UNTIL,
        "provider_throttle": TrailRule.PROVIDER_THROTTLE,
    }
)

_OUTCOMES: Final[Mapping[DispatchState, TrailRule]] = MappingProxyType(
    {
        DispatchState.UNKNOWN: TrailRule.ONCE,
        DispatchState.UNCONFIRMED: TrailRule.RECONCILIATION,
        DispatchState.GIVEN_UP: TrailRule.OPERATOR,
        DispatchState.DEFERRED: TrailRule.DEFERRAL,
    }
)

_PAUSES: Final[Mapping[PauseReason, TrailRule]] = MappingProxyType(
    {
        "operator": TrailRule.OPERATOR,
        "missed_start": TrailRule.SCHEDULE,
        "agent_unavailable": TrailRule.AGENT,
        "provider_auth": TrailRule.ERROR_BUDGET,
        "provider_funds": TrailRule.ERROR_BUDGET,
        "error_budget": TrailRule.ERROR_BUDGET,
        "moved": TrailRule.COPIED_FILE,
        "restored": TrailRule.COPIED_FILE,
    }
)

_ACTIONS: Final[Mapping[CampaignAction, TrailRule]] = MappingProxyType(
    {
        CampaignAction.COMPLETE: TrailRule.LEDGER,
        CampaignAction.REOPEN: TrailRule.PROVIDER_REPORT,
        CampaignAction.EXPIRE: TrailRule.EXPIRY,
    }
)


def rule_of_recipient(after: Recipient, by: TrailRule) -> TrailRule:
    """Return the rule of a recipient's wait or end; `by` unless its reason implies another."""
    if after.status is RecipientStatus.WAITING:
        return _WAITS.get(after.reason or "", by)
    return _ENDS.get((after.status, after.reason), by)


def rule_of_outcome(state: DispatchState, reason: str | None, by: TrailRule) -> TrailRule:
    """Return the rule of a dispatch's outcome; `by` is the source of what a provider or look-up reported."""
    if by is TrailRule.OPERATOR:
        return by
    if state is DispatchState.WITHDRAWN:
        return _WITHDRAWN.get(reason, TrailRule.STOP)
    if state is DispatchState.NOT_SENT and by is TrailRule.PROVIDER_ANSWER:
        return TrailRule.DEFERRAL
    return _OUTCOMES.get(state, by)


def rule_of_move(move: CampaignAction, *, by_engine: bool, pause_reason: PauseReason | None) -> TrailRule:
    """Return the rule of a campaign status change."""
    if pause_reason is not None:
        return _PAUSES[pause_reason]
    return _ACTIONS.get(move, TrailRule.SCHEDULE if by_engine else TrailRule.OPERATOR)


HELD_RECHECK_AFTER: Final = timedelta(days=1)
"""How long before a recipient under review is checked again; a decision wakes it at once."""

UNREACHABLE_BEFORE: Final = "unreachable_before"
"""Reason of a contact whose number a provider had reported as unreachable."""

Restriction = Literal["stopped", "held"]
"""The register's entry for a number: it must not be contacted, or it is under review."""

MAX_AHEAD: Final = timedelta(seconds=5)
"""How far a slot may lie ahead of its commit, which is the lifetime of an intent (docs/delivery-contract.md#rule-4)."""

_MINUTE_IN_MICROSECONDS: Final = 60_000_000


@attrs.frozen(kw_only=True)
class Reach:
    """A contact that may be reached now.

    Attributes:
        closing: The end of the contact's local hours; None for no end.
        body: The rendered text; None for a call.
        segments: Its SMS segments; None for a call.
    """

    closing: Closing | None
    body: str | None = None
    segments: int | None = None


class RenderedText(NamedTuple):
    """A message as it would be sent; a tuple, because there is one for every contact.

    Attributes:
        written: The text before its typographic characters were replaced; the same if none was.
    """

    body: str
    segments: int
    encoding: Encoding
    written: str


def decide_message(
    plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime
) -> Reach | Ending | Postponement | Advance:
    """Decide about a message to a due recipient."""
    template = plan.campaign.body
    if plan.steps is not None:
        step = current_send_step(recipient, plan.steps)
        if step is None:
            return Advance(recipient=recipient, kind="next_step")
        template = step.body
    closing = _check_reachable(plan, local, recipient, now)
    if isinstance(closing, Postponement | Ending):
        return closing
    text = render_message(template_of(plan.campaign, template), recipient, plan.campaign, plan.settings)
    if isinstance(text, Ending):
        return text
    return Reach(closing=closing, body=text.body, segments=text.segments)


def decide_call(
    plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime
) -> Reach | Ending | Postponement | Advance:
    """Decide about a call to a due recipient."""
    if second_leg_is_late(recipient, now):
        return Advance(recipient=recipient, kind="drop_second_leg")
    closing = _check_reachable(plan, local, recipient, now)
    if isinstance(closing, Postponement) and recipient.leg == 2:
        # The second call of a double dial is made at once or not at all.
        return Advance(recipient=recipient, kind="drop_second_leg")
    if isinstance(closing, Postponement | Ending):
        return closing
    if plan.agent is None:
        return Ending(
            recipient=recipient, status=RecipientStatus.FAILED, reason="agent_unavailable", rule=TrailRule.AGENT
        )
    return Reach(closing=closing)


def _check_reachable(
    plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime
) -> Postponement | Ending | Closing | None:
    if recipient.phone is None:
        return Ending(
            recipient=recipient,
            status=RecipientStatus.SKIPPED,
            reason="invalid_number",
            rule=TrailRule.INVALID_NUMBER,
        )
    if recipient.phone in plan.unreachable:
        return Ending(
            recipient=recipient,
            status=RecipientStatus.SKIPPED,
            reason=UNREACHABLE_BEFORE,
            rule=TrailRule.UNREACHABLE,
        )
    return check_holding_rules(plan, local, recipient, now)


def render_message(
    template: str, recipient: Recipient, campaign: Campaign, settings: SmsSettings
) -> RenderedText | Ending:
    """Return a contact's text with the footer; an `Ending` if it is empty or over the segment cap."""
    written = compose(template, values_of(recipient), settings.footer)
    text = plain_form(written) if campaign.replace_characters else written
    if not text:
        return Ending(
            recipient=recipient, status=RecipientStatus.FAILED, reason="empty_message", rule=TrailRule.RENDERING
        )
    counted = count_segments(text)
    if counted.segments > settings.max_segments:
        return Ending(
            recipient=recipient, status=RecipientStatus.FAILED, reason="over_segment_cap", rule=TrailRule.SEGMENT_CAP
        )
    return RenderedText(text, counted.segments, counted.encoding, written)


def apply_register(
    recipient: Recipient, restriction: Restriction | None, now: datetime
) -> Ending | Postponement | None:
    """Return what the register decides about a recipient that would be contacted; None to contact it."""
    if restriction == "stopped":
        return Ending(recipient=recipient, status=RecipientStatus.SKIPPED, reason="opted_out", rule=TrailRule.REGISTER)
    if restriction == "held":
        return UNCLEAR_REPLY.hold(recipient, now + HELD_RECHECK_AFTER)
    return None


LoadDecision = Literal["load", "invalid_number", "duplicate", "opted_out"]
"""The decision about a supplied contact: load it; load it and skip it for a reason; or do not load it (`opted_out`)."""


def decide_loading(contact: PreparedRecipient, stopped: AbstractSet[str], seen: set[str]) -> LoadDecision:
    """Decide about a supplied contact of a new campaign, and note its number.

    Args:
        contact: The contact.
        stopped: The numbers on the register for the campaign's channel.
        seen: The persons at the numbers of earlier contacts, by their keys; one that is loaded is added.
    """
    phone = contact.phone
    if phone is None:
        return "invalid_number"
    if phone in stopped:
        return "opted_out"
    key = person_key(phone)
    if key in seen:
        return "duplicate"
    seen.add(key)
    return "load"


def send_steps(steps: tuple[FlowStep, ...] | None, campaign: Campaign) -> tuple[tuple[int, str], ...]:
    """Return the messages of an SMS campaign as step and template, in order."""
    if steps is None:
        return ((0, template_of(campaign, campaign.body)),)
    return tuple((index, template_of(campaign, step.body)) for index, step in enumerate(steps) if step.kind == "send")


def spacing(rate_per_minute: int) -> timedelta:
    """Return the time between two slots, in microseconds rounded up; raise `ValueError` for a rate below 1.

    Rounded up, every half-open window of 60 s holds at most `rate_per_minute` slots.
    """
    if rate_per_minute < 1:
        raise ValueError(f"A rate is at least 1 a minute, not {rate_per_minute}.")
    return timedelta(microseconds=-(-_MINUTE_IN_MICROSECONDS // rate_per_minute))


def next_slot(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime | None:
    """Return the next slot if it is plausible; None for any time.

    A slot too far ahead dates from before a clock step and is ignored. The pace holds all the same, by the monotonic
    clock within a process, and by `first_slot` after a takeover.
    """
    return noted if noted is None or noted <= now + spacing + MAX_AHEAD else None


def first_slot(noted: datetime | None, now: datetime, spacing: timedelta) -> datetime:
    """Return the first slot after a takeover: at least one spacing from now, because earlier starts lie before now."""
    floor = now + spacing
    return max(next_slot(noted, now, spacing) or floor, floor)


def next_caller_id(group: Sequence[CallerIdAllocation], assigned: int) -> str:
    """Return the number for the next recipient; raise `ValueError` if the group has no place.

    Each entry allocates `count` recipients to its number in turn, and the last is followed by the first. `assigned` is
    the number of earlier recipients.
    """
    total = sum(entry.count for entry in group)
    if not total:
        raise ValueError("A caller-ID group needs at least one entry with a count of at least 1.")
    # Not expanded, because counts may be a million.
    turn = assigned % total
    for entry in group[:-1]:
        if turn < entry.count:
            return entry.phone
        turn -= entry.count
    return group[-1].phone
