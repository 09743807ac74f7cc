"""Permits: how many intents and requests each worker may have, of those that all workers may have together.

docs/delivery-contract.md#rule-1. Each worker's row says how many it may have until its next heartbeat, so that no two
count on the same ones, however late one of them detects the other.
"""

from __future__ import annotations

import attrs

from outreach.ledger.common import require_worker
from outreach.storage.unit_of_work import Transaction


@attrs.frozen(kw_only=True)
class Permits:
    """A number of permits.

    Attributes:
        intents: For intents that wait for their slots.
        requests: For requests on their way.
    """

    intents: int
    requests: int


def share(tx: Transaction, epoch: int, *, most: Permits, in_use: Permits) -> Permits:
    """Return how many permits a worker may grant from now on: its portion, of those that no other worker has.

    It has at least one of each, so that no worker is blocked where there are more of them than permits, or where the
    others have not yet given back what is more than their portion.

    Args:
        tx: The transaction.
        epoch: The worker's.
        most: How many all workers may have together.
        in_use: How many it may have now: what it was allowed before, or what it still holds if that is more.

    Raises:
        LeaseLost: Its lease has ended.
    """
    worker = require_worker(tx, epoch)
    others = [other for other in tx.workers.list() if other.epoch != epoch]
    portion = Permits(
        intents=_portion(most.intents, [other.intent_permits for other in others]),
        requests=_portion(most.requests, [other.request_permits for other in others]),
    )
    noted = attrs.evolve(
        worker,
        intent_permits=max(portion.intents, in_use.intents),
        request_permits=max(portion.requests, in_use.requests),
    )
    if noted != worker:
        tx.workers.put(noted)
    return portion


def _portion(most: int, of_others: list[int]) -> int:
    return max(min(most // (len(of_others) + 1), most - sum(of_others)), 1)
