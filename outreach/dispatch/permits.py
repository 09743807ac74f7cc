"""The permits of this worker: its portion of those that all workers of the database have together."""

from __future__ import annotations

from outreach.core.config import EngineConfig
from outreach.ledger.sending import permits
from outreach.ledger.sending.permits import Permits
from outreach.providers.http.fair_limiter import FairLimiter
from outreach.storage.unit_of_work import Transaction


class WorkerPermits:
    """What bounds the intents and requests of this worker.

    Its portion follows the workers that there are, from one heartbeat to the next, in the transaction that renews the
    lease. Where it becomes smaller, what is held stays held until its outcome is recorded, and the others get it after.

    Attributes:
        intents: For intents that wait for their slots.
        requests: For requests on their way.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._most = Permits(intents=config.max_queued_intents, requests=config.max_requests_in_flight)
        self.requests = FairLimiter(self._most.requests)
        self.intents = FairLimiter(self._most.intents, opens=self.requests.has_capacity)

    def in_use(self) -> Permits:
        """Return how many may be held until the portion is taken in; at least what is held now."""
        return Permits(intents=self.intents.in_use, requests=self.requests.in_use)

    def held(self) -> Permits:
        """Return how many are held now: all that may be until something begins under a new epoch."""
        return Permits(intents=self.intents.held, requests=self.requests.held)

    def share(self, tx: Transaction, epoch: int, in_use: Permits) -> Permits:
        """Return the portion of this worker, within a transaction; see `ledger.sending.permits.share`."""
        return permits.share(tx, epoch, most=self._most, in_use=in_use)

    def take_in(self, portion: Permits) -> None:
        """Go by a portion from now on."""
        self.requests.resize(portion.requests)
        self.intents.resize(portion.intents)
