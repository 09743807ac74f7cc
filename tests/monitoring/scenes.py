"""An engine that dispatches and is watched by Prometheus."""

from __future__ import annotations

import asyncio
from collections import namedtuple
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from outreach import EngineConfig, Outreach, Workspace
from outreach.protocols.storage import Storage
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier
from outreach.testing.virtual_time import VirtualTimeLoop
from outreach_server import ServerMetrics
from tests.engine.rig import contacts, given_campaign, given_workspace
from tests.monitoring.watcher import Watcher

CALM: Final = EngineConfig(change_poll_seconds=5.0)
"""Looks around rarely, so that minutes of virtual time take little."""

Disk = namedtuple("Disk", ["total", "used", "free"])


@attrs.frozen(kw_only=True)
class Scene:
    """An engine that dispatches and is watched, healthy until now."""

    engine: Outreach
    watcher: Watcher
    workspace: Workspace
    storage: Storage
    clock: ShiftedClock

    async def start(self, recipients: int = 1, **changes: Any) -> Any:
        """Start a campaign."""
        campaign = await given_campaign(self.engine, self.workspace, contacts(recipients), **changes)
        return await self.engine.campaigns.start(campaign.workspace_id, campaign.id)


@asynccontextmanager
async def scene(
    storage: Storage,
    *,
    carrier: ScriptedCarrier | None = None,
    config: EngineConfig = CALM,
    dispatch: bool = True,
    database: Path | None = None,
    **workspace: Any,
) -> AsyncIterator[Scene]:
    """Open it, and read its metrics twice."""
    metrics, clock = ServerMetrics(database=database), ShiftedClock()
    engine = Outreach(
        storage,
        dispatch=dispatch,
        clock=clock,
        config=config,
        sandbox_carrier=carrier or ScriptedCarrier(name="twilio"),
        instrumentation=[metrics.engine],
    )
    async with engine, metrics.engine.watching(engine):
        watcher = Watcher(metrics)
        made = await given_workspace(engine, **workspace)
        assert await watcher.follow(minutes=0.5) == set()
        yield Scene(engine=engine, watcher=watcher, workspace=made, storage=storage, clock=clock)


def stand_still(seconds: float) -> None:
    """Let virtual time pass while nothing runs, as in a process that is stopped or blocked."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop._selecting.now += seconds
