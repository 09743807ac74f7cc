"""`db compact`: a smaller file with the same rows, or the old one."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from outreach import Outreach
from outreach.core.clock import SystemClock
from outreach.database import check_database, compact_database
from outreach.errors import ConfigError, DatabaseInUse, DatabaseMissing, StorageError
from outreach.storage.sqlite import SqliteStorage, compacting, schema
from outreach.storage.sqlite.diagnosis import diagnose_file
from tests.engine.rig import QUICK, given_campaign, given_workspace, reaches
from tests.storage.test_sqlite_upkeep import another_process, content, files, fill, url_of

pytestmark = pytest.mark.anyio

NAMES = [f"{number} {'x' * 400}" for number in range(2000)]


async def make_room(path: Path) -> None:
    """Write much, and delete nearly all of it."""
    await fill(path, *NAMES)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("DELETE FROM audit WHERE number > 5")


def rows_of(path: Path) -> list[Any]:
    """Return all rows of a database, with the numbers by which SQLite orders them."""
    with closing(sqlite3.connect(path)) as raw:
        tables = [name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return [(name, raw.execute(f"SELECT * FROM {name}").fetchall()) for name in tables]  # noqa: S608 - a name of the schema


async def test_a_compact_database_is_smaller_and_the_same(database: Path) -> None:
    """All rows and the stamp are there, only its owner can read it, and the old file is kept."""
    await make_room(database)
    (database.parent / f"{database.name}.compacting").write_text("left by a killed process")
    before, size = rows_of(database), database.stat().st_size
    done = compact_database(url_of(database))
    assert (done.size_before, done.size) == (size, database.stat().st_size)
    assert done.size < size / 2
    assert done.replaced_database is not None
    assert done.replaced_database.name.startswith(f"{database.name}.before-compact-2")
    assert done.replaced_database.stat().st_size == size
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert rows_of(database) == before == rows_of(done.replaced_database)
    assert check_database(url_of(database)).problems == []
    assert files(database.parent) == {database.name, done.replaced_database.name}
    assert await content(database) == NAMES[:5]


async def test_the_old_file_is_deleted_when_asked_for(database: Path) -> None:
    """Then nothing lies beside the database."""
    await make_room(database)
    assert compact_database(url_of(database), delete_old=True).replaced_database is None
    assert files(database.parent) == {database.name}
    assert await content(database) == NAMES[:5]


async def test_nothing_is_paused_by_it_and_requests_keep_their_order(database: Path) -> None:
    """It is taken for neither restored nor moved; the ledger is ordered by a number that SQLite may give anew."""

    def ledger() -> list[Any]:
        with closing(sqlite3.connect(database)) as raw:
            return raw.execute("SELECT rowid, id FROM dispatches ORDER BY rowid").fetchall()

    for _ in range(2):
        async with Outreach.open(url_of(database), dispatch=True, config=QUICK) as engine:
            workspace = await given_workspace(engine)
            campaign = await given_campaign(engine, workspace, 3, rate_per_minute=600)
            await engine.campaigns.start(workspace.id, campaign.id)
            await reaches(engine, campaign, "completed")
        async with Outreach.open(url_of(database)) as engine:
            waiting = await given_campaign(engine, workspace, 1, rate_per_minute=600)
            await engine.campaigns.start(workspace.id, waiting.id)
        with closing(sqlite3.connect(database)) as raw, raw:
            raw.execute("PRAGMA foreign_keys = OFF")
            raw.execute("DELETE FROM dispatches WHERE rowid = 2")
        before = ledger()
        compact_database(url_of(database), delete_old=True)
        assert ledger() == before
        async with Outreach.open(url_of(database), dispatch=True, config=QUICK) as engine:
            assert (await reaches(engine, waiting, "completed")).counters.successful == 1


async def test_it_is_refused_while_somebody_has_the_database_open(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process or another one; nothing was changed."""
    monkeypatch.setattr(schema, "_LOG_SECONDS", 0.2)
    await make_room(database)
    async with SqliteStorage(database, clock=SystemClock()):
        with pytest.raises(DatabaseInUse):
            compact_database(url_of(database))
    before = database.read_bytes()
    with another_process(database), pytest.raises(DatabaseInUse):
        compact_database(url_of(database))
    assert database.stat().st_size == len(before)
    assert not [name for name in files(database.parent) if "compact" in name]


