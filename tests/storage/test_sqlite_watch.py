from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from outreach.core.clock import SystemClock
from outreach.errors import DatabaseReplaced, StorageError
from outreach.models.work import HighWaterMark
from outreach.storage.sqlite import SqliteStorage, watch
from outreach.storage.sqlite.backend import Transactions
from outreach.storage.sqlite.diagnosis import diagnose_file
from outreach.storage.sqlite.maintenance import back_up
from outreach.storage.sqlite.watch import has_commits
from outreach.testing.clock import ShiftedClock
from tests.storage.sqlite_support import appending, opened, subjects

pytestmark = pytest.mark.anyio

MARK = HighWaterMark(database="one", epoch=1, change=1)


def log_of(database: Path) -> Path:
    """Return the log beside a database."""
    return database.with_name(f"{database.name}-wal")


def plain_copy(database: Path, copy: Path) -> None:
    """Copy the file alone, as somebody who knows nothing of logs would."""
    shutil.copyfile(database, copy)


def backup_copy(database: Path, copy: Path) -> None:
    """Copy it by SQLite's own backup."""
    back_up(database, copy)


def packed_copy(database: Path, copy: Path) -> None:
    """Copy it by `VACUUM INTO`: the same rows in other places."""
    with closing(sqlite3.connect(database)) as raw:
        raw.execute("VACUUM INTO ?", (str(copy),))


COPIES: list[Callable[[Path, Path], None]] = [plain_copy, backup_copy, packed_copy]


async def write_some(storage: SqliteStorage, count: int, clock: ShiftedClock) -> None:
    """Write so much that pages are added, over so many seconds of the storage's clock."""
    for number in range(count):
        await storage.write(appending(*(f"{number} {'x' * 300} {row}" for row in range(20))))
        clock.shift(timedelta(seconds=1))


async def crash(database: Path, copy: Path, how: Callable[[Path, Path], None], *, checkpoints: int) -> None:
    """Leave a database with its log behind as a crash does, with a copy that was made before the end."""
    clock = ShiftedClock()
    left = database.with_name("left")
    async with SqliteStorage(database, clock=clock) as storage:
        storage.lock.record_high_water(MARK)
        await write_some(storage, 5, clock)
        with opened(database) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await write_some(storage, 2, clock)
        await asyncio.to_thread(how, database, copy)
        await write_some(storage, 5, clock)
        storage.lock.record_high_water(MARK)
        for _ in range(checkpoints):
            with opened(database) as other:
                assert other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
            await write_some(storage, 5, clock)
            storage._watch._next_check = 0.0
            await storage.write(subjects)
            storage.lock.record_high_water(MARK)
        await write_some(storage, 1, clock)
        left.mkdir()
        for ending in ("", "-wal", ".dispatch-note"):
            shutil.copy2(f"{database}{ending}", left / f"{database.name}{ending}")
    for ending in ("", "-wal", ".dispatch-note"):
        os.replace(left / f"{database.name}{ending}", f"{database}{ending}")
    Path(f"{database}-shm").unlink(missing_ok=True)
    assert has_commits(log_of(database))


@pytest.mark.parametrize("checkpoints", [0, 1, 2])
async def test_after_a_crash_the_database_is_what_it_was(database: Path, checkpoints: int) -> None:
    """The log belongs to the file, whatever part of it the file has taken in since it was noted."""
    await crash(database, database.with_name("copy.db"), plain_copy, checkpoints=checkpoints)
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        assert len(await storage.read(subjects)) == 20 * (13 + 5 * checkpoints)
        assert storage.lock.ended_uncleanly()
        assert await storage.lock.check_integrity() is None


@pytest.mark.parametrize("checkpoints", [1, 2])
@pytest.mark.parametrize("how", COPIES)
async def test_an_older_file_beside_a_log_that_was_left_is_refused(
    database: Path, how: Callable[[Path, Path], None], checkpoints: int
) -> None:
    """However it was copied; nothing is touched, and a restore puts it right."""
    copy = database.with_name("copy.db")
    await crash(database, copy, how, checkpoints=checkpoints)
    shutil.copyfile(copy, database)
    before = {path.name: path.read_bytes() for path in database.parent.glob("outreach*")}
    for _ in range(2):
        with pytest.raises(DatabaseReplaced, match="db restore FILE"):
            await SqliteStorage(database, clock=SystemClock()).__aenter__()
    assert {path.name: path.read_bytes() for path in database.parent.glob("outreach*")} == before
    # The log with it, and without the log the file is only an older one, which the ledger's own note tells.
    log_of(database).unlink()
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        assert len(await storage.read(subjects)) in {100, 140}


