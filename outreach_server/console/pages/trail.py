"""The decision trail of a contact as steps in words, with the messages at their place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach import Campaign, Dispatch, Recipient
from outreach.models import ContactHistory, ProviderFailure, TrailRule, TrailStep, TrailStepKind
from outreach.reasons import LIMITS, describe_reason, describe_zones
from outreach_server.console import words
from outreach_server.console.clocks import Clocks
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_views import MomentView, moment_of
from outreach_server.console.people import names_of
from outreach_server.console.words import Tone

_MOST_MESSAGES: Final = 100

_KINDS: Final[Mapping[TrailStepKind, tuple[str, str, Tone]]] = {
    TrailStepKind.LOADED: ("Loaded into the campaign", "users", "plain"),
    TrailStepKind.LEFT_OUT: ("Left out: the number is on the unsubscribe register", "ban", "warn"),
    TrailStepKind.OPTED_OUT: ("Opted out: the number came onto the register", "shield-off", "bad"),
    TrailStepKind.OPTED_IN: ("Opted in: the number was taken off the register", "check", "good"),
    TrailStepKind.REPLIED: ("Replied", "message-square", "good"),
    TrailStepKind.HELD: ("Waits", "hourglass", "warn"),
    TrailStepKind.INTENT: ("May be contacted: the request was committed, before it was sent", "send", "plain"),
    TrailStepKind.OUTCOME: ("The provider answered", "check", "plain"),
    TrailStepKind.REPORTED: ("The provider reported", "check", "plain"),
    TrailStepKind.CALL_ENDED: ("The call has ended", "phone", "plain"),
    TrailStepKind.ENDED: ("Ended", "flag", "plain"),
}
_TONES: Final[Mapping[str, Tone]] = {
    "accepted": "good",
    "delivered": "good",
    "completed": "good",
    "active": "good",
    "failed": "bad",
    "refused": "bad",
    "cancelled": "bad",
    "expired": "bad",
    "skipped": "warn",
    "paused": "warn",
    "unknown": "warn",
    "unconfirmed": "warn",
    "deferred": "warn",
}
_OUTCOMES: Final[Mapping[str, str]] = {
    "accepted": "The provider accepted the request",
    "refused": "The provider refused the request",
    "not_sent": "The request reached no provider",
    "withdrawn": "The last check stopped the request: nothing was sent",
    "deferred": "The provider said: not now",
    "unknown": "No clear answer came: nobody knows what became of the request",
    "unconfirmed": "No evidence came before the deadline",
    "given_up": "An operator let it be tried again; its outcome stays unknown",
}
_MOVES: Final[Mapping[str, str]] = {
    "active": "The campaign was started or resumed",
    "paused": "The campaign was paused",
    "scheduled": "The campaign was scheduled",
    "ready": "The campaign's start was taken back",
    "cancelled": "The campaign was cancelled",
    "expired": "The campaign has expired",
    "completed": "The campaign was completed",
}


@attrs.frozen(kw_only=True)
class StepView:
    """A step of the trail.

    Attributes:
        text: The event.
        why: Why, and until when.
        rule: The rule that decided it.
        source: The text of the rule, and its origin.
        sent: The text of the message that was sent; empty without one.
        received: The text of the message that came back; empty without one.
    """

    at: MomentView
    icon: str
    tone: Tone
    text: str
    why: str
    rule: str
    source: str
    sent: str = ""
    received: str = ""


@attrs.frozen(kw_only=True)
class DayView:
    """The steps of a day."""

    day: str
    steps: Sequence[StepView]


@attrs.frozen(kw_only=True)
class _Known:
    """The data that the steps are described with."""

    campaign: Campaign
    clocks: Clocks
    now: datetime
    requests: Mapping[str, Dispatch]
    failures: Mapping[str, ProviderFailure]
    replies: Mapping[datetime, str]
    people: Mapping[str, str]
    zones: str


async def steps_of(
    visit: Visit,
    campaign: Campaign,
    recipient: Recipient,
    *,
    requests: Sequence[Dispatch],
    history: ContactHistory,
    failures: Mapping[str, ProviderFailure],
) -> Sequence[DayView]:
    """Return the steps of a contact by day, the first at the top."""
    replies, people = await asyncio.gather(
        _replies(visit, recipient, history),
        names_of(visit.engine, (step.actor for step in history.steps if step.actor)),
    )
    known = _Known(
        campaign=campaign,
        clocks=visit.clocks(campaign.timezone),
        now=visit.now,
        requests={one.id: one for one in requests},
        failures=failures,
        replies=replies,
        people=people,
        zones=describe_zones(history) or "",
    )
    days: dict[str, list[StepView]] = {}
    for step in history.steps:
        days.setdefault(known.clocks.weekday(step.at), []).append(_step(step, known))
    return [DayView(day=day, steps=steps) for day, steps in days.items()]


async def _replies(visit: Visit, recipient: Recipient, history: ContactHistory) -> Mapping[datetime, str]:
    """Return the texts that came from a contact, by the time of their arrival."""
    if recipient.phone is None or not any(step.what is TrailStepKind.REPLIED for step in history.steps):
        return {}
    items = await visit.engine.contacts.list_history(visit.place.id, recipient.phone, limit=_MOST_MESSAGES)
    return {one.at: one.text for one in items if one.direction == "inbound" and one.text is not None}


def _step(step: TrailStep, known: _Known) -> StepView:
    text, icon, tone = _KINDS.get(step.what, ("", "circle-alert", "plain"))
    state = step.state or ""
    request = known.requests.get(step.dispatch_id or "")
    match step.what:
        case TrailStepKind.CAMPAIGN:
            text, icon = _MOVES.get(state, f"The campaign is {state}"), words.STATES.get(state, ("", "flag", ""))[1]
        case TrailStepKind.WORKSPACE:
            text = f"The workspace: {state.replace('_', ' ')}"
        case TrailStepKind.OUTCOME:
            text = _OUTCOMES.get(state, text)
        case TrailStepKind.REPORTED | TrailStepKind.CALL_ENDED:
            text = f"{text}: {state.replace('_', ' ')}" if state else text
        case TrailStepKind.ENDED:
            text = f"Ended: {words.CONTACT_STATES.get(state, (state, '', ''))[0].lower()}"
        case TrailStepKind.HELD:
            text = f"Waits for {LIMITS[step.rule.value]}" if step.rule.value in LIMITS else "Waits"  # type: ignore[index]
        case _:
            pass
    return StepView(
        at=moment_of(step.at, known.now, known.clocks, seconds=True),
        icon=icon,
        tone=_TONES.get(state, tone),
        text=text,
        why=_why(step, request, known),
        rule=step.rule.value.replace("_", " "),
        source=step.rule.text,
        sent=_sent(step, request),
        received=known.replies.get(step.at, "") if step.what is TrailStepKind.REPLIED else "",
    )


def _sent(step: TrailStep, request: Dispatch | None) -> str:
    return (request.body or "") if step.what is TrailStepKind.INTENT and request is not None else ""


def _why(step: TrailStep, request: Dispatch | None, known: _Known) -> str:
    """Return why a step came, until when it holds, how often it was decided, and who did it."""
    parts = []
    if step.what is TrailStepKind.CAMPAIGN:
        parts.append(words.pause_reason(step.reason))
    elif step.reason:
        said = describe_reason(step.state or "", step.reason, known.campaign.channel)
        parts.append(said or step.reason.replace("_", " "))
    if step.rule is TrailRule.CONTACT_HOURS:
        parts.append(known.zones)
    if step.what is TrailStepKind.INTENT and request is not None and request.segments:
        parts.append(words.plural(request.segments, "segment"))
    if step.what in {TrailStepKind.OUTCOME, TrailStepKind.REPORTED}:
        failure = known.failures.get(step.dispatch_id or "")
        if failure is not None and failure.meaning is not None:
            parts.append(failure.meaning)
    if step.until is not None:
        name = "not before" if step.what is TrailStepKind.INTENT else "until"
        parts.append(f"{name} {known.clocks.moment(step.until, known.now, seconds=True)}")
    if step.attempt is not None and step.attempt > 1:
        parts.append(f"attempt {step.attempt}")
    if step.leg == 2:
        parts.append("second call")
    if step.repeats:
        parts.append(f"decided again {words.plural(step.repeats, 'time')}")
    if step.actor:
        parts.append(f"by {known.people[step.actor]}")
    return " · ".join(words.visible(part) for part in parts if part)
