from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outreach import Outreach
from outreach.core.clock import SystemClock
from outreach.database import (
    backup_database,
    check_database,
    compact_database,
    copy_database,
    migrate_database,
    restore_database,
)
from outreach.errors import (
    ConfigError,
    DatabaseInUse,
    DatabaseMissing,
    DatabaseNewer,
    DatabaseOlder,
    DatabaseReplaced,
    StorageError,
)
from outreach.ledger.leases import leases
from outreach.models.work import DatabaseHome
from outreach.storage.sqlite import SqliteStorage, copying, schema
from outreach.storage.sqlite.copying import integrity_problems
from outreach.storage.sqlite.lock import SqliteDispatchLock
from outreach.storage.sqlite.restoring import free_name, restore
from outreach.testing.builders import NOW
from tests.migrations import LATER, later_version
from tests.storage.sqlite_support import appending, opened, subjects

pytestmark = pytest.mark.anyio

HOME = DatabaseHome(host="here", path="/there.db")

OTHER_PROCESS = """
import sqlite3, sys
raw = sqlite3.connect(sys.argv[1], isolation_level=None)
raw.execute("SELECT * FROM sqlite_schema").fetchall()
print("open", flush=True)
sys.stdin.read()
"""


def url_of(path: Path) -> str:
    """Return the URL of a database."""
    return f"sqlite:///{path}"


async def fill(path: Path, *names: str) -> None:
    """Write into a database, and close it."""
    async with SqliteStorage(path, clock=SystemClock()) as storage:
        await storage.write(appending(*names))


async def content(path: Path) -> list[str]:
    """Return what was written into a database."""
    async with SqliteStorage(path, clock=SystemClock(), create=False) as storage:
        return await storage.read(subjects)


@contextmanager
def another_process(path: Path) -> Iterator[None]:
    """Have a process of its own keep a database open."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield
        finally:
            process.stdin.close()
            process.wait(20)


def kill_in_a_migration(path: Path) -> None:
    """Leave a database as a process does that is killed while it rewrites the pages in one transaction."""
    left = path.with_name("left.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA journal_mode = DELETE")
        raw.execute("PRAGMA cache_size = 10")
        raw.execute("BEGIN EXCLUSIVE")
        raw.execute("UPDATE audit SET subject = 'changed ' || subject")
        for ending in ("", "-journal"):
            shutil.copyfile(f"{path}{ending}", f"{left}{ending}")
    for ending in ("", "-journal"):
        os.replace(f"{left}{ending}", f"{path}{ending}")


def files(directory: Path) -> set[str]:
    """Return the names in a directory."""
    return set(os.listdir(directory))


async def test_a_backup_is_one_whole_moment_of_a_database_that_is_written(database: Path, tmp_path: Path) -> None:
    """Every transaction is in it wholly or not at all; only its owner can read it, and nothing lies beside it."""
    file = tmp_path / "backups" / "one.db"
    file.parent.mkdir()
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending(*(f"{number} {'x' * 200}" for number in range(3000))))
        stop = asyncio.Event()

        async def keep_writing() -> None:
            while not stop.is_set():
                await storage.write(appending("left", "right"))

        writing = asyncio.create_task(keep_writing())
        made = await asyncio.to_thread(backup_database, url_of(database), file)
        stop.set()
        await writing
        assert storage._writer is not None
    assert (made.file, made.size, made.key_file) == (file, file.stat().st_size, None)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert files(file.parent) == {"one.db"}
    found = await content(file)
    assert found.count("left") == found.count("right")
    assert len(found) >= 3000
    assert check_database(url_of(file)).problems == []


async def test_a_backup_takes_the_log_with_it(database: Path, tmp_path: Path) -> None:
    """What was committed and not yet taken into the file counts, and nothing of the database changes."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))
        copy = tmp_path / "copy.db"
        for ending in ("", "-wal"):
            shutil.copyfile(f"{database}{ending}", f"{copy}{ending}")
    before = copy.read_bytes()
    backup_database(url_of(copy), tmp_path / "backup.db")
    assert copy.read_bytes() == before
    assert await content(tmp_path / "backup.db") == ["one"]


