"""Recipients after the outcomes and receipts of their dispatches: pure functions, one rule each.

Also the outcome of a call, the authoritative dispatch of a recipient, and the error budget of campaigns
(docs/rules.md#error-budget).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import attrs

from outreach.core.copying import copy_with
from outreach.models.call import CallOutcome
from outreach.models.campaign import Recipient
from outreach.models.dispatch import ASSUMED_SENT, FAILURE_CLASSES, Dispatch, DispatchOutcome
from outreach.models.settings import CallSettings, SmsSettings
from outreach.models.states import (
    TERMINAL_CAMPAIGN_STATUSES,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    RecipientStatus,
)

JUDGED_DISPATCHES: Final = 20
"""How many of a campaign's latest dispatches are judged."""

MAX_CONSECUTIVE_FAILURES: Final = 5
MAX_FAILURES: Final = 10

PROVIDER_FAILURES: Final = frozenset(name for name, traits in FAILURE_CLASSES.items() if traits.counts)
"""Failures of the provider or the account; invalid, busy or opted-out contacts are none."""

LOCAL_INTERRUPTIONS: Final = frozenset({"worker_lost", "interrupted"})
"""Reasons of unknown dispatches that are our own fault."""


def counts_against_budget(dispatch: Dispatch) -> bool:
    """Return whether a dispatch counts against its campaign's error budget."""
    if dispatch.state in {DispatchState.UNKNOWN, DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP}:
        return dispatch.reason not in LOCAL_INTERRUPTIONS
    # An accepted one has such a reason if its call failed later, or by its receipt.
    answered = dispatch.state in {DispatchState.REFUSED, DispatchState.ACCEPTED}
    return answered and dispatch.reason in PROVIDER_FAILURES


def is_spent(history: Sequence[Dispatch]) -> bool:
    """Return whether the budget is spent: five failures in a row, or half of the last twenty.

    `history` are the campaign's latest dispatches that tell something of its provider, newest first
    (`tx.dispatches.judged`).
    """
    troubles = [counts_against_budget(dispatch) for dispatch in history[:JUDGED_DISPATCHES]]
    in_a_row = len(troubles) >= MAX_CONSECUTIVE_FAILURES and all(troubles[:MAX_CONSECUTIVE_FAILURES])
    return in_a_row or (len(troubles) == JUDGED_DISPATCHES and sum(troubles) >= MAX_FAILURES)


NOT_REACHED: Final = frozenset(
    {DispatchState.REFUSED, DispatchState.NOT_SENT, DispatchState.WITHDRAWN, DispatchState.DEFERRED}
)
"""Outcomes that certainly reached nobody."""

_INCONCLUSIVE: Final = NOT_REACHED | {DispatchState.GIVEN_UP}


def is_authoritative(dispatch: Dispatch, others: Iterable[Dispatch]) -> bool:
    """Return whether a dispatch decides about its recipient, message or call.

    Evidence on a dispatch that an operator retried counts while no later one may have reached anybody; afterwards it
    only changes the dispatch itself. `others` are the dispatches of the same recipient and step, message or call.
    """
    return not any(_order(other) > _order(dispatch) and other.state not in _INCONCLUSIVE for other in others)


def earlier_acceptance(dispatch: Dispatch, others: Iterable[Dispatch]) -> Dispatch | None:
    """Return the latest earlier dispatch that has reached the contact after all; a later one must not be retried then.

    Within one attempt an acceptance stands, unless it ended at a limit of the provider. A message's acceptance also
    stands across attempts, unless its receipt says that it failed. A call of an earlier attempt was accepted and
    reached nobody: hence the later attempt.
    """
    accepted = (
        other
        for other in others
        if other.state is DispatchState.ACCEPTED
        and _order(other) < _order(dispatch)
        and _acceptance_stands(other, dispatch)
    )
    return max(accepted, key=_order, default=None)


def is_earlier_acceptance(dispatch: Dispatch, others: Collection[Dispatch]) -> bool:
    """Return whether the latest dispatch reached nobody, and this is the one that stands after all."""
    latest = max(others, key=_order, default=dispatch)
    standing = earlier_acceptance(latest, others) if latest.state in NOT_REACHED else None
    return standing is not None and standing.id == dispatch.id


