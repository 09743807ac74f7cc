"""Two databases hold one ledger: whatever made the second one, it does not send what the first one sends.

docs/backups.md#two-databases-with-one-ledger lists the ways.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from pathlib import Path

import attrs
import pytest

from outreach import Outreach, SimulatorConfig, WorkspaceUpdate
from outreach.database import (
    backup_database,
    compact_database,
    copy_database,
    reclaim_database,
    restore_database,
)
from outreach.errors import StorageError
from outreach.storage.sqlite.copying import mark_as_archive
from tests import postgres
from tests.engine.rig import QUICK, given_workspace, reaches, start_campaign, until, until_true

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).resolve().parents[2] / "docs/backups.md"


@attrs.frozen(kw_only=True)
class Ledger:
    """A database, and the log of what was sent.

    Attributes:
        url: The database's URL.
        directory: Where files may lie.
    """

    url: str
    directory: Path

    @property
    def name(self) -> str:
        """The database's name on its server."""
        return self.url.rpartition("/")[2]

    @property
    def file(self) -> Path:
        """The database's file."""
        return Path(self.url.removeprefix("sqlite:///"))

    def engine(self) -> Outreach:
        """Return an engine that dispatches from it."""
        simulator = SimulatorConfig(log_file=self.directory / "sent.jsonl", latency_ms=1.0)
        return Outreach.open(self.url, dispatch=True, config=QUICK, simulator=simulator)

    def sent(self) -> int:
        """Return how many messages were sent, from whatever database."""
        log = self.directory / "sent.jsonl"
        return len(log.read_text().splitlines()) if log.exists() else 0

    async def send_some(self) -> None:
        """Send a part of a campaign, and stop."""
        async with self.engine() as engine:
            workspace = await given_workspace(engine)
            await start_campaign(engine, workspace, 20)
            before = self.sent()
            await until_true(lambda: self.sent() > before + 2)

    async def reason_of_pause(self) -> str | None:
        """Dispatch from it, and return why its campaign was paused; nothing of that campaign is sent."""
        before = self.sent()
        async with self.engine() as engine:
            status = await engine.status()
            assert not status.running
            [reason] = {paused.reason for paused in status.paused}
            # It works, and sends what is asked for now.
            [workspace, *_] = await engine.workspaces.list()
            campaign = await start_campaign(engine, workspace, 1)
            await reaches(engine, campaign, "completed")
            assert self.sent() == before + 1
            return reason

    async def goes_on(self) -> None:
        """Dispatch from it: it goes on with its campaign by itself."""
        before = self.sent()
        async with self.engine() as engine:
            await until_true(lambda: self.sent() > before)
            assert not (await engine.status()).paused

    async def refusal(self) -> str | None:
        """Dispatch from it, and return in one word why it does not; nothing is sent."""
        before = self.sent()
        async with self.engine() as engine:
            assert engine.health().state == "refused"
            assert not (await engine.readiness()).ready
            assert self.sent() == before
            return engine.health().refused_reason

    def at(self, file: Path) -> Ledger:
        """Return the same with another file."""
        return attrs.evolve(self, url=f"sqlite:///{file}")


@pytest.fixture
async def ledger(tmp_path: Path) -> Ledger:
    """Return a file of which a part of a campaign was sent."""
    made = Ledger(url=f"sqlite:///{tmp_path / 'outreach.db'}", directory=tmp_path)
    await made.send_some()
    return made


def _copied_file(ledger: Ledger) -> Ledger:
    return ledger.at(Path(shutil.copy(ledger.file, ledger.directory / "copy.db")))


def _backup(ledger: Ledger) -> Ledger:
    backup_database(ledger.url, ledger.directory / "backup.db")
    return ledger.at(ledger.directory / "backup.db")


def _kept_by_restore(ledger: Ledger) -> Ledger:
    backup = _backup(ledger).file
    kept = restore_database(ledger.url, backup).replaced_database
    assert kept is not None
    return ledger.at(kept)


