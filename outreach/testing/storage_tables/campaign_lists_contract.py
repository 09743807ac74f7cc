"""The contract of the lists of campaigns: pages, search, and those in a status."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from outreach.models.base import Channel
from outreach.models.campaign import Campaign, Counters
from outreach.models.database import CampaignGroup
from outreach.models.states import APPROVAL_ENDED, CampaignStatus, TrailStepKind
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables.campaigns import StoredCampaign
from outreach.testing.builders import NOW, make_agent, make_call_campaign, make_campaign, make_trail_entry, new_id
from outreach.testing.storage_tables.base_contract import (
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    given_rows,
    publish,
)

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

_WORDS = ("Spring", "offer", "Reminder", "Straits", "off")


class _Undone(Exception):
    """The error of an operation that is to leave nothing behind."""


async def page(storage: Storage, workspace_id: str = THIS_WORKSPACE, **wanted: Any) -> tuple[list[str], int]:
    """Return the identifiers on a page, and how many match in all."""
    asked = {"channel": None, "status": None, "search": None, "offset": 0, "limit": 100} | wanted
    campaigns, total = await storage.read(lambda tx: tx.campaign_lists.page(workspace_id, **asked))
    return [campaign.id for campaign in campaigns], total


class CampaignListsContract(ContractBase):
    """The lists of campaigns."""

    async def test_a_page_is_newest_first(self, storage: Storage) -> None:
        """The order is (created_at, id), both descending, within one workspace."""
        ids = [new_id() for _ in range(4)]
        moments = [NOW, NOW + TICK, NOW, NOW - TICK]
        made = [make_campaign(id=key, created_at=moment) for key, moment in zip(ids, moments, strict=True)]
        foreign = make_campaign(workspace_id=OTHER_WORKSPACE)
        await given_rows(storage, made[2], foreign, made[0], made[3], made[1])
        assert await page(storage) == ([ids[1], ids[2], ids[0], ids[3]], 4)
        assert await page(storage, OTHER_WORKSPACE) == ([foreign.id], 1)

    async def test_a_page_has_an_offset_and_a_limit(self, storage: Storage) -> None:
        """The total counts all that match; past the end the page is empty, however far."""
        made = [make_campaign() for _ in range(5)]
        await given_rows(storage, *made)
        newest = [campaign.id for campaign in reversed(made)]
        assert await page(storage, limit=2) == (newest[:2], 5)
        assert await page(storage, limit=2, offset=2) == (newest[2:4], 5)
        assert await page(storage, limit=2, offset=4) == (newest[4:], 5)
        for offset in (5, 2**31, 2**63 - 1, 2**63, 10**40):
            assert await page(storage, limit=100, offset=offset) == ([], 5)

    async def test_a_page_begins_behind_a_campaign(self, storage: Storage) -> None:
        """Also behind others of its moment, and behind one that is not listed; the total is that of all."""
        made = [
            make(name="Spring offer", status=status, created_at=moment, archived_at=shelf)
            for make in (make_campaign, make_call_campaign)
            for status in (CampaignStatus.DRAFT, CampaignStatus.PAUSED)
            for moment in (NOW - TICK, NOW)
            for shelf in (None, NOW)
        ]
        await given_rows(storage, *made)
        places = sorted(((one.created_at, one.id) for one in made), reverse=True)
        for search, channel, status, archived in itertools.product(
            (None, "ff", "offer"), (None, "sms"), (None, CampaignStatus.DRAFT), (None, False, True)
        ):
            asked: dict[str, Any] = {"search": search, "channel": channel, "status": status, "archived": archived}
            every, total = await page(storage, **asked)
            halved = [one is not None for one in (channel, status, archived)].count(True)
            assert total == len(every) == 16 // 2**halved
            for index in (0, 3, 4, 8, 15):
                behind = {key for _, key in places[index + 1 :]}
                rest = [key for key in every if key in behind]
                assert await page(storage, **asked, after=places[index], limit=3) == (rest[:3], total)

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
        await given_rows(storage, *made.values())
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
        await given_rows(storage, *made.values())
        assert await page(storage, search=search) == ([made[found].id], 1)

    async def test_search_finds_nothing_where_nothing_matches(self, storage: Storage) -> None:
        """An accent is not case, a wildcard is none, and an empty search takes all."""
        await given_rows(storage, *(make_campaign(name=name) for name in NAMES.values()))
        for search in ("ete", "a%b", "a?b", "*", "%%", "__", "'", "x" * 10_000):
            assert await page(storage, search=search) == ([], 0)
        assert (await page(storage, search=""))[1] == len(NAMES)

    async def test_search_follows_a_change_of_name(self, storage: Storage) -> None:
        """An updated campaign is found by its new name only."""
        campaign = make_campaign(name="Before")
        await given_rows(storage, campaign)
        renamed = make_campaign(id=campaign.id, name="Après")
        await storage.write(lambda tx: tx.campaigns.update(renamed))
        assert await page(storage, search="APRÈS") == ([campaign.id], 1)
        assert await page(storage, search="before") == ([], 0)

    @pytest.mark.parametrize("search", ["sp", "spr", "spring o", "spring offer of the house, for you and for yours"])
    async def test_search_keeps_to_its_workspace(self, storage: Storage, search: str) -> None:
        """However short or long the text is, and however many others have it."""
        name = "The Spring Offer of the house, for you and for yours, while it lasts"
        mine, other = make_campaign(name=name), make_campaign(name="Something else")
        foreign = [make_campaign(name=name, workspace_id=OTHER_WORKSPACE) for _ in range(3)]
        await given_rows(storage, *foreign[:2], mine, other, foreign[2])
        assert await page(storage, search=search) == ([mine.id], 1)
        assert await page(storage, OTHER_WORKSPACE, search=search) == ([it.id for it in reversed(foreign)], 3)
        assert await page(storage, "0195554e-0000-7000-8000-00000000dead", search=search) == ([], 0)

    async def test_search_compares_all_of_a_long_text(self, storage: Storage) -> None:
        """Also what comes after the characters that any index could know."""
        names = ["x" * 200 + ending for ending in ("a", "b", '"quoted"')]
        made = [make_campaign(name=name) for name in names]
        await given_rows(storage, *made)
        for campaign in made:
            assert await page(storage, search=campaign.name) == ([campaign.id], 1)
        assert await page(storage, search='xx"quo') == ([made[2].id], 1)
        assert (await page(storage, search="x" * 200))[1] == 3
        assert (await page(storage, search="x" * 201)) == ([], 0)

    @pytest.mark.parametrize("seed", range(3))
    async def test_lists_are_right_after_whatever_was_done(self, storage: Storage, seed: int) -> None:
        """Counts, orders and what is found equal those of a look at every campaign."""
        rng = random.Random(seed)  # noqa: S311 - no secret
        there: dict[str, Campaign] = {}
        loading: list[Campaign] = []

        def some(tx: Transaction) -> None:
            match rng.choice(["load", "publish", "drop", "rename", "move", "count"]):
                case "load":
                    make = rng.choice([make_campaign, make_call_campaign])
                    moment = NOW + rng.randrange(5) * TICK
                    made = make(
                        name=rng.choice(_WORDS),
                        workspace_id=rng.choice([THIS_WORKSPACE, OTHER_WORKSPACE]),
                        created_at=moment,
                    )
                    tx.campaigns.insert_loading(made, loading_until=NOW)
                    loading.append(made)
                case "publish" if loading:
                    campaign = loading.pop()
                    tx.campaigns.publish(campaign)
                    there[campaign.id] = campaign
                case "drop" if loading:
                    dropped = loading.pop()
                    assert tx.campaigns.delete_loading(dropped.workspace_id, dropped.id, limit=9)
                case "rename" if there:
                    change(tx, name=" ".join(rng.choices(_WORDS, k=3)))
                case "move" if there:
                    change(tx, status=rng.choice(list(CampaignStatus)))
                case "count" if there:
                    counted = rng.choice(list(there.values()))
                    tx.campaigns.add_counters(counted.workspace_id, counted.id, Counters(total=1))

        def change(tx: Transaction, **values: Any) -> None:
            campaign = attrs.evolve(rng.choice(list(there.values())), **values)
            tx.campaigns.update(campaign)
            there[campaign.id] = campaign

        def some_and_fail(tx: Transaction) -> None:
            known, waiting = dict(there), list(loading)
            try:
                for _ in range(3):
                    some(tx)
            finally:
                there.clear()
                there.update(known)
                loading[:] = waiting
            raise _Undone

        for _ in range(60):
            if rng.random() < 0.2:
                with pytest.raises(_Undone):
                    await storage.write(some_and_fail)
            else:
                await storage.write(some)
        for workspace_id in (THIS_WORKSPACE, OTHER_WORKSPACE):
            for channel in (None, "sms", "call"):
                for status in (None, CampaignStatus.READY, CampaignStatus.ACTIVE):
                    for search in (None, "a", "ing", "off"):
                        expected = [
                            campaign.id
                            for campaign in sorted(there.values(), key=lambda it: (it.created_at, it.id), reverse=True)
                            if campaign.workspace_id == workspace_id
                            and channel in {None, campaign.channel}
                            and status in {None, campaign.status}
                            and (search or "") in campaign.name.lower()
                        ]
                        asked = {"channel": channel, "status": status, "search": search}
                        assert await page(storage, workspace_id, **asked) == (expected, len(expected)), asked

    async def test_whatever_a_list_shows_counts_as_a_change(self, storage: Storage) -> None:
        """One number shows that a kept list is out of date; the numbers of other workspaces stay."""
        agent = make_agent()
        campaign = make_call_campaign(agent_id=agent.id)
        foreign = make_campaign(workspace_id=OTHER_WORKSPACE)

        async def changes(write: Callable[[Transaction], object]) -> tuple[bool, bool]:
            before = [await change(THIS_WORKSPACE), await change(OTHER_WORKSPACE)]
            await storage.write(write)
            after = [await change(THIS_WORKSPACE), await change(OTHER_WORKSPACE)]
            return after[0] > before[0], after[1] > before[1]

        async def change(workspace_id: str) -> int:
            found = await storage.read(lambda tx: tx.campaign_lists.revision(workspace_id))
            assert found is not None
            return found

        await given_rows(storage, agent)
        assert await changes(lambda tx: publish(tx, campaign)) == (True, False)
        assert await changes(lambda tx: publish(tx, foreign)) == (False, True)
        for write in (
            lambda tx: tx.campaigns.update(attrs.evolve(campaign, name="Other")),
            lambda tx: tx.campaigns.update(attrs.evolve(campaign, status=CampaignStatus.PAUSED)),
            lambda tx: tx.campaigns.add_counters(THIS_WORKSPACE, campaign.id, Counters(total=1)),
            lambda tx: tx.agents.update(attrs.evolve(agent, is_active=False)),
        ):
            assert await changes(write) == (True, False)
        assert await storage.read(lambda tx: tx.campaign_lists.revision("0195554e-0000-7000-8000-00000000dead")) is None

    async def test_the_number_of_a_list_is_reported_at_once(
        self, storage: Storage, open_storage: Callable[[], Storage]
    ) -> None:
        """It is current after every committed write of any process; None where that cannot be known at once."""
        async with open_storage() as other:
            for writer in (storage, other, storage, storage, other):
                await given_rows(writer, make_campaign())
                for asked in (storage, other):
                    read = await asked.read(lambda tx: tx.campaign_lists.revision(THIS_WORKSPACE))
                    assert asked.campaign_list_revision(THIS_WORKSPACE) in {read, None}
        assert storage.campaign_list_revision("0195554e-0000-7000-8000-00000000dead") is None

    async def test_a_stored_campaign_differs_where_anything_of_it_does(self, storage: Storage) -> None:
        """So that what was made of it can be kept while it equals the one that it was made of."""
        agent = make_agent()
        campaign = make_call_campaign(agent_id=agent.id)
        await given_rows(storage, agent, campaign)

        async def stored() -> StoredCampaign:
            found, _ = await storage.read(
                lambda tx: tx.campaign_lists.page(
                    THIS_WORKSPACE, channel=None, status=None, search=None, offset=0, limit=1
                )
            )
            return found[0]

        one = await stored()
        assert one == await stored()
        assert one.campaign() == await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id))
        for write in (
            lambda tx: tx.campaigns.update(attrs.evolve(campaign, description="Other")),
            lambda tx: tx.campaigns.add_counters(THIS_WORKSPACE, campaign.id, Counters(failed=1)),
            lambda tx: tx.agents.update(attrs.evolve(agent, name="Bob")),
        ):
            await storage.write(write)
            before, one = one, await stored()
            assert one != before

    async def test_campaigns_in_a_status_are_oldest_first(self, storage: Storage) -> None:
        """The order is (created_at, id) over all the statuses asked for, of one workspace or of all."""
        active = make_campaign(status=CampaignStatus.ACTIVE, created_at=NOW + TICK)
        paused = make_campaign(status=CampaignStatus.PAUSED, created_at=NOW)
        foreign = make_campaign(status=CampaignStatus.ACTIVE, created_at=NOW - TICK, workspace_id=OTHER_WORKSPACE)
        twin = make_campaign(status=CampaignStatus.ACTIVE, created_at=NOW)
        ready = make_campaign(status=CampaignStatus.READY)
        await given_rows(storage, active, ready, foreign, twin, paused)
        asked = [CampaignStatus.PAUSED, CampaignStatus.ACTIVE]

        def ids(tx: Transaction, workspace_id: str | None) -> list[str]:
            return [campaign.id for campaign in tx.campaigns.in_status(asked, workspace_id=workspace_id)]

        assert await storage.read(lambda tx: ids(tx, None)) == [foreign.id, paused.id, twin.id, active.id]
        assert await storage.read(lambda tx: ids(tx, THIS_WORKSPACE)) == [paused.id, twin.id, active.id]
        assert await storage.read(lambda tx: ids(tx, OTHER_WORKSPACE)) == [foreign.id]
        assert await storage.read(lambda tx: list(tx.campaigns.in_status([]))) == []

    async def test_the_paused_of_some_campaigns_are_returned(self, storage: Storage) -> None:
        """In the order in which they are named, and none of another workspace, or that is still loading."""
        paused, active = CampaignStatus.PAUSED, CampaignStatus.ACTIVE
        one, two, running = (make_campaign(status=status) for status in (paused, paused, active))
        foreign = make_campaign(status=paused, workspace_id=OTHER_WORKSPACE)
        await given_rows(storage, one, two, running, foreign)
        loading = make_campaign(status=paused)
        await storage.write(lambda tx: tx.campaigns.insert_loading(loading, loading_until=NOW))
        named = [(THIS_WORKSPACE, each.id) for each in (two, running, foreign, loading, one)]
        assert await storage.read(lambda tx: list(tx.campaigns.paused_among(named))) == [two, one]
        assert await storage.read(lambda tx: list(tx.campaigns.paused_among([]))) == []

    async def test_campaigns_in_a_status_are_counted(self, storage: Storage) -> None:
        """Each requested status has its number, of one workspace or of all."""
        active, scheduled = CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED
        made = [make_campaign(status=status) for status in (active, active, scheduled, CampaignStatus.READY)]
        await given_rows(storage, *made, make_campaign(status=active, workspace_id=OTHER_WORKSPACE))
        loading = make_campaign(status=active)
        await storage.write(lambda tx: tx.campaigns.insert_loading(loading, loading_until=NOW))

        async def counted(workspace_id: str | None) -> object:
            return await storage.read(
                lambda tx: tx.campaigns.count_in_status([active, scheduled], workspace_id=workspace_id)
            )

        assert await counted(None) == {active: 3, scheduled: 1}
        assert await counted(THIS_WORKSPACE) == {active: 2, scheduled: 1}
        assert await counted(OTHER_WORKSPACE) == {active: 1, scheduled: 0}
        assert await storage.read(lambda tx: dict(tx.campaigns.count_in_status([]))) == {}

    async def test_open_campaigns_are_counted_with_their_recipients(self, storage: Storage) -> None:
        """By status and reason of the pause, over all workspaces, with what is pending and what is open."""
        active, paused = CampaignStatus.ACTIVE, CampaignStatus.PAUSED
        made = [
            make_campaign(status=active),
            make_campaign(status=active, workspace_id=OTHER_WORKSPACE),
            make_campaign(status=paused, pause_reason="operator"),
            make_campaign(status=paused, pause_reason="moved"),
            make_campaign(status=CampaignStatus.READY),
        ]
        await given_rows(storage, *made)
        loading = make_campaign(status=active)
        await storage.write(lambda tx: tx.campaigns.insert_loading(loading, loading_until=NOW))
        counters = Counters(total=9, pending=3, completed=4, successful=1, failed=1, open=5)
        await storage.write(lambda tx: tx.campaigns.add_counters(made[0].workspace_id, made[0].id, counters))
        assert await storage.read(lambda tx: list(tx.campaigns.open_groups())) == [
            CampaignGroup("active", None, 2, 3, 5),
            CampaignGroup("paused", "moved", 1, 0, 0),
            CampaignGroup("paused", "operator", 1, 0, 0),
        ]

    async def test_pauses_by_the_engine_and_by_an_operator_are_distinguished(self, storage: Storage) -> None:
        """Oldest first by (created_at, id), at most `limit`, of one workspace or of all."""
        paused = CampaignStatus.PAUSED
        budget = make_campaign(status=paused, pause_reason="error_budget", created_at=NOW + TICK)
        moved = make_campaign(status=paused, pause_reason="moved", created_at=NOW)
        foreign = make_campaign(
            status=paused, pause_reason="provider_auth", created_at=NOW - TICK, workspace_id=OTHER_WORKSPACE
        )
        await given_rows(
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
        assert await found(THIS_WORKSPACE) == [moved.id, budget.id]
        assert await found(OTHER_WORKSPACE) == [foreign.id]

    async def test_starts_that_were_taken_back_are_found_by_the_latest_move(self, storage: Storage) -> None:
        """Oldest first, at most `limit`, of one workspace or of all; none that was archived, or has moved since."""
        late, first, moved, started, archived, foreign = (
            make_campaign(created_at=NOW + 2 * TICK),
            make_campaign(created_at=NOW + TICK),
            make_campaign(),
            make_campaign(status=CampaignStatus.SCHEDULED),
            make_campaign(archived_at=NOW),
            make_campaign(workspace_id=OTHER_WORKSPACE, created_at=NOW),
        )
        await given_rows(storage, make_campaign(), late, first, moved, started, archived, foreign)

        def tell(tx: Transaction) -> None:
            for campaign in (late, first, moved, started, archived, foreign):
                place = {"workspace_id": campaign.workspace_id, "campaign_id": campaign.id, "position": None}
                tx.trail.append(make_trail_entry(what=TrailStepKind.CAMPAIGN, reason=APPROVAL_ENDED, **place))
                # Neither is a move of the campaign.
                tx.trail.append(make_trail_entry(what=TrailStepKind.HELD, reason="business_hours", **place))
                tx.trail.append(make_trail_entry(what=TrailStepKind.HELD, **{**place, "position": 0}))
            place = {"workspace_id": moved.workspace_id, "campaign_id": moved.id, "position": None}
            tx.trail.append(make_trail_entry(what=TrailStepKind.CAMPAIGN, reason=None, **place))

        await storage.write(tell)

        async def found(workspace_id: str | None, limit: int = 9) -> list[str]:
            return await storage.read(
                lambda tx: [campaign.id for campaign in tx.campaigns.taken_back(workspace_id=workspace_id, limit=limit)]
            )

        assert await found(None) == [foreign.id, first.id, late.id]
        assert await found(None, 2) == [foreign.id, first.id]
        assert await found(THIS_WORKSPACE) == [first.id, late.id]

    async def test_active_campaigns_are_listed_oldest_first(self, storage: Storage) -> None:
        """Of one workspace or of all, at most as many as requested; no other status, and none that loads."""
        active = {"status": CampaignStatus.ACTIVE}
        late = make_campaign(created_at=NOW + TICK, **active)
        foreign = make_campaign(workspace_id=OTHER_WORKSPACE, created_at=NOW, **active)
        ready = make_campaign(status=CampaignStatus.READY)

        def write(tx: Transaction) -> None:
            for campaign in (late, foreign, ready):
                publish(tx, campaign)
            tx.campaigns.insert_loading(make_campaign(**active), loading_until=NOW + TICK)

        await storage.write(write)

        async def found(workspace_id: str | None, limit: int = 9) -> list[str]:
            rows = await storage.read(lambda tx: tx.campaigns.running(workspace_id=workspace_id, limit=limit))
            return [campaign.id for campaign in rows]

        assert await found(None) == [foreign.id, late.id]
        assert await found(None, 1) == [foreign.id]
        assert await found(THIS_WORKSPACE) == [late.id]