def _acceptance_stands(other: Dispatch, dispatch: Dispatch) -> bool:
    if other.reason == LIMITED:
        return False
    if (other.attempt, other.leg) == (dispatch.attempt, dispatch.leg):
        return True
    return dispatch.channel == "sms" and other.report is not MessageStatus.FAILED


def _order(dispatch: Dispatch) -> tuple[int, int, int]:
    return dispatch.attempt, dispatch.leg, dispatch.try_number


TRANSIENT_FAILURES: Final = frozenset(name for name, traits in FAILURE_CLASSES.items() if traits.passes)
"""Failure classes that a later attempt may overcome."""

LIMITED: Final = "rate_limited"
"""The failure class of a limit at the provider or a network: nobody was reached."""

MAX_LIMITED_TRIES: Final = 10
"""How many accepted requests of one attempt may end at a limit before the attempt has failed."""

ACCOUNT_FAILURES: Final = frozenset(name for name, traits in FAILURE_CLASSES.items() if traits.pauses)
"""Refusals of the account: the contact's turn comes again when the campaign is resumed."""

MAX_RETRY_AFTER: Final = timedelta(days=1)
"""The longest throttle, whatever the provider asks for."""

RECEIPT_WAIT: Final = timedelta(hours=4)
"""The default wait for a receipt while retry is on (docs/delivery-contract.md#rule-13)."""

_DELIVERABLE: Final = frozenset(
    {RecipientStatus.IN_PROGRESS, RecipientStatus.COMPLETED, RecipientStatus.FAILED, RecipientStatus.WAITING}
)
"""The statuses that `delivered` completes; a waiting recipient would be contacted a second time."""

_SETTLES_TO: Final[Mapping[DispatchState, frozenset[DispatchState]]] = MappingProxyType(
    {
        DispatchState.DISPATCHING: frozenset(DispatchState)
        - {DispatchState.DISPATCHING, DispatchState.UNCONFIRMED, DispatchState.GIVEN_UP},
        DispatchState.UNKNOWN: frozenset(
            {
                DispatchState.ACCEPTED,
                DispatchState.REFUSED,
                DispatchState.NOT_SENT,
                # A worker taken for lost reports that it did nothing.
                DispatchState.WITHDRAWN,
                DispatchState.DEFERRED,
                DispatchState.UNCONFIRMED,
                DispatchState.GIVEN_UP,
            }
        ),
        DispatchState.UNCONFIRMED: frozenset({DispatchState.ACCEPTED, DispatchState.REFUSED}),
        DispatchState.GIVEN_UP: frozenset({DispatchState.ACCEPTED, DispatchState.REFUSED}),
    }
)


def may_settle(state: DispatchState, outcome: DispatchState) -> bool:
    """Return whether a dispatch in this state takes this outcome."""
    return outcome in _SETTLES_TO.get(state, frozenset())


@attrs.frozen(kw_only=True)
class Backoff:
    """The delays after outcomes.

    Attributes:
        first: The first delay of a deferred dispatch, doubled at each try.
        longest: The longest delay, unless the provider asks for more.
        receipt: How long an accepted message waits for its final receipt while retry is on.
    """

    first: timedelta
    longest: timedelta
    receipt: timedelta = RECEIPT_WAIT

    def delay(self, tries: int, retry_after_seconds: float | None) -> timedelta:
        """Return the delay after this many tries; the provider's Retry-After counts if it is longer."""
        doubled = min(self.first * (1 << min(max(tries - 1, 0), 16)), self.longest)
        retry_after = timedelta(seconds=min(max(retry_after_seconds or 0.0, 0.0), MAX_RETRY_AFTER.total_seconds()))
        return max(doubled, retry_after)


def ended_recipient(recipient: Recipient, status: RecipientStatus, reason: str | None, now: datetime) -> Recipient:
    """Return a recipient that has ended."""
    return copy_with(recipient, status=status, reason=reason, due_at=None, ended_at=now)


def waiting(recipient: Recipient, reason: str, due_at: datetime) -> Recipient:
    """Return a recipient that waits."""
    return attrs.evolve(recipient, status=RecipientStatus.WAITING, reason=reason, due_at=due_at, ended_at=None)


def closing_status(status: CampaignStatus) -> RecipientStatus | None:
    """Return how open recipients of a campaign in this status end; None if they continue."""
    match status:
        case CampaignStatus.CANCELLED:
            return RecipientStatus.CANCELED
        case CampaignStatus.EXPIRED:
            return RecipientStatus.EXPIRED
        case _:
            return None


