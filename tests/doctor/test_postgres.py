"""A PostgreSQL database: its server, its schema, its connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from outreach import EngineConfig, Outreach
from outreach.database import diagnose_database
from outreach.errors import StorageError
from outreach.ledger.leases import leases
from outreach.models.work import DatabaseHome
from outreach.storage.postgres import diagnosis, schema
from outreach.storage.postgres.connect import connect, conninfo_of
from tests import postgres
from tests.doctor.system import somebody_dispatches

UNSAFE = ["server_setting_unsafe", "server_setting_unsafe"]
"""The server of these tests may forget what it was told in a power cut."""


@pytest.fixture
def url() -> str:
    """A database that is as good as new."""
    return postgres.empty_database()


@pytest.fixture
def bare_url() -> Iterator[str]:
    """A database without the schema."""
    with postgres.server().database() as name:
        yield postgres.server().url(name)


@contextmanager
def changed(url: str, change: LiteralString, back: LiteralString) -> Iterator[None]:
    """Change what other tests with this database do not empty, and change it back."""
    with connect(conninfo_of(url)) as connection:
        connection.execute(change)
        try:
            yield
        finally:
            connection.execute(back)


def codes(url: str) -> Sequence[str]:
    """Return what is found, without what the server of these tests is."""
    found = diagnose_database(url)
    assert all((one.commands or one.looks) and one.path for one in found)
    every = [one.code for one in found]
    if "database_not_usable" not in every:
        assert every[:2] == UNSAFE
    return [code for code in every if code not in UNSAFE]


def test_a_new_database_is_well(url: str) -> None:
    """But for the server's settings, which name what fixes them."""
    assert codes(url) == []
    first = diagnose_database(url)[0]
    assert first.commands[0].endswith("-c 'ALTER SYSTEM SET fsync = on'")


def test_a_server_that_does_not_answer_is_not_usable() -> None:
    """Without user and password."""
    [found] = diagnose_database("postgresql://me:secret@127.0.0.1:1/nothing")
    assert (found.code, found.severity) == ("database_not_usable", "critical")
    assert "secret" not in str(found)


def test_a_database_without_the_schema_is_missing(bare_url: str) -> None:
    """It is made by the first process that may."""
    assert codes(bare_url) == ["database_missing"]


@contextmanager
def ordinary(url: str, *statements: str) -> Iterator[str]:
    """Give the URL of a role that has been granted this and no more."""
    name = url.rpartition("/")[2]
    postgres.server().execute(f"CREATE ROLE ordinary_{name} LOGIN")
    try:
        for statement in statements:
            postgres.server().execute(f"{statement} TO ordinary_{name}", name)
        yield url.replace("postgres@", f"ordinary_{name}@")
    finally:
        postgres.server().execute(f"DROP OWNED BY ordinary_{name}", name)
        postgres.server().execute(f"DROP ROLE ordinary_{name}")


def test_the_right_that_a_user_lacks_to_make_the_schema_is_named(bare_url: str) -> None:
    """It is granted first: the command alone would fail. The error of that command names it, too."""
    name = bare_url.rpartition("/")[2]
    grant = f"GRANT CREATE ON DATABASE {name} TO ordinary_{name}"
    with ordinary(bare_url) as url:
        [found] = [one for one in diagnose_database(url) if one.code not in UNSAFE]
        assert (found.code, "may not make the schema" in found.message) == ("database_missing", True)
        assert grant in found.commands[0]
        assert "workspaces create" in found.commands[1]
        with connect(conninfo_of(url)) as connection, pytest.raises(StorageError, match=f"run: {grant}"):
            schema.apply_migrations(connection)
        postgres.server().execute(grant)
        with connect(conninfo_of(url)) as connection:
            assert schema.apply_migrations(connection)


