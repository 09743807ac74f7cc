from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import attrs
import pytest

from outreach.core.clock import SystemClock
from outreach.errors import StorageError
from outreach.models.campaign import Campaign
from outreach.models.states import CampaignStatus
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import CAMPAIGNS
from outreach.storage.unit_of_work.tables import campaigns
from outreach.testing.builders import NOW, make_call_campaign, make_campaign, make_workspace
from tests.storage.sqlite_support import opened

pytestmark = pytest.mark.anyio

WORKSPACES = ("w1", "w2", "w3")


def assert_lists_are_right(raw: sqlite3.Connection) -> None:
    """Compare what is kept for the lists with a look at every campaign."""
    counted = raw.execute(
        "SELECT workspace_id, channel, status, COUNT(*) FROM campaigns WHERE loading_until IS NULL GROUP BY 1, 2, 3"
    ).fetchall()
    kept = raw.execute("SELECT workspace_id, channel, status, count FROM campaign_counts WHERE count <> 0").fetchall()
    assert sorted(kept) == sorted(counted)
    names = raw.execute(
        "SELECT (campaign_lists.number << 38) + campaigns.number, name_folded "
        "FROM campaigns JOIN campaign_lists USING (workspace_id) WHERE loading_until IS NULL ORDER BY 1"
    ).fetchall()
    assert raw.execute("SELECT rowid, name FROM campaign_names ORDER BY 1").fetchall() == names
    # Whether the index knows exactly the names that are kept in it; it fails where it does not.
    raw.execute("INSERT INTO campaign_names (campaign_names) VALUES ('integrity-check')")
    lists = raw.execute("SELECT workspace_id FROM campaign_lists").fetchall()
    assert sorted(lists) == sorted(raw.execute("SELECT id FROM workspaces").fetchall())


def fill(tx: Transaction) -> None:
    """Write campaigns of several workspaces in several states; one is loading."""
    rng = random.Random(7)
    for workspace_id in WORKSPACES:
        tx.workspaces.insert(make_workspace(id=workspace_id, name=workspace_id))
    for number in range(60):
        make = rng.choice([make_campaign, make_call_campaign])
        status = rng.choice(list(CampaignStatus))
        made = make(workspace_id=rng.choice(WORKSPACES[:2]), name=f"\u00c9t\u00e9 {number}", status=status)
        tx.campaigns.insert_loading(made, loading_until=NOW)
        if number:
            tx.campaigns.publish(made)


async def test_what_is_kept_for_lists_equals_a_look_at_every_campaign(
    sqlite_storage: SqliteStorage, database: Path
) -> None:
    """After campaigns were loaded, dropped, renamed and moved, one by one and many in a transaction."""
    rng = random.Random(1)
    await sqlite_storage.write(fill)

    def meddle(tx: Transaction) -> None:
        for loading in tx.campaigns.leftovers(NOW.replace(year=2100)):
            if rng.random() < 0.3:
                tx.campaigns.delete_loading(*loading, limit=9)
        for campaign in rng.sample(list(tx.campaigns.in_status(list(CampaignStatus))), 5):
            tx.campaigns.update(_changed(campaign, rng))

    for _ in range(20):
        await sqlite_storage.write(meddle)
    with opened(database) as raw:
        assert_lists_are_right(raw)


def _changed(campaign: Campaign, rng: random.Random) -> Campaign:
    if rng.random() < 0.5:
        return attrs.evolve(campaign, name=f"Name {rng.randrange(1000)}")
    return attrs.evolve(campaign, status=rng.choice(list(CampaignStatus)))


async def test_lists_are_right_after_writes_of_other_programs(sqlite_storage: SqliteStorage, database: Path) -> None:
    """Another tool may delete, hide, rename or insert campaigns in the file."""
    await sqlite_storage.write(fill)
    columns = ", ".join(name for name in CAMPAIGNS.columns if name != "id")

    async def total(workspace_id: str) -> int:
        asked: dict[str, Any] = {"channel": None, "status": None, "search": None, "offset": 0, "limit": 100}
        found, counted = await sqlite_storage.read(lambda tx: tx.campaign_lists.page(workspace_id, **asked))
        assert len(found) == counted
        return counted

    before = await total("w1") + await total("w2")
    copied = f"INSERT INTO campaigns (id, {columns}) SELECT 'new', {columns} FROM campaigns WHERE number = 7"  # noqa: S608 - names of columns
    for statement, change in (
        ("DELETE FROM campaigns WHERE number % 10 = 3", -6),
        ("UPDATE campaigns SET loading_until = 'x' WHERE number % 10 = 4", -6),
        ("UPDATE campaigns SET name_folded = 'other ' || number, status = 'paused' WHERE number % 10 = 5", 0),
        (copied, 1),
        ("UPDATE campaigns SET loading_until = NULL", 7),
    ):
        with opened(database) as raw:
            raw.execute(statement)
            assert_lists_are_right(raw)
        before += change
        assert await total("w1") + await total("w2") == before, statement


async def test_the_number_of_a_list_is_reported_while_somebody_writes_and_not_once_it_is_closed(database: Path) -> None:
    """It waits for nobody: not for another program that holds the database's write lock either."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(fill)
        with opened(database) as other:
            other.execute("BEGIN IMMEDIATE")
            before = storage.campaign_list_revision("w1")
            other.execute("UPDATE campaigns SET description = 'x' WHERE workspace_id = 'w1'")
            assert storage.campaign_list_revision("w1") == before
            other.execute("COMMIT")
            after = storage.campaign_list_revision("w1")
        assert before is not None
        assert after is not None
        assert after > before
        assert after == await storage.read(lambda tx: tx.campaign_lists.revision("w1"))
    with pytest.raises(StorageError, match="not open"):
        storage.campaign_list_revision("w1")


async def test_a_text_that_many_names_hold_is_found_in_the_other_way(
    sqlite_storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways find the same, whatever else is asked for."""
    await sqlite_storage.write(fill)

    async def found() -> list[object]:
        answers: list[object] = []
        for channel in (None, "sms", "call"):
            for status in (None, CampaignStatus.READY):
                for search in ("\u00e9T\u00c9", "t\u00e9 1", "\u00c9t\u00e9 12"):
                    asked = {"channel": channel, "status": status, "search": search, "offset": 1, "limit": 20}
                    rows, total = await sqlite_storage.read(
                        lambda tx, asked=asked: tx.campaign_lists.page("w1", **asked)  # type: ignore[misc]
                    )
                    answers.append((channel, status, search, [row.id for row in rows], total))
        return answers

    by_index = await found()
    monkeypatch.setattr(campaigns, "_MAX_INDEXED_NAMES", 1)
    assert await found() == by_index