def may_continue(recipient: Recipient, campaign: CampaignStatus) -> bool:
    """Return whether a recipient may be contacted again: neither it nor its campaign has ended."""
    return recipient.is_open and campaign not in TERMINAL_CAMPAIGN_STATUSES


def close_recipient(recipient: Recipient, closing: RecipientStatus, now: datetime) -> Recipient:
    """Return a pending or waiting recipient that ends with its campaign."""
    return ended_recipient(recipient, closing, None, now)


def settle_recipient(
    recipient: Recipient,
    outcome: DispatchOutcome,
    *,
    campaign: CampaignStatus,
    settings: SmsSettings,
    backoff: Backoff,
    now: datetime,
) -> Recipient:
    """Return a recipient of an SMS campaign after the outcome of its dispatch (docs/states.md#recipients)."""
    match outcome.state:
        case DispatchState.ACCEPTED:
            awaits = settings.retry_enabled and may_continue(recipient, campaign)
            return copy_with(
                recipient,
                dispatched=True,
                successful=True,
                tries=0,
                status=RecipientStatus.IN_PROGRESS if awaits else RecipientStatus.COMPLETED,
                reason="awaiting_receipt" if awaits else None,
                due_at=now + backoff.receipt if awaits else None,
                ended_at=None if awaits else now,
            )
        case DispatchState.REFUSED if outcome.reason in ACCOUNT_FAILURES:
            return requeue(recipient, outcome, campaign=campaign, backoff=backoff, now=now)
        case DispatchState.REFUSED:
            tried = attrs.evolve(recipient, dispatched=True, successful=False, tries=0)
            return fail_attempt(tried, outcome.reason or "rejected", campaign=campaign, settings=settings, now=now)
        case DispatchState.UNKNOWN | DispatchState.UNCONFIRMED:
            return mark_uncertain(recipient, outcome, now)
        case _:
            return requeue(recipient, outcome, campaign=campaign, backoff=backoff, now=now)


def mark_uncertain(recipient: Recipient, outcome: DispatchOutcome, now: datetime) -> Recipient:
    """Return a recipient whose latest dispatch is unknown, for now or for good."""
    if outcome.state is DispatchState.UNCONFIRMED:
        return ended_recipient(recipient, RecipientStatus.UNCONFIRMED, outcome.reason, now)
    return attrs.evolve(recipient, status=RecipientStatus.UNKNOWN, reason=outcome.reason, dispatched=True, due_at=None)


def requeue(
    recipient: Recipient, outcome: DispatchOutcome, *, campaign: CampaignStatus, backoff: Backoff, now: datetime
) -> Recipient:
    """Return a recipient whose dispatch reached nobody or is retried; no attempt is spent."""
    if not recipient.is_open:
        return _settle_late(recipient, outcome, now)
    attempts = recipient.attempts - 1 if recipient.leg == 1 else recipient.attempts
    back = attrs.evolve(recipient, attempts=max(attempts, 0))
    if outcome.state is not DispatchState.GIVEN_UP:
        # An earlier step of the flow may have been sent; a flow that begins with a wait has sent nothing yet.
        back = attrs.evolve(back, dispatched=back.attempts > 0 or back.successful)
    closing = closing_status(campaign)
    if closing is not None:
        return close_recipient(back, closing, now)
    if outcome.state is DispatchState.WITHDRAWN:
        return waiting(back, "withdrawn", now)
    if outcome.state is DispatchState.GIVEN_UP:
        return waiting(back, "operator_retry", now)
    return waiting(back, "deferred", now + backoff.delay(recipient.tries, outcome.retry_after_seconds))


def _settle_late(recipient: Recipient, outcome: DispatchOutcome, now: datetime) -> Recipient:
    """Return a recipient that ended before its dispatch was known to reach nobody: if in doubt, as failed."""
    if recipient.status is not RecipientStatus.UNCONFIRMED:
        return recipient
    refused = attrs.evolve(recipient, dispatched=True, successful=False, tries=0)
    return ended_recipient(refused, RecipientStatus.FAILED, outcome.reason, now)


