"""What outcomes and reports do to single messages."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.models.dispatch import Dispatch, Outcome
from outreach.models.message import Message
from outreach.models.reports import MessageReport
from outreach.models.states import DispatchState, MessageStatus
from outreach.models.work import Unit
from outreach.policy.settlement import Backoff
from outreach.protocols.storage import Transaction


def settle(tx: Transaction, dispatch: Dispatch, outcome: Outcome, backoff: Backoff, now: datetime) -> None:
    """Merge the outcome of a dispatch into its message."""
    message = tx.messages.get(dispatch.workspace_id, dispatch.message_id or "")
    if message is None:
        return
    unit = Unit("message", message.workspace_id, message.id)
    match outcome.state:
        case DispatchState.ACCEPTED:
            after = attrs.evolve(
                message, status=MessageStatus.ACCEPTED, reason=None, provider_id=dispatch.provider_id, ended_at=now
            )
        case DispatchState.REFUSED:
            after = attrs.evolve(
                message, status=MessageStatus.FAILED, reason=outcome.reason or "rejected", ended_at=now
            )
        case DispatchState.UNKNOWN:
            after = attrs.evolve(message, status=MessageStatus.UNKNOWN, reason=outcome.reason)
        case DispatchState.UNCONFIRMED:
            after = attrs.evolve(message, status=MessageStatus.UNCONFIRMED, reason=outcome.reason, ended_at=now)
        case _:
            tx.messages.update(
                attrs.evolve(message, status=MessageStatus.QUEUED, reason=outcome.reason, attempts=message.attempts - 1)
            )
            tx.work.touch(unit, now + backoff.delay(message.tries, outcome.retry_after_seconds))
            return
    tx.messages.update(after)
    tx.work.touch(unit, None)


def receipt(tx: Transaction, dispatch: Dispatch, event: MessageReport) -> None:
    """Merge a delivery receipt that moved the status up."""
    message = tx.messages.get(dispatch.workspace_id, dispatch.message_id or "")
    if message is not None:
        tx.messages.update(_reported(message, event))


def _reported(message: Message, event: MessageReport) -> Message:
    reason = (event.reason or "rejected") if event.status is MessageStatus.FAILED else None
    return attrs.evolve(message, status=event.status, reason=reason)
