"""The outcome of a call, and the recipient of a calling campaign after it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.call import CallOutcome
from outreach.models.dispatch import ASSUMED_SENT, DispatchOutcome
from outreach.models.recipient import Recipient
from outreach.models.settings import CallSettings
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus
from outreach.rules.settlement import (
    ACCOUNT_FAILURES,
    TRANSIENT_FAILURES,
    Backoff,
    ended_recipient,
    mark_uncertain,
    may_continue,
    requeue,
    waiting,
)

RETRYABLE_OUTCOMES: Final = frozenset({"busy", "no_answer", "declined", "voicemail"})
"""Call outcomes that are retried within one shared budget (docs/rules.md#retry)."""

PROVISIONAL_OUTCOMES: Final = frozenset({None, "positive", "negative", "callback"})
"""Outcomes of an answered call from which nothing follows but a result: a later verdict may change them."""

_ENDED_BY_VERDICT: Final = frozenset(
    {
        *(RecipientStatus.WAITING, RecipientStatus.COMPLETED, RecipientStatus.FAILED),
        *(RecipientStatus.CANCELED, RecipientStatus.EXPIRED),
    }
)
"""Where a recipient may stand after a machine has answered, but for one who has opted out or was erased since."""

SECOND_LEG_DEADLINE: Final = timedelta(seconds=10)
"""A double dial's second call starts within this time after the first one, or is dropped."""

DOUBLE_DIAL: Final = "double_dial"


def settle_call_recipient(
    recipient: Recipient,
    outcome: DispatchOutcome,
    *,
    campaign: CampaignStatus,
    settings: CallSettings,
    backoff: Backoff,
    now: datetime,
) -> Recipient:
    """Return a recipient after the outcome of its call's dispatch."""
    match outcome.state:
        case DispatchState.ACCEPTED if not recipient.is_open:
            # Evidence after the deadline reopens nothing; the end of the call will follow.
            return recipient
        case DispatchState.ACCEPTED if outcome.reason == ASSUMED_SENT:
            # There is no known call that could end.
            taken = attrs.evolve(recipient, dispatched=True, successful=False, tries=0)
            return ended_recipient(taken, RecipientStatus.COMPLETED, ASSUMED_SENT, now)
        case DispatchState.ACCEPTED:
            return attrs.evolve(
                recipient,
                status=RecipientStatus.IN_PROGRESS,
                reason="calling",
                due_at=None,
                dispatched=True,
                tries=0,
                ended_at=None,
            )
        case DispatchState.REFUSED if outcome.reason in ACCOUNT_FAILURES and recipient.leg == 1:
            return requeue(recipient, outcome, campaign=campaign, backoff=backoff, now=now)
        case DispatchState.REFUSED if outcome.reason in ACCOUNT_FAILURES:
            # The second call of a double dial is made at once or not at all.
            return _retry_or_fail(recipient, "no_answer", campaign=campaign, settings=settings, now=now)
        case DispatchState.REFUSED:
            tried = attrs.evolve(recipient, dispatched=True, successful=False, tries=0)
            reason = outcome.reason or "rejected"
            if reason == "temporary":
                return _retry_or_fail(tried, reason, campaign=campaign, settings=settings, now=now)
            return ended_recipient(tried, RecipientStatus.FAILED, reason, now)
        case DispatchState.UNKNOWN | DispatchState.UNCONFIRMED:
            return mark_uncertain(recipient, outcome, now)
        case _ if recipient.leg == 2:
            # The second call is not retried, not even by an operator: the attempt ends with the first call's no answer.
            return _retry_or_fail(recipient, "no_answer", campaign=campaign, settings=settings, now=now)
        case _:
            return requeue(recipient, outcome, campaign=campaign, backoff=backoff, now=now)


def end_call(
    recipient: Recipient,
    outcome: CallOutcome | None,
    *,
    campaign: CampaignStatus,
    double_dial: bool,
    settings: CallSettings,
    now: datetime,
    reason: str | None = None,
    message_ends: bool = False,
) -> Recipient:
    """Return a recipient after the end of its call.

    A double dial is one attempt of two calls: the second follows a no answer at once. A failed call with a transient
    `reason` reached nobody, and is retried within the budget. With `message_ends` a voicemail got the message, and ends
    the contact.
    """
    done = attrs.evolve(recipient, dispatched=True, tries=0)
    if outcome == "failed":
        if reason in TRANSIENT_FAILURES:
            return _retry_or_fail(done, str(reason), campaign=campaign, settings=settings, now=now)
        return ended_recipient(done, RecipientStatus.FAILED, reason or "failed", now)
    if outcome not in RETRYABLE_OUTCOMES or (outcome == "voicemail" and message_ends):
        reason = None if outcome == "positive" else outcome
        return ended_recipient(
            attrs.evolve(done, successful=outcome == "positive"), RecipientStatus.COMPLETED, reason, now
        )
    if outcome == "no_answer" and double_dial and recipient.leg == 1 and may_continue(recipient, campaign):
        return attrs.evolve(waiting(done, DOUBLE_DIAL, now), leg=2)
    return _retry_or_fail(done, str(outcome), campaign=campaign, settings=settings, now=now)


def apply_late_analysis(recipient: Recipient, outcome: CallOutcome | None) -> Recipient:
    """Return a recipient after a verdict that came after the end; an ended one is not reopened."""
    if (
        outcome is None
        or recipient.status is not RecipientStatus.COMPLETED
        or recipient.reason not in PROVISIONAL_OUTCOMES
    ):
        return recipient
    positive = outcome == "positive"
    return attrs.evolve(recipient, successful=positive, reason=None if positive else outcome)


def end_by_verdict(recipient: Recipient, outcome: CallOutcome, now: datetime) -> Recipient:
    """Return a recipient whose call a person answered, not a machine as reported: no retry is due any more."""
    if recipient.status not in _ENDED_BY_VERDICT:
        return recipient
    ended_at = now if recipient.ended_at is None else recipient.ended_at
    done = attrs.evolve(recipient, status=RecipientStatus.COMPLETED, reason=None, due_at=None, ended_at=ended_at)
    return apply_late_analysis(done, outcome)


def second_leg_deadline(recipient: Recipient) -> datetime | None:
    """Return the latest start of a double dial's second call; None if none is due."""
    waits = recipient.status is RecipientStatus.WAITING and recipient.reason == DOUBLE_DIAL
    return recipient.due_at + SECOND_LEG_DEADLINE if waits and recipient.due_at is not None else None


def second_leg_is_late(recipient: Recipient, now: datetime) -> bool:
    """Return whether a recipient's second call may no longer start, or was postponed for another reason."""
    until = second_leg_deadline(recipient)
    if until is None:
        return recipient.status is RecipientStatus.WAITING and recipient.leg == 2
    return now > until


def drop_second_leg(
    recipient: Recipient, *, campaign: CampaignStatus, settings: CallSettings, now: datetime
) -> Recipient:
    """Return a recipient whose second call cannot be made at once: the attempt ends with the first one's no answer."""
    return _retry_or_fail(recipient, "no_answer", campaign=campaign, settings=settings, now=now)


def _retry_or_fail(
    recipient: Recipient, reason: str, *, campaign: CampaignStatus, settings: CallSettings, now: datetime
) -> Recipient:
    fresh = attrs.evolve(recipient, successful=False, leg=1, tries=0)
    if recipient.attempts < settings.retry_max_attempts and may_continue(recipient, campaign):
        return waiting(fresh, f"retry_{reason}", now + timedelta(minutes=settings.retry_delay_minutes))
    return ended_recipient(fresh, RecipientStatus.FAILED, reason, now)
