"""Migrating, checking and naming PostgreSQL databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from outreach import ConfigError, NewWorkspace, Outreach
from outreach.core.clock import SystemClock
from outreach.database import backup_database, check_database, migrate_database, restore_database, shown_url
from outreach.errors import DatabaseInUse, DatabaseMissing, DatabaseNewer, DatabaseOlder, StorageError
from outreach.storage.opening import storage_from_url
from outreach.storage.postgres import PostgresStorage, pool, postgres_storage_from_url, schema
from outreach.storage.postgres.connect import OPEN_KEY, connect, conninfo_of
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_workspace
from outreach.testing.storage_tables.base_contract import given_recipients
from tests import postgres

UNSAFE_SERVER = [
    "The server runs with fsync = off: a power cut may lose or damage what was committed.",
    "The server runs with full_page_writes = off: a power cut may lose or damage what was committed.",
]
"""What a check says of the server of these tests."""


@pytest.fixture
def url() -> str:
    """A database that is as good as new."""
    return postgres.empty_database()


@pytest.fixture
def bare_url() -> Iterator[str]:
    """A database without the schema."""
    with postgres.server().database() as name:
        yield postgres.server().url(name)


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """One migration more than the database has."""
    postgres.template()
    more = {**schema.migrations(), "0098_more": "CREATE TABLE outreach.more (id BIGINT)"}
    monkeypatch.setattr(schema, "migrations", lambda: more)
    return more


def opened(url: str, *, create: bool = True, migrate: bool = True) -> PostgresStorage:
    """Return a storage, not yet entered."""
    return postgres_storage_from_url(url, clock=SystemClock(), create=create, migrate=migrate)


async def refuse(storage: PostgresStorage, error: type[StorageError], words: str) -> None:
    """Check that a storage cannot be opened, and why."""
    with pytest.raises(error, match=words):
        async with storage:
            pass


@pytest.mark.anyio
async def test_the_schema_is_made_where_it_is_asked_for(bare_url: str) -> None:
    """Two at once find the same one, and nothing else of the database is touched."""
    await refuse(opened(bare_url, create=False), DatabaseMissing, "has no schema `outreach`")
    with pytest.raises(DatabaseMissing):
        check_database(bare_url)
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(open_and_close(bare_url))
    name = bare_url.rpartition("/")[2]
    assert postgres.server().execute("SELECT name FROM outreach.migrations", name) == [
        (migration,) for migration in schema.migrations()
    ]
    assert postgres.server().execute("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'", name) == [(0,)]


async def open_and_close(url: str) -> None:
    """Open a database, and close it."""
    async with opened(url) as storage:
        await storage.read(lambda tx: tx.workspaces.list())


@pytest.mark.anyio
async def test_a_user_that_owns_the_schema_need_not_be_allowed_to_create_one(bare_url: str) -> None:
    """An administrator has made it, empty."""
    name = bare_url.rpartition("/")[2]
    postgres.server().execute(f"CREATE ROLE owner_{name} LOGIN")
    postgres.server().execute(f"CREATE SCHEMA outreach AUTHORIZATION owner_{name}", name)
    try:
        await open_and_close(bare_url.replace("postgres@", f"owner_{name}@"))
    finally:
        postgres.server().execute(f"DROP OWNED BY owner_{name}", name)
        postgres.server().execute(f"DROP ROLE owner_{name}")


@pytest.mark.anyio
async def test_a_database_from_before_the_first_migrations(url: str) -> None:
    """It is opened as it is if it has all that these replace, and otherwise refused with what to do."""
    name = url.rpartition("/")[2]
    replaced = ["0001_schema", "0052_lists_by_metadata", "0053_writers", "0054_workspace_versions"]
    postgres.server().execute("DELETE FROM outreach.migrations RETURNING name", name)
    for migration in replaced[:-1]:
        postgres.server().execute(f"INSERT INTO outreach.migrations VALUES ('{migration}', now()) RETURNING name", name)  # noqa: S608 - names of migrations
    for use in (migrate_database, check_database):
        with pytest.raises(DatabaseOlder, match="its last migration is 0053_writers, and 0054_workspace_versions"):
            use(url)
    await refuse(opened(url), DatabaseOlder, "Migrate it with the last version that has")
    postgres.server().execute(f"INSERT INTO outreach.migrations VALUES ('{replaced[-1]}', now()) RETURNING name", name)  # noqa: S608 - names of migrations
    assert check_database(url).pending_migrations == []
    await open_and_close(url)
    found = postgres.server().execute("SELECT name FROM outreach.migrations ORDER BY name", name)
    assert found == [(migration,) for migration in replaced]


@pytest.mark.anyio
async def test_an_older_database_is_migrated_by_its_only_user(url: str, newer: Mapping[str, str]) -> None:
    """Who does not dispatch leaves it alone, and so does everybody while another has it open."""
    with postgres.server().database(template=postgres.template()) as name:
        older = postgres.server().url(name)
        assert list(check_database(older).pending_migrations) == ["0098_more"]
        await refuse(opened(older, migrate=False), DatabaseOlder, "0098_more are pending")
        with pytest.MonkeyPatch.context() as patch:
            known = {name: script for name, script in newer.items() if name != "0098_more"}
            patch.setattr(schema, "migrations", lambda: known)
            async with opened(older):
                patch.undo()
                await refuse(opened(older), DatabaseInUse, "another process has it open")
        assert migrate_database(older) == ["0098_more"]
        assert migrate_database(older) == ()
        await open_and_close(older)


@pytest.mark.anyio
async def test_a_migration_that_fails_changes_nothing(
    newer: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pending ones are one transaction."""
    monkeypatch.setattr(schema, "migrations", lambda: {**newer, "0099_broken": "SELECT 1 / 0"})
    with postgres.server().database(template=postgres.template()) as name:
        with pytest.raises(StorageError, match="division by zero"):
            migrate_database(postgres.server().url(name))
        assert postgres.server().execute("SELECT to_regclass('outreach.more')", name) == [(None,)]