def _cut_the_power(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def _fail(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("failure", [_cut_the_power, _fail])
@pytest.mark.parametrize(
    ("owner", "name"), [(compacting, "_counts"), (compacting, "sync"), (os, "link"), (os, "replace")]
)
async def test_what_fails_midway_leaves_the_database_as_it_was(
    database: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, failure: Callable[..., None]
) -> None:
    """At each step; it can be run again."""
    await make_room(database)
    before = rows_of(database)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failure)
        with pytest.raises((KeyboardInterrupt, StorageError)):
            compact_database(url_of(database))
    assert rows_of(database) == before
    assert files(database.parent) == {database.name}
    compact_database(url_of(database), delete_old=True)
    assert rows_of(database) == before


async def test_a_copy_that_lacks_rows_is_not_used(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in every table."""
    await make_room(database)
    counts, wrong = compacting._counts, iter([1, 0])
    monkeypatch.setattr(compacting, "_counts", lambda raw: {**counts(raw), "audit": next(wrong)})
    with pytest.raises(StorageError, match="not as many rows"):
        compact_database(url_of(database))
    assert await content(database) == NAMES[:5]


async def test_without_room_nothing_is_begun(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how much is needed."""
    await make_room(database)
    usage = SimpleNamespace(free=1000)
    monkeypatch.setattr(compacting, "shutil", SimpleNamespace(disk_usage=lambda _, it=usage: it))
    with pytest.raises(StorageError, match=r"up to \d+ MiB are needed beside it, 0 MiB are free"):
        compact_database(url_of(database))
    assert await content(database) == NAMES[:5]


async def test_a_damaged_or_missing_database_and_a_server_are_refused(database: Path) -> None:
    """In words that say what to do."""
    with pytest.raises(DatabaseMissing):
        compact_database(url_of(database))
    database.touch()
    with pytest.raises(DatabaseMissing, match=r"it is empty. Restore a backup with `outreach-server db restore FILE`"):
        compact_database(url_of(database))
    assert (database.stat().st_size, files(database.parent)) == (0, {database.name})
    database.unlink()
    with pytest.raises(ConfigError, match=r"not a file: use its autovacuum.*VACUUM \(FULL, ANALYZE\)"):
        compact_database("postgresql://localhost/outreach")
    await make_room(database)
    shutil.copy(database, damaged := database.with_name("damaged.db"))
    with damaged.open("r+b") as file:
        file.seek(4096 * 30)
        file.write(b"\xff" * 4096 * 200)
    with pytest.raises(StorageError):
        compact_database(url_of(damaged))
    assert not [name for name in files(database.parent) if "compact" in name]


async def test_a_full_disk_names_the_databases_that_were_replaced(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come before what erases people's data; nothing else beside the database is named."""
    await make_room(database)
    kept = compact_database(url_of(database)).replaced_database
    assert kept is not None
    restored = database.with_name(f"{database.name}.before-restore-20260101T000000Z-2")
    for other in (restored, database.with_name(f"{database.name}.before-migration"), database.with_name("backup.db")):
        other.touch()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=50 * 1024**2))
    [low] = [one for one in diagnose_file(database) if one.code == "disk_low"]
    removals = [f"rm {kept}", f"rm {restored}"]
    assert [*low.commands] == [*removals, "outreach-server retention run", "outreach-server db compact --delete-old"]
    assert "Databases that were replaced take" in low.message
    kept.unlink()
    restored.unlink()
    [low] = [one for one in diagnose_file(database) if one.code == "disk_low"]
    assert [*low.commands] == ["outreach-server retention run", "outreach-server db compact --delete-old"]
    assert "that were replaced" not in low.message


async def test_a_full_disk_offers_no_command_that_needs_room(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention writes to the log, and compacting a copy: they come once there is room for both."""
    await make_room(database)
    room = database.stat().st_size + 16 * 1024**2
    replaced = database.with_name(f"{database.name}.before-restore-20260101T000000Z")
    replaced.touch()
    shrinking = ["outreach-server retention run", "outreach-server db compact --delete-old"]
    usage = SimpleNamespace()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    for free, commands in ((0, []), (room - 1, []), (room, shrinking)):
        usage.free = free
        [low] = [one for one in diagnose_file(database) if one.code == "disk_low"]
        assert [*low.commands] == [f"rm {replaced}", *commands]
        assert (f"once {room // 1024**2 + 1} MB are free" in low.message) is (not commands)


@pytest.mark.parametrize("campaigns", [0, 1])
async def test_a_copy_warns_only_of_campaigns_that_it_pauses(
    database: Path, campaigns: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Where none ran nobody has anything to do."""
    async with Outreach.open(url_of(database), config=QUICK, dispatch=True) as engine:
        workspace = await given_workspace(engine)
    async with Outreach.open(url_of(database), config=QUICK) as engine:
        for _ in range(campaigns):
            campaign = await given_campaign(engine, workspace, 1)
            await engine.campaigns.start(workspace.id, campaign.id)
    copy = database.with_name("copy.db")
    shutil.copy(database, copy)
    caplog.clear()
    with caplog.at_level("INFO", logger="outreach"):
        async with Outreach.open(url_of(copy), config=QUICK, dispatch=True):
            pass
    [told] = [one for one in caplog.records if getattr(one, "action", "") == "held_back"]
    words = "1 campaign is paused until an operator resumes them" if campaigns else "no campaign ran"
    assert (told.levelname, told.getMessage()) == (
        "WARNING" if campaigns else "INFO",
        f"The database was moved: {words}.",
    )
