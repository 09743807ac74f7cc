"""The contract of campaigns that are loading: published, left over, or deleted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach.models.campaign import Campaign, Counters
from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from outreach.testing.builders import (
    NOW,
    make_campaign,
    make_prepared,
    new_id,
)
from outreach.testing.storage_tables.base_contract import (
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    bound,
    given_campaign,
    pending,
)

UNTIL = NOW + timedelta(minutes=5)


async def given_loading(storage: Storage, *, contacts: int = 0, until: datetime = UNTIL, **changes: Any) -> Campaign:
    """Write a campaign that is loading, with so many recipients."""
    campaign = make_campaign(**changes)

    def insert(tx: Transaction) -> None:
        tx.campaigns.insert_loading(campaign, loading_until=until)
        rows = pending(*(make_prepared() for _ in range(contacts)))
        tx.recipients.insert(campaign.workspace_id, campaign.id, rows, now=NOW)

    await storage.write(insert)
    return campaign


class LoadingContract(ContractBase):
    """Campaigns that are loading."""

    async def test_loaded_contacts_are_moved_behind_the_last_one_of_a_campaign(self, storage: Storage) -> None:
        """In slices, in their order; duplicates are skipped; the loading campaign knows its target until it is gone."""
        target, loading = await given_campaign(storage, make_prepared(), make_prepared()), await given_loading(storage)
        more = [make_prepared() for _ in range(5)]
        rows = [(10 + index, *row[1:]) for index, row in enumerate(pending(*more))]
        await storage.write(lambda tx: tx.recipients.insert(THIS_WORKSPACE, loading.id, rows, now=NOW))
        names = THIS_WORKSPACE, loading.id
        assert await storage.read(lambda tx: tx.campaigns.addition_target(*names)) is None
        await storage.write(lambda tx: tx.campaigns.stage_addition(*names, target.id))
        assert await storage.read(lambda tx: tx.campaigns.addition_target(*names)) == target.id
        assert await storage.read(lambda tx: tx.campaigns.has_additions(THIS_WORKSPACE, target.id))
        assert not await storage.read(lambda tx: tx.campaigns.has_additions(OTHER_WORKSPACE, target.id))
        assert not await storage.read(lambda tx: tx.campaigns.has_additions(THIS_WORKSPACE, loading.id))

        def move(tx: Transaction) -> int:
            # Known as missing before they are moved.
            assert tx.recipients.get(THIS_WORKSPACE, target.id, 3) is None
            first = tx.recipients.first_rows(*names, limit=3)
            tx.recipients.move(*names, target.id, first, duplicates={11} if first[0].position == 10 else (), now=NOW)
            return len(first)

        assert await storage.write(move) == 3
        assert await storage.read(lambda tx: tx.recipients.next_position(THIS_WORKSPACE, target.id)) == 5
        found = await storage.read(lambda tx: tx.recipients.page(THIS_WORKSPACE, target.id, after=1))
        assert [(one.position, one.phone, one.status, one.reason, one.ended_at, one.added_at) for one in found] == [
            (2, more[0].phone, RecipientStatus.PENDING, None, None, NOW),
            (3, more[1].phone, RecipientStatus.SKIPPED, "duplicate", NOW, NOW),
            (4, more[2].phone, RecipientStatus.PENDING, None, None, NOW),
        ]
        left = await storage.read(lambda tx: tx.recipients.first_rows(*names, limit=9))
        assert [(one.position, one.phone) for one in left] == [(13, more[3].phone), (14, more[4].phone)]
        assert await storage.write(lambda tx: tx.campaigns.delete_loading(*names, limit=9))
        assert not await storage.read(lambda tx: tx.campaigns.has_additions(THIS_WORKSPACE, target.id))
        with pytest.raises(LookupError):
            await storage.write(lambda tx: tx.campaigns.stage_addition(*names, target.id))

    async def test_contacts_that_were_just_written_are_marked_as_added(self, storage: Storage) -> None:
        """From a position on; the others came with their campaign."""
        campaign = await given_campaign(storage, make_prepared())
        assert await storage.read(lambda tx: tx.recipients.next_position(THIS_WORKSPACE, campaign.id)) == 1

        def add(tx: Transaction) -> None:
            rows = [(1, *row[1:]) for row in pending(make_prepared())]
            tx.recipients.insert(THIS_WORKSPACE, campaign.id, rows, now=NOW)
            tx.recipients.mark_added(THIS_WORKSPACE, campaign.id, first=1, now=NOW)

        await storage.write(add)
        found = await storage.read(lambda tx: tx.recipients.page(THIS_WORKSPACE, campaign.id))
        assert [one.added_at for one in found] == [None, NOW]

    async def test_a_loading_campaign_is_seen_by_the_loading_methods_alone(self, storage: Storage) -> None:
        """Nothing else reads, finds, lists or counts it."""
        campaign = await given_loading(storage)

        def look(tx: Transaction) -> None:
            assert tx.campaigns.get_loading(THIS_WORKSPACE, campaign.id) == campaign
            assert tx.campaigns.get(THIS_WORKSPACE, campaign.id) is None
            assert tx.campaigns.find(campaign.id) is None
            assert list(tx.campaigns.in_status(list(CampaignStatus))) == []
            page = tx.campaign_lists.page(THIS_WORKSPACE, channel=None, status=None, search=None, offset=0, limit=10)
            assert (list(page[0]), page[1]) == ([], 0)

        await storage.read(look)
        for write in (
            lambda tx: tx.campaigns.update(campaign),
            lambda tx: tx.campaigns.add_counters(THIS_WORKSPACE, campaign.id, Counters(total=1)),
        ):
            with pytest.raises(LookupError):
                await storage.write(write)
        assert await storage.read(lambda tx: tx.campaigns.get_loading(THIS_WORKSPACE, campaign.id)) == campaign

    async def test_a_published_campaign_is_no_longer_loading(self, storage: Storage) -> None:
        """Publishing makes it visible with the counters and fields given, once."""
        campaign = await given_loading(storage)
        final = attrs.evolve(campaign, name="Final", counters=Counters(total=3, pending=2, open=2), revision=4)
        await storage.write(lambda tx: tx.campaigns.publish(final))

        def look(tx: Transaction) -> None:
            assert tx.campaigns.get_loading(THIS_WORKSPACE, campaign.id) is None
            assert tx.campaigns.get(THIS_WORKSPACE, campaign.id) == final
            assert tx.campaigns.find(campaign.id) == final
            assert list(tx.campaigns.leftovers(UNTIL + timedelta(days=1))) == []

        await storage.read(look)
        with pytest.raises(LookupError):
            await storage.write(lambda tx: tx.campaigns.publish(final))

    async def test_only_a_loading_campaign_of_the_workspace_can_be_published(self, storage: Storage) -> None:
        """An absent one, and one of another workspace, raise LookupError."""
        campaign = await given_loading(storage)
        for absent in (make_campaign(), attrs.evolve(campaign, workspace_id=OTHER_WORKSPACE)):
            with pytest.raises(LookupError):
                await storage.write(bound(lambda tx, campaign: tx.campaigns.publish(campaign), absent))
        assert await storage.read(lambda tx: tx.campaigns.get_loading(OTHER_WORKSPACE, campaign.id)) is None
        assert await storage.read(lambda tx: tx.campaigns.get_loading(THIS_WORKSPACE, campaign.id)) == campaign

    async def test_a_campaign_is_inserted_once(self, storage: Storage) -> None:
        """A second insert raises, whether the first is loading or published."""
        campaign = await given_loading(storage)
        again = attrs.evolve(campaign, name="Again")
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.campaigns.insert_loading(again, loading_until=UNTIL))
        await storage.write(lambda tx: tx.campaigns.publish(campaign))
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.campaigns.insert_loading(again, loading_until=UNTIL))
        assert await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id)) == campaign

    async def test_a_leftover_is_one_whose_loading_ended_before_now(self, storage: Storage) -> None:
        """At exactly that moment it is none yet; those of all workspaces come by (loading_until, id)."""
        late = await given_loading(storage, until=UNTIL + TICK)
        second = await given_loading(storage, until=UNTIL, workspace_id=OTHER_WORKSPACE)
        third = await given_loading(storage, until=UNTIL)
        published = await given_loading(storage, until=UNTIL - TICK)
        await storage.write(lambda tx: tx.campaigns.publish(published))
        assert list(await storage.read(lambda tx: tx.campaigns.leftovers(UNTIL))) == []
        leftovers = await storage.read(lambda tx: list(tx.campaigns.leftovers(UNTIL + 2 * TICK)))
        assert leftovers == [(OTHER_WORKSPACE, second.id), (THIS_WORKSPACE, third.id), (THIS_WORKSPACE, late.id)]
        assert await storage.read(lambda tx: list(tx.campaigns.leftovers(UNTIL + TICK))) == leftovers[:2]

    async def test_loading_can_be_extended_while_it_lasts(self, storage: Storage) -> None:
        """The moment moves; an absent, published or foreign campaign is answered with False."""
        campaign = await given_loading(storage, until=UNTIL)
        later = UNTIL + timedelta(hours=1)

        async def extend(workspace_id: str, campaign_id: str) -> bool:
            return await storage.write(
                lambda tx: tx.campaigns.extend_loading(workspace_id, campaign_id, loading_until=later)
            )

        assert await extend(OTHER_WORKSPACE, campaign.id) is False
        assert await extend(THIS_WORKSPACE, new_id()) is False
        assert await storage.read(lambda tx: len(tx.campaigns.leftovers(UNTIL + TICK))) == 1
        assert await extend(THIS_WORKSPACE, campaign.id) is True
        assert await storage.read(lambda tx: len(tx.campaigns.leftovers(later))) == 0
        assert await storage.read(lambda tx: len(tx.campaigns.leftovers(later + TICK))) == 1
        assert await storage.read(lambda tx: tx.campaigns.get_loading(THIS_WORKSPACE, campaign.id)) == campaign
        await storage.write(lambda tx: tx.campaigns.publish(campaign))
        assert await extend(THIS_WORKSPACE, campaign.id) is False
        assert await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id)) == campaign

    async def test_a_loading_campaign_is_deleted_in_pieces(self, storage: Storage) -> None:
        """At most `limit` recipients go at a time, and the campaign with the last of them."""
        campaign = await given_loading(storage, contacts=5)
        bystander = await given_loading(storage, contacts=2)

        async def delete() -> bool:
            return await storage.write(lambda tx: tx.campaigns.delete_loading(THIS_WORKSPACE, campaign.id, limit=2))

        async def left() -> int:
            return await storage.read(lambda tx: len(tx.recipients.page(THIS_WORKSPACE, campaign.id)))

        assert (await delete(), await left()) == (False, 3)
        assert await storage.read(lambda tx: tx.campaigns.get_loading(THIS_WORKSPACE, campaign.id)) == campaign
        assert (await delete(), await left()) == (False, 1)
        assert (await delete(), await left()) == (True, 0)
        assert await storage.read(lambda tx: tx.campaigns.get_loading(THIS_WORKSPACE, campaign.id)) is None
        assert await delete() is True
        assert await storage.read(lambda tx: tx.campaigns.get_loading(THIS_WORKSPACE, bystander.id)) == bystander
        assert await storage.read(lambda tx: len(tx.recipients.page(THIS_WORKSPACE, bystander.id))) == 2

    async def test_only_a_loading_campaign_of_the_workspace_is_deleted(self, storage: Storage) -> None:
        """A published one, or another workspace's, keeps its recipients."""
        published = await given_campaign(storage, make_prepared())
        loading = await given_loading(storage, contacts=1)

        def delete(tx: Transaction) -> list[bool]:
            owners = [(THIS_WORKSPACE, published), (OTHER_WORKSPACE, published), (OTHER_WORKSPACE, loading)]
            return [tx.campaigns.delete_loading(owner, campaign.id, limit=10) for owner, campaign in owners]

        assert await storage.write(delete) == [True, True, True]
        assert await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, published.id)) == published
        assert await storage.read(lambda tx: tx.campaigns.get_loading(THIS_WORKSPACE, loading.id)) == loading
        assert await storage.read(lambda tx: len(tx.recipients.page(THIS_WORKSPACE, published.id))) == 1
        assert await storage.read(lambda tx: len(tx.recipients.page(THIS_WORKSPACE, loading.id))) == 1
