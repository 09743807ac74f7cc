"""Rules for the steps of an automation flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import attrs

from outreach.models.campaign import Recipient
from outreach.models.resources import FlowStep
from outreach.models.states import RecipientStatus
from outreach.rules.settlement import ended_recipient, waiting


def current_send_step(recipient: Recipient, steps: Sequence[FlowStep]) -> FlowStep | None:
    """Return the `send` step that a recipient is at, or None."""
    step = steps[recipient.step] if recipient.step < len(steps) else None
    return step if step is not None and step.kind == "send" else None


def enter_step(
    recipient: Recipient, index: int, steps: Sequence[FlowStep], *, replied: Callable[[], bool], now: datetime
) -> Recipient:
    """Return a recipient after it enters the step at `index`: due to send, waiting, or ended.

    `replied` returns whether the contact has replied since the campaign started, or since it was added. Attempts start
    again with each step.
    """
    for position in range(index, len(steps)):
        step = steps[position]
        fresh = attrs.evolve(recipient, step=position, attempts=0, tries=0)
        if step.kind == "send":
            return waiting(fresh, "flow", now)
        if step.kind == "wait":
            # It continues at the step after the wait.
            following = attrs.evolve(fresh, step=position + 1)
            return waiting(following, "flow_wait", now + timedelta(minutes=step.wait_minutes or 0))
        if replied():
            return ended_recipient(recipient, RecipientStatus.COMPLETED, "replied", now)
    return ended_recipient(recipient, RecipientStatus.COMPLETED, None, now)
