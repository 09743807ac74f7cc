"""The contract of accounts at providers, and of what these called back."""

from __future__ import annotations

from datetime import datetime

import attrs
import pytest

from outreach.models.account import CallbackRecord
from outreach.protocols.storage import AlreadyThere, Storage, Transaction
from outreach.testing.builders import NOW, make_account, make_account_hold, make_callback, new_id
from outreach.testing.storage_tables.base_contract import (
    BIGGEST,
    HERE,
    THERE,
    TICK,
    ContractBase,
    awkward_moments,
)


class AccountsContract(ContractBase):
    """Accounts and callbacks."""

    async def test_an_account_is_found_by_each_of_its_names(self, storage: Storage) -> None:
        """By its workspace and id, by its id alone, and by its workspace and provider; never from elsewhere."""
        account = make_account()
        await storage.write(lambda tx: tx.accounts.insert(account))

        def found(tx: Transaction) -> list[object]:
            return [
                tx.accounts.get(HERE, account.id),
                tx.accounts.find(account.id),
                tx.accounts.at(HERE, account.provider),
                tx.accounts.get(THERE, account.id),
                tx.accounts.at(THERE, account.provider),
                tx.accounts.at(HERE, "vonage"),
                tx.accounts.find(new_id()),
            ]

        assert await storage.read(found) == [account, account, account, None, None, None, None]

    async def test_a_workspace_has_one_account_at_a_provider(self, storage: Storage) -> None:
        """A second one is refused, also by another id; another workspace has its own."""
        await storage.write(lambda tx: tx.accounts.insert(make_account()))
        with pytest.raises(AlreadyThere):
            await storage.write(lambda tx: tx.accounts.insert(make_account()))
        await storage.write(lambda tx: tx.accounts.insert(make_account(workspace_id=THERE)))

    async def test_an_update_writes_what_can_change(self, storage: Storage) -> None:
        """The credentials, the flag and the revision; a foreign or absent account is a LookupError."""
        account = make_account()
        await storage.write(lambda tx: tx.accounts.insert(account))
        changed = attrs.evolve(account, sealed="other", replies_to_keywords=False, revision=1, updated_at=NOW + TICK)
        await storage.write(lambda tx: tx.accounts.update(changed))
        assert await storage.read(lambda tx: tx.accounts.find(account.id)) == changed
        for strange in (attrs.evolve(changed, workspace_id=THERE), make_account()):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, strange=strange: tx.accounts.update(strange))  # type: ignore[misc]

    async def test_an_account_is_deleted_by_its_own_workspace(self, storage: Storage) -> None:
        """And then another one may be made at the same provider."""
        account = make_account()
        await storage.write(lambda tx: tx.accounts.insert(account))
        assert not await storage.write(lambda tx: tx.accounts.delete(THERE, account.id))
        assert await storage.write(lambda tx: tx.accounts.delete(HERE, account.id))
        assert not await storage.write(lambda tx: tx.accounts.delete(HERE, account.id))
        await storage.write(lambda tx: tx.accounts.insert(make_account()))

    async def test_accounts_are_listed_oldest_first(self, storage: Storage) -> None:
        """By (created_at, id), of one workspace."""
        later, first = make_account(created_at=NOW + TICK), make_account(provider="vapi")
        for account in (later, first, make_account(workspace_id=THERE)):
            await storage.write(lambda tx, account=account: tx.accounts.insert(account))  # type: ignore[misc]
        assert list(await storage.read(lambda tx: tx.accounts.list(HERE))) == [first, later]

    async def test_an_event_is_known_once_it_is_written(self, storage: Storage) -> None:
        """By its account and its own identifier; a second insert is refused."""
        record = make_callback(body=b"\x00\xff{")
        await storage.write(lambda tx: tx.callbacks.insert(record))

        def known(tx: Transaction) -> list[bool]:
            return [
                tx.callbacks.known(HERE, record.account_id, record.event_id),
                tx.callbacks.known(THERE, record.account_id, record.event_id),
                tx.callbacks.known(HERE, new_id(), record.event_id),
                tx.callbacks.known(HERE, record.account_id, "other"),
            ]

        assert await storage.read(known) == [True, False, False, False]
        with pytest.raises(AlreadyThere):
            await storage.write(lambda tx: tx.callbacks.insert(record))
        assert list(await storage.read(lambda tx: tx.callbacks.list(HERE))) == [record]

    async def test_events_are_listed_newest_first(self, storage: Storage) -> None:
        """At most so many, of one workspace."""
        made = [_at(NOW + TICK * later) for later in (1, 0, 2)]
        for record in (*made, make_callback(workspace_id=THERE)):
            await storage.write(lambda tx, record=record: tx.callbacks.insert(record))  # type: ignore[misc]
        assert list(await storage.read(lambda tx: tx.callbacks.list(HERE))) == [made[2], made[0], made[1]]
        assert list(await storage.read(lambda tx: tx.callbacks.list(HERE, limit=1))) == [made[2]]

    async def test_old_events_are_swept_in_slices(self, storage: Storage) -> None:
        """Those received before a moment, the oldest first, at most so many at a time."""
        made = [_at(NOW + TICK * later) for later in range(4)]
        for record in made:
            await storage.write(lambda tx, record=record: tx.callbacks.insert(record))  # type: ignore[misc]
        assert await storage.write(lambda tx: tx.callbacks.sweep(NOW + TICK * 3, limit=2)) == 2
        assert list(await storage.read(lambda tx: tx.callbacks.list(HERE))) == [made[3], made[2]]
        assert await storage.write(lambda tx: tx.callbacks.sweep(NOW + TICK * 3, limit=2)) == 1
        assert list(await storage.read(lambda tx: tx.callbacks.list(HERE))) == [made[3]]

    @awkward_moments
    async def test_a_hold_is_put_over_the_last_one_and_forgotten(self, storage: Storage, moment: datetime) -> None:
        """One for each provider of each workspace, which needs no account there; to forget none does nothing."""
        first = make_account_hold()
        second = make_account_hold(since=moment, until=moment, refusals=BIGGEST)
        other, there = make_account_hold(provider="vapi"), make_account_hold(workspace_id=THERE)

        def look(tx: Transaction) -> list[object]:
            asked = [(HERE, "twilio"), (HERE, "vapi"), (THERE, "twilio"), (THERE, "vapi")]
            return [tx.account_holds.get(*question) for question in asked]

        def put(tx: Transaction) -> None:
            for hold in (first, other, there, second):
                tx.account_holds.put(hold)

        def forget(tx: Transaction) -> None:
            tx.account_holds.delete(HERE, "twilio")
            tx.account_holds.delete(THERE, "vapi")

        await storage.write(put)
        assert await storage.read(look) == [second, other, there, None]
        await storage.write(forget)
        assert await storage.read(look) == [None, other, there, None]


def _at(moment: datetime) -> CallbackRecord:
    return make_callback(received_at=moment)
