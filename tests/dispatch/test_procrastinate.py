from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import attrs
import psycopg
import pytest
from procrastinate import periodic
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job as ProcrastinateJob
from procrastinate.jobs import Status
from procrastinate.periodic import PeriodicDeferrer
from procrastinate.testing import InMemoryConnector
from psycopg_pool import PoolTimeout

from outreach import CampaignStatus, ConfigError, EngineConfig, NewAgent, NewCall, NewMessage, Outreach, SimulatorConfig
from outreach.database import check_database, migrate_database
from outreach.errors import DatabaseNewer, DatabaseOlder, StorageError
from outreach.integrations import procrastinate
from outreach.integrations.procrastinate import dispatcher
from outreach.integrations.procrastinate.dispatcher import ProcrastinateDispatcher, _as_storage_error, _JobManager
from outreach.integrations.procrastinate.jobs import Deferral, Jobs, JobsConnection, connector_of
from outreach.integrations.procrastinate.schema import conninfo_of
from outreach.models.campaign import Recipient
from outreach.models.states import RecipientStatus
from outreach.models.work import WorkUnit
from tests import postgres
from tests.cutting_proxy import CuttingProxy
from tests.engine.rig import QUICK, contacts, given_campaign, given_workspace, people, reaches, until

pytestmark = pytest.mark.anyio

_CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"

JOBS = attrs.evolve(QUICK, dispatcher="procrastinate", acceptance_wait_seconds=20.0)


@pytest.fixture
def url() -> Iterator[str]:
    """Make a database of its own, as new."""
    with postgres.server().database(template=postgres.template()) as name:
        yield postgres.server().url(name)


@asynccontextmanager
async def _engine(
    url: str, log: Path | None = None, *, dispatch: bool = True, config: EngineConfig = JOBS
) -> AsyncIterator[Outreach]:
    simulator = SimulatorConfig(log_file=log, latency_ms=1.0)
    async with Outreach.open(url, dispatch=dispatch, config=config, simulator=simulator) as engine:
        yield engine


def _ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    return postgres.server().execute(statement, url.rpartition("/")[2])


def _jobs(url: str) -> list[tuple[Any, ...]]:
    """Return the units that have a job that waits, and when it comes."""
    return _ask(
        url,
        "SELECT args ->> 'unit_id', scheduled_at FROM outreach_jobs.procrastinate_jobs "
        "WHERE status = 'todo' AND task_name = 'outreach.slice' ORDER BY id",
    )


def _without_job(url: str) -> list[tuple[Any, ...]]:
    """Return what is active without its job, and the jobs of what is not."""
    return _ask(
        url,
        "SELECT unit_id, due_at, jobs.id FROM (SELECT * FROM outreach.work WHERE due_at IS NOT NULL) AS work "
        "FULL JOIN (SELECT * FROM outreach_jobs.procrastinate_jobs WHERE task_name = 'outreach.slice') AS jobs "
        "ON jobs.queueing_lock = concat_ws(':', kind, workspace_id, unit_id) "
        "AND jobs.scheduled_at = due_at::timestamptz "
        "WHERE jobs.id IS NULL OR unit_id IS NULL",
    )


async def test_workers_share_campaigns_that_a_node_without_dispatch_has_started(url: str, tmp_path: Path) -> None:
    """Every contact is reached once, whichever worker takes which job; a worker that ends leaves its work to others."""
    log = tmp_path / "carrier.jsonl"
    async with _engine(url, log) as first, _engine(url, dispatch=False) as node:
        async with _engine(url, log) as second:
            assert (first.health().dispatching, second.health().dispatching) == (True, True)
            workspace = await given_workspace(node)
            campaigns = [await given_campaign(node, workspace, contacts(3, first=10 * n)) for n in range(6)]
            for campaign in campaigns:
                await node.campaigns.start(workspace.id, campaign.id)
            for n in range(6):
                await node.messages.send(workspace.id, NewMessage(to=f"+1415556{n:04d}", body="x"))
            for campaign in campaigns:
                await reaches(node, campaign, "completed")
            last = await given_campaign(node, workspace, contacts(4, first=90), rate_per_minute=120)
            await node.campaigns.start(workspace.id, last.id)
            await until(lambda: _has_begun(node, workspace.id, last.id))
        await reaches(node, last, "completed")
        await until(lambda: _all_sent(log, 28))
    reached = [f"+1415555{10 * n + one:04d}" for n in range(6) for one in range(3)]
    reached += [f"+1415555{n:04d}" for n in range(90, 94)] + [f"+1415556{n:04d}" for n in range(6)]
    assert sorted(json.loads(line)["to"] for line in log.read_text().splitlines()) == sorted(reached)
    assert _without_job(url) == []


