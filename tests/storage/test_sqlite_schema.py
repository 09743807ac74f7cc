from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from sqlite_utils import Database

from outreach.backends import pending_sqlite_migrations
from outreach.core.clock import SystemClock
from outreach.database import check_database, migrate_database
from outreach.errors import DatabaseNewer, DatabaseOlder, StorageError
from outreach.storage.base.schema import FIRST
from outreach.storage.sqlite import SqliteStorage, schema
from outreach.storage.sqlite import storage as connect
from outreach.storage.sqlite.diagnosis import diagnose_file
from tests.migrations import LATER, later_version, record_migrations
from tests.storage.sqlite_support import dispatch, opened, set_up, subjects

pytestmark = pytest.mark.anyio


def storage_at(path: Path) -> SqliteStorage:
    """Return a storage that is not open."""
    return SqliteStorage(path, clock=SystemClock())


async def open_and_close(path: Path) -> None:
    """Open a storage and close it."""
    async with storage_at(path):
        pass


def write_diary(path: Path) -> None:
    """Write a file that is no database."""
    path.write_text("Dear diary, " * 500)


def modes_in(directory: Path) -> dict[str, int]:
    """Return the modes of the files in a directory."""
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}


def digest(path: Path) -> str:
    """Return what tells whether a file has changed."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_a_database_newer_than_the_code_is_refused_and_left_alone(database: Path) -> None:
    """The message names what is not known, and the file is the same, byte for byte."""
    async with storage_at(database):
        pass
    with opened(database) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('outreach', '9999_later', 'x')"
        )
    before = digest(database)
    with pytest.raises(DatabaseNewer, match="9999_later"):
        await storage_at(database).__aenter__()
    assert digest(database) == before
    assert os.listdir(database.parent) == [database.name]


SINCE = (
    "0031_history_of_numbers",
    "0033_uploads",
    "0034_call_details",
    "0035_replace_characters",
    "0036_last_receipts",
    "0037_users",
    "0038_kept_forecasts",
    "0039_open_campaigns",
    "0040_operator_decisions",
    "0041_unreachable_numbers",
    "0042_contact_places",
    "0043_metadata",
    "0044_sender_pools",
    "0045_start_approvals",
    "0046_use_of_keys",
    "0047_schedules",
    "0048_schedules_in_trail",
    "0049_stops_of_workspaces",
    "0050_webhooks",
    "0051_exports_of_managers",
    "0052_lists_by_metadata",
)

REPLACED = (("0001_schema", *SINCE), ("0001_first", "0002_early_events", "0030_inbound_media", *SINCE))
"""The migrations that files name which have all replaced ones: a file made with `0001_schema`, and an earlier one."""


@pytest.mark.parametrize("replaced", REPLACED)
async def test_a_database_with_all_replaced_migrations_is_opened_as_it_is(
    database: Path, replaced: Sequence[str]
) -> None:
    """Nothing is written, so that the version that made it opens it too; a later migration takes it along."""
    async with storage_at(database) as storage:
        await storage.write(set_up)
    record_migrations(database, *replaced)
    assert check_database(f"sqlite:///{database}").pending_migrations == []
    async with SqliteStorage(database, clock=SystemClock(), migrate=False) as storage:
        assert await storage.read(lambda tx: tx.workspaces.get("w1"))
        assert (await storage.read(lambda tx: tx.leases.versions()))[1] == FIRST[-1]
    with opened(database) as raw:
        assert raw.execute("SELECT name FROM _sqlite_migrations").fetchall() == [(name,) for name in replaced]
    with later_version():
        assert migrate_database(f"sqlite:///{database}") == [LATER]
        assert migrate_database(f"sqlite:///{database}") == []
        async with storage_at(database) as storage:
            assert await storage.read(lambda tx: tx.workspaces.get("w1"))


def test_a_storage_with_records_of_its_own_applies_what_is_pending() -> None:
    """All first migrations, or none if it has the ones that they replace; it is refused as a file is."""
    assert (*pending_sqlite_migrations([]),) == FIRST
    for replaced in (*REPLACED, FIRST):
        assert pending_sqlite_migrations(replaced) == {}
    with pytest.raises(DatabaseOlder, match="0052_lists_by_metadata is needed"):
        pending_sqlite_migrations(REPLACED[0][:-1])
    with pytest.raises(DatabaseNewer, match="9999_later"):
        pending_sqlite_migrations([*FIRST, "9999_later"])


@pytest.mark.parametrize("recorded", [REPLACED[0][:-1], REPLACED[1][:-1], REPLACED[0][:1]])
async def test_a_database_that_lacks_some_of_them_is_refused_and_left_alone(
    database: Path, recorded: Sequence[str]
) -> None:
    """The message says which version migrates it."""
    await open_and_close(database)
    record_migrations(database, *recorded)
    before = digest(database)
    for use in (migrate_database, check_database):
        with pytest.raises(DatabaseOlder, match=f"its last migration is {recorded[-1]}, and 0052_lists_by_metadata"):
            use(f"sqlite:///{database}")
    with pytest.raises(DatabaseOlder, match="Migrate it with the last version that has"):
        await open_and_close(database)
    [finding] = diagnose_file(database)
    assert (finding.code, recorded[-1] in finding.message) == ("database_not_usable", True)
    assert digest(database) == before


async def test_the_migrations_of_others_in_our_file_are_none_of_ours(database: Path) -> None:
    """Who opens the file may keep tables of their own in it, with sqlite-utils too."""
    async with storage_at(database):
        pass
    with opened(database) as other:
        other.execute("CREATE TABLE notes (text TEXT)")
        other.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('notes', '0001', 'x')")
    async with storage_at(database) as storage:
        assert await storage.read(subjects) == []


async def test_somebody_elses_database_is_refused_and_left_alone(database: Path) -> None:
    """Tables and none of ours: it is another application's."""
    with opened(database) as other:
        other.execute("CREATE TABLE customers (name TEXT)")
    before = digest(database)
    with pytest.raises(StorageError, match="tables of something else"):
        await storage_at(database).__aenter__()
    assert digest(database) == before
    assert os.listdir(database.parent) == [database.name]