def _restored(ledger: Ledger) -> Ledger:
    restore_database(ledger.url, _backup(ledger).file)
    return ledger


def _kept_by_compact(ledger: Ledger) -> Ledger:
    kept = compact_database(ledger.url).replaced_database
    assert kept is not None
    return ledger.at(kept)


def _target_of_copy(ledger: Ledger) -> Ledger:
    target = ledger.at(ledger.directory / "target.db")
    copy_database(ledger.url, target.url)
    return target


FILES: dict[str, Callable[[Ledger], Ledger]] = {
    "a backup that is opened where it lies": _backup,
    "a file that was copied elsewhere": _copied_file,
    "`db restore`: the database": _restored,
    "`db restore`: what was kept": _kept_by_restore,
    "`db compact`: what was kept": _kept_by_compact,
    "`db copy`: the target": _target_of_copy,
}
"""Ways to a second file, by their names in the table."""


@pytest.mark.parametrize("way", FILES)
async def test_a_second_file_starts_paused(ledger: Ledger, way: str) -> None:
    """docs/delivery-contract.md#rule-10: and the first one goes on, unless it is the one that was replaced."""
    second = FILES[way](ledger)
    assert await second.reason_of_pause() == ("restored" if second == ledger else "moved")


async def test_a_file_on_another_machine_starts_paused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the same path there, with everything that lies beside it."""
    monkeypatch.setenv("OUTREACH_HOST_ID", "another-machine")
    assert await ledger.reason_of_pause() == "moved"


async def test_the_source_of_db_copy_is_not_dispatched_from(ledger: Ledger) -> None:
    """`status` and `diagnose` say where the data went, and recommend no server on it; a restart changes nothing."""
    target = _target_of_copy(ledger)
    for _ in range(2):
        assert await ledger.refusal() == "copied"
    async with Outreach.open(ledger.url) as engine:
        [finding] = [one for one in (await engine.status()).findings if one.code == "no_dispatcher"]
        assert target.url in finding.message
        assert not finding.commands
        found = {one.code: one for one in (await engine.diagnose()).findings}
        assert target.url in found["database_copied"].message
        assert not [one for one in found.values() if "outreach-server serve" in one.commands]


async def test_the_source_of_db_copy_starts_paused_where_an_operator_takes_it_back(ledger: Ledger) -> None:
    """Once: then it is a database like any other."""
    target = _target_of_copy(ledger)
    assert reclaim_database(ledger.url) == target.url
    assert await ledger.reason_of_pause() == "moved"
    assert reclaim_database(ledger.url) is None


async def test_a_backup_of_the_source_of_db_copy_is_not_dispatched_from_either(ledger: Ledger) -> None:
    """What is restored after the copy is a second database, too."""
    _target_of_copy(ledger)
    assert await _restored(ledger).refusal() == "copied"


async def test_a_copy_of_a_copy_starts_paused(ledger: Ledger) -> None:
    """The source may be copied again, as where the first copy was lost."""
    _target_of_copy(ledger)
    again = ledger.at(ledger.directory / "again.db")
    copy_database(ledger.url, again.url)
    assert await again.reason_of_pause() == "moved"


async def test_an_archive_is_not_dispatched_from(ledger: Ledger) -> None:
    """It holds contacts of the database, and is refused by whatever would send."""
    archive = _backup(ledger)
    with closing(sqlite3.connect(archive.file)) as raw:
        mark_as_archive(raw)
    with pytest.raises(StorageError, match="is an archive"):
        async with archive.engine():
            pass


# ------------------------------------------------------------------------------------------------------- PostgreSQL


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Return a PostgreSQL database of which a part of a campaign was sent."""
    with postgres.server().database(template=postgres.template()) as name:
        made = Ledger(url=postgres.server().url(name), directory=tmp_path)
        await made.send_some()
        yield made


@pytest.fixture
def dump(database: Ledger) -> str:
    """Return the file of a dump, after which more was sent."""
    file = str(postgres.server().directory / "dump")
    postgres.server().run("pg_dump", "--format=custom", f"--file={file}", database.name)
    return file


