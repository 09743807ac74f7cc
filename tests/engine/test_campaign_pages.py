from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from outreach import InvalidRequest, NotFound, Outreach
from outreach.http import write_campaign
from outreach.models.campaign import Campaign, Counters
from outreach.models.states import CampaignStatus
from outreach.protocols.storage import Operation, Storage
from outreach.services.campaigns.pages import SizeBoundedCache
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_agent, make_call_campaign, make_campaign, make_workspace
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK, publish
from tests.engine.conftest import OpenStorage

pytestmark = pytest.mark.virtual_time

HOUR = timedelta(hours=1)


class Counted:
    """A storage that counts how often it is read."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    async def __aenter__(self) -> Counted:
        await self._storage.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._storage.__aexit__(*error)

    async def read(self, operation: Operation[Any]) -> Any:
        """Count, and read."""
        self.reads += 1
        return await self._storage.read(operation)


@attrs.frozen
class Place:
    """An engine, what is under it, and its clock."""

    engine: Outreach
    storage: Counted
    clock: ManualClock

    async def write(self, *operations: Operation[Any]) -> None:
        """Run operations, each in a transaction of its own."""
        for operation in operations:
            await self.storage.write(operation)

    async def shown(self, workspace_id: str = THIS_WORKSPACE, **asked: Any) -> Any:
        """Return the campaigns of a page as JSON, after comparing it with what the list says."""
        page = await self.engine.http.list_campaigns(workspace_id, **asked)
        number, size = asked.pop("page", 1), min(asked.pop("page_size", 20), 100)
        every = [one async for one in self.engine.campaigns.iter_all(workspace_id, archived=None, **asked)]
        true = every[(number - 1) * size : number * size]
        now = self.clock.now()
        assert page.items == orjson.dumps([write_campaign(campaign, now=now) for campaign in true])
        assert (page.page, page.page_size, page.total) == (number, size, len(every))
        return orjson.loads(page.items)


@pytest.fixture
async def place(open_storage: OpenStorage, clock: ManualClock) -> AsyncIterator[Place]:
    """Open an engine over a database that holds two workspaces."""
    storage = Counted(open_storage(clock))
    async with Outreach(storage, clock=clock) as engine:
        for workspace in (make_workspace(id=THIS_WORKSPACE), make_workspace(id=OTHER_WORKSPACE, name="Other")):
            await storage.write(lambda tx, workspace=workspace: tx.workspaces.insert(workspace))
        yield Place(engine, storage, clock)


def publishing(*campaigns: Campaign) -> Callable[[Transaction], None]:
    """Return an operation that makes campaigns."""

    def write(tx: Transaction) -> None:
        for campaign in campaigns:
            publish(tx, campaign)

    return write


async def test_a_page_is_read_once_while_nothing_of_its_workspace_changes(place: Place) -> None:
    """Each other answer is the same bytes, and waits for nobody, whatever is written elsewhere."""
    await place.write(publishing(*(make_campaign(name=f"n{number}") for number in range(3))))
    first = await place.engine.http.list_campaigns(THIS_WORKSPACE, page_size=2)
    # Where the list's revision is not known without a read, each answer takes one, and no more.
    asked = 1 if place.storage.campaign_list_revision(THIS_WORKSPACE) is None else 0
    reads = place.storage.reads
    for _ in range(5):
        assert await place.engine.http.list_campaigns(THIS_WORKSPACE, page_size=2) is first
    assert place.storage.reads == reads + 5 * asked
    await place.write(
        lambda tx: tx.workspaces.insert(make_workspace(id="w3", name="Third")),
        publishing(make_campaign(workspace_id=OTHER_WORKSPACE)),
    )
    assert await place.engine.http.list_campaigns(THIS_WORKSPACE, page_size=2) is first
    assert place.storage.reads == reads + 6 * asked
    await place.write(publishing(make_campaign()))
    assert await place.engine.http.list_campaigns(THIS_WORKSPACE, page_size=2) != first
    assert place.storage.reads == reads + 7 * asked + 1


async def test_whatever_is_changed_shows_at_once(place: Place) -> None:
    """A name, a state, a counter, the agent, a new campaign: none is shown as it was before."""
    agent = make_agent(name="Ada")
    call = make_call_campaign(agent_id=agent.id, name="Call")
    text = make_campaign(name="Text", created_at=NOW + TICK)
    await place.write(lambda tx: tx.agents.insert(agent), publishing(call, text))
    assert [one["name"] for one in await place.shown()] == ["Text", "Call"]
    await place.write(lambda tx: tx.campaigns.update(attrs.evolve(text, name="Renamed")))
    assert [one["name"] for one in await place.shown()] == ["Renamed", "Call"]
    assert await place.shown(search="text") == []
    assert [one["name"] for one in await place.shown(search="RENAMED")] == ["Renamed"]
    await place.write(lambda tx: tx.campaigns.add_counters(THIS_WORKSPACE, call.id, Counters(total=5, failed=2)))
    assert [(one["total_recipients"], one["failed_calls"]) for one in await place.shown()] == [(0, 0), (5, 2)]
    assert len(await place.shown(status=CampaignStatus.READY)) == 2
    paused = attrs.evolve(text, name="Renamed", status=CampaignStatus.PAUSED)
    await place.write(lambda tx: tx.campaigns.update(paused))
    assert len(await place.shown(status=CampaignStatus.READY)) == 1
    await place.write(lambda tx: tx.agents.update(attrs.evolve(agent, name="Bob", is_active=False)))
    assert (await place.shown(channel="call"))[0]["agent"]["name"] == "Bob"
    await place.write(publishing(make_campaign(name="New", created_at=NOW + 2 * TICK)))
    assert [one["name"] for one in await place.shown()] == ["New", "Renamed", "Call"]


async def test_no_workspace_sees_the_page_of_another(place: Place) -> None:
    """Also where both ask for the same, one after the other, again and again."""
    await place.write(publishing(make_campaign(name="Mine"), make_campaign(name="Yours", workspace_id=OTHER_WORKSPACE)))
    for _ in range(3):
        assert [one["name"] for one in await place.shown(THIS_WORKSPACE)] == ["Mine"]
        assert [one["name"] for one in await place.shown(OTHER_WORKSPACE)] == ["Yours"]
        assert await place.shown(THIS_WORKSPACE, search="yours") == []
        assert await place.shown(OTHER_WORKSPACE, search="mine") == []
    with pytest.raises(NotFound):
        await place.engine.http.list_campaigns("0195554e-0000-7000-8000-00000000dead")


async def test_expiry_shows_when_its_moment_comes_and_not_when_the_clock_is_set_back(place: Place) -> None:
    """docs/interface.md#3, rule 1: no commit tells of it."""
    over = make_campaign(status=CampaignStatus.COMPLETED, scheduled_expires_at=NOW + HOUR)
    made = [make_campaign(scheduled_expires_at=NOW + hours * HOUR, created_at=NOW + hours * TICK) for hours in (1, 2)]
    await place.write(publishing(over, *made))

    async def expired() -> list[bool]:
        return [one["effective_status"] == "expired" for one in await place.shown()]

    assert await expired() == [False, False, False]
    place.clock.set(NOW + HOUR - TICK)
    assert await expired() == [False, False, False]
    place.clock.set(NOW + HOUR)
    assert await expired() == [False, True, False]
    place.clock.set(NOW + 2 * HOUR)
    assert await expired() == [True, True, False]
    place.clock.set(NOW)
    assert await expired() == [False, False, False]


