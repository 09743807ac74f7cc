"""The contract of campaigns: loading, publishing, counters, and the snapshot of the agent."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach.models.business_hours import BusinessHours, Window
from outreach.models.campaign import AgentSnapshot, Campaign, CliGroupEntry, Counters
from outreach.models.holidays import Holiday, HolidayCalendar
from outreach.models.states import CampaignStatus
from outreach.protocols.storage import AlreadyThere, Storage, Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_business_hours,
    make_call_campaign,
    make_campaign,
    make_flow,
    make_holidays,
    make_prepared,
    make_trunk,
    new_id,
)
from outreach.testing.storage_tables.base_contract import (
    BIGGEST,
    HERE,
    THERE,
    TICK,
    ContractBase,
    awkward_moments,
    awkward_texts,
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


class CampaignsContract(ContractBase):
    """Campaigns, but for their lists."""

    async def test_a_loading_campaign_is_seen_by_the_loading_methods_alone(self, storage: Storage) -> None:
        """Nothing else reads, finds, lists or counts it."""
        campaign = await given_loading(storage)

        def look(tx: Transaction) -> None:
            assert tx.campaigns.get_loading(HERE, campaign.id) == campaign
            assert tx.campaigns.get(HERE, campaign.id) is None
            assert tx.campaigns.find(campaign.id) is None
            assert list(tx.campaigns.in_status(list(CampaignStatus))) == []
            page = tx.campaigns.page(HERE, channel=None, status=None, search=None, offset=0, limit=10)
            assert (list(page[0]), page[1]) == ([], 0)

        await storage.read(look)
        for write in (
            lambda tx: tx.campaigns.update(campaign),
            lambda tx: tx.campaigns.add_counters(HERE, campaign.id, Counters(total=1)),
        ):
            with pytest.raises(LookupError):
                await storage.write(write)
        assert await storage.read(lambda tx: tx.campaigns.get_loading(HERE, campaign.id)) == campaign

    async def test_a_published_campaign_is_no_longer_loading(self, storage: Storage) -> None:
        """Publishing makes it visible with the counters and fields given, once."""
        campaign = await given_loading(storage)
        final = attrs.evolve(campaign, name="Final", counters=Counters(total=3, pending=2, open=2), revision=4)
        await storage.write(lambda tx: tx.campaigns.publish(final))

        def look(tx: Transaction) -> None:
            assert tx.campaigns.get_loading(HERE, campaign.id) is None
            assert tx.campaigns.get(HERE, campaign.id) == final
            assert tx.campaigns.find(campaign.id) == final
            assert list(tx.campaigns.leftovers(UNTIL + timedelta(days=1))) == []

        await storage.read(look)
        with pytest.raises(LookupError):
            await storage.write(lambda tx: tx.campaigns.publish(final))

    async def test_only_a_loading_campaign_of_the_workspace_can_be_published(self, storage: Storage) -> None:
        """An absent one, and one of another workspace, raise LookupError."""
        campaign = await given_loading(storage)
        for absent in (make_campaign(), attrs.evolve(campaign, workspace_id=THERE)):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, absent=absent: tx.campaigns.publish(absent))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.campaigns.get_loading(THERE, campaign.id)) is None
        assert await storage.read(lambda tx: tx.campaigns.get_loading(HERE, campaign.id)) == campaign

    async def test_a_campaign_is_inserted_once(self, storage: Storage) -> None:
        """A second insert raises, whether the first is loading or published."""
        campaign = await given_loading(storage)
        again = attrs.evolve(campaign, name="Again")
        with pytest.raises(AlreadyThere):
            await storage.write(lambda tx: tx.campaigns.insert_loading(again, loading_until=UNTIL))
        await storage.write(lambda tx: tx.campaigns.publish(campaign))
        with pytest.raises(AlreadyThere):
            await storage.write(lambda tx: tx.campaigns.insert_loading(again, loading_until=UNTIL))
        assert await storage.read(lambda tx: tx.campaigns.get(HERE, campaign.id)) == campaign

    async def test_a_leftover_is_one_whose_loading_ended_before_now(self, storage: Storage) -> None:
        """At exactly that moment it is none yet; those of all workspaces come by (loading_until, id)."""
        late = await given_loading(storage, until=UNTIL + TICK)
        second = await given_loading(storage, until=UNTIL, workspace_id=THERE)
        third = await given_loading(storage, until=UNTIL)
        published = await given_loading(storage, until=UNTIL - TICK)
        await storage.write(lambda tx: tx.campaigns.publish(published))
        assert list(await storage.read(lambda tx: tx.campaigns.leftovers(UNTIL))) == []
        leftovers = await storage.read(lambda tx: list(tx.campaigns.leftovers(UNTIL + 2 * TICK)))
        assert leftovers == [(THERE, second.id), (HERE, third.id), (HERE, late.id)]
        assert await storage.read(lambda tx: list(tx.campaigns.leftovers(UNTIL + TICK))) == leftovers[:2]

    async def test_loading_can_be_extended_while_it_lasts(self, storage: Storage) -> None:
        """The moment moves; an absent, published or foreign campaign is answered with False."""
        campaign = await given_loading(storage, until=UNTIL)
        later = UNTIL + timedelta(hours=1)

        async def extend(workspace_id: str, campaign_id: str) -> bool:
            return await storage.write(
                lambda tx: tx.campaigns.extend_loading(workspace_id, campaign_id, loading_until=later)
            )

        assert await extend(THERE, campaign.id) is False
        assert await extend(HERE, new_id()) is False
        assert await storage.read(lambda tx: len(tx.campaigns.leftovers(UNTIL + TICK))) == 1
        assert await extend(HERE, campaign.id) is True
        assert await storage.read(lambda tx: len(tx.campaigns.leftovers(later))) == 0
        assert await storage.read(lambda tx: len(tx.campaigns.leftovers(later + TICK))) == 1
        assert await storage.read(lambda tx: tx.campaigns.get_loading(HERE, campaign.id)) == campaign
        await storage.write(lambda tx: tx.campaigns.publish(campaign))
        assert await extend(HERE, campaign.id) is False
        assert await storage.read(lambda tx: tx.campaigns.get(HERE, campaign.id)) == campaign

    async def test_a_loading_campaign_is_deleted_in_pieces(self, storage: Storage) -> None:
        """At most `limit` recipients go at a time, and the campaign with the last of them."""
        campaign = await given_loading(storage, contacts=5)
        bystander = await given_loading(storage, contacts=2)

        async def delete() -> bool:
            return await storage.write(lambda tx: tx.campaigns.delete_loading(HERE, campaign.id, limit=2))

        async def left() -> int:
            return await storage.read(lambda tx: len(tx.recipients.page(HERE, campaign.id)))

        assert (await delete(), await left()) == (False, 3)
        assert await storage.read(lambda tx: tx.campaigns.get_loading(HERE, campaign.id)) == campaign
        assert (await delete(), await left()) == (False, 1)
        assert (await delete(), await left()) == (True, 0)
        assert await storage.read(lambda tx: tx.campaigns.get_loading(HERE, campaign.id)) is None
        assert await delete() is True
        assert await storage.read(lambda tx: tx.campaigns.get_loading(HERE, bystander.id)) == bystander
        assert await storage.read(lambda tx: len(tx.recipients.page(HERE, bystander.id))) == 2

    async def test_only_a_loading_campaign_of_the_workspace_is_deleted(self, storage: Storage) -> None:
        """A published one, or another workspace's, keeps its recipients."""
        published = await given_campaign(storage, make_prepared())
        loading = await given_loading(storage, contacts=1)

        def delete(tx: Transaction) -> list[bool]:
            owners = [(HERE, published), (THERE, published), (THERE, loading)]
            return [tx.campaigns.delete_loading(owner, campaign.id, limit=10) for owner, campaign in owners]

        assert await storage.write(delete) == [True, True, True]
        assert await storage.read(lambda tx: tx.campaigns.get(HERE, published.id)) == published
        assert await storage.read(lambda tx: tx.campaigns.get_loading(HERE, loading.id)) == loading
        assert await storage.read(lambda tx: len(tx.recipients.page(HERE, published.id))) == 1
        assert await storage.read(lambda tx: len(tx.recipients.page(HERE, loading.id))) == 1

    async def test_a_campaign_is_got_within_its_workspace_and_found_without(self, storage: Storage) -> None:
        """`get` names the workspace; `find` answers for whatever workspace."""
        campaign = await given_campaign(storage)
        assert await storage.read(lambda tx: tx.campaigns.get(THERE, campaign.id)) is None
        assert await storage.read(lambda tx: tx.campaigns.find(campaign.id)) == campaign
        assert await storage.read(lambda tx: tx.campaigns.find(new_id())) is None

    @awkward_texts
    async def test_campaign_texts_are_read_as_they_were_written(self, storage: Storage, text: str) -> None:
        """Every text comes back to the code point; empty is not None."""
        flow = make_flow()
        await storage.write(lambda tx: tx.flows.insert(flow))
        campaign = make_campaign(
            name=text,
            description=text,
            sms_message_body=text,
            csv_column_headers=(text, "b", text),
            sms_mode="conversational",
            sms_message_source="flow",
            sms_flow_id=flow.id,
            sms_carrier=None,
            sms_from_number=None,
            holidays=HolidayCalendar(
                country=None, holidays=(make_holidays().holidays[0], Holiday(date=NOW.date(), name=text, enabled=False))
            ),
        )
        await given_campaign(storage, campaign=campaign)
        assert await storage.read(lambda tx: tx.campaigns.get(HERE, campaign.id)) == campaign

    @awkward_moments
    async def test_every_field_of_a_calling_campaign_comes_back(self, storage: Storage, moment: datetime) -> None:
        """Moments come back to the microsecond, hours window by window."""
        agent, trunk = make_agent(), make_trunk()

        def insert(tx: Transaction) -> None:
            tx.agents.insert(agent)
            tx.trunks.insert(trunk)

        await storage.write(insert)
        windows = (Window(start_minute=0, end_minute=1440), Window(start_minute=1300, end_minute=5))
        campaign = make_call_campaign(
            status=CampaignStatus.PAUSED,
            pause_reason="error_budget",
            agent_id=agent.id,
            schedule_type="scheduled",
            scheduled_start_at=moment,
            scheduled_expires_at=moment + TICK,
            business_hours=BusinessHours(
                enabled=False,
                timezone="Asia/Kathmandu",
                schedule={"sunday": windows, "monday": ()},
                batch_concurrency=40,
            ),
            holidays=make_holidays(),
            batch_concurrency=40,
            sip_trunk_id=trunk.id,
            cli_mode="group",
            cli_group=(
                CliGroupEntry(phone_number_id="b", phone_e164="+2", count=BIGGEST),
                CliGroupEntry(phone_number_id="a", phone_e164="+1", count=1),
            ),
            ivr_enabled=True,
            call_screen_enabled=True,
            double_dial=True,
            revision=BIGGEST,
            created_at=moment,
            updated_at=moment,
            started_at=moment,
            completed_at=moment,
        )
        snapshot = AgentSnapshot(id=agent.id, name=agent.name, provider=agent.provider, is_active=True)
        await given_campaign(storage, campaign=campaign)
        read = await storage.read(lambda tx: tx.campaigns.get(HERE, campaign.id))
        assert read == attrs.evolve(campaign, agent=snapshot)

    async def test_nothing_differs_from_an_empty_group(self, storage: Storage) -> None:
        """None, an empty caller-ID group, hours without days and a calendar without dates are told apart."""
        bare = make_call_campaign(cli_group=None, business_hours=None, holidays=None)
        empty = make_call_campaign(
            cli_group=(),
            business_hours=make_business_hours(schedule={}),
            holidays=HolidayCalendar(country="DE", holidays=()),
        )
        for campaign in (bare, empty):
            await given_campaign(storage, campaign=campaign)
            read = await storage.read(lambda tx, key=campaign.id: tx.campaigns.get(HERE, key))  # type: ignore[misc]
            assert read == campaign

    async def test_an_update_leaves_the_counters_as_they_are(self, storage: Storage) -> None:
        """Counters are written by `add_counters` and `publish` only."""
        campaign = await given_campaign(storage, make_prepared(), make_prepared())
        changed = attrs.evolve(
            campaign,
            name="Changed",
            status=CampaignStatus.ACTIVE,
            started_at=NOW + TICK,
            revision=1,
            counters=Counters(total=99),
        )
        await storage.write(lambda tx: tx.campaigns.update(changed))
        read = await storage.read(lambda tx: tx.campaigns.get(HERE, campaign.id))
        assert read == attrs.evolve(changed, counters=campaign.counters)

    async def test_an_update_touches_its_own_workspace_only(self, storage: Storage) -> None:
        """An absent campaign, and one of another workspace, raise LookupError."""
        campaign = await given_campaign(storage)
        for absent in (make_campaign(), attrs.evolve(campaign, workspace_id=THERE, name="Stolen")):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, absent=absent: tx.campaigns.update(absent))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.campaigns.find(campaign.id)) == campaign

    async def test_counters_are_added_field_by_field(self, storage: Storage) -> None:
        """A change may be negative; the answer is what they are then, and nothing else of the campaign moves."""
        campaign = await given_campaign(storage, make_prepared(), make_prepared())
        change = Counters(total=5, pending=-1, completed=3, successful=2, failed=BIGGEST, open=-2)
        expected = campaign.counters + change
        added = await storage.write(lambda tx: tx.campaigns.add_counters(HERE, campaign.id, change))
        assert added == expected == Counters(total=7, pending=1, completed=3, successful=2, failed=BIGGEST, open=0)
        read = await storage.read(lambda tx: tx.campaigns.get(HERE, campaign.id))
        assert read == attrs.evolve(campaign, counters=expected)
        for owner, key in ((THERE, campaign.id), (HERE, new_id())):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, at=(owner, key): tx.campaigns.add_counters(*at, change))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.campaigns.get(HERE, campaign.id)) == read

    async def test_the_snapshot_follows_the_agent(self, storage: Storage) -> None:
        """A campaign shows its agent as it is now, whatever snapshot was written with it."""
        agent = make_agent()
        stale = AgentSnapshot(id=agent.id, name="Stale", provider="vapi", is_active=False)
        await storage.write(lambda tx: tx.agents.insert(agent))
        campaign = await given_campaign(storage, campaign=make_call_campaign(agent_id=agent.id, agent=stale))
        await storage.write(lambda tx: tx.agents.update(attrs.evolve(agent, name="Bob", is_active=False)))
        expected = AgentSnapshot(id=agent.id, name="Bob", provider="simulator", is_active=False)

        def snapshots(tx: Transaction) -> list[AgentSnapshot | None]:
            page, _ = tx.campaigns.page(HERE, channel=None, status=None, search=None, offset=0, limit=1)
            found = [tx.campaigns.get(HERE, campaign.id), tx.campaigns.find(campaign.id)]
            found += [page[0], tx.campaigns.in_status([CampaignStatus.READY])[0]]
            return [one.agent for one in found if one is not None]

        assert await storage.read(snapshots) == [expected] * 4
        await storage.write(lambda tx: tx.campaigns.update(attrs.evolve(campaign, agent_id=None, agent=stale)))
        assert await storage.read(snapshots) == [None] * 4
