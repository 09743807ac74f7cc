from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs
import pytest

from outreach import CampaignStatus, NewAgent, NewCall, Outreach, SimulatorConfig
from outreach.protocols.storage import WakeUps
from outreach.storage.postgres.storage import PostgresStorage
from tests import postgres
from tests.engine.rig import QUICK, given_campaign, given_workspace, reaches, until

pytestmark = pytest.mark.anyio

DEAF = attrs.evolve(QUICK, change_poll_seconds=600.0, acceptance_wait_seconds=20.0)
"""By the clock alone, an engine with this configuration reads no change of another process in time."""


@asynccontextmanager
async def _two() -> AsyncIterator[tuple[Outreach, Outreach]]:
    """Open an engine that dispatches, and one that does not, on one server; the first listens."""
    url, simulator = postgres.empty_database(), SimulatorConfig(latency_ms=1.0)
    async with (
        Outreach.open(url, dispatch=True, config=DEAF, simulator=simulator) as worker,
        Outreach.open(url, config=DEAF, simulator=simulator) as node,
    ):
        await until(lambda: _hears(worker))
        yield worker, node


async def _hears(engine: Outreach) -> bool:
    storage = engine._storage
    assert isinstance(storage, PostgresStorage)
    return storage.is_listening


async def test_a_start_and_a_pause_on_another_node_reach_a_worker_at_once() -> None:
    """docs/workers.md#wake-ups: neither waits for the next reading of the feed."""
    async with _two() as (worker, node):
        workspace = await given_workspace(node)
        campaign = await given_campaign(node, workspace, 40, rate_per_minute=60)
        await node.campaigns.start(workspace.id, campaign.id)
        with anyio.fail_after(20):
            await until(lambda: _pending_is_below(node, workspace.id, campaign.id, 40))
        assert worker.health().active_units == 1
        paused = await node.campaigns.pause(workspace.id, campaign.id)
        assert paused.status is CampaignStatus.PAUSED
        with anyio.fail_after(20):
            await until(lambda: _is_idle(worker))


async def test_wake_ups_reach_a_worker_after_its_connection_was_cut() -> None:
    """A listener whose connection is lost connects anew, and looks at what it may have missed."""
    async with _two() as (worker, node):
        workspace = await given_workspace(node)
        # Every listener of this server, which no other test uses meanwhile.
        assert postgres.server().execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN outreach'"
        )
        campaign = await given_campaign(node, workspace, 2)
        await node.campaigns.start(workspace.id, campaign.id)
        await reaches(worker, campaign, "completed")


async def test_a_node_that_does_not_dispatch_answers_with_the_providers_id() -> None:
    """docs/interface.md#4.1: whichever node is asked, the call is placed while the request waits."""
    async with _two() as (_, node):
        workspace = await given_workspace(node)
        agent = await node.agents.create(workspace.id, NewAgent(name="Ada", from_number="+14155550199"))
        with anyio.fail_after(15):
            call = await node.calls.create(workspace.id, NewCall(agent_id=agent.id, to="14155550100"))
        assert call.provider_call_id is not None


async def test_without_a_worker_nobody_waits_for_an_id(tmp_path: Path) -> None:
    """A call that nobody places yet is answered at once, as queued."""
    async with Outreach.open(f"sqlite:///{tmp_path / 'x.db'}", config=DEAF) as node:
        workspace = await given_workspace(node)
        agent = await node.agents.create(workspace.id, NewAgent(name="Ada", from_number="+14155550199"))
        with anyio.fail_after(10):
            call = await node.calls.create(workspace.id, NewCall(agent_id=agent.id, to="14155550100"))
        assert call.provider_call_id is None


async def test_waiting_for_one_topic_is_not_ended_by_another() -> None:
    """What was missed while the connection was away wakes all."""
    wake_ups, woken = WakeUps(), list[str]()

    async def wait() -> None:
        await wake_ups.wait("calls", poll_seconds=600)
        woken.append("calls")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for topic in ("work", "*"):
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                wake_ups.notify(topic)
                await anyio.wait_all_tasks_blocked()
                assert (topic, len(woken)) in {("work", 0), ("*", 2)}


async def _is_idle(engine: Outreach) -> bool:
    return engine.health().active_units == 0


async def _pending_is_below(engine: Outreach, workspace_id: str, campaign_id: str, count: int) -> bool:
    return (await engine.campaigns.get(workspace_id, campaign_id)).counters.pending < count


@pytest.mark.parametrize("topic", ["work", "*"])
async def test_a_notification_while_nobody_waits_ends_the_next_wait(topic: str) -> None:
    """A worker reads the feed meanwhile, and has perhaps read too early. The notification ends one wait."""
    wake_ups = WakeUps()
    await wake_ups.wait("work", poll_seconds=0.01)
    wake_ups.notify(topic)
    with anyio.fail_after(20):
        await wake_ups.wait("work", poll_seconds=600.0)
    with anyio.move_on_after(0.01) as waiting:
        await wake_ups.wait("work", poll_seconds=600.0)
    assert waiting.cancelled_caught


async def test_every_waiting_request_is_woken() -> None:
    """One notification wakes each request that waits for its call."""
    wake_ups, woken = WakeUps(), 0

    async def wait() -> None:
        nonlocal woken
        await wake_ups.wait("calls", poll_seconds=600.0)
        woken += 1

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            wake_ups.notify("calls")
    assert woken == 3
