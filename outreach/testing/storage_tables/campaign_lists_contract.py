"""The contract of the lists of campaigns: pages, search, and those in a status."""

from __future__ import annotations

from typing import Any

import pytest

from outreach.models.campaign import Campaign
from outreach.models.carriers import Channel
from outreach.models.states import CampaignStatus
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW, make_call_campaign, make_campaign, new_id
from outreach.testing.storage_tables.base_contract import HERE, THERE, TICK, ContractBase, publish
from outreach.working_set import Transaction

NAMES = {
    "accents": "Été à Paris",
    "decomposed": "Cafe\u0301 latte",
    "greek": "ΟΔΟΣ",
    "german": "Große Straße",
    "turkish": "İstanbul",
    "cyrillic": "Привет",
    "percent": "100% off",
    "underscore": "a_b",
    "backslash": "c\\d",
    "emoji": "🎉 party",
}


async def published(storage: Storage, *campaigns: Campaign) -> None:
    """Publish campaigns in this order."""

    def write(tx: Transaction) -> None:
        for campaign in campaigns:
            publish(tx, campaign)

    await storage.write(write)


async def page(storage: Storage, workspace_id: str = HERE, **wanted: Any) -> tuple[list[str], int]:
    """Return the identifiers on a page, and how many match in all."""
    asked = {"channel": None, "status": None, "search": None, "offset": 0, "limit": 100} | wanted
    campaigns, total = await storage.read(lambda tx: tx.campaigns.page(workspace_id, **asked))
    return [campaign.id for campaign in campaigns], total