def _other_database(database: Ledger, dump: str) -> Ledger:
    other = attrs.evolve(database, url=f"{database.url}_other")
    postgres.server().execute(f"CREATE DATABASE {other.name} TEMPLATE template0")
    postgres.server().run("pg_restore", f"--dbname={other.name}", dump)
    return other


def _same_name(database: Ledger, dump: str) -> Ledger:
    postgres.server().execute(f"DROP DATABASE {database.name} WITH (FORCE)")
    postgres.server().execute(f"CREATE DATABASE {database.name} TEMPLATE template0")
    postgres.server().run("pg_restore", f"--dbname={database.name}", dump)
    return database


def _schema_in_place(database: Ledger, dump: str) -> Ledger:
    postgres.server().execute("DROP SCHEMA outreach CASCADE", database.name)
    postgres.server().run("pg_restore", f"--dbname={database.name}", dump)
    return database


def _tables_in_place(database: Ledger, dump: str) -> Ledger:
    postgres.server().run("pg_restore", "--clean", f"--dbname={database.name}", dump)
    return database


def _rows_in_place(database: Ledger, dump: str) -> Ledger:
    tables = postgres.server().execute(
        "SELECT string_agg('outreach.' || tablename, ', ') FROM pg_tables WHERE schemaname = 'outreach'", database.name
    )
    postgres.server().execute(f"TRUNCATE {tables[0][0]}", database.name)
    postgres.server().run("pg_restore", "--data-only", "--disable-triggers", f"--dbname={database.name}", dump)
    return database


def _renamed(database: Ledger, _: str) -> Ledger:
    """Give a copy the name of the first one, which goes on under another name."""
    _server_copy(database, _)
    postgres.server().execute(f"ALTER DATABASE {database.name} RENAME TO {database.name}_first")
    postgres.server().execute(f"ALTER DATABASE {database.name}_other RENAME TO {database.name}")
    return database


def _server_copy(database: Ledger, _: str) -> Ledger:
    postgres.server().execute(f"CREATE DATABASE {database.name}_other TEMPLATE {database.name}")
    return attrs.evolve(database, url=f"{database.url}_other")


DATABASES: dict[str, tuple[Callable[[Ledger, str], Ledger], str]] = {
    "a dump in another database": (_other_database, "moved"),
    "`CREATE DATABASE … TEMPLATE`": (_server_copy, "moved"),
    "a database that was given the name of the first one": (_renamed, "restored"),
    "a dump in a new database of the same name": (_same_name, "restored"),
    "the schema `outreach` of a dump, in place": (_schema_in_place, "restored"),
    "`pg_restore --clean`": (_tables_in_place, "restored"),
    "`pg_restore --data-only`": (_rows_in_place, "restored"),
}
"""Ways to a second database on a server, and the reason for which its campaigns are paused."""


@pytest.mark.parametrize("way", DATABASES)
async def test_a_second_database_starts_paused(database: Ledger, dump: str, way: str) -> None:
    """docs/delivery-contract.md#rule-10: also under the same name."""
    await database.send_some()
    make, reason = DATABASES[way]
    try:
        second = make(database, dump)
        assert await second.reason_of_pause() == reason
    finally:
        for ending in ("_other", "_first"):
            postgres.server().execute(f"DROP DATABASE IF EXISTS {database.name}{ending} WITH (FORCE)")


@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 3), (1, 0), (1, 2)])
async def test_rows_restored_in_place_are_found_by_a_process_that_has_the_database_open(
    database: Ledger, before: int, after: int
) -> None:
    """Its next write hides nothing from the next worker, whatever it wrote before and after the dump."""
    dump = str(postgres.server().directory / "dump")
    async with Outreach.open(database.url) as engine:
        for _ in range(before):
            await given_workspace(engine)
        postgres.server().run("pg_dump", "--format=custom", f"--file={dump}", database.name)
        for _ in range(after):
            await given_workspace(engine)
        _rows_in_place(database, dump)
        await given_workspace(engine)
    assert await database.reason_of_pause() == "restored"


