"""PostgreSQL servers that take over, are set back, or only restart: what is paused, and what goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from outreach import Outreach
from tests import postgres
from tests.engine.rig import given_workspace, reaches, start_campaign, until, until_true
from tests.engine.test_two_databases import Ledger

pytestmark = [pytest.mark.anyio, pytest.mark.turn(3, "starts servers of PostgreSQL of its own")]

SETTINGS = {"fsync": "off", "shared_buffers": "32MB", "max_connections": "60", "wal_sender_timeout": "5s"}


@pytest.fixture
def primary() -> Iterator[postgres.Server]:
    """A server of this test alone."""
    with postgres.Server(SETTINGS) as made:
        made.execute("CREATE DATABASE app TEMPLATE template0")
        yield made


@pytest.fixture
async def ledger(primary: postgres.Server, tmp_path: Path) -> Ledger:
    """A database there, of which a part of a campaign was sent."""
    made = Ledger(url=primary.url("app"), directory=tmp_path)
    await made.send_some()
    return made


def both(primary: postgres.Server, standby: postgres.Server) -> str:
    """Return the URL that names both servers."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://postgres@{hosts}/app?target_session_attrs=read-write&connect_timeout=2"


async def replicated(primary: postgres.Server, standby: postgres.Server) -> None:
    """Wait until a standby has what its primary has."""

    async def is_there() -> bool:
        [(position,)] = primary.execute("SELECT pg_current_wal_lsn()::text")
        return standby.execute(f"SELECT pg_last_wal_replay_lsn() >= '{position}'") == [(True,)]

    await until(is_there)


async def test_a_standby_that_was_promoted_starts_paused(
    primary: postgres.Server, ledger: Ledger, tmp_path: Path
) -> None:
    """docs/postgresql.md#failover: nothing shows whether it has every commit."""
    with postgres.Server(SETTINGS, copy_of=primary) as standby:
        await replicated(primary, standby)
        primary.stop(signal.SIGQUIT)
        standby.execute("SELECT pg_promote()")
        assert await Ledger(url=both(primary, standby), directory=tmp_path).reason_of_pause() == "restored"


async def test_a_worker_goes_over_to_the_standby_and_pauses_what_runs(primary: postgres.Server, tmp_path: Path) -> None:
    """Without a restart; resumed, everybody is contacted once, and what is done meanwhile is refused or kept."""
    with postgres.Server(SETTINGS, copy_of=primary) as standby:
        ledger = Ledger(url=both(primary, standby), directory=tmp_path)
        async with ledger.engine() as engine:
            workspace = await given_workspace(engine)
            campaign = await start_campaign(engine, workspace, 40)
            await until_true(lambda: ledger.sent() > 2)
            await replicated(primary, standby)
            primary.stop(signal.SIGQUIT)
            standby.execute("SELECT pg_promote()")

            async def is_paused() -> bool:
                with suppress(Exception):
                    return (await engine.campaigns.get(workspace.id, campaign.id)).pause_reason == "restored"
                return False

            await until(is_paused, timeout_seconds=90)
            await until(lambda: _dispatches(engine), timeout_seconds=60)
            before = ledger.sent()
            other = await start_campaign(engine, workspace, 1)
            await reaches(engine, other, "completed")
            assert ledger.sent() == before + 1
            await engine.campaigns.resume(workspace.id, campaign.id)
            # What had no outcome as the primary went stays unknown, and is not sent again.
            await until(lambda: _nothing_waits(engine, workspace.id, campaign.id), timeout_seconds=60)
        log = (tmp_path / "sent.jsonl").read_text().splitlines()
        sent = [line.partition('"to": "')[2].partition('"')[0] for line in log]
        assert len(set(sent)) >= 40
        # The number of the other campaign is one of those of the first.
        assert len(sent) - len(set(sent)) <= 1


async def _dispatches(engine: Outreach) -> bool:
    return engine.health().state == "dispatching"


async def _nothing_waits(engine: Outreach, workspace_id: str, campaign_id: str) -> bool:
    counters = (await engine.campaigns.get(workspace_id, campaign_id)).counters
    return counters.pending == 0


