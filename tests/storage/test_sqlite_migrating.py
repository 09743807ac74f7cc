from __future__ import annotations

import logging
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from sqlite_utils import Database, Migrations

from outreach.core.clock import SystemClock
from outreach.database import migrate_database
from outreach.errors import DatabaseInUse, StorageError
from outreach.storage.base import progress
from outreach.storage.sqlite import (
    SqliteStorage,
    migration_backup,
    schema,
)
from tests.migrations import later_version
from tests.storage.sqlite_support import opened

ENTRIES = 20_000

CHANGES = {
    "9001_large": "UPDATE audit SET detail = detail || 'more'",
    "9002_drop": "DROP INDEX audit_of_workspace",
    "9003_index": "CREATE INDEX audit_of_workspace ON audit (workspace_id, at)",
}

KILLED = """
import sys, time
from outreach.database import migrate_database
from outreach.storage.base import progress
from outreach.storage.sqlite import migration_backup
from tests.migrations import later_version
from tests.storage.test_sqlite_migrating import CHANGES

progress.PROGRESS_SECONDS, progress._OPERATIONS = 0.0, 1000
where = sys.argv[2]

def here():
    print("here", flush=True)
    time.sleep(600)

def tell(sentence):
    if where in sentence:
        here()

if where == "committed":
    migration_backup._delete = lambda backup: here()
with later_version(CHANGES):
    migrate_database(f"sqlite:///{sys.argv[1]}", on_progress=tell)
"""


@pytest.fixture
def later() -> Iterator[None]:
    """Let the package know more migrations than a database has."""
    with later_version(CHANGES):
        yield


def make_older(database: Path) -> None:
    """Make a database without the later migrations, larger than what SQLite keeps in memory."""
    with closing(sqlite3.connect(database, isolation_level=None)) as raw:
        schema.run_migrations(raw, stop_before=CHANGES)
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("BEGIN")
        raw.executemany(
            "INSERT INTO audit (at, workspace_id, actor, action, subject, detail) VALUES ('x', 'w1', 'y', 'z', ?, ?)",
            ((str(number), "detail" * 20) for number in range(ENTRIES)),
        )
        raw.execute("COMMIT")


def url_of(database: Path) -> str:
    """Return the URL of a file."""
    return f"sqlite:///{database}"


def kept_of(database: Path) -> Path:
    """Return where the copy of a database lies."""
    return database.with_name(database.name + migration_backup.BACKUP_SUFFIX)


def draft_of(database: Path) -> Path:
    """Return where the copy lies while it is made."""
    return kept_of(database).with_name(kept_of(database).name + migration_backup._DRAFT)


def files_of(database: Path) -> list[str]:
    """Return the names of a database and of all that lies beside it."""
    beside = (path.name for path in database.parent.iterdir() if path.name.startswith(database.name))
    return sorted(name for name in beside if ".dispatch" not in name)


class Content(NamedTuple):
    """What a database holds: how many steps it has, and how many entries; and whether it is whole."""

    steps: int
    entries: int
    is_whole: bool


def content(database: Path) -> Content:
    """Look into a database as a process of an older version would, which first undoes what was left half done."""
    with closing(sqlite3.connect(database)) as raw:
        [[steps]] = raw.execute("SELECT count(*) FROM _sqlite_migrations")
        [[entries]] = raw.execute("SELECT count(*) FROM audit INDEXED BY audit_of_workspace WHERE workspace_id = 'w1'")
        return Content(steps, entries, raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)])


OLD = Content(len(schema.migrations()), ENTRIES, is_whole=True)
NEW = Content(OLD.steps + len(CHANGES), ENTRIES, is_whole=True)


def killed_at(database: Path, where: str) -> None:
    """Bring a database up to date in another process, and kill that at a point of it."""
    command = [sys.executable, "-c", KILLED, str(database), where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGKILL)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("where", ["copying", "9001_large", "checking its integrity"])