@pytest.mark.anyio
async def test_what_is_newer_or_foreign_is_refused(bare_url: str) -> None:
    """And not changed."""
    name = bare_url.rpartition("/")[2]
    postgres.server().execute("CREATE SCHEMA outreach CREATE TABLE theirs (id BIGINT)", name)
    await refuse(opened(bare_url), StorageError, "tables of something else")
    assert check_database(bare_url).problems[-1] == "The schema `outreach` holds the tables of something else."
    with postgres.server().database(template=postgres.template()) as newer:
        postgres.server().execute("INSERT INTO outreach.migrations VALUES ('0099_later', now())", newer)
        await refuse(opened(postgres.server().url(newer)), DatabaseNewer, "it has 0099_later")
        assert "0099_later" in check_database(postgres.server().url(newer)).problems[-1]


@pytest.mark.anyio
async def test_a_database_that_cannot_be_used_now_says_why(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not only that something was waited for."""
    with connect(conninfo_of(url)) as copying:
        copying.execute("SELECT pg_advisory_lock(%s)", (OPEN_KEY,))
        await refuse(opened(f"{url}?options=-c%20lock_timeout%3D50"), StorageError, "copies or migrates the database")
    monkeypatch.setattr(pool, "_CONFIGURE", pool._CONFIGURE.replace("NOT pg_is_in_recovery()", "pg_is_in_recovery()"))
    await refuse(opened(url), StorageError, "the server is a standby, which cannot be written")


@pytest.mark.anyio
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_does_not_take_every_text_is_refused(encoding: str) -> None:
    """An opt-out with an emoji could not be stored in it."""
    name = f"test_{encoding.lower()}"
    postgres.server().execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    try:
        await refuse(opened(postgres.server().url(name)), StorageError, f"in {encoding}, .* createdb --encoding=UTF8")
        assert postgres.server().execute("SELECT to_regnamespace('outreach')::text", name) == [(None,)]
    finally:
        postgres.server().execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.anyio
async def test_every_text_is_stored_whatever_a_role_or_an_environment_says(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoding of the connection is the engine's."""
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    async with opened(url) as storage:
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace(name="\N{THUMBS UP SIGN}")))
        [found] = await storage.read(lambda tx: tx.workspaces.list())
    assert found.name == "\N{THUMBS UP SIGN}"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("stored", "environment"),
    [
        ("datestyle = 'German'", "default"),
        ("intervalstyle = 'iso_8601'", "default"),
        ("array_nulls = 'off'", "default"),
        ("datestyle = 'ISO'", "German"),
    ],
)
async def test_times_and_arrays_are_read_whatever_a_role_or_an_environment_says(
    stored: str, environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause and an opt-out need the server's time."""
    monkeypatch.setenv("PGDATESTYLE", environment)
    with postgres.server().database(template=postgres.template()) as name:
        postgres.server().execute(f"ALTER DATABASE {name} SET {stored}")
        url = postgres.server().url(name)

        def values(tx: Transaction) -> list[object]:
            connection = tx.workspaces._rows.backend.connection  # type: ignore[attr-defined]
            query = "SELECT '2026-01-02 03:04:05+00'::timestamptz, '90 s'::interval, '{NULL}'::text[]"
            return [*connection.execute(query).fetchone()]

        async with opened(url) as storage:
            expected = [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), timedelta(seconds=90), [None]]
            assert await storage.write(values) == expected
            assert await storage.read(values) == expected
        with connect(conninfo_of(url)) as connection:
            assert connection.execute("SELECT now() - now(), now() > '-infinity'").fetchone() == (timedelta(), True)