@pytest.mark.anyio
async def test_a_user_who_does_not_own_the_schema_is_told_so(url: str) -> None:
    """By the error, and by what shows the owner."""
    with ordinary(url, "GRANT USAGE ON SCHEMA outreach") as other:
        [found] = diagnose_database(other)
        assert (found.code, "must own the schema" in found.message) == ("database_not_usable", True)
        assert r"-c '\dn outreach'" in found.looks[1]
        with pytest.raises(StorageError, match="Name their owner in the database's URL"):
            async with Outreach.open(other, config=EngineConfig()):
                pass


def test_a_schema_that_the_url_names_does_not_hide_the_tables(url: str) -> None:
    """Its options count more in all else."""
    assert codes(f"{url}?options=-csearch_path%3Dpublic") == []
    with connect(conninfo_of(f"{url}?options=-csearch_path%3Dpublic%20-clock_timeout%3D7s")) as connection:
        assert connection.execute("SELECT current_schemas(false), current_setting('lock_timeout')").fetchall() == [
            (["outreach"], "7s")
        ]


def test_versions_of_the_schema_are_reported(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older, newer, and somebody else's."""
    more = {**schema.migrations(), "9999_more": "SELECT 1"}
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: more)
        assert codes(url) == ["database_older"]
    with changed(
        url,
        "INSERT INTO migrations (name, applied_at) VALUES ('9999_more', now())",
        "DELETE FROM migrations WHERE name = '9999_more'",
    ):
        assert codes(url) == ["database_newer"]


def test_an_index_that_is_not_valid_is_reported(url: str) -> None:
    """An interrupted `CREATE INDEX CONCURRENTLY` leaves one."""
    update = (
        "UPDATE pg_index SET indisvalid = {} WHERE indexrelid = (SELECT MIN(indexrelid) FROM pg_index "
        "JOIN pg_class ON pg_class.oid = indrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace "
        "WHERE nspname = 'outreach' AND NOT indisprimary)"
    )
    with changed(url, update.format("false"), update.format("true")):
        assert codes(url) == ["index_not_valid"]


