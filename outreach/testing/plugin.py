"""A pytest plugin: an engine on virtual time, in front of a carrier and a voice provider that a test scripts.

    # conftest.py
    pytest_plugins = ["outreach.testing.plugin"]


    # test_shop.py
    @pytest.mark.virtual_time
    async def test_the_offer_goes_out(outreach_engine, outreach_workspace, outreach_carrier): ...

The mark `virtual_time` makes an async test, and its async fixtures, run on a `VirtualTimeLoop`; nothing else is needed
to run it. A test of pytest-asyncio has both marks. Without `virtual_time`, a test that pytest-asyncio or anyio runs has
these fixtures in real time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Final

import pytest

from outreach.core.clock import Clock
from outreach.core.config import EngineConfig
from outreach.engine import Outreach
from outreach.models.workspace import NewWorkspace, Workspace
from outreach.protocols.carrier import OutboundMessage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.async_fixture import async_fixture
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, accept
from outreach.testing.virtual_time import VirtualTimeLoop, clock_of_loop

pytest_plugins = ["outreach.testing.virtual_time_mark"]

# To see the values that an assertion of the contract suites compared.
pytest.register_assert_rewrite(
    "outreach.testing.dispatcher_contract",
    "outreach.testing.provider_contract",
    "outreach.testing.carrier_contract",
    "outreach.testing.voice_contract",
    "outreach.testing.storage_tables",
)

ENGINE_CONFIG: Final = EngineConfig(
    change_poll_seconds=30.0,
    lease_seconds=3600.0,
    heartbeat_interval_seconds=600.0,
    cleanup_interval_seconds=3600.0,
    reconcile_interval_seconds=60.0,
)
"""One process alone need not look around often: with the defaults, a day would take many seconds of real time."""


@pytest.fixture
def outreach_config() -> EngineConfig:
    """Return how the engine behaves; override it for other settings."""
    return ENGINE_CONFIG


@pytest.fixture
def outreach_carrier() -> ScriptedCarrier:
    """Return the carrier of the sandbox: it accepts, and reports each message delivered, unless it is scripted."""
    return ScriptedCarrier(then=accept().delivered())


@pytest.fixture
def outreach_voice() -> ScriptedVoice:
    """Return the voice provider of the sandbox: each call is answered and ends well, unless it is scripted."""
    return ScriptedVoice(then=accept().answered())


@async_fixture
async def outreach_clock(request: pytest.FixtureRequest) -> Clock:
    """Return the engine's clock: the loop's own where its time is virtual, the system's otherwise."""
    _check_loop(request.node)
    return clock_of_loop()


@async_fixture
async def outreach_engine(
    outreach_config: EngineConfig,
    outreach_carrier: ScriptedCarrier,
    outreach_voice: ScriptedVoice,
    outreach_clock: Clock,
) -> AsyncIterator[Outreach]:
    """Open an engine over a database in memory that dispatches to the scripted providers."""
    engine = Outreach(
        MemoryStorage(clock=outreach_clock),
        dispatch=True,
        clock=outreach_clock,
        rng=random.Random(0),  # noqa: S311 - no secret: a test is to repeat itself
        config=outreach_config,
        sandbox_carrier=outreach_carrier,
        sandbox_voice=outreach_voice,
    )

    async def receive(message: OutboundMessage, body: str) -> None:
        await engine.messages.receive(
            message.workspace_id, from_number=message.to, to=message.from_number or "", body=body
        )

    outreach_carrier.on_reply = receive
    async with engine:
        yield engine


@async_fixture
async def outreach_workspace(outreach_engine: Outreach) -> Workspace:
    """Make a sandbox workspace without a request limit, in the region US."""
    return await outreach_engine.workspaces.create(NewWorkspace(name="Test", request_limit=None, default_region="US"))


def _check_loop(node: pytest.Item) -> None:
    """Fail a test that is to run in virtual time and does not; called on its loop."""
    is_virtual = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    if node.get_closest_marker("virtual_time") is not None and not is_virtual:
        pytest.fail(
            f"{node.nodeid} is marked virtual_time and does not run in virtual time. It must be async; with "
            "pytest-asyncio it takes version 1.4 or newer, and fixtures of the tests' loop scope: "
            "asyncio_default_fixture_loop_scope.",
            pytrace=False,
        )