@pytest.mark.parametrize("how", COPIES)
async def test_a_copy_of_exactly_what_the_file_was_is_refused_too(
    database: Path, how: Callable[[Path, Path], None]
) -> None:
    """SQLite would restore the state at the crash, and no error would say that the backup is not there."""
    copy = database.with_name("copy.db")
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))
    how(database, copy)
    await crash(database, database.with_name("later.db"), plain_copy, checkpoints=0)
    shutil.copyfile(copy, database)
    with pytest.raises(DatabaseReplaced):
        await SqliteStorage(database, clock=SystemClock()).__aenter__()


async def test_a_crashed_database_may_be_moved_with_its_log(database: Path, tmp_path: Path) -> None:
    """By what keeps the times of files, in whole seconds at least."""
    await crash(database, database.with_name("copy.db"), plain_copy, checkpoints=1)
    there = tmp_path / "there"
    there.mkdir()
    for ending in ("", "-wal", ".dispatch-note"):
        moved = shutil.copy2(f"{database}{ending}", there / f"{database.name}{ending}")
        os.utime(moved, (int(os.stat(moved).st_mtime),) * 2)
    async with SqliteStorage(there / database.name, clock=SystemClock()) as storage:
        assert len(await storage.read(subjects)) == 20 * 18


async def test_a_log_of_another_database_is_noticed(database: Path) -> None:
    """What lies under the name is another database altogether."""
    copy, other = database.with_name("copy.db"), database.with_name("other.db")
    await crash(database, copy, plain_copy, checkpoints=1)
    async with SqliteStorage(other, clock=SystemClock()) as storage:
        await storage.write(appending("other"))
    shutil.copyfile(other, database)
    with pytest.raises(DatabaseReplaced):
        await SqliteStorage(database, clock=SystemClock()).__aenter__()


@pytest.mark.parametrize("emptied", [False, True])
async def test_the_log_of_a_database_that_is_not_there_is_not_deleted(
    database: Path, tmp_path: Path, emptied: bool
) -> None:
    """SQLite would begin a new database and delete it: a file that was only moved would miss its last changes."""
    await crash(database, database.with_name("copy.db"), plain_copy, checkpoints=1)
    moved, log = tmp_path / "moved.db", log_of(database).read_bytes()
    shutil.copy2(database, moved)
    os.truncate(database, 0)
    if not emptied:
        database.unlink()
    for create in (True, False):
        with pytest.raises(DatabaseReplaced, match="move the log away first"):
            await SqliteStorage(database, clock=SystemClock(), create=create).__aenter__()
    assert log_of(database).read_bytes() == log
    (found,) = diagnose_file(database)
    assert (found.code, "move the log away first" in found.message) == ("database_replaced", True)
    shutil.copy2(moved, database)
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        assert len(await storage.read(subjects)) == 20 * 18


async def write_and_copy(
    storage: SqliteStorage, clock: ShiftedClock, copy: Callable[[], None], checkpoint: str
) -> None:
    """Copy the file between writes, and make a checkpoint after it."""
    await write_some(storage, 3, clock)
    await asyncio.to_thread(copy)
    await write_some(storage, 3, clock)
    with opened(storage._path) as other:
        other.execute(f"PRAGMA wal_checkpoint({checkpoint})")
    await write_some(storage, 3, clock)


def overwrite(database: Path, copy: Path) -> None:
    """Copy a file over the database, in its place."""
    shutil.copyfile(copy, database)


def rename(database: Path, copy: Path) -> None:
    """Put a file in the place of the database."""
    os.replace(copy, database)


def remove(database: Path, copy: Path) -> None:
    """Delete the database."""
    database.unlink()


def cut(database: Path, copy: Path) -> None:
    """Cut the database short."""
    os.truncate(database, 0)


WHAT: dict[Callable[[Path, Path], None], str] = {
    overwrite: "replaced",
    rename: "replaced",
    remove: "moved or deleted",
    cut: "replaced",
}
"""What is said of each."""