@pytest.mark.parametrize("was_deleted", [False, True])
async def test_a_backup_has_nothing_of_the_file_that_was_there_before(
    was_deleted: bool, database: Path, tmp_path: Path
) -> None:
    """A log that a killed process left beside that file would be read as the backup's own."""
    file = tmp_path / "backup.db"
    async with SqliteStorage(tmp_path / "other.db", clock=SystemClock()) as storage:
        await storage.write(appending("of before"))
        for ending in ("", "-wal", "-shm"):
            shutil.copyfile(tmp_path / f"other.db{ending}", f"{file}{ending}")
    assert (tmp_path / "backup.db-wal").stat().st_size
    if was_deleted:
        file.unlink()
    await fill(database, "one")
    backup_database(url_of(database), file, overwrite=not was_deleted)
    assert not {"backup.db-wal", "backup.db-shm"} & files(tmp_path)
    restored = tmp_path / "restored.db"
    restore_database(url_of(restored), file)
    assert await content(restored) == ["one"]


async def test_a_backup_is_refused_where_it_would_lose_something(database: Path, tmp_path: Path) -> None:
    """A file that is there, the database itself, no directory, no database; nothing is left behind."""
    await fill(database, "one")
    file = tmp_path / "backup.db"
    file.write_text("dear diary")
    with pytest.raises(StorageError, match="exists already"):
        backup_database(url_of(database), file)
    assert file.read_text() == "dear diary"
    with pytest.raises(StorageError, match="the database itself"):
        backup_database(url_of(database), database, overwrite=True)
    with pytest.raises(StorageError, match="is no file"):
        backup_database(url_of(database), tmp_path, overwrite=True)
    with pytest.raises(StorageError, match="Create it first"):
        backup_database(url_of(database), tmp_path / "absent" / "backup.db")
    with pytest.raises(DatabaseMissing):
        backup_database(url_of(tmp_path / "absent.db"), tmp_path / "other.db")
    with pytest.raises(ConfigError):
        backup_database("memory://", tmp_path / "other.db")
    backup_database(url_of(database), file, overwrite=True)
    assert await content(file) == ["one"]
    check_database(url_of(database))
    assert {name for name in files(tmp_path) if name.startswith(database.name)} == {database.name}
    assert {name for name in files(tmp_path) if "part" in name or "other" in name} == set()


async def test_a_backup_replaces_no_file_of_a_database(database: Path, tmp_path: Path) -> None:
    """Neither one of the database itself, nor another database that a server has sent from or has open."""
    await fill(database, "one")
    for ending in ("-wal", "-shm", "-journal", ".key", ".dispatch", ".dispatch.2", ".dispatch-note"):
        with pytest.raises(StorageError, match="belongs to the database itself"):
            backup_database(url_of(database), Path(f"{database}{ending}"), overwrite=True)
    assert files(tmp_path) == {database.name}
    other = tmp_path / "other.db"
    await fill(other, "other")
    for ending in (".dispatch", ".dispatch-note", ".key"):
        beside = Path(f"{other}{ending}")
        beside.touch()
        with pytest.raises(StorageError, match="and no backup"):
            backup_database(url_of(database), other, overwrite=True)
        beside.unlink()
    with another_process(other), pytest.raises(DatabaseInUse):
        backup_database(url_of(database), other, overwrite=True)
    async with SqliteStorage(other, clock=SystemClock()) as storage:
        with pytest.raises(DatabaseInUse):
            backup_database(url_of(database), other, overwrite=True)
        await storage.write(appending("later"))
    assert await content(other) == ["other", "later"]
    assert files(tmp_path) == {database.name, other.name}


async def test_a_backup_removes_what_a_killed_one_left(database: Path, tmp_path: Path) -> None:
    """A day later, when none to this name can still be running; other files stay."""
    await fill(database, "one")
    old, recent = (f"backup.db.{digit * 32}.part" for digit in "ab")
    others = {recent, "other.db." + "a" * 32 + ".part", "backup.db.part"}
    for name in (old, f"{old}-journal", *others):
        (tmp_path / name).touch()
        if name != recent:
            os.utime(tmp_path / name, (0, 0))
    backup_database(url_of(database), tmp_path / "backup.db")
    assert files(tmp_path) == {database.name, "backup.db", *others}


