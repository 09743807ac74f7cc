"""The log of a killed process is deleted: the record beside the file shows which commits went with it."""

from __future__ import annotations

import logging
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from outreach.core.clock import SystemClock
from outreach.errors import DispatchRefused
from outreach.ledger import common
from outreach.models.states import TrailEntry, TrailRule, TrailStepKind
from outreach.models.work import HighWaterMark, WorkUnit
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.sqlite.compacting import compact
from outreach.storage.sqlite.lock import Position, PositionFile
from outreach.storage.sqlite.restoring import restore
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import ALL_WORKSPACES
from outreach.testing.builders import make_key
from tests.storage.sqlite_support import NOW, dispatch, opened, set_up, subjects

pytestmark = pytest.mark.anyio

ENDINGS = ("", "-wal", ".dispatch-note", ".dispatch-position")


def storage_of(database: Path) -> SqliteStorage:
    """Return the storage of a file."""
    return SqliteStorage(database, clock=SystemClock())


def file_of(database: Path) -> Path:
    """Return the record beside a database."""
    return database.with_name(f"{database.name}.dispatch-position")


def advance(tx: Transaction) -> None:
    """Write a change of work."""
    tx.work.schedule(WorkUnit("campaign", "w1", "c1"), NOW)


def trail(tx: Transaction) -> None:
    """Write an entry of the trail."""
    tx.trail.append(
        TrailEntry(
            at=NOW, workspace_id="w1", campaign_id="c1", what=TrailStepKind.ENDED, position=0, rule=TrailRule.PACE
        )
    )


def stop(tx: Transaction) -> None:
    """Count a stop."""
    tx.workers.delete(7)


def intend(tx: Transaction) -> None:
    """Write an intent for a contact that has none, and nothing else."""
    position = len(tx.dispatches.of_recipient("w1", "c1", 0))
    tx.dispatches.insert(dispatch(f"d{position}", position=position))


def revoke(tx: Transaction) -> None:
    """Revoke a key."""
    key = make_key(workspace_id="w1")
    tx.keys.insert(key)
    common.revoke_key(tx, "w1", key.id, now=NOW, actor="cli:ann")


CHANGES = [advance, trail, stop, intend, revoke]


async def dispatched(storage: SqliteStorage) -> HighWaterMark:
    """Record a heartbeat of a worker in an open database; return its mark."""
    await storage.write(lambda tx: set_up(tx, recipients=2))
    database = await storage.read(lambda tx: tx.leases.database_id())
    mark = HighWaterMark(database=database, epoch=0, change=0)
    storage.lock.record_high_water(mark)
    return mark


async def kill(database: Path, change: Callable[[Transaction], None], *, is_added: bool = False) -> int:
    """Leave what a kill leaves: a checkpoint, then a commit, which the log was added to the file after if asked for.

    Returns:
        The epoch of the mark.
    """
    left = database.with_name("left")
    left.mkdir()
    async with storage_of(database) as storage:
        mark = await dispatched(storage)
        await storage.write(change)
        with opened(database) as other:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        await storage.write(change)
        if is_added:
            with opened(database) as other:
                other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        for ending in ENDINGS:
            shutil.copy2(f"{database}{ending}", left / f"{database.name}{ending}")
    for ending in ENDINGS:
        os.replace(left / f"{database.name}{ending}", f"{database}{ending}")
    left.rmdir()
    return mark.epoch


def delete_log(database: Path) -> None:
    """Delete the log."""
    Path(f"{database}-wal").unlink()


async def epoch_of_mark(database: Path) -> int:
    """Open a database and return the epoch of the mark beside it."""
    async with storage_of(database) as storage:
        noted = storage.lock.high_water()
        assert noted is not None
        return noted.epoch


@pytest.mark.parametrize("change", CHANGES)
async def test_commits_after_a_checkpoint_are_missed_where_the_log_was_deleted(
    database: Path, change: Callable[[Transaction], None], caplog: pytest.LogCaptureFixture
) -> None:
    """The mark is ahead then, once: the next worker pauses what runs."""
    epoch = await kill(database, change)
    delete_log(database)
    with caplog.at_level(logging.ERROR, logger="outreach"):
        for _ in range(2):
            assert await epoch_of_mark(database) == epoch + 1
    assert [record.__dict__["action"] for record in caplog.records] == ["commits_lost"]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_log_that_is_there_loses_nothing(database: Path, change: Callable[[Transaction], None]) -> None:
    """As after any kill."""
    epoch = await kill(database, change)
    for _ in range(2):
        assert await epoch_of_mark(database) == epoch


@pytest.mark.parametrize("change", CHANGES)
async def test_a_log_that_was_added_before_it_was_deleted_loses_nothing(
    database: Path, change: Callable[[Transaction], None]
) -> None:
    """By a checkpoint before the kill."""
    epoch = await kill(database, change, is_added=True)
    delete_log(database)
    assert await epoch_of_mark(database) == epoch


async def test_who_opens_the_file_after_a_kill_adds_the_log(database: Path) -> None:
    """As `sqlite3` and `outreach-server status` do; it is gone then, and nothing is missing."""
    epoch = await kill(database, advance)
    with opened(database) as other:
        other.execute("SELECT count(*) FROM audit").fetchone()
    assert not Path(f"{database}-wal").exists()
    assert await epoch_of_mark(database) == epoch