def fail_attempt(
    recipient: Recipient, reason: str, *, campaign: CampaignStatus, settings: SmsSettings, now: datetime
) -> Recipient:
    """Return a recipient after a failed attempt: it waits for another one, or has failed."""
    failed = attrs.evolve(recipient, successful=False)
    may_retry = (
        settings.retry_enabled
        and reason in TRANSIENT_FAILURES
        and recipient.attempts < settings.retry_max_attempts
        and may_continue(recipient, campaign)
    )
    if may_retry:
        return waiting(failed, "retry", now + timedelta(minutes=settings.retry_delay_minutes))
    return ended_recipient(failed, RecipientStatus.FAILED, reason, now)


def recipient_after_receipt(
    recipient: Recipient,
    status: MessageStatus,
    reason: str | None,
    *,
    campaign: CampaignStatus,
    settings: SmsSettings,
    now: datetime,
) -> Recipient:
    """Return a recipient after a receipt for its latest dispatch that moved the status up."""
    if status is MessageStatus.DELIVERED:
        if recipient.status is RecipientStatus.COMPLETED and recipient.successful and recipient.reason != "no_receipt":
            return recipient
        if recipient.status in _DELIVERABLE:
            done = attrs.evolve(recipient, successful=True)
            return ended_recipient(done, RecipientStatus.COMPLETED, None, recipient.ended_at or now)
        return recipient
    if status is MessageStatus.FAILED and recipient.status in {RecipientStatus.IN_PROGRESS, RecipientStatus.COMPLETED}:
        waited = recipient.due_at is not None and recipient.due_at <= now
        if recipient.status is RecipientStatus.COMPLETED or waited:
            # A late failure counts, but opens nothing, also if nobody has noticed yet that the wait is over.
            return ended_recipient(
                attrs.evolve(recipient, successful=False), RecipientStatus.FAILED, reason or "rejected", now
            )
        return fail_attempt(recipient, reason or "rejected", campaign=campaign, settings=settings, now=now)
    return recipient


def wait_for_limit(
    recipient: Recipient,
    dispatch: Dispatch,
    siblings: Iterable[Dispatch],
    *,
    campaign: CampaignStatus,
    backoff: Backoff,
    now: datetime,
) -> Recipient | None:
    """Return a recipient whose accepted request ended at a limit, waiting for another try; no attempt is spent.

    None if the failure counts as any other: the campaign or the recipient has ended otherwise, or too many requests of
    the attempt ended so. `siblings` are the dispatches of the same recipient and step.
    """
    # A deferral has the same reason: the provider took nothing then.
    limited = [
        one
        for one in siblings
        if (one.state, one.reason, one.attempt) == (DispatchState.ACCEPTED, LIMITED, dispatch.attempt)
    ]
    waits_for_more = recipient.status in {RecipientStatus.IN_PROGRESS, RecipientStatus.WAITING}
    sent = recipient.status is RecipientStatus.COMPLETED and recipient.reason in {None, "no_receipt"}
    if not (waits_for_more or sent) or campaign in TERMINAL_CAMPAIGN_STATUSES or len(limited) >= MAX_LIMITED_TRIES:
        return None
    back = attrs.evolve(recipient, attempts=dispatch.attempt - 1, tries=dispatch.try_number, successful=False)
    return waiting(back, "deferred", now + backoff.delay(dispatch.try_number, None))


def expire_receipt_wait(recipient: Recipient, now: datetime) -> Recipient:
    """Return a recipient whose accepted message got no final receipt in time, as completed."""
    return ended_recipient(recipient, RecipientStatus.COMPLETED, "no_receipt", now)


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
"""A double dial's second call starts within this time after the report of the first one's end, or is dropped."""

LATEST_END_REPORT: Final = timedelta(seconds=60)
"""A first call whose end is reported later than this after it has no second one. Polls report it some seconds late."""

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
    ended_at: datetime,
    now: datetime,
    reason: str | None = None,
    message_ends: bool = False,
) -> Recipient:
    """Return a recipient after the end of its call.

    A double dial is one attempt of two calls: the second follows a no answer at once, if it is known in time. A failed
    call with a transient `reason` reached nobody, and is retried within the budget. With `message_ends` a voicemail got
    the message, and ends the contact.
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
    second = double_dial and recipient.leg == 1 and now - ended_at <= LATEST_END_REPORT
    if outcome == "no_answer" and second and may_continue(recipient, campaign):
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