async def test_a_file_that_is_no_database_is_refused_and_left_alone(database: Path) -> None:
    """Whatever it is."""
    write_diary(database)
    before = digest(database)
    with pytest.raises(StorageError, match=r"outreach\.db.*no SQLite database"):
        await storage_at(database).__aenter__()
    assert digest(database) == before


async def test_a_file_in_no_directory_is_refused(tmp_path: Path) -> None:
    """The message says what has to be there."""
    with pytest.raises(StorageError, match="directory must exist"):
        await storage_at(tmp_path / "absent" / "outreach.db").__aenter__()


async def test_a_directory_is_refused(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(StorageError, match="cannot be opened"):
        await storage_at(tmp_path).__aenter__()


async def test_a_copy_has_the_identity_of_its_original_and_a_new_file_another(database: Path) -> None:
    """It is given once, when the file is made."""

    async def identity(path: Path) -> str:
        async with storage_at(path) as storage:
            return await storage.read(lambda tx: tx.leases.database_id())

    first = await identity(database)
    assert await identity(database) == first
    shutil.copy(database, database.with_name("copy.db"))
    assert await identity(database.with_name("copy.db")) == first
    assert await identity(database.with_name("another.db")) != first


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
async def test_only_the_owner_may_read_a_new_file(database: Path) -> None:
    """The files beside it neither: all hold people's numbers."""
    async with storage_at(database) as storage:
        await storage.write(set_up)
        modes = modes_in(database.parent)
    assert modes == {database.name: 0o600, f"{database.name}-wal": 0o600, f"{database.name}-shm": 0o600}


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
async def test_the_mode_of_a_file_that_is_there_is_its_owners_choice(database: Path) -> None:
    """An empty file is made ours and keeps its mode."""
    os.close(os.open(database, os.O_CREAT, 0o640))
    async with storage_at(database):
        assert modes_in(database.parent)[database.name] == 0o640


async def test_two_that_open_a_new_file_at_once_both_succeed(database: Path) -> None:
    """One creates the tables, the other finds them."""
    storages = [storage_at(database) for _ in range(4)]
    await asyncio.gather(*(storage.__aenter__() for storage in storages))
    try:
        assert [await storage.read(subjects) for storage in storages] == [[]] * 4
    finally:
        for storage in storages:
            await storage.__aexit__(None, None, None)
    with opened(database) as other:
        recorded = other.execute("SELECT name FROM _sqlite_migrations ORDER BY id").fetchall()
    assert recorded == [(name,) for name in schema.migrations()]


async def test_who_looks_into_a_new_file_is_waited_for(database: Path) -> None:
    """The file is made ours once nobody else is in the midst of reading it."""
    with opened(database) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM sqlite_master").fetchall()
        opening = asyncio.create_task(open_and_close(database))
        await asyncio.sleep(0.1)
        assert not opening.done()
        other.execute("ROLLBACK")
        await opening


async def test_a_process_that_never_releases_a_new_file_is_an_error(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait has an end, and the error says what is the matter."""
    monkeypatch.setattr(schema, "_LOG_SECONDS", 0.1)
    monkeypatch.setattr(connect, "BUSY_SECONDS", 0.05)
    with opened(database) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM sqlite_master").fetchall()
        with pytest.raises(StorageError, match="locked by another process"):
            await open_and_close(database)


async def test_a_migration_that_fails_leaves_nothing(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change and its record are one transaction; after the repair it is applied."""
    failing = {"0001_first": "CREATE TABLE half (a);\nCREATE TABLE half (a);\n"}
    with monkeypatch.context() as patched:
        patched.setattr(schema, "scripts", lambda: failing)
        with pytest.raises(StorageError, match="half already exists"):
            await storage_at(database).__aenter__()
    with opened(database) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == []
    async with storage_at(database) as storage:
        assert await storage.read(subjects) == []


async def test_a_later_migration_is_applied_to_a_database_with_content(database: Path) -> None:
    """Forward, once, and recorded; the older code then refuses it."""
    async with storage_at(database) as storage:
        await storage.write(set_up)
    with later_version({"9001_second": "ALTER TABLE workspaces ADD COLUMN nickname TEXT"}):
        for _ in range(2):
            async with storage_at(database) as storage:
                assert await storage.read(lambda tx: tx.workspaces.get("w1"))
    assert "nickname" in Database(database)["workspaces"].columns_dict
    with pytest.raises(DatabaseNewer, match="9001_second"):
        await storage_at(database).__aenter__()


def test_statements_are_taken_apart_where_they_end() -> None:
    """A semicolon in a text or a comment ends nothing."""
    script = "-- one; comment\nCREATE TABLE a (b DEFAULT ';');\n\nINSERT INTO a\nVALUES ('x;\ny');\n"
    assert [part.strip() for part in schema.statements(script)] == [
        "-- one; comment\nCREATE TABLE a (b DEFAULT ';');",
        "INSERT INTO a\nVALUES ('x;\ny');",
    ]


async def test_every_table_is_strict_and_every_reference_holds(sqlite_storage: SqliteStorage, database: Path) -> None:
    """A wrong type or a dangling reference is refused by the file itself."""
    await sqlite_storage.write(lambda tx: set_up(tx, recipients=1, dispatches=[dispatch()]))
    with opened(database) as other:
        loose = other.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict"
        ).fetchall()
        assert {name for (name,) in loose} - {"_sqlite_migrations"} == {"sqlite_schema", "sqlite_sequence"}
        assert other.execute("PRAGMA foreign_key_check").fetchall() == []
    with pytest.raises(LookupError, match="refers to something"):
        await sqlite_storage.write(lambda tx: tx.dispatches.insert(dispatch("d2", position=7, step=1)))
    with opened(database) as other, pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
        other.execute("UPDATE dispatches SET campaign_number = NULL")


async def test_the_file_reads_well_in_sqlite_utils(sqlite_storage: SqliteStorage, database: Path) -> None:
    """Plain names, texts and foreign keys: what a person sees who opens it."""
    await sqlite_storage.write(lambda tx: set_up(tx, recipients=2))
    file = Database(database)
    try:
        [progress] = file["campaign_progress"].rows
        assert {"workspace": "Acme", "name": "Campaign c1", "status": "ready"}.items() <= progress.items()
        assert progress["created_at"] == "2026-11-20T16:10:25.123456Z"
        [outcome] = file["recipient_outcomes"].rows
        assert (outcome["campaign"], outcome["status"], outcome["recipients"]) == ("Campaign c1", "pending", 2)
        assert {(key.column, key.other_table) for key in file.table("campaigns").foreign_keys} == {
            ("workspace_id", "workspaces"),
            ("agent_id", "agents"),
            ("trunk_id", "trunks"),
            ("flow_id", "flows"),
        }
        assert [row["phone"] for row in file["recipients"].rows] == ["+14155550000", "+14155550001"]
    finally:
        file.close()


async def test_trio_is_told_apart(database: Path) -> None:
    """Under another loop the storage says what it needs instead of failing somewhere inside."""

    def open_under_no_asyncio() -> None:
        with pytest.raises(StorageError, match="asyncio"):
            storage_at(database).__aenter__().send(None)

    await anyio.to_thread.run_sync(open_under_no_asyncio)
    assert os.listdir(database.parent) == []


async def test_the_settings_of_the_connections(sqlite_storage: SqliteStorage) -> None:
    """What is committed is on the disk; references are checked; readers cannot write."""

    def settings(tx: object) -> dict[str, object]:
        connection: sqlite3.Connection = tx.audit._rows.backend.connection  # type: ignore[attr-defined]
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "query_only")
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

    common = {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 200}
    full = 2
    assert await sqlite_storage.write(settings) == {**common, "synchronous": full, "query_only": 0}
    assert await sqlite_storage.read(settings) == {**common, "synchronous": full, "query_only": 1}