async def test_a_clean_end_loses_nothing(database: Path) -> None:
    """Nor does what was written by a process that does not dispatch."""
    async with storage_of(database) as storage:
        mark = await dispatched(storage)
        await storage.write(advance)
    async with storage_of(database) as storage:
        await storage.write(trail)
    assert await epoch_of_mark(database) == mark.epoch


@pytest.mark.parametrize("slots", [(1, 2), (3, 3)])
async def test_several_processes_hide_nothing_from_each_other(database: Path, slots: tuple[int, int]) -> None:
    """What one has recorded stays, though another one records an earlier position after it, in the same slot too."""
    path, other = (PositionFile(database, slot=slot) for slot in slots)
    path.begin("one")
    async with storage_of(database):
        pass
    with opened(database) as raw:
        for file, position in ((path, (0, 5, 2)), (other, (0, 7, 0)), (path, (1, 6, 1))):
            assert file.before_commit(raw) == Position(0, 0, 0)
            file.record(Position(*position))
    assert path.read("one") == Position(1, 7, 2)
    assert path.read("two") is None
    path.begin("one")
    assert path.read("one") == Position(1, 7, 2)
    path.begin("one", Position(1, 2, 3))
    assert path.read("one") == Position(1, 2, 3)
    path.begin("two")
    assert path.read("two") == Position(0, 0, 0)
    path.close()
    other.close()
    assert stat.S_IMODE(file_of(database).stat().st_mode) == 0o600


async def test_a_process_that_had_the_file_open_before_anybody_dispatched_records_too(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server that does not dispatch beside a first worker."""
    monkeypatch.setattr("outreach.storage.sqlite.lock._OPEN_AGAIN_SECONDS", 0.0)
    async with storage_of(database) as storage, storage_of(database) as worker:
        await storage.write(advance)
        assert not file_of(database).exists()
        mark = await dispatched(worker)
        await storage.write(advance)
        assert PositionFile(database).read(mark.database) == Position(
            *await storage.read(
                lambda tx: (tx.trail.last_number(), tx.work.last_change(), tx.stops.count(ALL_WORKSPACES))
            )
        )


async def test_a_record_that_was_deleted_is_made_again(database: Path) -> None:
    """At the next heartbeat."""
    async with storage_of(database) as storage:
        mark = await dispatched(storage)
        await storage.write(advance)
        file_of(database).unlink()
        storage.lock.record_high_water(mark)
        await storage.write(advance)
        assert PositionFile(database).read(mark.database) == Position(0, 2, 0)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 100])
async def test_a_record_that_was_torn_says_nothing(database: Path, content: bytes) -> None:
    """As after a power cut; the mark of the last heartbeat is there still."""
    epoch = await kill(database, advance)
    file_of(database).write_bytes(content)
    assert await epoch_of_mark(database) == epoch
    async with storage_of(database) as storage:
        noted = storage.lock.high_water()
        assert noted is not None
        storage.lock.record_high_water(noted)
        await storage.write(advance)
        assert PositionFile(database).read(noted.database) == Position(0, 3, 0)


async def test_a_mark_that_the_disk_did_not_take_is_written_before_a_worker_gets_a_place(database: Path) -> None:
    """What is recorded stays until then, whatever is written meanwhile."""
    epoch = await kill(database, advance)
    delete_log(database)
    obstacle = database.with_name(f"{database.name}.dispatch-note.new")
    obstacle.mkdir()
    recorded = file_of(database).read_bytes()
    async with storage_of(database) as storage:
        for _ in range(3):
            await storage.write(advance)
        with pytest.raises(DispatchRefused, match="high-water mark"):
            await storage.lock.acquire()
        assert file_of(database).read_bytes() == recorded
        obstacle.rmdir()
        assert await storage.lock.acquire() == 1
        noted = storage.lock.high_water()
        assert noted is not None
        assert noted.epoch == epoch + 1


async def test_a_record_that_cannot_be_made_is_a_refusal(database: Path) -> None:
    """Dispatching without it would not notice a deleted log."""
    file_of(database).mkdir()
    async with storage_of(database) as storage:
        with pytest.raises(DispatchRefused, match=r"dispatch-position' cannot be written") as refused:
            await dispatched(storage)
        assert refused.value.reason == "note"


async def test_a_database_that_was_compacted_has_lost_nothing(database: Path) -> None:
    """Its numbers stay, also those of entries that were deleted."""
    epoch = await kill(database, trail)
    compact(database, now=NOW)
    assert await epoch_of_mark(database) == epoch


async def test_a_restored_database_is_found_out_by_its_mark(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The restore has said that commits are missing."""
    backup = database.with_name("backup.db")
    async with storage_of(database) as storage:
        await dispatched(storage)
        await storage.write(advance)
    shutil.copyfile(database, backup)
    async with storage_of(database) as storage:
        await storage.write(advance)
    restore(database, backup, now=NOW)
    assert not file_of(database).exists()
    assert await epoch_of_mark(database) == 1
    assert not caplog.records
    async with storage_of(database) as storage:
        assert await storage.read(subjects) == []
