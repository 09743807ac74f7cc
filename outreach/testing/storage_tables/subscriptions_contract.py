"""The contract of named subscriptions to events."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.models.subscription import StoredSubscription
from outreach.protocols.storage import Storage
from outreach.testing.builders import make_subscription, make_trail_entry
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    THIS_WORKSPACE,
    ContractBase,
    as_key,
    awkward_moments,
    awkward_texts,
    given_rows,
)


async def put(storage: Storage, row: StoredSubscription) -> None:
    """Write a subscription."""
    await storage.write(lambda tx: tx.subscriptions.put(row))


class SubscriptionsContract(ContractBase):
    """Named subscriptions."""

    @awkward_texts
    async def test_a_subscription_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """Its name is its key, whatever is in it; its numbers may be as large as integers are."""
        row = make_subscription(
            name=as_key(text), workspace_id=THIS_WORKSPACE, position=MAX_INTEGER, gap_until=MAX_INTEGER, holder=text
        )
        await put(storage, row)
        assert await storage.read(lambda tx: tx.subscriptions.get(as_key(text))) == row
        assert await storage.read(lambda tx: tx.subscriptions.get("another")) is None

    @awkward_moments
    async def test_a_subscription_is_put_over_the_last_one(self, storage: Storage, moment: datetime) -> None:
        """Its workspace and its creation time stay as they were."""
        await put(storage, make_subscription(created_at=moment))
        after = make_subscription(position=7, gap_until=5, holder="h", held_until=moment, updated_at=moment)
        await put(storage, attrs.evolve(after, created_at=moment))
        found = await storage.read(lambda tx: tx.subscriptions.get("billing"))
        assert found == attrs.evolve(after, created_at=moment)

    async def test_subscriptions_are_listed_and_deleted(self, storage: Storage) -> None:
        """By name; to delete one that is not there says so."""
        rows = [make_subscription(name=name) for name in ("b", "a", "c")]
        for row in rows:
            await put(storage, row)
        assert await storage.write(lambda tx: tx.subscriptions.delete("c"))
        assert not await storage.write(lambda tx: tx.subscriptions.delete("c"))
        assert await storage.read(lambda tx: list(tx.subscriptions.list())) == [rows[1], rows[0]]

    async def test_nothing_is_purged_that_nobody_deletes(self, storage: Storage) -> None:
        """A storage that never loses an entry says 0 for good."""
        await given_rows(storage, make_trail_entry())
        assert await storage.read(lambda tx: tx.trail.purged_until()) == 0
