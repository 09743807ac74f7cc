from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from anyio.abc import TaskStatus

from outreach import ConfigError, NewMessage, Outreach, SimulatorConfig
from outreach.core.config import EngineConfig
from outreach.models import MessageStatus
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.scripted import ScriptedCarrier, hang
from outreach.testing.virtual_time import clock_of_loop
from tests import postgres
from tests.engine.conftest import OpenStorage
from tests.engine.rig import QUICK, contacts, given_campaign, given_workspace, reaches, start_campaign, until

pytestmark = pytest.mark.virtual_time


async def test_a_sandbox_takes_every_carrier_to_the_simulator(open_storage: OpenStorage, tmp_path: Path) -> None:
    """docs/rules.md#sandbox: a sandbox sends everything to the simulators, whatever carrier is named."""
    log = tmp_path / "carrier.jsonl"
    async with _engine(open_storage, log) as engine:
        workspace = await given_workspace(engine)
        for n, carrier in enumerate(("twilio", "telnyx", "vonage")):
            campaign = await start_campaign(engine, workspace, contacts(1, first=n), carrier=carrier)
            await reaches(engine, campaign, "completed")
            (dispatch,) = await engine.campaigns.list_dispatches(workspace.id, campaign.id, 0)
            assert dispatch.provider == carrier
    assert len(_entries(log)) == 3


