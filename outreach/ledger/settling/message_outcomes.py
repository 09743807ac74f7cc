"""The effects of outcomes and reports on single messages."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.ledger import provider_throttles
from outreach.ledger.common import quarantine_reason
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.message import Message
from outreach.models.reports import MessageReport
from outreach.models.states import DispatchState, MessageStatus
from outreach.models.work import WorkUnit
from outreach.rules.settlement import NOT_REACHED, earlier_acceptance, is_authoritative
from outreach.storage.unit_of_work import Transaction


def settle(tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome, now: datetime) -> None:
    """Merge a dispatch's outcome into its message."""
    message = _message_if_authoritative(tx, dispatch)
    if message is None:
        return
    unit = WorkUnit("message", message.workspace_id, message.id)
    standing = _earlier_acceptance(tx, dispatch, outcome)
    if standing is not None:
        tx.messages.update(_accepted(message, standing, now))
        tx.work.schedule(unit, None)
        return
    match outcome.state:
        case DispatchState.ACCEPTED:
            after = _accepted(message, dispatch, now)
        # A refusal of credentials that were replaced since says nothing about today's: it goes out again.
        case DispatchState.REFUSED if not provider_throttles.is_refusal_of_old_credentials(tx, dispatch, outcome, now):
            after = attrs.evolve(
                message, status=MessageStatus.FAILED, reason=outcome.reason or "rejected", ended_at=now
            )
        case DispatchState.UNKNOWN:
            after = attrs.evolve(message, status=MessageStatus.UNKNOWN, reason=outcome.reason)
        case DispatchState.UNCONFIRMED:
            after = attrs.evolve(message, status=MessageStatus.UNCONFIRMED, reason=outcome.reason, ended_at=now)
        case state if (
            state is not DispatchState.GIVEN_UP and (held := quarantine_reason(tx, dispatch.epoch)) is not None
        ):
            # The original of this database may send the message as well.
            after = attrs.evolve(message, status=MessageStatus.CANCELED, reason=held, ended_at=now)
        case _:
            tx.messages.update(
                attrs.evolve(message, status=MessageStatus.QUEUED, reason=outcome.reason, attempts=message.attempts - 1)
            )
            # The backoff and the expiry are decided at the next commit.
            tx.work.schedule(unit, now)
            return
    tx.messages.update(after)
    tx.work.schedule(unit, None)


def apply_receipt(tx: Transaction, dispatch: Dispatch, event: MessageReport) -> None:
    """Merge a delivery receipt that moved the status up."""
    message = _message_if_authoritative(tx, dispatch)
    if message is not None:
        reason = (event.reason or "rejected") if event.status is MessageStatus.FAILED else None
        tx.messages.update(attrs.evolve(message, status=event.status, reason=reason))


def _message_if_authoritative(tx: Transaction, dispatch: Dispatch) -> Message | None:
    """Return the message if this dispatch is authoritative for it."""
    message = tx.messages.get(dispatch.workspace_id, dispatch.message_id or "")
    if message is None or dispatch.try_number == message.tries:
        return message
    return message if is_authoritative(dispatch, tx.dispatches.of_message(message.workspace_id, message.id)) else None


def _earlier_acceptance(tx: Transaction, dispatch: Dispatch, outcome: DispatchOutcome) -> Dispatch | None:
    if outcome.state not in NOT_REACHED or dispatch.try_number == 1:
        return None
    return earlier_acceptance(dispatch, tx.dispatches.of_message(dispatch.workspace_id, dispatch.message_id or ""))


def _accepted(message: Message, dispatch: Dispatch, now: datetime) -> Message:
    return attrs.evolve(
        message,
        # A message put back meanwhile has spent its attempt after all.
        attempts=max(message.attempts, dispatch.attempt),
        status=dispatch.report or MessageStatus.ACCEPTED,
        reason="rejected" if dispatch.report is MessageStatus.FAILED else None,
        provider_id=dispatch.provider_id,
        ended_at=now,
    )