async def test_a_damaged_database_is_not_backed_up(database: Path, tmp_path: Path) -> None:
    """A backup that cannot be restored is worse than none; the check says what is wrong."""
    await fill(database, *(f"{number} {'x' * 300}" for number in range(2000)))
    raw = bytearray(database.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 4096] = os.urandom(4096)
    database.write_bytes(raw)
    with pytest.raises(StorageError, match="damaged"):
        backup_database(url_of(database), tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()
    for quick in (True, False):
        assert check_database(url_of(database), quick=quick).problems


async def test_a_check_finds_what_a_quick_one_does_not(database: Path) -> None:
    """A reference that leads nowhere; a sound database has no problems."""
    await fill(database, "one")
    assert check_database(url_of(database)).problems == []
    with opened(database) as other:
        other.execute("PRAGMA foreign_keys = OFF")
        other.execute("CREATE TABLE child (id INTEGER PRIMARY KEY, parent TEXT REFERENCES workspaces (id))")
        other.execute("INSERT INTO child VALUES (1, 'nobody')")
    assert check_database(url_of(database), quick=True).problems == []
    assert "not there" in check_database(url_of(database)).problems[0]


async def test_a_restored_database_is_the_backup_and_the_old_one_is_kept(database: Path, tmp_path: Path) -> None:
    """With a log that was left beside the old one: it goes with it, and nothing is mixed or lost."""
    await fill(database, "one")
    backup = tmp_path / "backup.db"
    backup_database(url_of(database), backup)
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("two"))
        left = database.with_name("left.db")
        for ending in ("", "-wal"):
            shutil.copyfile(f"{database}{ending}", f"{left}{ending}")
    for ending in ("", "-wal"):
        os.replace(f"{left}{ending}", f"{database}{ending}")
    done = restore_database(url_of(database), backup)
    assert await content(database) == ["one"]
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert done.replaced_database is not None
    assert await content(done.replaced_database) == ["two", "one"][::-1]
    assert not [name for name in files(tmp_path) if name.endswith((".restoring", "-wal", "-shm"))]


async def test_a_restore_keeps_the_journal_of_a_killed_migration_with_its_database(
    database: Path, tmp_path: Path
) -> None:
    """SQLite would write the old pages in it into the restored file, and the kept one would stay half migrated."""
    first, second = ([f"{number} {'x' * 300}" for number in part] for part in (range(500), range(500, 1000)))
    await fill(database, *first)
    backup = tmp_path / "backup.db"
    backup_database(url_of(database), backup)
    await fill(database, *second)
    kill_in_a_migration(database)
    done = restore_database(url_of(database), backup)
    assert await content(database) == first
    assert check_database(url_of(database)).problems == []
    assert done.replaced_database is not None
    assert await content(done.replaced_database) == [*first, *second]
    assert not [name for name in files(tmp_path) if name.endswith(("-journal", "-wal", "-shm"))]


async def test_a_restore_that_fails_puts_the_journal_back(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it the database would be half migrated for ever."""
    names = [f"{number} {'x' * 300}" for number in range(500)]
    await fill(database, *names)
    backup = tmp_path / "backup.db"
    backup_database(url_of(database), backup)
    kill_in_a_migration(database)
    before, replace = files(tmp_path), os.replace

    def refusing(source: Path, target: Path) -> None:
        if target == database:
            raise OSError(28, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refusing)
        with pytest.raises(StorageError, match="No space left"):
            restore_database(url_of(database), backup)
    assert files(tmp_path) == before
    assert await content(database) == names


def test_a_kept_database_takes_no_name_with_a_journal(tmp_path: Path) -> None:
    """SQLite would take it for the kept database's own."""
    (tmp_path / "kept.db-journal").touch()
    assert free_name(tmp_path / "kept.db") == tmp_path / "kept.db-2"


async def test_a_journal_beside_the_backup_counts(database: Path, tmp_path: Path) -> None:
    """A database that a killed process left in the midst of a transaction is restored as it was before that."""
    names = [f"{number} {'x' * 300}" for number in range(500)]
    pair = tmp_path / "pair.db"
    await fill(pair, *names)
    kill_in_a_migration(pair)
    await fill(database, "two")
    restore_database(url_of(database), pair)
    assert await content(database) == names


async def test_a_log_beside_the_backup_counts(database: Path, tmp_path: Path) -> None:
    """Somebody has copied both files of a crashed database."""
    pair = tmp_path / "pair.db"
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("one"))
        for ending in ("", "-wal"):
            shutil.copyfile(f"{database}{ending}", f"{pair}{ending}")
    await fill(database, "two")
    restore_database(url_of(database), pair)
    assert await content(database) == ["one"]