@pytest.mark.parametrize("seed", range(4))
async def test_pages_are_true_whatever_is_written_between(place: Place, seed: int) -> None:
    """Many queries, again and again, beside campaigns of two workspaces that come and change."""
    rng = random.Random(seed)
    there: list[Campaign] = []

    def some(tx: Transaction) -> None:
        if not there or rng.random() < 0.3:
            there.append(
                make_campaign(
                    name=rng.choice(("Spring", "Autumn")), workspace_id=rng.choice((THIS_WORKSPACE, OTHER_WORKSPACE))
                )
            )
            publish(tx, there[-1])
        index = rng.randrange(len(there))
        change = rng.choice(({"name": "Spring offer"}, {"name": "Autumn"}, {"status": CampaignStatus.PAUSED}))
        there[index] = attrs.evolve(there[index], **change)
        tx.campaigns.update(there[index])

    for _ in range(60):
        if rng.random() < 0.4:
            await place.write(some)
        asked = {
            "search": rng.choice((None, "spring", "a")),
            "status": rng.choice((None, CampaignStatus.PAUSED)),
            "channel": rng.choice((None, "sms")),
            "page": rng.choice((1, 2)),
            "page_size": rng.choice((3, 20)),
        }
        for workspace_id in (THIS_WORKSPACE, OTHER_WORKSPACE):
            await place.shown(workspace_id, **asked)


