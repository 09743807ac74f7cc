"""What the tests of the decision trail begin with: a history as lines that read like one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.ledger.campaigns.histories import histories
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.states import (
    CallStatus,
    ContactHistory,
    DispatchState,
    MessageStatus,
    RecipientStatus,
    TrailStep,
    TrailStepKind,
)
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.given import call_event, receipt, recipient, report


def line(step: TrailStep) -> str:
    """Return a step as one line: what, what it came to, why, and the rule."""
    parts = [str(step.what), step.state, f"({step.reason})" if step.reason is not None else None]
    return " ".join(part for part in parts if part is not None) + f" by {step.rule}"


def lines(history: ContactHistory) -> list[str]:
    """Return the steps of a history, each as one line; they must be in the order of their times."""
    assert [step.at for step in history.steps] == sorted(step.at for step in history.steps)
    return [line(step) for step in history.steps]


async def history(storage: Storage, campaign: Campaign, position: int = 0) -> ContactHistory:
    """Return the history of one recipient, found by its number."""
    one = await recipient(storage, campaign, position)
    found: Sequence[ContactHistory] = await storage.read(
        lambda tx: histories(tx, THIS_WORKSPACE, campaign.id, one.phone or one.phone_number)
    )
    (wanted,) = (each for each in found if each.position == position)
    assert (wanted.status, wanted.reason, wanted.due_at) == (one.status, one.reason, one.due_at)
    return wanted


async def told(storage: Storage, campaign: Campaign, position: int = 0) -> list[str]:
    """Return what the trail tells of one recipient."""
    return lines(await history(storage, campaign, position))


async def report_message(
    storage: Storage, dispatch: Dispatch, status: MessageStatus, *, at: datetime, reason: str | None = None
) -> None:
    """Hand in a receipt."""
    await report(storage, receipt(dispatch, status, reason=reason, at=at), now=at)


async def report_call(
    storage: Storage, dispatch: Dispatch, status: CallStatus, *, at: datetime, outcome: str | None = None
) -> None:
    """Hand in an event of a call."""
    await report(storage, call_event(dispatch, status, outcome=outcome, at=at), now=at)


def check_history(tx: Transaction, workspace_id: str, one: Recipient) -> ContactHistory:
    """Return a recipient's history, having checked that it tells how the recipient and its dispatches are now."""
    found = histories(tx, workspace_id, one.campaign_id, one.phone or one.phone_number)
    (told,) = (each for each in found if each.position == one.position)
    moments = [step.at for step in told.steps]
    assert moments == sorted(moments)
    own = [step for step in told.steps if step.attempt is not None or step.what is TrailStepKind.ENDED]
    last = next((step for step in reversed(own) if step.what in {TrailStepKind.HELD, TrailStepKind.ENDED}), None)
    if one.status is RecipientStatus.WAITING or not one.is_open:
        assert last is not None
        assert (last.what is TrailStepKind.ENDED) == (not one.is_open)
        assert (last.state, last.reason, last.until) == (one.status, one.reason, one.due_at)
    for dispatch in tx.dispatches.of_recipient(workspace_id, one.campaign_id, one.position):
        steps = [step for step in told.steps if step.dispatch_id == dispatch.id]
        outcomes = [step.state for step in steps if step.what is TrailStepKind.OUTCOME]
        assert [step.what for step in steps].count(TrailStepKind.INTENT) == 1
        assert outcomes[-1:] == ([] if dispatch.state is DispatchState.DISPATCHING else [dispatch.state])
        assert len(outcomes) == len(set(outcomes))
    return told
