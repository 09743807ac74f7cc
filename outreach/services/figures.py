"""What is open in a whole database, in numbers, for metrics."""

from __future__ import annotations

from collections import Counter
from typing import Final

from outreach.models.figures import EngineFigures
from outreach.operations.waves import provider_throttles
from outreach.services.context import ServiceContext
from outreach.services.status import MAX_COUNTED, MAX_LISTED, dispatch_overview
from outreach.working_set import Transaction

MAX_WAITING_COUNTED: Final = 100_000
"""The most waiting recipients that are counted, so that a look takes milliseconds."""


class FiguresQuery:
    """Counts what is open."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def __call__(self, since: int | None = None) -> EngineFigures:
        """Return the present figures of the whole database.

        Args:
            since: Count opt-outs after this position; None counts none. `EngineFigures.until` is the next one.
        """
        return await self._context.storage.read(lambda tx: self._look(tx, since))

    def _look(self, tx: Transaction, since: int | None) -> EngineFigures:
        now = self._context.now()
        until = tx.trail.last_number()
        throttles = provider_throttles.unexpired(tx, None, now, limit=MAX_COUNTED)
        return EngineFigures(
            at=now,
            dispatching=dispatch_overview(self._context, tx, now),
            campaigns=tx.campaigns.open_groups(),
            waiting=tx.recipients.count_waiting(limit=MAX_WAITING_COUNTED),
            unknown=tx.dispatches.count_unknown(None, limit=MAX_COUNTED),
            throttles=Counter(one.provider for one in throttles),
            held=len(tx.register.held(None, limit=MAX_LISTED)),
            opt_outs={} if since is None else tx.trail.count_opt_outs(since, until),
            until=until,
        )
