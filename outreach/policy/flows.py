"""Rules for the steps of an automation flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import ErrorDetail, InvalidRequest
from outreach.models.base import bounds_of
from outreach.models.recipient import Recipient
from outreach.models.resources import FlowStep
from outreach.models.states import RecipientStatus
from outreach.policy.settlement import ended_recipient, waiting
from outreach.policy.texts import text_problem

MAX_STEPS: Final = 50

_BODY: Final = bounds_of(FlowStep, "body")
_WAIT: Final = bounds_of(FlowStep, "wait_minutes")


def check_steps(steps: Sequence[FlowStep]) -> None:
    """Raise `InvalidRequest`, with every problem, unless a flow's steps are valid."""
    details: list[ErrorDetail] = []
    if not 1 <= len(steps) <= MAX_STEPS:
        details.append(ErrorDetail("steps", f"must be 1 to {MAX_STEPS} steps"))
    if not any(step.kind == "send" for step in steps):
        details.append(ErrorDetail("steps", "no step sends anything"))
    for index, step in enumerate(steps[:MAX_STEPS]):
        problem = _problem(step)
        if problem is not None:
            details.append(ErrorDetail(f"steps[{index}].{problem[0]}", problem[1]))
    if details:
        raise InvalidRequest(details=details)


def _problem(step: FlowStep) -> tuple[str, str] | None:
    # Texts must be storable in steps of every kind.
    unstorable = text_problem(step.body) if step.body is not None else None
    if unstorable is not None:
        return "body", unstorable
    match step.kind:
        case "send":
            if step.body is None or not step.body.strip() or len(step.body) > _BODY.maximum:
                return "body", f"a send step needs a text of {_BODY.minimum} to {_BODY.maximum} characters"
        case "wait":
            if step.wait_minutes is None or not _WAIT.minimum <= step.wait_minutes <= _WAIT.maximum:
                return "wait_minutes", f"a wait step needs {_WAIT.minimum} to {_WAIT.maximum} minutes"
        case "stop_if_replied":
            pass
        case _:
            return "kind", "must be send, wait or stop_if_replied"
    return None


def current_send_step(recipient: Recipient, steps: Sequence[FlowStep]) -> FlowStep | None:
    """Return the `send` step that a recipient is at, or None."""
    step = steps[recipient.step] if recipient.step < len(steps) else None
    return step if step is not None and step.kind == "send" else None


def enter_step(
    recipient: Recipient, index: int, steps: Sequence[FlowStep], *, replied: Callable[[], bool], now: datetime
) -> Recipient:
    """Return a recipient after it enters the step at `index`: due to send, waiting, or ended.

    `replied` returns whether the contact has replied since the campaign started. Attempts start again with each step.
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