async def test_a_backup_is_restored_where_there_is_no_database(database: Path, tmp_path: Path) -> None:
    """On a new machine; also from a directory in which nothing can be made."""
    await fill(database, "one")
    place = tmp_path / "medium"
    place.mkdir()
    backup_database(url_of(database), place / "backup.db")
    place.chmod(0o500)
    try:
        done = restore_database(url_of(tmp_path / "new.db"), place / "backup.db")
    finally:
        place.chmod(0o700)
    assert done.replaced_database is None
    assert await content(tmp_path / "new.db") == ["one"]
    assert files(place) == {"backup.db"}


async def test_a_log_without_its_database_is_kept_by_a_restore(database: Path, tmp_path: Path) -> None:
    """The database may be found again, and the log has its last commits."""
    await fill(database, "one")
    backup = tmp_path / "backup.db"
    backup_database(url_of(database), backup)
    alone = tmp_path / "alone.db"
    log = tmp_path / "alone.db-wal"
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("two"))
        shutil.copyfile(f"{database}-wal", log)
    commits = log.read_bytes()
    done = restore_database(url_of(alone), backup)
    assert done.replaced_database is not None
    assert done.replaced_database.name.endswith("-wal")
    assert done.replaced_database.read_bytes() == commits
    assert not log.exists()
    assert await content(alone) == ["one"]