async def test_what_another_process_writes_shows_at_once(tmp_path: Path, clock: ManualClock) -> None:
    """A real one, and another engine on the same file."""
    path = tmp_path / "shared.db"
    campaign = make_campaign(name="Before")
    storage = Counted(SqliteStorage(path, clock=clock))
    async with Outreach(storage, clock=clock) as engine, SqliteStorage(path, clock=clock) as other:
        place = Place(engine, storage, clock)
        await place.write(lambda tx: tx.workspaces.insert(make_workspace(id=THIS_WORKSPACE)), publishing(campaign))
        for number in range(3):
            assert len(await place.shown()) == 1
            await other.write(lambda tx, name=f"Name {number}": tx.campaigns.update(attrs.evolve(campaign, name=name)))  # type: ignore[misc]
            assert [one["name"] for one in await place.shown()] == [f"Name {number}"]
            assert [one["name"] for one in await place.shown(search=f"{number}")] == [f"Name {number}"]
        script = (
            "import sqlite3, sys\n"
            "with sqlite3.connect(sys.argv[1], timeout=30) as raw:\n"
            "    raw.execute(\"UPDATE campaigns SET name = 'Theirs', name_folded = 'theirs'\")\n"
        )
        await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script, str(path)], check=True)
        assert [one["name"] for one in await place.shown()] == ["Theirs"]
        assert [one["name"] for one in await place.shown(search="theirs")] == ["Theirs"]
        assert await place.shown(search="name") == []


async def test_a_storage_that_cannot_tell_is_asked_each_time(
    open_storage: OpenStorage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is believed for longer than it is known."""
    storage = Counted(open_storage(clock))
    async with Outreach(storage, clock=clock) as engine:
        place = Place(engine, storage, clock)
        await place.write(
            lambda tx: tx.workspaces.insert(make_workspace(id=THIS_WORKSPACE)), publishing(make_campaign())
        )
        monkeypatch.setattr(storage._storage, "campaign_list_revision", lambda _: None)
        reads = storage.reads
        for number in range(1, 4):
            await engine.http.list_campaigns(THIS_WORKSPACE)
            assert storage.reads == reads + number


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("page", {"page": 0}),
        ("page", {"page": True}),
        ("page_size", {"page_size": "1"}),
        ("status", {"status": "gone"}),
        ("channel", {"channel": "fax"}),
        ("search", {"search": b"x"}),
    ],
)
async def test_what_is_no_query_is_refused_by_its_place(place: Place, name: str, wrong: dict[str, Any]) -> None:
    """As by the list itself."""
    with pytest.raises(InvalidRequest) as caught:
        await place.engine.http.list_campaigns(THIS_WORKSPACE, **wrong)
    assert [detail.path for detail in caught.value.details] == [name]


def test_what_is_kept_is_bounded() -> None:
    """Who was not asked for the longest time goes first; what is far too large is not kept at all."""
    kept: SizeBoundedCache[str, str] = SizeBoundedCache(80)
    for name in "abcdefgh":
        kept.put(name, name.upper(), 10)
    assert kept.get("a") == "A"
    kept.put("i", "I", 10)
    assert (kept.get("a"), kept.get("b"), kept.get("i")) == ("A", None, "I")
    kept.put("a", "large", 11)
    assert kept.get("a") is None
    kept.put("c", "other", 5)
    kept.put("j", "J", 10)
    assert [kept.get(name) for name in "cdefghij"] == ["other", "D", "E", "F", "G", "H", "I", "J"]
