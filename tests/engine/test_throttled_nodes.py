"""A provider that asks one node for a pause is left in peace by all of them (docs/delivery-contract.md#rule-7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from outreach.models.states import DispatchState
from outreach.protocols.storage import Storage
from outreach.storage.postgres import postgres_storage_from_url
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.scripted import ScriptedCarrier, Step, accept, defer
from outreach.testing.virtual_time import clock_of_loop
from tests import postgres
from tests.engine.rig import (
    QUICK,
    Rig,
    contacts,
    dispatching,
    given_campaign,
    given_workspace,
    reaches,
    until,
    until_true,
)

pytestmark = pytest.mark.virtual_time

PAUSE_SECONDS = 10.0
CONFIG = attrs.evolve(QUICK, look_ahead_seconds=2.0, change_poll_seconds=0.25, heartbeat_interval_seconds=1.0)
"""Intents wait for some seconds, so that both nodes have committed some when the provider asks for a pause."""


@pytest.fixture(
    params=["memory", pytest.param("postgres", marks=pytest.mark.turn(16, "the engine is the same in memory"))]
)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the database is."""
    if request.param == "postgres":
        postgres.tell_time_by(clock_of_loop(), monkeypatch)
    return str(request.param)


@asynccontextmanager
async def two_nodes(kind: str, first: ScriptedCarrier, second: ScriptedCarrier) -> AsyncIterator[tuple[Rig, Rig]]:
    """Two nodes that dispatch from one database; on PostgreSQL each over connections of its own."""
    clock = clock_of_loop()
    if kind == "memory":
        storages: list[Storage] = [MemoryStorage(clock=clock, workers=2)] * 2
    else:
        url = postgres.empty_database()
        storages = [postgres_storage_from_url(url, clock=clock, workers=2) for _ in range(2)]
    async with (
        dispatching(storages[0], carrier=first, config=CONFIG) as one,
        dispatching(storages[1], carrier=second, config=CONFIG) as two,
    ):
        yield one, two


async def test_a_pause_that_one_node_is_asked_for_holds_on_the_other(kind: str) -> None:
    """What the other has committed and not started is withdrawn; both go on when it is over, and nobody is left out."""
    busy = False

    def answer(_: object) -> Step:
        return defer(PAUSE_SECONDS) if busy else accept()

    first, second = ScriptedCarrier(answer), ScriptedCarrier()
    async with two_nodes(kind, first, second) as (one, two):
        workspace = await given_workspace(one.engine)
        campaigns = [
            await given_campaign(one.engine, workspace, contacts(40, first=100 * number), rate_per_minute=240)
            for number in range(2)
        ]
        for campaign in campaigns:
            await one.engine.campaigns.start(workspace.id, campaign.id)
        await until_true(lambda: min(len(first.requests), len(second.requests)) >= 6)
        busy = True

        async def throttled() -> bool:
            return await two.engine.campaigns.throttled_until(workspace.id, campaigns[0].id) is not None

        await until(throttled)
        busy = False
        asked = [len(first.requests), len(second.requests)]
        await anyio.sleep(PAUSE_SECONDS - 2)
        assert [len(first.requests), len(second.requests)] == asked
        epochs = [each.dispatcher.health().epoch for each in (one, two)]
        withdrawn = set()
        for campaign in campaigns:
            for position in range(40):
                made = await one.engine.campaigns.list_dispatches(workspace.id, campaign.id, position)
                withdrawn |= {each.epoch for each in made if each.state is DispatchState.WITHDRAWN}
        assert epochs[1] in withdrawn
        for campaign in campaigns:
            done = await reaches(one.engine, campaign, "completed")
            assert (done.counters.successful, done.counters.failed) == (40, 0)
        reached = [message.to for each in (first, second) for message in each.requests]
        assert len(set(reached)) == 80