async def test_root_leaves_a_database_to_its_owner(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restore or a compaction the server's user can open the file, the lock and the note, as before."""
    await fill(database, "one")
    backup, owner = tmp_path / "backup.db", database.stat()
    backup_database(url_of(database), backup)
    given: list[tuple[str, int, int]] = []

    def giving(file: Path, user: int, group: int) -> None:
        given.append((file.name.removeprefix(database.name), user, group))

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", giving)
    restore_database(url_of(database), backup)
    compact_database(url_of(database))
    assert given == [
        (name, owner.st_uid, owner.st_gid) for name in (".dispatch", ".dispatch-note", ".restoring", ".compacting")
    ]
    given.clear()
    restore_database(url_of(tmp_path / "new.db"), backup)
    place = tmp_path.stat()
    assert {(user, group) for _, user, group in given} == {(place.st_uid, place.st_gid)}


async def test_what_is_restored_is_taken_for_restored(database: Path, tmp_path: Path) -> None:
    """Whatever the note beside the database said, or that there was none, or that it was another database's."""
    backup, other = tmp_path / "backup.db", tmp_path / "other.db"

    async def take(path: Path) -> str | None:
        async with SqliteStorage(path, clock=SystemClock()) as storage:
            lock = storage.lock
            noted = lock.high_water()
            taken = await storage.write(lambda tx: leases.take_over(tx, home=HOME, noted=noted, now=NOW))
            lock.record_high_water(await storage.read(lambda tx: leases.high_water(tx, taken.epoch)), ended=True)
            return taken.reason

    assert await take(database) is None
    backup_database(url_of(database), backup)
    assert await take(database) is None
    restore_database(url_of(database), backup)
    assert await take(database) == "restored"
    assert await take(database) is None
    assert await take(other) is None
    restore_database(url_of(other), backup)
    assert await take(other) == "restored"
    other.with_name(f"{other.name}.dispatch-note").unlink()
    restore_database(url_of(other), backup)
    assert await take(other) == "restored"


async def test_a_restore_is_refused_while_somebody_has_the_database_open(database: Path, tmp_path: Path) -> None:
    """This process, another one, one that dispatches: nothing changes."""
    await fill(database, "one")
    backup = tmp_path / "backup.db"
    backup_database(url_of(database), backup)
    await fill(database, "two")

    def refused() -> None:
        before = files(tmp_path)
        with pytest.raises(DatabaseInUse, match="stop the server"):
            restore_database(url_of(database), backup)
        assert files(tmp_path) == before

    with another_process(database):
        refused()
    async with SqliteStorage(database, clock=SystemClock()):
        refused()
    lock = SqliteDispatchLock(database)
    assert lock.take()
    refused()
    lock.give_back()
    restore_database(url_of(database), backup)
    assert await content(database) == ["one"]


async def test_a_restore_is_refused_where_the_file_is_no_backup(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing, a letter, another application's, a newer version's, a damaged one, the database itself."""
    await fill(database, "one")
    before = database.read_bytes()
    letter, foreign, newer, damaged = (tmp_path / name for name in ("letter", "foreign", "newer", "damaged"))
    letter.write_text("Dear diary, " * 500)
    with closing(sqlite3.connect(foreign)) as raw:
        raw.execute("CREATE TABLE customers (name TEXT)")
    await fill(damaged, *(f"{number} {'x' * 300}" for number in range(2000)))
    broken = bytearray(damaged.read_bytes())
    broken[len(broken) // 2 : len(broken) // 2 + 4096] = os.urandom(4096)
    damaged.write_bytes(broken)
    await fill(newer, "newer")
    with opened(newer) as raw:
        raw.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('outreach', '9999_later', 'x')"
        )
    cases: list[tuple[Path, type[Exception], str]] = [
        (tmp_path / "absent", StorageError, "no file .*absent"),
        (letter, StorageError, "no SQLite database"),
        (foreign, StorageError, "is not a database of this package"),
        (newer, DatabaseNewer, "9999_later"),
        (damaged, StorageError, "damaged"),
        (database, StorageError, "the database itself"),
    ]
    there = files(tmp_path)
    for file, kind, words in cases:
        with pytest.raises(kind, match=words):
            restore_database(url_of(database), file)
        assert database.read_bytes() == before
        assert files(tmp_path) == there
        with pytest.raises(StorageError, match=words):
            restore_database(url_of(tmp_path / "new.db") if file != database else url_of(database), file)
        assert files(tmp_path) == there


@pytest.mark.parametrize("fails_at", range(1, 5))
async def test_a_restore_that_fails_midway_changes_nothing(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """Whichever step the disk refuses: the old database is there with its log, and nothing else is."""
    backup = tmp_path / "backup.db"
    await fill(database, "one")
    backup_database(url_of(database), backup)
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("two"))
        left = tmp_path / "left"
        left.mkdir()
        for ending in ("", "-wal"):
            shutil.copyfile(f"{database}{ending}", left / f"{database.name}{ending}")
    for name in files(left):
        os.replace(left / name, tmp_path / name)
    left.rmdir()
    before = files(tmp_path)
    calls = 0
    replace, link = os.replace, os.link

    def count() -> None:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise OSError(28, "No space left on device")

    def replacing(source: Path, target: Path) -> None:
        count()
        replace(source, target)

    def linking(source: Path, target: Path) -> None:
        count()
        link(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replacing)
        patched.setattr(os, "link", linking)
        with pytest.raises(StorageError, match="No space left"):
            restore(database, backup, now=datetime(2026, 11, 22, tzinfo=UTC))
    assert files(tmp_path) == before
    assert await content(database) == ["one", "two"]


async def test_an_older_database_is_changed_by_whom_it_belongs_to_alone(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others say so and change nothing; with another process on it nobody does."""
    await fill(database, "one")
    before = database.read_bytes()
    monkeypatch.setattr(schema, "_LOG_SECONDS", 0.1)
    with later_version():
        with pytest.raises(DatabaseOlder, match=LATER):
            await SqliteStorage(database, clock=SystemClock(), migrate=False).__aenter__()
        assert LATER in check_database(url_of(database)).pending_migrations
        with another_process(database):
            with pytest.raises(DatabaseInUse, match="Stop the other process first"):
                await SqliteStorage(database, clock=SystemClock()).__aenter__()
            with pytest.raises(DatabaseInUse):
                migrate_database(url_of(database))
        assert database.read_bytes() == before
        steps = migrate_database(url_of(database))
        assert steps[0] == LATER
        assert migrate_database(url_of(database)) == []
        async with SqliteStorage(database, clock=SystemClock(), migrate=False) as storage:
            assert await storage.read(subjects) == ["one"]
        with opened(database) as other:
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        with pytest.raises(DatabaseMissing):
            migrate_database(url_of(database.with_name("absent.db")))


async def test_a_copy_that_keeps_no_log_is_opened_with_one(database: Path, tmp_path: Path) -> None:
    """`VACUUM INTO` and others make files in SQLite's older mode, in which readers wait for writers."""
    await fill(database, "one")
    packed = tmp_path / "packed.db"
    with closing(sqlite3.connect(database)) as raw:
        raw.execute("VACUUM INTO ?", (str(packed),))
    async with SqliteStorage(packed, clock=SystemClock()):
        with opened(packed) as other:
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_an_engine_changes_an_older_database_when_it_dispatches_from_it(database: Path) -> None:
    """Or when it is told to; one that looks in says what has to be done."""
    for path in (database, database.with_name("second.db")):
        await fill(path, "one")
    with later_version():
        with pytest.raises(DatabaseOlder, match="process that dispatches from it applies them"):
            await Outreach.open(url_of(database)).__aenter__()
        async with Outreach.open(url_of(database), dispatch=True) as engine:
            assert engine.health().dispatching
        async with Outreach.open(url_of(database)):
            pass
        async with Outreach.open(url_of(database.with_name("second.db")), migrate=True):
            pass


async def test_a_log_without_its_database_is_no_part_of_a_new_one(database: Path, tmp_path: Path) -> None:
    """Somebody has deleted the file after a crash, and left the log and the note."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("old"))
        shutil.copyfile(f"{database}-wal", tmp_path / "left")
    database.unlink()
    os.replace(tmp_path / "left", f"{database}-wal")
    with pytest.raises(DatabaseReplaced, match="move the log away first"):
        await fill(database, "new")
    os.replace(f"{database}-wal", tmp_path / "left")
    await fill(database, "new")
    assert await content(database) == ["new"]


async def test_a_log_without_its_database_is_not_copied_over(database: Path, tmp_path: Path) -> None:
    """It may hold the last changes of a database that was moved; a copy of another one leaves it as it is."""
    source, log = tmp_path / "source.db", Path(f"{database}-wal")
    await fill(source, "new")
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        await storage.write(appending("old"))
        left = log.read_bytes()
    database.unlink()
    log.write_bytes(left)
    with pytest.raises(DatabaseReplaced, match="move the log away first"):
        copy_database(url_of(source), url_of(database))
    assert log.read_bytes() == left
    assert not database.exists()


async def test_a_database_is_not_copied_into_itself(database: Path, tmp_path: Path) -> None:
    """It is said at once, under whatever name, and not after waiting for oneself."""
    await fill(database, "one")
    link = tmp_path / "link.db"
    link.symlink_to(database)
    for target in (database, link):
        with pytest.raises(StorageError, match="the database itself"):
            copy_database(url_of(database), url_of(target))
    assert await content(database) == ["one"]


@pytest.mark.parametrize("quick", [True, False])
def test_each_problem_of_the_stored_data_is_a_line(quick: bool, tmp_path: Path) -> None:
    """SQLite tells several in one text, below a heading."""
    path = tmp_path / "o.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE t (x)")
        raw.executemany("INSERT INTO t VALUES (?)", [("a" * 1000,)] * 100)
        raw.commit()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 100)
    with closing(sqlite3.connect(path)) as raw:
        problems = integrity_problems(raw, quick=quick)
    assert len(problems) > 1
    assert all(problem.isprintable() for problem in problems)


def test_a_full_disk_of_a_copy_is_not_called_that_of_the_database(tmp_path: Path) -> None:
    """The copy may lie on another one; nothing of it is left."""

    class Full(sqlite3.Connection):
        def backup(self, *_: object, **__: object) -> None:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    draft = tmp_path / "copy.db"
    with (
        closing(sqlite3.connect(":memory:", factory=Full, isolation_level=None)) as source,
        pytest.raises(StorageError, match=r"^The disk of the copy .*copy\.db' is full: make room\.$"),
    ):
        copying.copy_database(source, draft)
    assert not draft.exists()