def test_a_kill_leaves_the_old_database_usable(database: Path, where: str) -> None:
    """Whenever it comes before the commit: the older version finds what it wrote, and the newer one tries again."""
    make_older(database)
    killed_at(database, where)
    # As that process left it, with what SQLite has to undo.
    left = database.with_name("left.db")
    for ending in ("", "-journal"):
        if (file := database.with_name(database.name + ending)).exists():
            shutil.copy(file, left.with_name(left.name + ending))
    assert content(left) == OLD
    if where == "copying":
        assert draft_of(database).exists()
    else:
        assert content(kept_of(database)) == OLD
    assert len(migrate_database(url_of(database))) == NEW.steps - OLD.steps
    assert content(database) == NEW
    assert files_of(database) == [database.name]


def test_a_kill_in_the_midst_has_changed_the_file_itself(database: Path) -> None:
    """What the test above rests on: without what SQLite has noted of it, the file would be a ruin."""
    make_older(database)
    killed_at(database, "checking its integrity")
    database.with_name(database.name + "-journal").unlink()
    assert not content(database).is_whole


@pytest.mark.usefixtures("later")
def test_what_a_kill_after_the_commit_leaves_is_removed(database: Path) -> None:
    """By the next one that may change the database; nothing is applied twice."""
    make_older(database)
    killed_at(database, "committed")
    assert content(kept_of(database)) == OLD
    draft_of(database).write_text("Half of an earlier one.")
    assert migrate_database(url_of(database)) == []
    assert content(database) == NEW
    assert files_of(database) == [database.name]


@pytest.mark.usefixtures("later")
def test_the_copy_of_another_database_is_left_alone(database: Path) -> None:
    """Somebody may have put a new database in the place of the one that was copied."""
    kept = kept_of(database)
    for number in (1, 2):
        make_older(database.with_name(f"{number}.db"))
    shutil.copy(database.with_name("1.db"), kept)
    shutil.copy(database.with_name("2.db"), database)
    migrate_database(url_of(database))
    assert migrate_database(url_of(database)) == []
    assert content(kept) == OLD
    kept.write_text("My notes.")
    migrate_database(url_of(database))
    assert kept.read_text() == "My notes."


@pytest.mark.usefixtures("later")
@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_only_the_owner_may_read_the_copy(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, and complete, before the first step; it is there no more afterwards."""
    make_older(database)
    seen: list[tuple[int, Content]] = []
    apply = Migrations.apply

    def looking(self: Migrations, db: Database, **more: object) -> None:
        if not seen:
            seen.append((stat.S_IMODE(kept_of(database).stat().st_mode), content(kept_of(database))))
        apply(self, db, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Migrations, "apply", looking)
    migrate_database(url_of(database))
    assert seen == [(0o600, OLD)]
    assert files_of(database) == [database.name]


@pytest.mark.usefixtures("later")
def test_nothing_is_begun_without_room_for_a_copy(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how much is needed."""
    make_older(database)
    size = database.stat().st_size
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2 * size - 1))
        with pytest.raises(StorageError, match=f"{2 * size // 2**20 + 1} MiB are needed beside it"):
            migrate_database(url_of(database))
        assert content(database) == OLD
        patched.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2 * size))
        assert migrate_database(url_of(database))


def test_a_step_that_fails_changes_nothing_and_keeps_the_copy(database: Path) -> None:
    """The message says where it lies; after the repair all goes on, and the copy goes."""
    make_older(database)
    with (
        later_version({"9001_index": "DROP INDEX audit_of_workspace", "9002_wrong": "CREATE TABLE audit (a)"}),
        pytest.raises(
            StorageError, match=rf"nothing was changed.*audit already exists.*{migration_backup.BACKUP_SUFFIX}"
        ),
    ):
        migrate_database(url_of(database))
    assert content(database) == content(kept_of(database)) == OLD
    with later_version(CHANGES):
        migrate_database(url_of(database))
    assert content(database) == NEW
    assert not kept_of(database).exists()


