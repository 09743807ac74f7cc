"""Named subscriptions on PostgreSQL: cut connections, killed holders, a standby that takes over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from outreach import Outreach
from outreach.events import OptedOut
from tests import postgres
from tests.cutting_proxy import CuttingProxy
from tests.engine.rig import QUICK, given_workspace, until
from tests.engine.test_named_events import opt_out, take
from tests.engine.test_replicas import SETTINGS, both, replicated

pytestmark = [pytest.mark.anyio, pytest.mark.soak("takes connections, processes and servers away")]

ROOT = Path(__file__).resolve().parents[2]

HOLDER = """
import asyncio, sys
from outreach import EngineConfig, Outreach
from outreach.events import OptedOut

async def main():
    async with Outreach.open(sys.argv[1], config=EngineConfig(change_poll_seconds=0.02)) as engine:
        async with engine.events.subscribe(OptedOut, name="n", since=0) as stream:
            async for number, event in aenumerate(stream):
                print(event.phone[-4:], flush=True)
                if number < 2:
                    await stream.ack(at_once=True)

async def aenumerate(stream):
    number = 0
    async for event in stream:
        yield number, event
        number += 1

asyncio.run(main())
"""


async def test_a_subscription_loses_and_repeats_nothing_over_cut_connections() -> None:
    """Each event comes once, in order, where each is acknowledged. The acknowledgements are cut off as well."""
    url = postgres.empty_database()
    with CuttingProxy(postgres.server().port) as proxy:
        by_proxy = url.replace(f":{postgres.server().port}/", f":{proxy.port}/")
        async with Outreach.open(url, config=QUICK) as writing, Outreach.open(by_proxy, config=QUICK) as reading:
            workspace = (await given_workspace(writing)).id
            async with reading.events.subscribe(OptedOut, name="n", since=0) as stream:
                taken: list[int] = []
                for first in range(0, 60, 10):
                    await opt_out(writing, workspace, *range(first, first + 10))
                    taken += await take(stream, 4)
                    proxy.cut_all()
                    assert await stream.ack()
                    taken += await take(stream, 6)
                    assert await stream.ack()
                    proxy.cut_all()
        assert taken == list(range(60))


async def test_what_a_killed_holder_did_not_acknowledge_comes_again_to_the_next_one() -> None:
    """When its lease is over; what it acknowledged does not."""
    url = postgres.empty_database()
    async with Outreach.open(url, config=QUICK) as engine:
        workspace = (await given_workspace(engine)).id
        await opt_out(engine, workspace, 1, 2, 3, 4)
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, url], stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ}
        ) as holder:
            assert holder.stdout is not None
            read = holder.stdout.readline
            told = [int(await anyio.to_thread.run_sync(read)) for _ in range(3)]
            holder.send_signal(signal.SIGKILL)
        assert told == [1, 2, 3]
        async with engine.events.subscribe(OptedOut, name="n", since=0) as stream:
            assert await take(stream, 2) == [3, 4]
            assert await stream.ack()
        [found] = await engine.events.list_subscriptions()
        assert (found.behind, found.active) == (0, False)


async def _is_ready(engine: Outreach) -> bool:
    return (await engine.readiness()).ready


async def test_a_subscription_goes_on_with_a_standby_that_takes_over() -> None:
    """By the URL that names both, in the same process, from where it was acknowledged."""
    with postgres.Server(SETTINGS) as primary:
        primary.execute("CREATE DATABASE app TEMPLATE template0")
        with postgres.Server(SETTINGS, copy_of=primary) as standby:
            async with Outreach.open(both(primary, standby), config=QUICK) as engine:
                workspace = (await given_workspace(engine)).id
                async with engine.events.subscribe(OptedOut, name="n", since=0) as stream:
                    await opt_out(engine, workspace, 1, 2, 3)
                    assert await take(stream, 2) == [1, 2]
                    assert await stream.ack()
                    await replicated(primary, standby)
                    primary.stop(signal.SIGQUIT)
                    standby.execute("SELECT pg_promote()")
                    await until(lambda: _is_ready(engine), timeout_seconds=90)
                    await opt_out(engine, workspace, 4)
                    assert await take(stream, 2) == [3, 4]
                    assert await stream.ack()
                [found] = await engine.events.list_subscriptions()
                assert (found.behind, found.active) == (0, False)