async def test_a_server_that_was_recovered_to_an_earlier_moment_starts_paused(
    primary: postgres.Server, ledger: Ledger
) -> None:
    """Its timeline is another one: nothing else of it has changed."""
    copy = primary.save()
    await ledger.send_some()
    primary.set_back(copy)
    assert await ledger.reason_of_pause() == "restored"


async def test_a_server_whose_files_were_set_back_starts_paused_where_its_worker_keeps_a_note(
    primary: postgres.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server and its timeline are the same; the note of another database says nothing."""
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv("OUTREACH_STATE_DIR", str(kept))
    ledger = Ledger(url=primary.url("app"), directory=tmp_path)
    await ledger.send_some()
    await ledger.goes_on()
    copy = primary.copy_files()
    await ledger.goes_on()
    primary.put_files_back(copy)
    assert await ledger.reason_of_pause() == "restored"
    [note] = kept.iterdir()
    assert note.stat().st_mode & 0o777 == 0o600
    primary.execute("CREATE DATABASE other TEMPLATE template0")
    other = Ledger(url=primary.url("other"), directory=tmp_path)
    await other.send_some()
    await other.goes_on()
    assert len(list(kept.iterdir())) == 2


async def test_a_note_that_cannot_be_written_stops_the_dispatch(
    primary: postgres.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not show that the database was set back."""
    monkeypatch.setenv("OUTREACH_STATE_DIR", str(tmp_path / "missing"))
    async with Ledger(url=primary.url("app"), directory=tmp_path).engine() as engine:
        await until_true(lambda: engine.health().refused_reason == "note")


async def test_a_worker_that_runs_meanwhile_notices_that_its_database_was_set_back(
    primary: postgres.Server, ledger: Ledger
) -> None:
    """By the mark that it keeps: the tables and the server are the same."""
    async with ledger.engine() as engine:
        [workspace] = await engine.workspaces.list()
        campaign = await start_campaign(engine, workspace, 100)

        with psycopg.connect(primary.url("app"), autocommit=True) as raw:
            raw.execute("CREATE SCHEMA kept")
            tables = ["fence", "lease", "workers", "last_change", "stop_counts"]
            with raw.transaction():
                raw.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                for table in tables:
                    raw.execute(SQL("CREATE TABLE kept.{0} AS TABLE outreach.{0}").format(Identifier(table)))
            # Counted from here: what was sent before is not lost.
            before = ledger.sent()
            await until_true(lambda: ledger.sent() > before + 6)
            with raw.transaction():
                raw.execute("SET LOCAL session_replication_role = replica")
                raw.execute("SELECT 1 FROM outreach.fence FOR UPDATE")
                for table in tables:
                    raw.execute(SQL("DELETE FROM outreach.{}").format(Identifier(table)))
                    raw.execute(SQL("INSERT INTO outreach.{0} TABLE kept.{0}").format(Identifier(table)))

        async def is_paused() -> bool:
            found = await engine.campaigns.get(workspace.id, campaign.id)
            return found.pause_reason == "restored"

        await until(is_paused)


def _restart(server: postgres.Server) -> None:
    server.stop()
    server.start()


def _crash(server: postgres.Server) -> None:
    server.stop(signal.SIGQUIT)
    server.start()


def _vacuum(server: postgres.Server) -> None:
    server.execute("VACUUM (FULL, FREEZE, ANALYZE)", "app")


def _reindex(server: postgres.Server) -> None:
    server.execute("REINDEX SCHEMA outreach", "app")


@pytest.mark.parametrize("what", [_restart, _crash, _vacuum, _reindex])
async def test_what_leaves_the_database_where_it_is_pauses_nothing(
    primary: postgres.Server, ledger: Ledger, what: Callable[[postgres.Server], None]
) -> None:
    """Restarts, and what is run to keep it well."""
    what(primary)
    await ledger.goes_on()


async def test_a_database_of_an_earlier_version_goes_on(primary: postgres.Server, ledger: Ledger) -> None:
    """It recorded no state, which the first worker adds."""
    primary.execute("UPDATE outreach.home SET host = split_part(host, ' state ', 1)", "app")
    primary.execute("UPDATE outreach.fence SET writer = split_part(writer, ' ', 1)", "app")
    await ledger.goes_on()
    [(host,)] = primary.execute("SELECT host FROM outreach.home", "app")
    assert " state " in host
