from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from outreach import ConfigError, Outreach
from outreach.events import Event, EventStream
from tests.engine.every_method import Method, every_method
from tests.engine.rig import QUICK, contacts, given_campaign, given_workspace, until

NAMES = [method.name for method in every_method(Outreach.open("memory://"))]


def method_of(engine: Outreach, name: str) -> Method:
    """Return a method of an engine."""
    return next(method for method in every_method(engine) if method.name == name)


@pytest.mark.anyio
@pytest.mark.sample(5)
@pytest.mark.parametrize("name", NAMES)
async def test_a_call_from_another_thread_is_refused_in_words(engine: Outreach, name: str) -> None:
    """It would wait for an answer that comes to another loop, for ever."""
    workspace = await given_workspace(engine)
    method = method_of(engine, name)
    with anyio.fail_after(30), pytest.raises(ConfigError, match="opened in another thread"):
        await anyio.to_thread.run_sync(lambda: asyncio.run(method.call(workspace.id)))


@pytest.mark.anyio
async def test_a_stream_of_events_is_refused_there_too(engine: Outreach) -> None:
    """Entered in one place and gone through in another."""
    async with engine.events.subscribe() as stream:
        with anyio.fail_after(30), pytest.raises(ConfigError, match="opened in another thread"):
            await anyio.to_thread.run_sync(lambda: asyncio.run(_next(stream)))
        other = engine.events.subscribe()
        with anyio.fail_after(30), pytest.raises(ConfigError, match="opened in another thread"):
            await anyio.to_thread.run_sync(lambda: asyncio.run(_enter(other)))


async def _enter(stream: EventStream[Event]) -> None:
    async with stream:
        pass


async def _next(stream: EventStream[Event]) -> None:
    await anext(stream)


@pytest.mark.anyio
async def test_readiness_is_refused_in_another_thread(engine: Outreach) -> None:
    """A caller in another thread could use nothing of the engine."""
    assert (await engine.readiness()).ready
    with anyio.fail_after(30), pytest.raises(ConfigError, match="opened in another thread"):
        await anyio.to_thread.run_sync(lambda: asyncio.run(_ready(engine)))


async def _ready(engine: Outreach) -> bool:
    return (await engine.readiness()).ready


@pytest.mark.anyio
async def test_a_thread_hands_its_calls_to_the_loop(engine: Outreach) -> None:
    """By anyio or by asyncio: the call runs where the engine is."""
    workspace = await given_workspace(engine)
    campaign = await given_campaign(engine, workspace, contacts(2))
    loop = asyncio.get_running_loop()

    def by_anyio() -> int:
        return anyio.from_thread.run(engine.campaigns.get, workspace.id, campaign.id).counters.total

    def by_asyncio() -> int:
        found = asyncio.run_coroutine_threadsafe(engine.campaigns.get(workspace.id, campaign.id), loop)
        return found.result(30).counters.total

    assert await anyio.to_thread.run_sync(by_anyio) == 2
    assert await anyio.to_thread.run_sync(by_asyncio) == 2


def test_another_loop_is_refused_and_a_closed_engine_may_be_opened_there(tmp_path: Path) -> None:
    """An `asyncio.run` for each call is what people try first."""
    engine = Outreach.open(f"sqlite:///{tmp_path / 'outreach.db'}")
    first = asyncio.new_event_loop()
    try:
        first.run_until_complete(engine.__aenter__())
        with pytest.raises(ConfigError, match="opened on another event loop"):
            asyncio.run(_bounded(engine))
        with pytest.raises(ConfigError, match="opened on another event loop"):
            asyncio.run(_open_and_close(engine))
        with pytest.raises(ConfigError, match="opened on another event loop"):
            asyncio.run(_close(engine))
        assert not first.run_until_complete(engine.workspaces.list())
        first.run_until_complete(engine.__aexit__(None, None, None))
    finally:
        first.close()
    asyncio.run(_open_and_close(engine))


def test_an_engine_that_has_dispatched_does_so_again_in_another_loop(tmp_path: Path) -> None:
    """What a worker waited on in the loop before is of no use in this one."""
    engine = Outreach.open(f"sqlite:///{tmp_path / 'outreach.db'}", dispatch=True, config=QUICK)
    for _ in range(2):
        asyncio.run(_dispatch_until_idle(engine, engine._wake_ups._woken.get("work")))


async def _dispatch_until_idle(engine: Outreach, before: anyio.Event | None) -> None:
    async with engine:

        async def waits() -> bool:
            return engine.health().failures > 0 or engine._wake_ups._woken.get("work") not in {None, before}

        await until(waits)
        assert engine.health().failures == 0


async def _bounded(engine: Outreach) -> None:
    with anyio.fail_after(30):
        await engine.workspaces.list()


async def _open_and_close(engine: Outreach) -> None:
    async with engine:
        await _bounded(engine)


async def _close(engine: Outreach) -> None:
    with anyio.fail_after(30):
        await engine.__aexit__(None, None, None)


@pytest.mark.anyio
async def test_an_engine_that_is_open_is_not_opened_again(engine: Outreach) -> None:
    """Two that share one would close each other's database."""
    with pytest.raises(ConfigError, match="is already open"):
        await engine.__aenter__()
    assert list(await engine.workspaces.list()) == []


@pytest.mark.anyio
async def test_another_kind_of_loop_is_refused(engine: Outreach) -> None:
    """Where no loop of asyncio's runs, as under trio, nothing is opened and nothing is asked."""

    def under_no_asyncio() -> None:
        with pytest.raises(ConfigError, match="runs on asyncio"):
            Outreach.open("memory://").__aenter__().send(None)
        with pytest.raises(ConfigError, match="opened in another thread"):
            engine.workspaces.list().send(None)

    await anyio.to_thread.run_sync(under_no_asyncio)


FORKING = """
import asyncio, os, sys
from outreach import ConfigError, Outreach
from outreach.events import Event, EventStream

async def main():
    async with Outreach.open(sys.argv[1]) as engine:
        child = os.fork()
        if child == 0:
            try:
                await engine.workspaces.list()
            except ConfigError as error:
                os.write(1, error.message.encode())
            os._exit(0)
        os.waitpid(child, 0)
        await engine.workspaces.list()

asyncio.run(main())
"""


def test_a_forked_child_is_refused_in_words(tmp_path: Path) -> None:
    """Its copy of the engine has no thread that would answer; what its parent has goes on."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, f"sqlite:///{tmp_path / 'outreach.db'}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"This engine was opened in process (\d+), from which this one, (?!\1)\d+, was forked", done.stdout)