def test_few_connections_and_an_old_server_are_reported(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the bounds of this package."""
    monkeypatch.setattr(diagnosis, "FEW_CONNECTIONS", 1_000)
    monkeypatch.setattr(diagnosis, "OLDEST_SERVER", 990_000)
    found = [one.code for one in diagnose_database(url)]
    assert sorted(set(found)) == ["connections_low", "server_old", "server_setting_unsafe"]


def test_connections_of_other_roles_are_counted(bare_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a role that may not see what they do."""
    allowed = 200 - 3
    with ordinary(bare_url) as url, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(connect(conninfo_of(bare_url)))
        monkeypatch.setattr(diagnosis, "FEW_CONNECTIONS", allowed - 3)
        [found] = [one for one in diagnose_database(url) if one.code == "connections_low"]
        assert f"of the server's {allowed} connections" in found.message


@pytest.mark.parametrize("begin", ["BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN; SELECT pg_current_xact_id()"])
def test_an_old_transaction_is_reported(url: str, monkeypatch: pytest.MonkeyPatch, begin: str) -> None:
    """With its process and program, if it reads from a snapshot or has written something."""
    monkeypatch.setattr(diagnosis, "OLD_TRANSACTION", timedelta())
    with psycopg.connect(url, autocommit=True, application_name="pg_dump") as other:
        other.execute("BEGIN")
        assert codes(url) == []
        other.execute("ROLLBACK")
        other.execute(begin)
        other.execute("SELECT 1")
        [found] = [one for one in diagnose_database(url) if one.code == "transaction_old"]
        assert (
            f"of pg_dump (process {other.info.backend_pid} of the server) has been open for 0 minutes" in found.message
        )
    assert codes(url) == []


@contextmanager
def read_only(url: str) -> Iterator[tuple[str, str]]:
    """Give a URL of connections that take no writes, and words of the cause."""
    yield f"{url}?options=-c%20default_transaction_read_only%3Don", "default_transaction_read_only is on"


@contextmanager
def full(url: str) -> Iterator[tuple[str, str]]:
    """Have each write of a worker fail as on a full disk."""
    with changed(
        url,
        "CREATE FUNCTION fail_full() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$; "
        "CREATE TRIGGER full_disk BEFORE UPDATE ON fence EXECUTE FUNCTION fail_full()",
        "DROP TRIGGER full_disk ON fence; DROP FUNCTION fail_full()",
    ):
        yield url, "The disk of the database server is full. Make room"


@pytest.mark.anyio
@pytest.mark.parametrize("refusing", [read_only, full])
async def test_a_server_that_takes_no_writes_is_named(
    url: str, refusing: Callable[[str], AbstractContextManager[tuple[str, str]]]
) -> None:
    """Not that another process is to be started, which could not send either."""
    with refusing(url) as (refused, words):
        assert [one.code for one in diagnose_database(refused)] == ["database_not_writable", *UNSAFE]
        async with Outreach.open(refused, config=EngineConfig()) as engine:
            [found] = [one for one in (await engine.diagnose(network=False)).findings if one.code not in UNSAFE]
            assert (found.code, words in found.message) == ("database_not_writable", True)
            [finding] = (await engine.status()).findings
            assert (finding.code, words in finding.message, finding.commands) == ("no_dispatcher", True, ())


def test_the_look_for_refused_writes_changes_nothing(url: str) -> None:
    """And does not wait for a transaction that writes."""
    with connect(conninfo_of(url)) as connection, connection.transaction():
        before = connection.execute("SELECT *, xmin FROM fence FOR UPDATE").fetchall()
        assert codes(url) == []
        connection.execute("COMMIT; BEGIN")
        assert codes(url) == []
        assert connection.execute("SELECT *, xmin FROM fence").fetchall() == before


@pytest.mark.anyio
async def test_the_engine_finds_the_same(url: str) -> None:
    """And what its data say."""
    async with Outreach.open(url, config=EngineConfig()) as engine:
        found = await engine.diagnose(network=False)
        assert [one.code for one in found.findings] == [*UNSAFE, "no_dispatcher"]
        await engine._storage.write(somebody_dispatches)
        assert [one.code for one in (await engine.diagnose()).findings] == UNSAFE
        await engine._storage.write(lambda tx: leases.end_worker(tx, 1))
        assert (await engine.status()).dispatching.by == "no_process"


@pytest.mark.anyio
async def test_a_missing_state_directory_is_reported(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that cannot write its note sends nothing."""
    monkeypatch.setenv("OUTREACH_STATE_DIR", str(tmp_path / "state"))
    async with Outreach.open(url, config=EngineConfig()) as engine:
        await engine._storage.write(somebody_dispatches)
        found = [one for one in (await engine.diagnose(network=False)).findings if one.code not in UNSAFE]
    assert [(one.code, one.path) for one in found] == [("database_not_writable", str(tmp_path / "state"))]


@pytest.mark.anyio
async def test_a_server_has_no_disk_of_this_machine(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has the database's name in the current directory is something else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / url.rpartition("/")[2]).mkdir()
    async with Outreach.open(url, config=EngineConfig()) as engine:
        assert (await engine.status()).disk is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("server", "words"), [("postgresql", "had the name 'other' when"), ("postgresql-1", "was on another server when")]
)
async def test_where_a_database_on_a_server_was_is_said(url: str, server: str, words: str) -> None:
    """It has no path, and may be a copy on the same server."""
    known = DatabaseHome.on_server(server=server, database="other", objects="1-2", timeline="1")
    async with Outreach.open(url, config=EngineConfig()) as engine:
        await engine._storage.write(lambda tx: tx.leases.set_home(known))
        [found] = [one for one in (await engine.diagnose(network=False)).findings if one.code == "database_moved"]
        assert f"The database {words} a process last dispatched from it" in found.message