def test_a_database_that_its_steps_would_damage_is_left_as_it_was(database: Path) -> None:
    """It is looked through before the commit: references too."""
    make_older(database)
    dangling = {"9001_dangling": "INSERT INTO runs (campaign_number, owner_epoch) VALUES (7, 1)"}
    with (
        later_version(dangling),
        pytest.raises(StorageError, match="row 7 of runs refers to a row of campaigns that is not there"),
    ):
        migrate_database(url_of(database))
    assert content(database) == OLD


@pytest.mark.usefixtures("later")
def test_a_damaged_database_is_found_before_anything_is_changed(database: Path) -> None:
    """A good copy of an earlier attempt is not written over with it."""
    make_older(database)
    shutil.copy(database, kept_of(database))
    with opened(database) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("UPDATE sqlite_schema SET rootpage = 3 WHERE name = 'audit'")
        raw.execute("PRAGMA journal_mode = DELETE")
    with pytest.raises(StorageError, match="damaged"):
        migrate_database(url_of(database))
    assert content(kept_of(database)) == OLD


@pytest.mark.usefixtures("later")
def test_nobody_else_gets_at_it_meanwhile(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither between the copy and the steps: what was written then would be missing in the copy."""
    make_older(database)
    monkeypatch.setattr(progress, "PROGRESS_SECONDS", 0.0)
    found: dict[str, str] = {}

    def tell(sentence: str) -> None:
        with closing(sqlite3.connect(database, timeout=0)) as other:
            try:
                found[sentence] = str(other.execute("SELECT count(*) FROM audit").fetchone())
            except sqlite3.OperationalError as error:
                found[sentence] = str(error)

    migrate_database(url_of(database), on_progress=tell)
    *meanwhile, after = found.values()
    assert len(meanwhile) > NEW.steps - OLD.steps
    assert set(meanwhile) == {"database is locked"}
    assert after == f"({ENTRIES},)"


@pytest.mark.usefixtures("later")
def test_progress_is_reported_where_it_takes_long(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing where it does not."""
    make_older(database)
    told: list[str] = []
    shutil.copy(database, database.with_name("again.db"))
    migrate_database(url_of(database), on_progress=told.append)
    assert told == []
    monkeypatch.setattr(progress, "PROGRESS_SECONDS", 0.0)
    migrate_database(url_of(database.with_name("again.db")), on_progress=told.append)
    work = "Bringing the database up to date: "
    assert all(sentence.startswith(work) and sentence.endswith(" s so far).") for sentence in told[:-1])
    wanted = ["copying, 100%", "checking the copy", "9001_large", "checking its integrity"]
    assert [what for what in wanted if any(what in sentence for sentence in told)] == wanted
    assert told[-1].startswith("The database is up to date (")


@pytest.mark.usefixtures("later")
@pytest.mark.anyio
async def test_a_process_that_dispatches_logs_how_far_it_is(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that is not there yet says why."""
    make_older(database)
    monkeypatch.setattr(progress, "PROGRESS_SECONDS", 0.0)
    with caplog.at_level(logging.INFO, "outreach"):
        async with SqliteStorage(database, clock=SystemClock()):
            pass
    lines = [record for record in caplog.records if getattr(record, "action", "") == "database_migrating"]
    assert "copying" in lines[0].message
    assert "up to date" in lines[-1].message
    assert not kept_of(database).exists()


@pytest.mark.usefixtures("later")
def test_who_has_it_open_is_reported_before_anything_is_copied(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of a database that is written meanwhile would be worth nothing."""
    make_older(database)
    monkeypatch.setattr(schema, "_LOG_SECONDS", 0.1)
    script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT 1 FROM audit').fetchone(); "
    waiting = [sys.executable, "-c", f"{script}print('here', flush=True); sys.stdin.read()", str(database)]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "here\n"
        with pytest.raises(DatabaseInUse):
            migrate_database(url_of(database))
        assert not kept_of(database).exists()
        other.communicate()
