"""Events that somebody simulates in a sandbox: replies, receipts, and how calls end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from outreach.errors import Problem
from outreach.models.dispatch import FailureClass
from outreach.models.fields import Checked, sized

SimulatedKind = Literal["reply", "stop", "receipt", "busy", "voicemail", "no_answer"]
"""The kind of a simulated event; `stop` is a reply with the text STOP."""


@attrs.frozen(kw_only=True)
class NewSimulation(Checked):
    """An event to simulate.

    Attributes:
        event: The kind of event.
        phone_number: The contact's number, in any notation.
        body: A reply's text, which a reply needs.
        to: The number that a reply or STOP is sent to; None for the sender of the newest message to the contact, else
            the workspace's first number.
        status: A receipt's status, which a receipt needs.
        reason: Why the message failed, with the status `failed`; None for `unreachable`. With `temporary` it is
            retried, where retries are on.
    """

    event: SimulatedKind
    phone_number: str = sized(1, 255)
    body: str | None = sized(0, 10_000, default=None)
    to: str | None = sized(1, 64, default=None)
    status: Literal["delivered", "failed"] | None = None
    reason: FailureClass | None = None

    def _problems(self) -> Sequence[Problem]:
        allowed = {"reply": {"body", "to"}, "stop": {"to"}, "receipt": {"status", "reason"}}.get(self.event, set())
        needed = {"reply": {"body"}, "receipt": {"status"}}.get(self.event, set())
        given = {name for name in ("body", "to", "status", "reason") if getattr(self, name) is not None}
        found = [Problem(path=name, message=f"is required for {self.event}") for name in sorted(needed - given)]
        found += [Problem(path=name, message=f"is not for {self.event}") for name in sorted(given - allowed)]
        if self.reason is not None and self.status == "delivered":
            found.append(Problem(path="reason", message="is not for a message that was delivered"))
        return found


@attrs.frozen(kw_only=True)
class Simulation:
    """The result of a simulated event.

    Attributes:
        phone_number: In E.164.
        dispatch_id: The request that a receipt or the end of a call was reported for; None for a reply, and for an
            event that is kept for the next request to the number.
        inbound_id: The stored reply; None for any other event.
        kept: Whether no request was open, so that the event is kept for the next one, for a day.
    """

    event: SimulatedKind
    phone_number: str
    dispatch_id: str | None = None
    inbound_id: str | None = None
    kept: bool = False