@pytest.mark.parametrize("what", [overwrite, rename, remove, cut])
@pytest.mark.parametrize("how", COPIES)
async def test_a_file_that_is_put_in_the_place_of_an_open_one_is_noticed(
    database: Path,
    how: Callable[[Path, Path], None],
    what: Callable[[Path, Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is written any more, once and for all."""
    monkeypatch.setattr(watch, "FILE_CHECK_SECONDS", 0.0)
    copy, clock = database.with_name("copy.db"), ShiftedClock()
    async with SqliteStorage(database, clock=clock) as storage:
        await write_and_copy(storage, clock, lambda: how(database, copy), "PASSIVE")
        what(database, copy)
        # Before anything is said of a crash, or of integrity.
        with pytest.raises(DatabaseReplaced, match="no longer reads, writes or sends"):
            await storage.lock.acquire()
        for _ in range(2):
            with pytest.raises(DatabaseReplaced, match="no longer reads, writes or sends"):
                await storage.write(appending("lost"))


@pytest.mark.skipif(sys.platform != "linux", reason="needs locks of open file descriptions")
@pytest.mark.parametrize("how", COPIES)
async def test_closing_adds_no_log_to_a_file_that_was_overwritten(
    database: Path, how: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would show the mixture afterwards; so it is refused at the next opening, even if it was not noticed."""
    monkeypatch.setattr(watch, "FILE_CHECK_SECONDS", 0.0)
    copy, clock = database.with_name("copy.db"), ShiftedClock()
    async with SqliteStorage(database, clock=clock) as storage:
        await write_and_copy(storage, clock, lambda: how(database, copy), "TRUNCATE")
        storage.lock.record_high_water(MARK)
        overwrite(database, copy)
    assert database.read_bytes() == copy.read_bytes()
    assert has_commits(log_of(database))
    with pytest.raises(DatabaseReplaced, match="db restore FILE"):
        await SqliteStorage(database, clock=SystemClock()).__aenter__()


async def test_a_disk_that_cannot_be_read_does_not_keep_a_storage_open(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look at the file before the end is left out."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))

        def broken(_file: int, _size: int) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(watch, "_read_start", broken)
    monkeypatch.undo()
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        assert await storage.read(subjects) == ["one"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs the system to say who holds a lock")
async def test_the_log_of_a_running_process_was_not_left_behind(database: Path) -> None:
    """A worker that starts beside a server, or takes over from one that ended, has no crash to report."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))
        storage.lock.record_high_water(MARK, ended=True)
    program = (
        "import sqlite3, sys; raw = sqlite3.connect(sys.argv[1]); "
        "raw.execute('CREATE TABLE extra (one)'); raw.commit(); print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        assert has_commits(log_of(database))
        async with SqliteStorage(database, clock=SystemClock()) as storage:
            assert not storage.lock.ended_uncleanly()
        other.kill()
    assert has_commits(log_of(database))
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        assert storage.lock.ended_uncleanly()


@pytest.mark.parametrize("what", [overwrite, rename, remove, cut])
async def test_a_process_that_only_reads_refuses_it_too(
    database: Path, what: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mixture of both files proves nothing, and a standby process must not begin with it."""
    monkeypatch.setattr(watch, "FILE_CHECK_SECONDS", 0.0)
    copy, clock = database.with_name("copy.db"), ShiftedClock()
    async with SqliteStorage(database, clock=clock) as writing, SqliteStorage(database, clock=clock) as reading:
        await write_and_copy(writing, clock, lambda: plain_copy(database, copy), "PASSIVE")
        assert len(await reading.read(subjects)) == 20 * 9
        what(database, copy)
        for _ in range(2):
            with pytest.raises(DatabaseReplaced, match=f"was {WHAT[what]} while it is open.*db restore FILE"):
                await reading.read(subjects)


async def test_a_log_that_begins_anew_between_two_looks_is_looked_at_again(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first page of before with the name of the log of after would be taken for another file at the next look."""
    monkeypatch.setattr(watch, "FILE_CHECK_SECONDS", 0.0)
    clock, read = ShiftedClock(), watch._read_start
    async with SqliteStorage(database, clock=clock) as storage, SqliteStorage(database, clock=clock) as writing:
        await write_some(writing, 3, clock)
        await storage.read(subjects)
        due = [True]

        def interrupted(file: int, size: int) -> bytes:
            page = read(file, size)
            if due and threading.current_thread() is not threading.main_thread():
                due.clear()
                with opened(database) as other:
                    other.execute("PRAGMA wal_checkpoint(RESTART)")
                    other.execute("PRAGMA user_version = 2000000000")
            return page

        monkeypatch.setattr(watch, "_read_start", interrupted)
        for _ in range(3):
            assert len(await storage.read(subjects)) == 60
        assert not due


async def test_a_check_that_is_interrupted_by_commits_takes_no_file_for_another(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had read the files before a checkpoint and a stamped commit, and remembers the state of then."""
    monkeypatch.setattr(watch, "FILE_CHECK_SECONDS", 0.0)
    clock, read, loop = ShiftedClock(), watch.read_file_state, asyncio.get_running_loop()
    async with SqliteStorage(database, clock=clock) as storage:
        await write_some(storage, 2, clock)
        due = [True]

        def interrupted(file: int, log: Path) -> watch.FileState | None:
            found = read(file, log)
            if due and threading.current_thread() is not threading.main_thread():
                due.clear()
                with opened(database) as other:
                    other.execute("PRAGMA wal_checkpoint(RESTART)")
                clock.shift(timedelta(seconds=5))
                # The writer does not look at the file meanwhile, as within half a second of its last look.
                storage._watch._next_check = float("inf")
                asyncio.run_coroutine_threadsafe(storage.write(appending("later")), loop).result(10)
            return found

        monkeypatch.setattr(watch, "read_file_state", interrupted)
        for _ in range(3):
            await storage.read(subjects)
        assert not due
        assert len(await storage.read(subjects)) == 41


async def test_checkpoints_of_any_process_are_no_replacement(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own, those of others, with a reader that holds them up, a log that begins anew, VACUUM."""
    monkeypatch.setattr(watch, "FILE_CHECK_SECONDS", 0.0)
    clock = ShiftedClock()
    async with SqliteStorage(database, clock=clock) as storage:
        for _ in range(3):
            await write_some(storage, 4, clock)
            with opened(database) as reader, opened(database) as other:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM audit").fetchall()
                await write_some(storage, 4, clock)
                other.execute("PRAGMA wal_checkpoint(PASSIVE)")
                await write_some(storage, 1, clock)
                reader.execute("ROLLBACK")
            for kind in ("PASSIVE", "FULL", "RESTART", "TRUNCATE"):
                with opened(database) as other:
                    other.execute(f"PRAGMA wal_checkpoint({kind})")
                await write_some(storage, 1, clock)
            with opened(database) as other:
                other.execute("VACUUM")
            await write_some(storage, 1, clock)
        assert len(await storage.read(subjects)) == 20 * 3 * 14


async def test_a_commit_that_failed_is_no_replacement(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk: its stamp is not in the file, whatever is committed within the same second."""
    monkeypatch.setattr(watch, "FILE_CHECK_SECONDS", 0.0)
    clock, commit, failing = ShiftedClock(), Transactions.commit, [True]

    def fail_once(self: Transactions) -> None:
        if failing.pop():
            raise sqlite3.OperationalError("database or disk is full")
        failing.append(False)
        commit(self)

    async with SqliteStorage(database, clock=clock) as storage:
        await write_some(storage, 2, clock)
        monkeypatch.setattr(Transactions, "commit", fail_once)
        with pytest.raises(StorageError, match="Nothing was written"):
            await storage.write(appending("lost"))
        failing.append(False)
        for _ in range(2):
            await storage.write(appending("kept"))
        with opened(database) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert len(await storage.read(subjects)) == 42


async def test_a_clock_that_is_set_back_lets_stamps_go_on(database: Path) -> None:
    """They only go up, over processes too."""
    clock = ShiftedClock()

    def stamp(path: Path) -> int:
        with opened(path) as other:
            return int(other.execute("PRAGMA user_version").fetchone()[0])

    async with SqliteStorage(database, clock=clock) as storage:
        await storage.write(appending("one"))
        first = stamp(database)
        clock.shift(timedelta(days=-400))
        await storage.write(appending("two"))
        second = stamp(database)
    async with SqliteStorage(database, clock=clock) as storage:
        await storage.write(appending("three"))
        assert first < second < stamp(database)


async def test_two_storages_of_one_process_share_a_descriptor(database: Path) -> None:
    """To close one of two would lose the locks of the other's connections (POSIX)."""
    async with SqliteStorage(database, clock=SystemClock()) as first:
        async with SqliteStorage(database, clock=SystemClock()) as second:
            assert first._watch._file == second._watch._file
        assert watch.OPEN_FILES.has(database)
        await first.write(appending("one"))
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(-1)
        os.fstat(first._watch._file)
    assert not watch.OPEN_FILES.has(database)


async def test_a_damaged_database_is_found_out(database: Path) -> None:
    """A page in the midst of it is not what it was."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending(*(f"{number} {'x' * 300}" for number in range(2000))))
    raw = bytearray(database.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 4096] = os.urandom(4096)
    database.write_bytes(raw)
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        assert await storage.lock.check_integrity()


async def test_a_check_that_is_cancelled_ends_at_once(database: Path) -> None:
    """A server that is stopped in the midst of it does not wait for it."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending(*(f"{number} {'x' * 300}" for number in range(3000))))
        looking = asyncio.create_task(storage.lock.check_integrity())
        await asyncio.sleep(0)
        looking.cancel()
        with pytest.raises((asyncio.CancelledError, StorageError)):
            await looking
        assert await storage.lock.check_integrity() is None
