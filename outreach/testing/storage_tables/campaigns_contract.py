"""The contract of campaigns once they are published: their fields, counters, and the snapshot of the agent."""

from __future__ import annotations

from datetime import datetime

import attrs
import pytest

from outreach.models.campaign import AgentSnapshot, CallerIdAllocation, Counters
from outreach.models.settings import BusinessHours, Holiday, HolidayCalendar, TimeWindow
from outreach.models.states import CampaignStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_approval,
    make_business_hours,
    make_call_campaign,
    make_campaign,
    make_flow,
    make_holidays,
    make_kept_forecast,
    make_prepared,
    make_trunk,
    new_id,
)
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    awkward_moments,
    awkward_texts,
    given_campaign,
    given_rows,
)


class CampaignsContract(ContractBase):
    """Campaigns, but for their lists."""

    async def test_forecasts_are_kept_once_each_and_of_many_the_first_and_the_latest(self, storage: Storage) -> None:
        """By (made_at, basis); nothing of another workspace's campaign is read or written."""
        campaign = await given_campaign(storage, campaign=make_campaign())
        made = make_kept_forecast(campaign_id=campaign.id, revision=MAX_INTEGER)

        def keep(tx: Transaction) -> list[object]:
            table = tx.forecasts
            later = [attrs.evolve(made, at=NOW + number * TICK, hours=[]) for number in range(1, 5)]
            return [
                table.keep(THIS_WORKSPACE, "1", made, most=3),
                table.keep(THIS_WORKSPACE, "1", later[0], most=3),
                *(table.keep(THIS_WORKSPACE, f"b{number}", one, most=3) for number, one in enumerate(later)),
                table.keep(OTHER_WORKSPACE, "x", made, most=3),
                table.of_campaign(THIS_WORKSPACE, campaign.id) == [made, later[2], later[3]],
                [table.has(THIS_WORKSPACE, campaign.id, basis) for basis in ("1", "b0", "b3", "x")],
                table.has(OTHER_WORKSPACE, campaign.id, "1"),
                table.of_campaign(OTHER_WORKSPACE, campaign.id),
            ]

        kept = await storage.write(keep)
        assert kept == [True, False, True, True, True, True, False, True, [True, False, True, False], False, []]

    async def test_an_approval_is_kept_by_revision(self, storage: Storage) -> None:
        """A later one of the same revision takes its place; nothing of another workspace's campaign is read."""
        campaign = await given_campaign(storage, campaign=make_campaign())
        first, other = make_approval(), make_approval(revision=MAX_INTEGER)
        figures = attrs.evolve(first.figures, amount=None, currency=None, ends_at=None)
        later = make_approval(approved_by="host:é", approved_at=NOW + TICK, figures=figures)

        def keep(tx: Transaction) -> list[object]:
            table = tx.approvals
            for one in (first, other, later):
                table.put(THIS_WORKSPACE, campaign.id, one)
            with pytest.raises(LookupError):
                table.put(OTHER_WORKSPACE, campaign.id, first)
            found = [table.get(THIS_WORKSPACE, campaign.id, revision) for revision in (1, MAX_INTEGER, 2)]
            return [*found, table.get(OTHER_WORKSPACE, campaign.id, 1)]

        assert await storage.write(keep) == [later, other, None, None]

    async def test_all_approvals_of_a_campaign_are_deleted_together(self, storage: Storage) -> None:
        """Those of another campaign stay, and nothing is deleted for another workspace."""
        campaign, other = [await given_campaign(storage, campaign=make_campaign()) for _ in range(2)]

        def had(tx: Transaction) -> list[bool]:
            return [tx.approvals.has_any(THIS_WORKSPACE, one.id) for one in (campaign, other)]

        def delete(tx: Transaction) -> list[object]:
            found = [had(tx)]
            for one in (campaign, other):
                for revision in (1, 2):
                    tx.approvals.put(THIS_WORKSPACE, one.id, make_approval(revision=revision))
            tx.approvals.delete(OTHER_WORKSPACE, campaign.id)
            found += [had(tx), [tx.approvals.has_any(OTHER_WORKSPACE, campaign.id)]]
            tx.approvals.delete(THIS_WORKSPACE, campaign.id)
            return [*found, had(tx), tx.approvals.get(THIS_WORKSPACE, campaign.id, 2)]

        assert await storage.write(delete) == [[False, False], [True, True], [False], [False, True], None]

    async def test_a_campaign_is_got_within_its_workspace_and_found_without(self, storage: Storage) -> None:
        """`get` names the workspace; `find` answers for whatever workspace."""
        campaign = await given_campaign(storage)
        assert await storage.read(lambda tx: tx.campaigns.get(OTHER_WORKSPACE, campaign.id)) is None
        assert await storage.read(lambda tx: tx.campaigns.find(campaign.id)) == campaign
        assert await storage.read(lambda tx: tx.campaigns.find(new_id())) is None

    @awkward_texts
    async def test_campaign_texts_are_read_as_they_were_written(self, storage: Storage, text: str) -> None:
        """Every text comes back to the code point; empty is not None."""
        flow = make_flow()
        await given_rows(storage, flow)
        campaign = make_campaign(
            name=text,
            description=text,
            body=text,
            csv_column_headers=(text, "b", text),
            variable_names=("Plan", text),
            message_mode="conversational",
            message_source="flow",
            flow_id=flow.id,
            carrier=None,
            from_number=text,
            from_numbers=(text, "+14155550101"),
            replace_characters=True,
            stay_open=True,
            changed_by=text,
            holidays=HolidayCalendar(
                country=None, holidays=(make_holidays().holidays[0], Holiday(date=NOW.date(), name=text, enabled=False))
            ),
        )
        await given_campaign(storage, campaign=campaign)
        assert await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id)) == campaign

    @awkward_moments
    async def test_every_field_of_a_calling_campaign_comes_back(self, storage: Storage, moment: datetime) -> None:
        """Moments come back to the microsecond, hours window by window."""
        agent, trunk = make_agent(), make_trunk()
        await given_rows(storage, agent, trunk)
        windows = (TimeWindow(start_minute=0, end_minute=1440), TimeWindow(start_minute=1300, end_minute=5))
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
            trunk_id=trunk.id,
            cli_mode="group",
            cli_group=(
                CallerIdAllocation(number_id="b", phone="+2", count=MAX_INTEGER),
                CallerIdAllocation(number_id="a", phone="+1", count=1),
            ),
            ivr_enabled=True,
            call_screen_enabled=True,
            double_dial=True,
            retry_voicemail=True,
            revision=MAX_INTEGER,
            created_at=moment,
            updated_at=moment,
            started_at=moment,
            completed_at=moment,
        )
        snapshot = AgentSnapshot(id=agent.id, name=agent.name, provider=agent.provider, is_active=True)
        await given_campaign(storage, campaign=campaign)
        read = await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id))
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
            read = await storage.read(lambda tx, key=campaign.id: tx.campaigns.get(THIS_WORKSPACE, key))  # type: ignore[misc]
            assert read == campaign

    async def test_a_campaign_update_leaves_the_counters_as_they_are(self, storage: Storage) -> None:
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
        read = await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id))
        assert read == attrs.evolve(changed, counters=campaign.counters)

    async def test_a_campaign_is_updated_within_its_workspace_only(self, storage: Storage) -> None:
        """An absent campaign, and one of another workspace, raise LookupError."""
        campaign = await given_campaign(storage)
        for absent in (make_campaign(), attrs.evolve(campaign, workspace_id=OTHER_WORKSPACE, name="Stolen")):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, absent=absent: tx.campaigns.update(absent))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.campaigns.find(campaign.id)) == campaign

    async def test_counters_are_added_field_by_field(self, storage: Storage) -> None:
        """A change may be negative; the answer is what they are then, and nothing else of the campaign moves."""
        campaign = await given_campaign(storage, make_prepared(), make_prepared())
        change = Counters(total=5, pending=-1, completed=3, successful=2, failed=MAX_INTEGER, open=-2)
        expected = campaign.counters + change
        added = await storage.write(lambda tx: tx.campaigns.add_counters(THIS_WORKSPACE, campaign.id, change))
        assert added == expected == Counters(total=7, pending=1, completed=3, successful=2, failed=MAX_INTEGER, open=0)
        read = await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id))
        assert read == attrs.evolve(campaign, counters=expected)
        for owner, key in ((OTHER_WORKSPACE, campaign.id), (THIS_WORKSPACE, new_id())):
            with pytest.raises(LookupError):
                await storage.write(lambda tx, at=(owner, key): tx.campaigns.add_counters(*at, change))  # type: ignore[misc]
        assert await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id)) == read

    async def test_the_snapshot_follows_the_agent(self, storage: Storage) -> None:
        """A campaign shows its agent as it is now, whatever snapshot was written with it."""
        agent = make_agent()
        stale = AgentSnapshot(id=agent.id, name="Stale", provider="vapi", is_active=False)
        await given_rows(storage, agent)
        campaign = await given_campaign(storage, campaign=make_call_campaign(agent_id=agent.id, agent=stale))
        await storage.write(lambda tx: tx.agents.update(attrs.evolve(agent, name="Bob", is_active=False)))
        expected = AgentSnapshot(id=agent.id, name="Bob", provider="simulator", is_active=False)

        def snapshots(tx: Transaction) -> list[AgentSnapshot | None]:
            page, _ = tx.campaign_lists.page(THIS_WORKSPACE, channel=None, status=None, search=None, offset=0, limit=1)
            found = [tx.campaigns.get(THIS_WORKSPACE, campaign.id), tx.campaigns.find(campaign.id)]
            found += [page[0].campaign(), tx.campaigns.in_status([CampaignStatus.READY])[0]]
            return [one.agent for one in found if one is not None]

        assert await storage.read(snapshots) == [expected] * 4
        await storage.write(lambda tx: tx.campaigns.update(attrs.evolve(campaign, agent_id=None, agent=stale)))
        assert await storage.read(snapshots) == [None] * 4

    async def test_a_campaign_is_in_no_archive_at_first(self, storage: Storage) -> None:
        """Only a file has archives, and its owner moves campaigns there: others find none, and nothing to erase."""
        campaign = await given_campaign(storage)
        await storage.write(lambda tx: tx.archives.note_erasure(THIS_WORKSPACE, campaign.id, figures="{}"))

        def found(tx: Transaction) -> list[object]:
            archives = tx.archives
            return [
                archives.of_campaign(THIS_WORKSPACE, campaign.id),
                *(list(archives.list(workspace_id)) for workspace_id in (None, THIS_WORKSPACE)),
                *(list(archives.to_erase(workspace_id)) for workspace_id in (None, THIS_WORKSPACE)),
            ]

        assert await storage.read(found) == [None, [], [], [], []]