class CampaignListsContract(ContractBase):
    """The lists of campaigns."""

    async def test_a_page_is_newest_first(self, storage: Storage) -> None:
        """The order is (created_at, id), both descending, within one workspace."""
        ids = [new_id() for _ in range(4)]
        moments = [NOW, NOW + TICK, NOW, NOW - TICK]
        made = [make_campaign(id=key, created_at=moment) for key, moment in zip(ids, moments, strict=True)]
        foreign = make_campaign(workspace_id=THERE)
        await published(storage, made[2], foreign, made[0], made[3], made[1])
        assert await page(storage) == ([ids[1], ids[2], ids[0], ids[3]], 4)
        assert await page(storage, THERE) == ([foreign.id], 1)

    async def test_a_page_has_an_offset_and_a_limit(self, storage: Storage) -> None:
        """The total counts all that match; past the end the page is empty, however far."""
        made = [make_campaign() for _ in range(5)]
        await published(storage, *made)
        newest = [campaign.id for campaign in reversed(made)]
        assert await page(storage, limit=2) == (newest[:2], 5)
        assert await page(storage, limit=2, offset=2) == (newest[2:4], 5)
        assert await page(storage, limit=2, offset=4) == (newest[4:], 5)
        for offset in (5, 2**31, 2**63 - 1, 2**63, 10**40):
            assert await page(storage, limit=100, offset=offset) == ([], 5)

    @pytest.mark.parametrize("channel", ["sms", "call"])
    @pytest.mark.parametrize("status", [CampaignStatus.DRAFT, CampaignStatus.ACTIVE])
    async def test_filters_are_combined(self, storage: Storage, channel: Channel, status: CampaignStatus) -> None:
        """Channel, status and search must all hold; the total counts what they leave."""
        made = {
            (kind, state, name): make(name=name, status=state)
            for kind, make in (("sms", make_campaign), ("call", make_call_campaign))
            for state in (CampaignStatus.DRAFT, CampaignStatus.ACTIVE)
            for name in ("Alpha", "Beta")
        }
        await published(storage, *made.values())
        alpha, beta = made[channel, status, "Alpha"].id, made[channel, status, "Beta"].id
        assert await page(storage, channel=channel, status=status) == ([beta, alpha], 2)
        assert await page(storage, channel=channel, status=status, search="bet") == ([beta], 1)
        assert await page(storage, channel=channel, status=status, search="bet", offset=1) == ([], 1)
        assert await page(storage, channel=channel, status=CampaignStatus.PAUSED) == ([], 0)
        assert (await page(storage, channel=channel))[1] == 4
        assert (await page(storage, status=status))[1] == 4

    @pytest.mark.parametrize(
        ("search", "found"),
        [
            ("éTÉ", "accents"),
            ("E\u0301TE\u0301", "accents"),
            ("CAF\u00c9", "decomposed"),
            ("οδος", "greek"),
            ("οδοσ", "greek"),
            ("STRASSE", "german"),
            ("große", "german"),
            ("istan", "turkish"),
            ("ПРИВЕТ", "cyrillic"),
            ("%", "percent"),
            ("_", "underscore"),
            ("\\", "backslash"),
            ("🎉", "emoji"),
            ("PARTY", "emoji"),
        ],
    )
    async def test_search_finds_a_part_of_the_name_in_every_script(
        self, storage: Storage, search: str, found: str
    ) -> None:
        """Case does not count; per cent sign, underscore and backslash are plain characters."""
        made = {key: make_campaign(name=name) for key, name in NAMES.items()}
        await published(storage, *made.values())
        assert await page(storage, search=search) == ([made[found].id], 1)

    async def test_search_finds_nothing_where_nothing_matches(self, storage: Storage) -> None:
        """An accent is not case, a wildcard is none, and an empty search takes all."""
        await published(storage, *(make_campaign(name=name) for name in NAMES.values()))
        for search in ("ete", "a%b", "a?b", "*", "%%", "__", "'", "x" * 10_000):
            assert await page(storage, search=search) == ([], 0)
        assert (await page(storage, search=""))[1] == len(NAMES)

    async def test_search_follows_a_change_of_name(self, storage: Storage) -> None:
        """An updated campaign is found by its new name only."""
        campaign = make_campaign(name="Before")
        await published(storage, campaign)
        renamed = make_campaign(id=campaign.id, name="Après")
        await storage.write(lambda tx: tx.campaigns.update(renamed))
        assert await page(storage, search="APRÈS") == ([campaign.id], 1)
        assert await page(storage, search="before") == ([], 0)

    async def test_campaigns_in_a_status_are_oldest_first(self, storage: Storage) -> None:
        """The order is (created_at, id) over all the statuses asked for, of one workspace or of all."""
        active = make_campaign(status=CampaignStatus.ACTIVE, created_at=NOW + TICK)
        paused = make_campaign(status=CampaignStatus.PAUSED, created_at=NOW)
        foreign = make_campaign(status=CampaignStatus.ACTIVE, created_at=NOW - TICK, workspace_id=THERE)
        twin = make_campaign(status=CampaignStatus.ACTIVE, created_at=NOW)
        ready = make_campaign(status=CampaignStatus.READY)
        await published(storage, active, ready, foreign, twin, paused)
        asked = [CampaignStatus.PAUSED, CampaignStatus.ACTIVE]

        def ids(tx: Transaction, workspace_id: str | None) -> list[str]:
            return [campaign.id for campaign in tx.campaigns.in_status(asked, workspace_id=workspace_id)]

        assert await storage.read(lambda tx: ids(tx, None)) == [foreign.id, paused.id, twin.id, active.id]
        assert await storage.read(lambda tx: ids(tx, HERE)) == [paused.id, twin.id, active.id]
        assert await storage.read(lambda tx: ids(tx, THERE)) == [foreign.id]
        assert await storage.read(lambda tx: list(tx.campaigns.in_status([]))) == []

    async def test_campaigns_in_a_status_are_counted(self, storage: Storage) -> None:
        """Each status that is asked for has its number, of one workspace or of all."""
        active, scheduled = CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED
        made = [make_campaign(status=status) for status in (active, active, scheduled, CampaignStatus.READY)]
        await published(storage, *made, make_campaign(status=active, workspace_id=THERE))
        loading = make_campaign(status=active)
        await storage.write(lambda tx: tx.campaigns.insert_loading(loading, loading_until=NOW))

        async def counted(workspace_id: str | None) -> object:
            return await storage.read(
                lambda tx: tx.campaigns.count_in_status([active, scheduled], workspace_id=workspace_id)
            )

        assert await counted(None) == {active: 3, scheduled: 1}
        assert await counted(HERE) == {active: 2, scheduled: 1}
        assert await counted(THERE) == {active: 1, scheduled: 0}
        assert await storage.read(lambda tx: dict(tx.campaigns.count_in_status([]))) == {}

    async def test_those_that_the_engine_has_paused_are_told_from_an_operators(self, storage: Storage) -> None:
        """Oldest first by (created_at, id), at most `limit`, of one workspace or of all."""
        paused = CampaignStatus.PAUSED
        budget = make_campaign(status=paused, pause_reason="error_budget", created_at=NOW + TICK)
        moved = make_campaign(status=paused, pause_reason="moved", created_at=NOW)
        foreign = make_campaign(status=paused, pause_reason="provider_auth", created_at=NOW - TICK, workspace_id=THERE)
        await published(
            storage,
            budget,
            make_campaign(status=paused, pause_reason="operator"),
            make_campaign(status=CampaignStatus.ACTIVE),
            foreign,
            moved,
        )

        async def found(workspace_id: str | None, limit: int = 9) -> list[str]:
            return await storage.read(
                lambda tx: [
                    campaign.id for campaign in tx.campaigns.paused_by_engine(workspace_id=workspace_id, limit=limit)
                ]
            )

        assert await found(None) == [foreign.id, moved.id, budget.id]
        assert await found(None, 2) == [foreign.id, moved.id]
        assert await found(HERE) == [moved.id, budget.id]
        assert await found(THERE) == [foreign.id]
