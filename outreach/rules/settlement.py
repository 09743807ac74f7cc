"""Recipients after the outcomes and receipts of their dispatches: pure functions, one rule each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import attrs

from outreach.core.copying import copy_with
from outreach.models.dispatch import FAILURE_CLASSES, DispatchOutcome
from outreach.models.recipient import Recipient
from outreach.models.settings import SmsSettings
from outreach.models.states import (
    TERMINAL_CAMPAIGN_STATUSES,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    RecipientStatus,
)

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
    recipient: Recipient, *, attempt: int, try_number: int, campaign: CampaignStatus, backoff: Backoff, now: datetime
) -> Recipient | None:
    """Return a recipient whose accepted request ended at a limit, waiting for another try; no attempt is spent.

    None if the failure counts as any other: the campaign or the recipient has ended otherwise, or the attempt has been
    tried too often.
    """
    waits_for_more = recipient.status in {RecipientStatus.IN_PROGRESS, RecipientStatus.WAITING}
    sent = recipient.status is RecipientStatus.COMPLETED and recipient.reason in {None, "no_receipt"}
    if not (waits_for_more or sent) or campaign in TERMINAL_CAMPAIGN_STATUSES or try_number >= MAX_LIMITED_TRIES:
        return None
    back = attrs.evolve(recipient, attempts=attempt - 1, tries=try_number, successful=False)
    return waiting(back, "deferred", now + backoff.delay(try_number, None))


def expire_receipt_wait(recipient: Recipient, now: datetime) -> Recipient:
    """Return a recipient whose accepted message got no final receipt in time, as completed."""
    return ended_recipient(recipient, RecipientStatus.COMPLETED, "no_receipt", now)
