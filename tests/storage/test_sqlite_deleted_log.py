"""The log of a SQLite database, or its index, is deleted while the database is open."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from outreach.core.clock import SystemClock
from outreach.errors import DatabaseLogDeleted, DatabaseReplaced
from outreach.models.work import HighWaterMark
from outreach.protocols.storage import OneQuery
from outreach.storage.sqlite import SqliteStorage, watch
from outreach.storage.sqlite.diagnosis import diagnose_file
from outreach.storage.sqlite.lock import SqliteDispatchLock
from tests.storage.sqlite_support import appending, opened, subjects
from tests.storage.test_sqlite_upkeep import another_process

pytestmark = pytest.mark.anyio

MARK = HighWaterMark(database="one", epoch=7, change=1)
WORDS = "was deleted or replaced while it is open"


@pytest.fixture(autouse=True)
def _look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FILE_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(watch, "_OPENING_SECONDS", 0.1)


def beside(database: Path, ending: str) -> Path:
    """Return a file beside a database."""
    return database.with_name(database.name + ending)


async def content(database: Path) -> list[str]:
    """Return what is in a database."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        return await storage.read(subjects)


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
async def test_a_deleted_log_stops_reading_and_writing_and_nothing_is_lost(database: Path, ending: str) -> None:
    """What was committed is written to the file at once, so that a kill loses nothing either."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))
        beside(database, ending).unlink()
        for _ in range(2):
            with pytest.raises(DatabaseLogDeleted, match=WORDS) as refused:
                await storage.write(appending("two"))
            assert refused.value.reason == "log_deleted"
        with pytest.raises(DatabaseLogDeleted):
            await storage.read(subjects)
        with pytest.raises(DatabaseLogDeleted):
            await storage.read(OneQuery(subjects))
        with pytest.raises(DatabaseLogDeleted):
            storage.campaign_list_revision("one")
        killed = shutil.copyfile(database, database.with_name("killed.db"))
    assert await content(killed) == ["one"]
    assert await content(database) == ["one"]


async def test_a_log_that_is_found_to_be_deleted_at_the_end_is_saved_too(database: Path) -> None:
    """Nobody has looked at it since."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))
        beside(database, "-wal").unlink()
    assert await content(database) == ["one"]


async def test_a_log_in_whose_place_another_one_lies_is_not_added_to_the_file(database: Path) -> None:
    """Others may have written to that one: the file stays as it is."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))
        with opened(database) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await storage.write(appending("two"))
        before = database.read_bytes()
        beside(database, "-wal").unlink()
        beside(database, "-wal").touch()
        with pytest.raises(DatabaseLogDeleted):
            await storage.write(appending("three"))
    assert database.read_bytes() == before


async def test_a_backup_that_is_copied_over_the_file_without_its_log_is_another_file(database: Path) -> None:
    """The log is not added to it."""
    copy = database.with_name("copy.db")
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))
        with opened(database) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await asyncio.to_thread(shutil.copyfile, database, copy)
        before = copy.read_bytes()
        await storage.write(appending("two"))
        with opened(database) as other:
            other.execute("PRAGMA user_version = 2000000000")
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await storage.write(appending("three"))
        beside(database, "-wal").unlink()
        shutil.copyfile(copy, database)
        with pytest.raises(DatabaseReplaced) as refused:
            await storage.write(appending("four"))
        assert refused.value.reason == "replaced"
    assert database.read_bytes() == before


@pytest.mark.parametrize("waits", [False, True])
async def test_the_next_worker_finds_a_mark_that_is_ahead(database: Path, waits: bool) -> None:
    """It then pauses the running campaigns. A request for a place, or else the end of the process, notes it once."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        storage.lock.record_high_water(MARK)
        beside(database, "-wal").unlink()
        for _ in range(2 if waits else 0):
            with pytest.raises(DatabaseLogDeleted):
                await storage.lock.acquire()
    noted = SqliteDispatchLock(database).high_water()
    assert noted is not None
    assert noted.epoch == MARK.epoch + 1


@pytest.mark.parametrize("reads", [False, True])
async def test_the_mark_is_ahead_as_soon_as_the_log_is_known_to_be_deleted(database: Path, reads: bool) -> None:
    """A worker asks for a place only when its last requests have ended: the process may be killed before."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))
        storage.lock.record_high_water(MARK)
        beside(database, "-wal").unlink()
        with pytest.raises(DatabaseLogDeleted):
            await (storage.read(subjects) if reads else storage.write(appending("two")))
        noted = SqliteDispatchLock(database).high_water()
        assert noted is not None
        assert noted.epoch == MARK.epoch + 1
        # A heartbeat that was committed before.
        storage.lock.record_high_water(MARK)
        assert SqliteDispatchLock(database).high_water() == noted
    async with storage:
        storage.lock.record_high_water(MARK)
        assert SqliteDispatchLock(database).high_water() == MARK


async def test_a_mark_that_the_disk_did_not_take_is_written_later(database: Path) -> None:
    """As the process asks for a place, or ends."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        storage.lock.record_high_water(MARK)
        beside(database, ".dispatch-note.new").mkdir()
        beside(database, "-wal").unlink()
        with pytest.raises(DatabaseLogDeleted):
            await storage.write(appending("one"))
        assert SqliteDispatchLock(database).high_water() == MARK
        beside(database, ".dispatch-note.new").rmdir()
    noted = SqliteDispatchLock(database).high_water()
    assert noted is not None
    assert noted.epoch == MARK.epoch + 1


async def test_a_database_that_nobody_has_dispatched_from_needs_no_mark(database: Path) -> None:
    """Nothing was sent from it."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        beside(database, "-wal").unlink()
        with pytest.raises(DatabaseLogDeleted):
            await storage.lock.acquire()
    assert SqliteDispatchLock(database).high_water() is None


async def test_a_disk_that_takes_no_mark_keeps_no_process_from_ending(database: Path) -> None:
    """The mark of the last heartbeat stays."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        storage.lock.record_high_water(MARK)
        beside(database, ".dispatch-note.new").mkdir()
        beside(database, "-wal").unlink()
    assert SqliteDispatchLock(database).high_water() == MARK


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no open file")
async def test_nobody_makes_another_log_while_a_process_goes_on_with_the_deleted_one(database: Path) -> None:
    """Else the two would not know of each other's commits."""
    await content(database)
    with another_process(database):
        beside(database, "-wal").unlink()
        with pytest.raises(DatabaseLogDeleted, match="was deleted while another process has it open"):
            await SqliteStorage(database, clock=SystemClock()).__aenter__()
        assert {one.code for one in diagnose_file(database)} == {"database_log_deleted"}
        assert not beside(database, "-wal").exists()
    assert await content(database) == []


async def test_a_process_that_closes_the_file_is_waited_for(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the file for a moment without its log."""
    await content(database)
    locked = iter([True, True, False])
    monkeypatch.setattr(watch, "_is_used_with_log_elsewhere", lambda _: next(locked))
    monkeypatch.setattr(watch, "_OPENING_SECONDS", 60.0)
    assert await content(database) == []
    assert next(locked, None) is None