@pytest.mark.parametrize("left", ["nothing", "contacts"])
async def test_a_slice_that_ends_as_its_worker_stops_leaves_a_job_only_for_what_is_left(
    url: str, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know that its campaign was paused or completed meanwhile; the state does."""
    begun = anyio.Event()

    async def slice_until_stop(self: ProcrastinateDispatcher, *given: Any) -> Any:
        begun.set()
        await self._stop.wait()
        return self._clock.now()

    monkeypatch.setattr(ProcrastinateDispatcher, "_slice", slice_until_stop)
    async with _engine(url, dispatch=False) as node, _engine(url):
        workspace = await given_workspace(node)
        campaign = await given_campaign(node, workspace, 2)
        await node.campaigns.start(workspace.id, campaign.id)
        await begun.wait()
        if left == "nothing":
            await node.campaigns.pause(workspace.id, campaign.id)
    assert [unit for unit, _ in _jobs(url)] == ([] if left == "nothing" else [campaign.id])


async def test_a_job_is_there_exactly_when_the_state_asks_for_it(url: str) -> None:
    """A unit has one job, at its time; what is paused has none; what was rolled back has left none."""
    migrate_database(url, dispatcher="procrastinate")
    async with _engine(url, dispatch=False) as node:
        workspace = await given_workspace(node)
        campaign = await given_campaign(node, workspace, 2)
        assert _jobs(url) == []
        await node.campaigns.start(workspace.id, campaign.id)
        assert [unit for unit, _ in _jobs(url)] == [campaign.id]
        await node.campaigns.pause(workspace.id, campaign.id)
        assert _jobs(url) == []
        unit, due = WorkUnit("campaign", workspace.id, campaign.id), node.now() + timedelta(hours=1)
        connector = connector_of(url)
        await connector.open_async()
        # A slice defers its job at its end, here before the pause reaches it.
        await Jobs(connector).defer(Deferral(unit=unit, due=node.now()))
        await connector.close_async()
        assert _jobs(url) == []

        def write(fails: bool) -> Callable[[Any], None]:
            def operation(tx: Any) -> None:
                tx.work.schedule(unit, due)
                # A read puts the earlier writes into the database first.
                tx.work.due()
                if fails:
                    raise ZeroDivisionError

            return operation

        with pytest.raises(ZeroDivisionError):
            await node._storage.write(write(fails=True))
        assert _jobs(url) == []
        await node._storage.write(write(fails=False))
        assert _jobs(url) == [(campaign.id, due)]
        await node._storage.write(lambda tx: tx.work.schedule(unit, due - timedelta(minutes=1)))
        assert _jobs(url) == [(campaign.id, due - timedelta(minutes=1))]
        assert _without_job(url) == []


@pytest.mark.parametrize("deferred", ["within the transaction", "after the commit"])
async def test_a_process_that_dies_after_its_commit_has_left_the_job(url: str, deferred: str) -> None:
    """Deferred after the commit it would not be there, and nothing would come of a campaign that all see as active."""
    migrate_database(url, dispatcher="procrastinate")
    if deferred == "after the commit":
        for name in ("new_work_is_deferred", "changed_work_is_deferred"):
            _ask(url, f"DROP TRIGGER {name} ON outreach.work")
    async with _engine(url, dispatch=False) as node:
        workspace = await given_workspace(node)
        campaign = await given_campaign(node, workspace, 2)
        await node.campaigns.start(workspace.id, campaign.id)
    # Here it died.
    assert bool(_without_job(url)) == (deferred == "after the commit")


async def test_the_unit_of_a_dead_worker_goes_on(url: str, tmp_path: Path) -> None:
    """A job that a dead worker has taken, or that waits for it alone, is given to another one."""
    migrate_database(url, dispatcher="procrastinate")
    async with _engine(url, dispatch=False) as node:
        workspace = await given_workspace(node)
        campaigns = [await given_campaign(node, workspace, contacts(2, first=10 * n)) for n in range(3)]
        for campaign in campaigns:
            await node.campaigns.start(workspace.id, campaign.id)
    for campaign, change in zip(
        campaigns,
        (
            "UPDATE procrastinate_jobs SET status = 'doing' WHERE args ->> 'unit_id' = ",
            "UPDATE procrastinate_jobs SET queue_name = 'outreach-77' WHERE args ->> 'unit_id' = ",
            "DELETE FROM procrastinate_jobs WHERE args ->> 'unit_id' = ",
        ),
        strict=True,
    ):
        _ask(url, f"SET search_path = outreach_jobs; {change}'{campaign.id}'")
    async with _engine(url) as worker:
        for campaign in campaigns:
            await reaches(worker, campaign, "completed")


async def test_a_lost_job_is_given_again_while_the_machines_clock_is_behind(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Procrastinate's periodic jobs go by it: after it was set back none comes until it is where it was."""
    monkeypatch.setattr(dispatcher, "_LOOK_AFTER_SECONDS", 0.1)
    deferred: list[float] = []
    get_timestamps, set_back = PeriodicDeferrer.get_timestamps, 0.0

    def noting(self: PeriodicDeferrer, **given: Any) -> Iterator[int]:
        for timestamp in get_timestamps(self, **given):
            deferred.append(timestamp)
            yield timestamp

    monkeypatch.setattr(PeriodicDeferrer, "get_timestamps", noting)
    monkeypatch.setattr(periodic, "time", SimpleNamespace(time=lambda: time.time() - set_back))

    async def has_deferred() -> bool:
        return bool(deferred)

    async with _engine(url) as worker, _engine(url, dispatch=False) as node:
        await until(has_deferred)
        set_back = 3600.0
        workspace = await given_workspace(node)
        campaign = await given_campaign(node, workspace, contacts(2))
        with psycopg.connect(url, autocommit=True) as other:
            # A job that is gone before anybody took it.
            other.execute(
                "CREATE FUNCTION outreach_jobs.lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
                "CREATE TRIGGER lost BEFORE INSERT ON outreach_jobs.procrastinate_jobs FOR EACH ROW "
                "WHEN (NEW.task_name = 'outreach.slice') EXECUTE FUNCTION outreach_jobs.lose()"
            )
            await node.campaigns.start(workspace.id, campaign.id)
            other.execute("DROP TRIGGER lost ON outreach_jobs.procrastinate_jobs")
        before = len(deferred)
        await reaches(worker, campaign, "completed")
        assert len(deferred) == before


async def _is_cut_at_work(url: str) -> bool:
    """Cut the connections of Procrastinate while a job is at work; return whether there were some."""
    cut = f"{_CUT} WHERE datname = current_database() AND application_name = 'outreach-jobs'"
    return await _is_working(url) and bool(_ask(url, cut))


@pytest.mark.soak("waits for the next connection")
async def test_a_worker_whose_connections_are_cut_goes_on(url: str, tmp_path: Path) -> None:
    """Jobs that could not be marked as done count as a dead worker's; nobody is reached twice by that."""
    log = tmp_path / "carrier.jsonl"
    async with _engine(url, log, config=attrs.evolve(JOBS, lease_seconds=3.0)) as worker:
        workspace = await given_workspace(worker)
        campaigns = [
            await given_campaign(worker, workspace, contacts(4, first=10 * n), rate_per_minute=120) for n in (0, 1)
        ]
        for campaign in campaigns:
            await worker.campaigns.start(workspace.id, campaign.id)
        for _ in range(3):
            # A worker whose connections were just cut has none for a moment, and its job is not marked as over.
            await until(lambda: _is_cut_at_work(url))

        async def all_are_settled() -> list[Recipient] | None:
            found = [one for campaign in campaigns for one in await people(worker, campaign)]
            # On a machine that is busy a lease may end while no connection is to be had.
            over = {RecipientStatus.COMPLETED, RecipientStatus.UNKNOWN}
            return found if all(one.status in over for one in found) else None

        found = await until(all_are_settled)
    reached = [json.loads(line)["to"] for line in log.read_text().splitlines()]
    assert len(set(reached)) == len(reached)
    completed = {one.phone for one in found if one.status is RecipientStatus.COMPLETED}
    assert completed <= set(reached)
    assert len(completed) >= 4


@pytest.mark.soak("waits until no answer is waited for")
async def test_jobs_whose_server_gives_no_answer_are_not_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is given up, and the next one is used as soon as the server answers."""
    migrate_database(url, dispatcher="procrastinate")
    with CuttingProxy(postgres.server().port) as proxy, anyio.fail_after(60):
        connector = connector_of(url.replace(f":{postgres.server().port}/", f":{proxy.port}/"))
        await connector.open_async()
        jobs = Jobs(connector)
        await jobs.free_orphans()
        monkeypatch.setattr(JobsConnection, "answer_seconds", 0.3)
        proxy.keeps = "answers"
        with pytest.raises(ConnectorException):
            await jobs.free_orphans()
        proxy.keeps = None
        monkeypatch.undo()

        async def answers() -> bool:
            with suppress(ConnectorException):
                await jobs.free_orphans()
                return True
            return False

        await until(answers)
        await connector.close_async()


async def test_a_job_that_cannot_be_marked_as_ended_is_reported_and_fails_no_task() -> None:
    """Procrastinate leaves its tasks' errors to asyncio, which prints them; `_end_stuck` looks for such jobs.

    One that another worker has ended, because this one stood still, is nobody's trouble.
    """
    errors: list[Exception] = [
        PoolTimeout("none free"),
        psycopg.errors.RaiseException("Job was not found"),
        psycopg.errors.UndefinedTable("no jobs"),
    ]

    class Failing(InMemoryConnector):
        async def execute_query_async(self, query: str, **_: Any) -> None:
            raise ConnectorException from errors[0]

    told: list[StorageError] = []
    manager = _JobManager(Failing(), told.append)
    job = ProcrastinateJob(id=1, queue="outreach", lock=None, queueing_lock=None, task_name="outreach.slice")
    await manager.finish_job(job, Status.SUCCEEDED, delete_job=True)
    assert [one.message for one in told] == ["The connection to the database was lost. (PoolTimeout: none free)"]
    del errors[0]
    await manager.finish_job(job, Status.SUCCEEDED, delete_job=True)
    assert len(told) == 1
    del errors[0]
    with pytest.raises(ConnectorException):
        await manager.finish_job(job, Status.SUCCEEDED, delete_job=True)


async def test_times_of_jobs_are_read_whatever_an_environment_says(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that was fetched could not be read, and would never end."""
    monkeypatch.setenv("PGDATESTYLE", "German")
    connector = connector_of(url)
    await connector.open_async()
    try:
        [row] = await connector.execute_query_all_async("SELECT '2026-01-02 03:04:05+00'::timestamptz AS due")
    finally:
        await connector.close_async()
    assert row == {"due": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}


async def test_who_only_listens_for_jobs_waits_as_long_as_nobody_says_anything(url: str) -> None:
    """Nothing was asked, so that no answer is late."""
    async with await JobsConnection.connect(conninfo_of(url), autocommit=True) as connection:
        await connection.execute("LISTEN jobs")
        connection.answer_seconds = 0.1
        assert [heard async for heard in connection.notifies(timeout=1.0)] == []
        connection.answer_seconds = 60.0
        await connection.execute("NOTIFY jobs")
        assert [heard.channel async for heard in connection.notifies(stop_after=1)] == ["jobs"]


@pytest.mark.turn(2, "waits until no answer is waited for")
@pytest.mark.parametrize("dispatcher", ["in_process", "procrastinate"])
async def test_an_engine_closes_while_the_server_stands_still(url: str, tmp_path: Path, dispatcher: str) -> None:
    """Whatever is on its way: what has no outcome is unknown, and is not sent again."""
    config = attrs.evolve(
        JOBS,
        dispatcher=dispatcher,
        lease_seconds=2.0,
        provider_timeout_seconds=1.0,
        reconcile_delay_seconds=0.001,
        reconcile_retry_seconds=0.1,
        reconcile_interval_seconds=0.1,
    )
    log = tmp_path / "carrier.jsonl"
    with anyio.fail_after(120):
        async with AsyncExitStack() as stills, _engine(url, log, config=config) as worker:
            workspace = await given_workspace(worker)
            campaign = await given_campaign(worker, workspace, contacts(40), rate_per_minute=600)
            await worker.campaigns.start(workspace.id, campaign.id)
            await until(lambda: _has_begun(worker, workspace.id, campaign.id))
            stills.enter_context(postgres.server().standing_still())
        async with _engine(url, log, config=config) as worker:
            await until(lambda: _nobody_is_left(worker, workspace.id, campaign.id))
    reached = [json.loads(line)["to"] for line in log.read_text().splitlines()]
    assert len(reached) == len(set(reached))


async def test_a_worker_without_its_tables_does_not_try_all_the_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is woken by meanwhile; a stop does not wait for the next try."""
    monkeypatch.setattr(dispatcher, "FIRST_BACKOFF_SECONDS", 3600.0)
    tries = 0

    async def give_jobs(self: ProcrastinateDispatcher, jobs: Jobs) -> None:
        nonlocal tries
        tries += 1
        await jobs.without_jobs([WorkUnit("campaign", "w", "c")])

    monkeypatch.setattr(ProcrastinateDispatcher, "_give_jobs", give_jobs)
    migrate_database(url, dispatcher="procrastinate")
    for name in ("keys_with_jobs(text[])", "defer_changed_work() CASCADE"):
        _ask(url, f"DROP FUNCTION outreach_jobs.{name}")
    async with _engine(url) as worker:

        async def has_failed() -> bool:
            return worker.health().failures > 0

        await until(has_failed)
        workspace = await given_workspace(worker)
        for n in range(5):
            campaign = await given_campaign(worker, workspace, contacts(1, first=n))
            await worker.campaigns.start(workspace.id, campaign.id)
        # Long enough for another try: as many questions to the same server.
        assert tries == 1
        assert worker.health().dispatching


def test_a_lost_connection_is_the_databases_trouble() -> None:
    """So that the log has one line of it, without a traceback; other errors stay what they are."""

    def wrapped(cause: Exception) -> ConnectorException:
        error = ConnectorException()
        error.__cause__ = cause
        return error

    for lost in (
        psycopg.OperationalError("refused"),
        psycopg.errors.AdminShutdown("ended\nmore"),
        psycopg.errors.DiskFull("full"),
    ):
        told = _as_storage_error(wrapped(lost))
        assert isinstance(told, StorageError)
        assert "more" not in told.message
    for other in (wrapped(psycopg.ProgrammingError("x")), ValueError("x")):
        assert _as_storage_error(other) is other


async def test_a_pause_on_another_node_ends_the_slice_at_once(url: str) -> None:
    """docs/workers.md#wake-ups: within a second, also where the clock would not tell for minutes."""
    took = []
    async with _engine(url, config=attrs.evolve(JOBS, change_poll_seconds=600.0)) as worker:
        await until(lambda: _hears(worker))
        async with _engine(url, dispatch=False) as node:
            workspace = await given_workspace(node)
            # Several, because a message may come while the worker reads what an earlier one was about.
            for n in range(8):
                # The second one is due a minute after the first.
                campaign = await given_campaign(node, workspace, contacts(2, first=2 * n), rate_per_minute=1)
                await node.campaigns.start(workspace.id, campaign.id)
                await until(partial(_has_begun, node, workspace.id, campaign.id))
                assert (await node.campaigns.pause(workspace.id, campaign.id)).status is CampaignStatus.PAUSED
                begun = time.monotonic()
                await until(lambda: _is_idle(worker), timeout_seconds=20)
                took.append(time.monotonic() - begun)
    # Not each: a busy machine may hold one up.
    assert statistics.median(took) < 1, took


async def test_a_node_that_does_not_dispatch_answers_with_the_providers_id(url: str) -> None:
    """docs/interface.md#4.1: a worker takes the job while the request waits, whichever drives its workspace."""
    async with _engine(url), _engine(url), _engine(url, dispatch=False) as node:
        workspace = await given_workspace(node)
        agent = await node.agents.create(workspace.id, NewAgent(name="Ada", from_number="+14155550199"))
        for n in range(3):
            with anyio.fail_after(15):
                call = await node.calls.create(workspace.id, NewCall(agent_id=agent.id, to=f"1415555010{n}"))
            assert call.provider_call_id is not None


async def test_tables_are_made_once_and_missed_where_nothing_may_be_changed(url: str) -> None:
    """`db check` tells, `db migrate` makes them, and a worker that may not does not start."""
    assert check_database(url, quick=True, dispatcher="procrastinate").pending_migrations == ["outreach_jobs"]
    engine = Outreach.open(url, dispatch=True, migrate=False, config=JOBS)
    with pytest.raises(DatabaseOlder, match="db migrate"):
        await engine.__aenter__()
    assert migrate_database(url, dispatcher="procrastinate") == ["outreach_jobs"]
    assert check_database(url, quick=True, dispatcher="procrastinate").pending_migrations == []
    assert migrate_database(url, dispatcher="procrastinate") == []
    assert check_database(url, quick=True).pending_migrations == []
    _ask(url, "DELETE FROM outreach_jobs.applied WHERE name = 'outreach-jobs'")
    assert check_database(url, quick=True, dispatcher="procrastinate").pending_migrations == ["outreach-jobs"]
    _ask(url, "INSERT INTO outreach_jobs.applied VALUES ('99.00.00_01_pre_from_the_future')")
    with pytest.raises(DatabaseNewer, match="from_the_future"):
        procrastinate.install(url)


def test_a_defer_that_waited_for_another_sees_its_job_at_every_isolation_level(url: str) -> None:
    """A database may default to repeatable read: the second would then make a second job, and fail."""
    migrate_database(url, dispatcher="procrastinate")
    _ask(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_isolation = 'repeatable read'")
    defer = (
        "SELECT defer_units(ARRAY[ROW('campaign', 'w', 'c', '2026-11-20T16:10:25Z', 'outreach')::unit_of_work], false)"
    )
    conninfo = procrastinate.conninfo_of(url)
    with psycopg.connect(conninfo) as first, psycopg.connect(conninfo, autocommit=True) as second:
        first.execute(defer)
        waits = threading.Thread(target=second.execute, args=(defer,))
        waits.start()
        while not _ask(url, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
            assert waits.is_alive()
        first.commit()
        waits.join()
    assert [unit for unit, _ in _jobs(url)] == ["c"]


def test_it_needs_postgresql(tmp_path: Path) -> None:
    """A file has no room for Procrastinate's tables: said at once, and how to go on."""
    with pytest.raises(ConfigError, match="OUTREACH_DISPATCHER"):
        Outreach.open(f"sqlite:///{tmp_path / 'x.db'}", config=JOBS)
    with pytest.raises(ConfigError, match="OUTREACH_DISPATCHER"):
        migrate_database(f"sqlite:///{tmp_path / 'x.db'}", dispatcher="procrastinate")
    with pytest.raises(ConfigError, match="in_process, procrastinate"):
        EngineConfig(dispatcher="celery")


def test_procrastinates_own_shell_sees_the_jobs(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`procrastinate --app=outreach.integrations.procrastinate.app` reads the database that the server uses."""
    migrate_database(url, dispatcher="procrastinate")
    monkeypatch.setenv("OUTREACH_DATABASE_URL", url)
    app = procrastinate.app
    with app.open():
        assert app.check_connection()
        assert app.job_manager.list_jobs() == []
    monkeypatch.delenv("OUTREACH_DATABASE_URL")
    with pytest.raises(ConfigError, match="OUTREACH_DATABASE_URL"):
        _ = procrastinate.app


async def _hears(engine: Outreach) -> bool:
    return bool(engine._storage.is_listening)  # type: ignore[attr-defined]


async def _is_working(url: str) -> bool:
    return bool(_ask(url, "SELECT 1 FROM pg_stat_activity WHERE application_name = 'outreach-jobs'"))


async def _is_idle(engine: Outreach) -> bool:
    return engine.health().active_units == 0


async def _has_begun(engine: Outreach, workspace_id: str, campaign_id: str) -> bool:
    found = (await engine.campaigns.get(workspace_id, campaign_id)).counters
    return found.pending < found.total


async def _nobody_is_left(engine: Outreach, workspace_id: str, campaign_id: str) -> bool:
    """Return whether each contact has been asked about; what is unknown stays so where the provider cannot tell."""
    return (await engine.campaigns.get(workspace_id, campaign_id)).counters.pending == 0


async def _all_sent(log: Path, count: int) -> bool:
    return len(log.read_text().splitlines()) >= count