async def test_without_dispatch_nothing_is_sent(open_storage: OpenStorage) -> None:
    """docs/rules.md#dispatching: an engine does not dispatch unless asked."""
    async with Outreach(open_storage(clock_of_loop()), config=QUICK, clock=clock_of_loop()) as engine:
        workspace = await given_workspace(engine)
        campaign = await start_campaign(engine, workspace, 2)
        message = await engine.messages.send(workspace.id, NewMessage(to="+14155550100", body="x"))
        await anyio.sleep(0.2)
        assert not engine.health().dispatching
        assert (await engine.messages.get(workspace.id, message.id)).status == "queued"
        assert (await engine.campaigns.get(workspace.id, campaign.id)).counters.pending == 2


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_two_engines_on_one_database_one_dispatches_and_the_other_takes_over(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second server on the same database serves and does not dispatch; it takes over at once.

    docs/rules.md#dispatching.
    """
    log = tmp_path / "carrier.jsonl"
    url = postgres.empty_database() if kind == "postgres" else f"sqlite:///{tmp_path / 'two.db'}"
    simulator = SimulatorConfig(log_file=log, latency_ms=1.0)
    postgres.tell_time_by(clock_of_loop(), monkeypatch)

    def engine() -> Outreach:
        return Outreach.open(url, dispatch=True, config=QUICK, simulator=simulator, clock=clock_of_loop())

    first, second, leave = engine(), engine(), anyio.Event()

    async def be_first(*, task_status: TaskStatus[None]) -> None:
        async with first:
            task_status.started()
            await leave.wait()

    async with anyio.create_task_group() as tasks:
        await tasks.start(be_first)
        async with second:
            assert (first.health().dispatching, second.health().dispatching) == (True, False)
            workspace = await given_workspace(second)
            campaign = await given_campaign(second, workspace, 3)
            # The engine that does not dispatch starts it, and the other one sends.
            await second.campaigns.start(workspace.id, campaign.id)
            await reaches(second, campaign, "completed")
            leave.set()
            await until(lambda: _dispatches(second))
            assert (second.health().epoch or 0) > 1
            later = await given_campaign(second, workspace, contacts(2, first=50))
            await second.campaigns.start(workspace.id, later.id)
            await reaches(second, later, "completed")
    assert sorted(entry["to"] for entry in _entries(log)) == [f"+1415555{n:04d}" for n in (0, 1, 2, 50, 51)]


async def test_an_engine_may_be_opened_again_and_leaves_no_tasks_behind(open_storage: OpenStorage) -> None:
    """Opening and closing leaves nothing running; warnings are errors here, so nothing unclosed either."""
    storage = open_storage(clock_of_loop())
    before = asyncio.all_tasks()
    for _ in range(3):
        async with Outreach(storage, dispatch=True, config=QUICK, clock=clock_of_loop()) as engine:
            assert engine.health().dispatching
        assert not engine.health().dispatching
        assert asyncio.all_tasks() == before


async def test_an_engine_that_was_closed_and_opened_again_creates_campaigns(open_storage: OpenStorage) -> None:
    """Closing refuses what is being loaded then, and nothing that comes after the next opening."""
    engine = Outreach(open_storage(clock_of_loop()), clock=clock_of_loop())
    async with engine:
        workspace = await given_workspace(engine)
    async with engine:
        campaign = await given_campaign(engine, workspace, 2)
    assert campaign.counters.total == 2


async def test_an_error_of_the_host_closes_the_engine_and_stays_the_hosts(open_storage: OpenStorage) -> None:
    """docs/rules.md#dispatching: the engine's work and the host's code do not disturb each other."""
    engine = Outreach(open_storage(clock_of_loop()), dispatch=True, config=QUICK, clock=clock_of_loop())
    with pytest.raises(ZeroDivisionError):
        async with engine:
            raise ZeroDivisionError
    assert not engine.health().dispatching


async def test_the_host_may_close_the_engine_from_another_task(open_storage: OpenStorage) -> None:
    """Frameworks and test runners enter in one task and leave in another, and close in whatever order they like."""
    storage = open_storage(clock_of_loop())
    first = Outreach(storage, dispatch=True, config=QUICK, clock=clock_of_loop())
    second = Outreach(MemoryStorage(), dispatch=True, config=QUICK, clock=clock_of_loop())
    before = asyncio.all_tasks()
    with anyio.fail_after(30):
        await asyncio.create_task(first.__aenter__())
        await second.__aenter__()
        assert (first.health().dispatching, second.health().dispatching) == (True, True)
        await asyncio.create_task(first.__aexit__(None, None, None))
        await second.__aexit__(None, None, None)
        assert asyncio.all_tasks() == before
        async with Outreach(storage, dispatch=True, config=QUICK, clock=clock_of_loop()) as again:
            await until(lambda: _dispatches(again))


async def test_an_engine_that_is_cancelled_while_it_opens_leaves_nothing(open_storage: OpenStorage) -> None:
    """Its lock and its tasks are gone with it."""
    storage = open_storage(clock_of_loop())
    before = asyncio.all_tasks()
    with anyio.fail_after(30):
        for turns in range(12):
            opening = asyncio.create_task(
                Outreach(storage, dispatch=True, config=QUICK, clock=clock_of_loop()).__aenter__()
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            if opening.done():
                await opening.result().__aexit__(None, None, None)
                break
            opening.cancel()
            await asyncio.wait({opening})
            assert opening.cancelled()
            assert asyncio.all_tasks() == before
        async with Outreach(storage, dispatch=True, config=QUICK, clock=clock_of_loop()) as engine:
            await until(lambda: _dispatches(engine))


async def test_cancelling_the_host_closes_the_engine(open_storage: OpenStorage) -> None:
    """A host that is cancelled gets out, and the database is free for the next engine."""
    storage = open_storage(clock_of_loop())
    with anyio.fail_after(30):
        with anyio.move_on_after(0.1) as scope:
            async with Outreach(storage, dispatch=True, config=QUICK, clock=clock_of_loop()):
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        async with Outreach(storage, dispatch=True, config=QUICK, clock=clock_of_loop()) as engine:
            await until(lambda: _dispatches(engine))


async def test_a_closing_that_is_cancelled_leaves_nothing_at_work(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """A timeout of asyncio passes through what is shielded: the dispatcher would go on over a closed storage."""
    clock, carrier = clock_of_loop(), ScriptedCarrier([hang()])
    config = attrs.evolve(QUICK, stop_grace_seconds=3600.0)
    engine = Outreach(open_storage(clock), dispatch=True, clock=clock, sandbox_carrier=carrier, config=config)
    before = asyncio.all_tasks()
    await engine.__aenter__()
    workspace = await given_workspace(engine)
    message = await engine.messages.send(workspace.id, NewMessage(to="+14155550102", body="Hi"))
    await carrier.wait_for_requests(1)
    began = anyio.current_time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await engine.__aexit__(None, None, None)
    assert anyio.current_time() - began < 60
    await anyio.sleep(1)
    assert asyncio.all_tasks() == before
    async with engine:
        assert engine.health().dispatching
        found = await engine.messages.get(workspace.id, message.id)
        assert (found.status, found.reason) == (MessageStatus.UNKNOWN, "interrupted")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_another_event_loop_is_refused() -> None:
    """docs/rules.md#dispatching: asyncio is the loop; under trio the engine says so with a ConfigError."""
    # A coroutine that is driven by no asyncio loop sees what it would see under trio.
    entering = Outreach.open("memory://", clock=clock_of_loop()).__aenter__()
    with pytest.raises(ConfigError, match="asyncio"):
        entering.send(None)


@pytest.mark.parametrize("url", ["", "outreach.db", "mysql://x/y", "sqlite:outreach.db"])
def test_a_url_that_names_no_database_is_refused(url: str) -> None:
    """A wrong URL is refused with what would be right."""
    with pytest.raises(ConfigError):
        Outreach.open(url, clock=clock_of_loop())


def _engine(open_storage: OpenStorage, log: Path, *, config: EngineConfig = QUICK) -> Outreach:
    return Outreach(
        open_storage(clock_of_loop()),
        dispatch=True,
        config=attrs.evolve(config, acceptance_wait_seconds=10.0),
        simulator=SimulatorConfig(log_file=log, latency_ms=2.0, call_seconds=0.0),
        clock=clock_of_loop(),
    )


def _entries(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


async def _dispatches(engine: Outreach) -> bool:
    return engine.health().dispatching
