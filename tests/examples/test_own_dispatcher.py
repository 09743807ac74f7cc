from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outreach import ConfigError, Outreach
from outreach.protocols import SystemClock
from outreach.protocols.dispatcher import Dispatcher, DispatcherFactory, DispatcherParts
from tests.engine.conftest import OpenStorage, open_storage  # noqa: F401 - a fixture
from tests.engine.rig import QUICK, given_campaign, given_workspace, reaches
from tests.examples.running import EXAMPLES, suite

pytestmark = pytest.mark.anyio


@pytest.fixture
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[DispatcherFactory]:
    """Return the example's dispatcher."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "own_dispatcher"))
    from few_at_a_time import FewAtATime

    yield FewAtATime
    del sys.modules["few_at_a_time"]


@pytest.mark.nightly("the contract suites of examples")
def test_it_keeps_the_contract(tmp_path: Path) -> None:
    """By the suite that ships, as the example runs it."""
    assert "39 passed" in suite("own_dispatcher", tmp_path)


async def test_an_engine_sends_by_a_dispatcher_of_ones_own(
    open_storage: OpenStorage,  # noqa: F811
    few_at_a_time: DispatcherFactory,
) -> None:
    """It is made as the engine is opened, with all that it needs, and stopped as it closes."""
    made: list[Dispatcher] = []

    def factory(parts: DispatcherParts) -> Dispatcher:
        made.append(few_at_a_time(parts))
        return made[-1]

    engine = Outreach(open_storage(SystemClock()), dispatch=True, config=QUICK, dispatcher=factory)
    assert made == []
    async with engine:
        assert engine.health().dispatching
        workspace = await given_workspace(engine, contact_hours=False)
        campaigns = [await given_campaign(engine, workspace, 5) for _ in range(3)]
        for campaign in campaigns:
            await engine.campaigns.start(workspace.id, campaign.id)
        for campaign in campaigns:
            done = await reaches(engine, campaign, "completed")
            assert done.counters.successful == 5
    assert made[0].health().state == "stopping"
    assert engine.health().state == "off"


async def test_an_engine_that_does_not_dispatch_makes_none(open_storage: OpenStorage) -> None:  # noqa: F811
    """A program may name its dispatcher in every process, and let one of them dispatch."""

    def never(parts: DispatcherParts) -> Dispatcher:
        raise AssertionError

    async with Outreach(open_storage(SystemClock()), dispatcher=never) as engine:
        assert engine.health().state == "off"


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("in_process", "dispatcher is 'in_process'; it must be a function"),
        (lambda _: object(), "lacks run, wake, stop, health of a Dispatcher"),
    ],
)
async def test_what_makes_no_dispatcher_is_refused(factory: Any, words: str) -> None:
    """Where the engine is made, or opened."""
    with pytest.raises(ConfigError, match=words):
        async with Outreach.open("memory://", dispatch=True, dispatcher=factory):
            pass
