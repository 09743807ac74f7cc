"""Recipients, and what happened to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from outreach.clock import format_timestamp
from outreach.convert.manage.documents import Document, document_of
from outreach.models.base import Channel
from outreach.models.failures import ProviderFailure
from outreach.models.recipient import Recipient, RecipientCount
from outreach.models.states import MessageStatus, RecipientStatus
from outreach.models.trail import TRAIL_RULES, ContactHistory, TrailStep, TrailStepKind
from outreach.policy.explanations import describe_reason

_TOLD_BY: Final = frozenset({TrailStepKind.OUTCOME, TrailStepKind.REPORTED, TrailStepKind.CALL_ENDED})
"""The steps that a provider's failure belongs to."""


def write_recipient(recipient: Recipient, channel: Channel) -> dict[str, Any]:
    """Return a recipient, with its reason in words."""
    why = _why(recipient.status, recipient.reason, channel)
    return {**document_of(recipient, "campaign_id"), "why": why}


def write_recipient_count(
    group: RecipientCount, channel: Channel, due_times: Mapping[tuple[str, str | None], datetime]
) -> dict[str, Any]:
    """Return how many recipients are in a state for a reason, in words, and when the first of them is due."""
    until = due_times.get((group.status, group.reason))
    return {
        **document_of(group),
        "why": _why(group.status, group.reason, channel),
        "until": None if until is None else format_timestamp(until),
    }


def write_history(history: ContactHistory, failures: Mapping[str, ProviderFailure], channel: Channel) -> dict[str, Any]:
    """Return what happened to a recipient, step by step, with each rule and reason in words.

    Args:
        history: The history.
        failures: What went wrong at the provider, by dispatch.
        channel: The campaign's channel.
    """
    why = None
    if history.status is not None:
        why = describe_reason(history.status, history.reason, channel, report=_last_report(history.steps))
    return {
        **document_of(history, "steps"),
        "why": why,
        "steps": [_step(step, failures.get(step.dispatch_id or "")) for step in history.steps],
    }


def write_failure(failure: ProviderFailure | None) -> dict[str, Any]:
    """Return a provider's code and words, what they mean and what to do; each is null without a failure."""
    explanation = None if failure is None else failure.explanation
    return {
        "error_code": None if failure is None else failure.error_code,
        "error_message": None if failure is None else failure.error_message,
        "error_meaning": None if explanation is None else explanation.meaning,
        "error_advice": None if explanation is None else explanation.advice,
    }


def _why(status: str, reason: str | None, channel: Channel) -> str | None:
    """Return a state and its reason in words that hold whatever the carrier has reported since."""
    if channel == "sms" and (status, reason) == (RecipientStatus.COMPLETED, None):
        return "sent"
    return describe_reason(status, reason, channel)


def _last_report(steps: Sequence[TrailStep]) -> MessageStatus | None:
    """Return the carrier's report on the last message, if there is one."""
    for step in reversed(steps):
        if step.what is TrailStepKind.INTENT:
            break
        if step.what is TrailStepKind.REPORTED and step.state in set(MessageStatus):
            return MessageStatus(step.state)
    return None


def _step(step: TrailStep, failure: ProviderFailure | None) -> Document:
    told = failure if step.what in _TOLD_BY else None
    return {**document_of(step), "rule_text": TRAIL_RULES[step.rule], **write_failure(told)}