_IDENTITY = "FUNCTION pg_catalog.pg_control_system()"


@pytest.fixture
async def unprivileged(database: Ledger) -> AsyncIterator[Ledger]:
    """Return the database for a user who may not ask for the server's identity."""
    user = f"{database.name}_user"
    for statement in (
        f"REVOKE EXECUTE ON {_IDENTITY} FROM PUBLIC",
        f"CREATE ROLE {user} LOGIN",
        f"GRANT ALL ON SCHEMA outreach TO {user}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA outreach TO {user}",
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA outreach TO {user}",
    ):
        postgres.server().execute(statement, database.name)
    yield attrs.evolve(database, url=database.url.replace("postgres@", f"{user}@"))
    postgres.server().execute(f"DROP OWNED BY {user}", database.name)
    postgres.server().execute(f"DROP ROLE {user}")


async def test_a_server_that_does_not_tell_its_identity_pauses_nothing(database: Ledger, unprivileged: Ledger) -> None:
    """Nor does one that tells it again."""
    await unprivileged.goes_on()
    async with unprivileged.engine() as engine:
        assert (await engine.status()).running
        postgres.server().execute(f"GRANT EXECUTE ON {_IDENTITY} TO PUBLIC", database.name)
        postgres.server().execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()",
            database.name,
        )

        async def writes() -> bool:
            with suppress(StorageError):
                await given_workspace(engine)
                return True
            return False

        await until(writes)
    await database.goes_on()


async def test_a_restored_database_starts_paused_where_the_server_does_not_tell_its_identity(
    unprivileged: Ledger,
) -> None:
    """Everybody may ask for the OIDs and the timeline."""
    await unprivileged.goes_on()
    postgres.server().execute("CREATE TABLE outreach.new (LIKE outreach.home INCLUDING ALL)", unprivileged.name)
    postgres.server().execute("INSERT INTO outreach.new SELECT * FROM outreach.home", unprivileged.name)
    postgres.server().execute("ALTER TABLE outreach.home RENAME TO old", unprivileged.name)
    postgres.server().execute("ALTER TABLE outreach.new RENAME TO home", unprivileged.name)
    postgres.server().execute(f"GRANT ALL ON outreach.home TO {unprivileged.name}_user", unprivileged.name)
    assert await unprivileged.reason_of_pause() == "restored"


async def test_a_process_that_has_the_database_open_forgets_the_rows_it_has_cached_when_they_are_restored(
    database: Ledger,
) -> None:
    """Also where the rows that came back count as many transactions."""
    dump = str(postgres.server().directory / "dump")
    async with Outreach.open(database.url) as engine:
        workspace = await given_workspace(engine)
        postgres.server().run("pg_dump", "--format=custom", f"--file={dump}", database.name)
        _rows_in_place(database, dump)
        postgres.server().execute("UPDATE outreach.workspaces SET name = 'Restored'", database.name)
        updated = await engine.workspaces.update(workspace.id, WorkspaceUpdate(request_limit=5))
        assert updated.name == "Restored"


NOT_HERE = {
    "a file on another machine",
    "`db copy`: the source",
    "an archive",
    "the whole directory, set back with the note (a snapshot of its disk)",
    "a subscriber of logical replication",
    "a server that was recovered to an earlier moment",
    "a standby that was promoted",
    "`pg_upgrade`",
    "the data directory, set back as it was",
}
"""Ways with a test of their own, here or in `test_replicas.py`, and those that take a machine or leave no trace."""


def test_the_page_lists_every_way() -> None:
    """And what stops the second database."""
    section = PAGE.read_text("utf-8").partition("## Two databases with one ledger")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ") and "second one" not in line]
    assert {row[0].removeprefix("| ") for row in rows} == {*FILES, *DATABASES, *NOT_HERE}
