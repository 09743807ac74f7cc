"""What really happened outside of the engine; its answers and its ledger are compared with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.models.call import CallOutcome
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import CallStatus, DispatchState
from outreach.models.work import DatabaseHome


@attrs.define(kw_only=True)
class Reached:
    """Something that a provider did, as its own records have it.

    Attributes:
        accepted_at: When the provider took it.
        failed: A receipt says afterwards that it reached nobody.
        why: The failure class that the receipt names then.
        unanswered: The call rings out, is busy, is declined or goes to voicemail.
        denied: The provider has taken it and said that it has not.
        reported: Whether the engine has been told so: nobody may be contacted again before.
        course: When a call comes to which status.
        verdict: What the provider says of a call at its end.
    """

    dispatch_id: str
    to: str
    accepted_at: datetime
    failed: bool = False
    why: str = "unreachable"
    unanswered: bool = False
    denied: bool = False
    reported: bool = False
    course: list[tuple[datetime, CallStatus]] = attrs.field(factory=list)
    verdict: CallOutcome | None = None


@attrs.define
class OutsideRecords:
    """Everything that has happened outside, by dispatch or by number.

    Attributes:
        reached: What the providers took.
        begun: When the request of a dispatch began.
        at_work_since: Tells since when the process that asked goes on after it stood still; 0.0 if it never did, None
            while it does.
        heard: What a living process was answered about a dispatch, by a request or by a look-up that vouches for it.
        decided: What an operator has decided about a dispatch that nobody knows of.
        stops: How often each number wrote STOP, by workspace and number.
        lifted: How often a number may have been taken off the register, by the same.
        opted_out: Who has been put on the register by people, by the same; those who wrote STOP are not among them.
        committed: When the intent of a dispatch was really committed.
        moved: When the database, which had a home, was started from which other place.
        has_moved: Whether it was ever started from another place than before: a process that stood still meanwhile
            comes back to a database whose home is elsewhere by then.
    """

    reached: dict[str, list[Reached]] = attrs.field(factory=dict)
    begun: dict[str, datetime] = attrs.field(factory=dict)
    at_work_since: dict[str, Callable[[], float | None]] = attrs.field(factory=dict)
    heard: dict[str, list[DispatchOutcome]] = attrs.field(factory=dict)
    decided: dict[str, Literal["retry", "assume_sent"]] = attrs.field(factory=dict)
    stops: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    lifted: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    opted_out: set[tuple[str, str]] = attrs.field(factory=set)
    committed: dict[str, datetime] = attrs.field(factory=dict)
    moved: dict[str, datetime] = attrs.field(factory=dict)
    has_moved: bool = False

    def moved_at(self, home: DatabaseHome | None) -> datetime | None:
        """Return when a database has come to where it is; None for one that has always been there."""
        return self.moved.get(home.path) if home is not None else None

    def asked_not_to_call(self, workspace_id: str, phone: str) -> bool:
        """Return whether anybody has ever said of a number that a workspace must leave it alone."""
        return (workspace_id, phone) in self.opted_out or self.stops[workspace_id, phone] > 0

    def entries(self, dispatch_id: str) -> Sequence[Reached]:
        """Return what a provider has of a dispatch."""
        return self.reached.get(dispatch_id, ())

    def hear(self, dispatch_id: str, outcome: DispatchOutcome) -> None:
        """Note that a living process has been told."""
        self.heard.setdefault(dispatch_id, []).append(outcome)

    def has_stood_still(self, dispatch_id: str) -> bool:
        """Return whether the process that asked the provider about a dispatch stood still, and goes on."""
        at_work_since = self.at_work_since.get(dispatch_id)
        return at_work_since is not None and bool(at_work_since())

    def was_reported(self, dispatch_id: str, state: DispatchState, reason: str | None) -> bool:
        """Return whether a living process has been told just this about a dispatch."""
        return any((one.state, one.reason) == (state, reason) for one in self.heard.get(dispatch_id, ()))
