"""The course of one recipient through an automation flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import attrs

from outreach.models.directory import FlowStep
from outreach.models.recipient import Recipient
from outreach.models.states import RecipientStatus
from outreach.policy.settlement import ended, waiting


def step_to_send(recipient: Recipient, steps: Sequence[FlowStep]) -> FlowStep | None:
    """Return the `send` step that a recipient stands at; None when it stands at another kind, or at the end."""
    step = steps[recipient.step] if recipient.step < len(steps) else None
    return step if step is not None and step.kind == "send" else None


def go_to(
    recipient: Recipient, index: int, steps: Sequence[FlowStep], *, replied: Callable[[], bool], now: datetime
) -> Recipient:
    """Return a recipient after it has come to a step: waiting to send, waiting for a while, or ended.

    Args:
        recipient: Whose it is; its attempts begin anew with each step.
        index: The step that it comes to.
        steps: The flow.
        replied: Tells whether the contact has written back since the campaign started.
        now: The present moment.
    """
    for position in range(index, len(steps)):
        step = steps[position]
        fresh = attrs.evolve(recipient, step=position, attempts=0, tries=0)
        if step.kind == "send":
            return waiting(fresh, "flow", now)
        if step.kind == "wait":
            # It stands at the step behind the wait, so that it goes on from there when it is due.
            behind = attrs.evolve(fresh, step=position + 1)
            return waiting(behind, "flow_wait", now + timedelta(minutes=step.wait_minutes or 0))
        if replied():
            return ended(recipient, RecipientStatus.COMPLETED, "replied", now)
    return ended(recipient, RecipientStatus.COMPLETED, None, now)