@pytest.mark.anyio
async def test_limits_of_an_operator_end_no_session_and_no_statement() -> None:
    """Sessions that hold a worker's place or listen are silent for long. If one ended, its place would be free."""
    with postgres.server().database(template=postgres.template()) as name:
        limits = ("idle_session_timeout", "statement_timeout", "transaction_timeout")
        for limit in limits:
            postgres.server().execute(f"ALTER DATABASE {name} SET {limit} = '1s'")
        postgres.server().execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
        async with opened(postgres.server().url(name)) as storage:

            def settings(tx: Transaction) -> list[str]:
                connection = tx.workspaces._rows.backend.connection  # type: ignore[attr-defined]
                return [connection.execute(f"SHOW {one}").fetchone()[0] for one in (*limits, "transaction_isolation")]

            assert await storage.write(settings) == ["0", "0", "0", "read committed"]
        own = f"{postgres.server().url(name)}?options=-c%20transaction_timeout%3D7s"
        with connect(conninfo_of(own)) as connection:
            assert connection.execute("SHOW transaction_timeout").fetchone() == ("7s",)


@pytest.mark.anyio
async def test_a_check_reads_all_rows_and_finds_what_does_not_fit(url: str) -> None:
    """A quick one looks at the server and its indexes only."""
    async with opened(url) as storage:
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))
        campaign = await given_recipients(storage, 3)
        # Beside a server: it only reads.
        found = check_database(url)
    assert found.problems == UNSAFE_SERVER
    assert found.size > 100_000
    name = url.rpartition("/")[2]
    for spoiled in (
        "UPDATE outreach.campaign_counts SET count = 7",
        "UPDATE outreach.campaigns SET recipients_open = 7",
        "DELETE FROM outreach.campaign_names",
        "INSERT INTO outreach.trail (number, at, workspace_id, what, rule, repeats) VALUES (9, '', '', '', '', 0)",
    ):
        postgres.server().execute(spoiled, name)
    assert check_database(url, quick=True).problems == UNSAFE_SERVER
    assert check_database(url).problems == [
        *UNSAFE_SERVER,
        f"The number of campaigns of {campaign.workspace_id} is not that of its list.",
        f"The counters of campaign {campaign.id} are not those of its recipients.",
        f"Campaign {campaign.id} is not in the index of names.",
        "Entry 9 of the trail has a higher number than the last that was given.",
    ]


def test_what_works_on_files_says_what_to_use_instead(tmp_path: Path) -> None:
    """No file is written."""
    with pytest.raises(ConfigError, match=r"pg_dump --schema='outreach\*'"):
        backup_database("postgresql://host/db", tmp_path / "backup")
    with pytest.raises(ConfigError, match="pg_restore"):
        restore_database("postgresql://host/db", tmp_path / "backup")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://host", "names no database"),
        ("postgresql://user:secret@host/db?no_such_option=1", "not valid"),
        ("postgresql://user:secret@[host/db", "not valid"),
        ("postgresql://user:%secret@host/db", "not valid"),
        ("postgresql://user:my secret@host/db", "not valid"),
        ("mysql://host/db", "names no database"),
        ("postgresql+psycopg://user:secret@host/db", "'postgresql.psycopg://host/db' names no database"),
        ("mysql://user:my?secret@host/db?password=secret", "'mysql://host/db' names no database"),
        ("user:secret@host/db", "'host/db' names no database"),
    ],
)
def test_a_url_that_names_no_database_is_refused(url: str, words: str) -> None:
    """Without its password in the message."""
    with pytest.raises(ConfigError, match=words) as caught:
        storage_from_url(url, clock=SystemClock())
    assert "secret" not in caught.value.message


@pytest.mark.anyio
async def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    """Nor the user."""
    storage = opened("postgresql://anna:secret@127.0.0.1:1/db")
    with pytest.raises(StorageError, match=r"The database 'db' at 127\.0\.0\.1:1 cannot be reached") as caught:
        async with storage:
            pass
    assert "secret" not in caught.value.message


@pytest.mark.anyio
async def test_a_refused_connection_says_what_to_do() -> None:
    """The driver does not tell whether the database is missing, or a connection."""
    words = r"If it does not exist, create it \(createdb\)\. If no connection is left, .*FATAL: .*does not exist"
    missing = postgres.server().url("no_such_database")
    await refuse(opened(missing), StorageError, words)
    with pytest.raises(StorageError, match=words):
        check_database(missing)


def test_a_url_is_shown_without_user_and_password() -> None:
    """Nor options, which may hold them too."""
    assert shown_url("postgresql://anna:p%40ss@host:5432/db?password=x") == "postgresql://host:5432/db"
    assert shown_url("postgresql:///db") == "postgresql:///db"
    assert shown_url("sqlite:///outreach.db") == "sqlite:///outreach.db"


@pytest.mark.anyio
async def test_credentials_need_a_key_that_every_process_has(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that this process makes up would be lost with it."""
    monkeypatch.delenv("OUTREACH_SECRET_KEY", raising=False)
    async with Outreach.open(url, dispatch=False) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        with pytest.raises(ConfigError, match="set OUTREACH_SECRET_KEY"):
            await engine.accounts.connect(
                workspace.id, "twilio", {"account_sid": "AC" + "1" * 32, "auth_token": "t" * 32}
            )
