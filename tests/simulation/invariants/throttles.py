"""A provider that throttles is not asked again before its time, for any contact."""

from __future__ import annotations

from datetime import datetime, timedelta

from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState
from tests.simulation.invariants.ledger import Broken
from tests.simulation.invariants.outside_records import OutsideRecords


class ThrottleChecks:
    """Checks that throttles are honoured, once they are in the ledger.

    Args:
        records: What the providers said.
    """

    def __init__(self, records: OutsideRecords) -> None:
        self._records = records
        self._until: dict[str, datetime] = {}

    def learn(self, before: Dispatch, after: Dispatch, now: datetime) -> None:
        """Take in that an answer was recorded, which may name a time to wait."""
        if before.state is after.state or after.state is not DispatchState.DEFERRED:
            return
        delays = [one.retry_after_seconds for one in self._records.heard.get(after.id, ()) if one.retry_after_seconds]
        until = now + timedelta(seconds=max(delays, default=0.0))
        self._until[after.provider] = max(until, self._until.get(after.provider, until))

    def after_step(self, step: timedelta) -> None:
        """Take in that the wall clock was set: back, and what is waited for lies as far ahead as before."""
        if step < timedelta():
            self._until = {provider: until + step for provider, until in self._until.items()}

    def check(self, dispatch: Dispatch, now: datetime) -> None:
        """Check an intent that is committed now, or a request that begins.

        Raises:
            Broken: Its provider throttles.
        """
        until = self._until.get(dispatch.provider)
        if until is not None and now < until:
            raise Broken(f"{dispatch.provider} is asked for {dispatch.id} at {now}; it throttles until {until}.")
