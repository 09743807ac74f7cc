"""The decision about one contact of a campaign: when it may be reached, what it gets, or why it is left out.

The planner decides by these rules at the contact's turn, and the preflight before the start. Requests start at slots
so far apart that no minute exceeds the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

import attrs

from outreach.models.campaign import CallerIdAllocation, Campaign
from outreach.models.plans import Advance, Closing, Ending, Postponement, WavePlan
from outreach.models.recipient import PreparedRecipient, Recipient
from outreach.models.resources import FlowStep
from outreach.models.settings import SmsSettings
from outreach.models.states import RecipientStatus
from outreach.models.trail import TrailRule
from outreach.rules.call_settlement import second_leg_is_late
from outreach.rules.flows import current_send_step
from outreach.rules.holding import UNCLEAR_REPLY, LocalRules, check_holding_rules
from outreach.rules.placeholders import template_of
from outreach.rules.rendering import compose, values_of
from outreach.rules.segments import Encoding, count_segments, plain_form
from outreach.rules.spellings import person_key

HELD_RECHECK_AFTER: Final = timedelta(days=1)
"""How long before a recipient under review is checked again; a decision wakes it at once."""

UNREACHABLE_BEFORE: Final = "unreachable_before"
"""Reason of a contact whose number a provider had reported as unreachable."""

Restriction = Literal["stopped", "held"]
"""What the register says of a number: it must not be contacted, or it is under review."""

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
"""What becomes of a supplied contact: it is loaded; loaded and skipped for a reason; or not loaded (`opted_out`)."""


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
