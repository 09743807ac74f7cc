"""The runner of every kind of unit."""

from __future__ import annotations

from datetime import datetime

import anyio
from anyio.abc import TaskStatus

from outreach.clock import Clock
from outreach.config import EngineConfig
from outreach.ids import IdSource
from outreach.models.work import Unit
from outreach.protocols.dispatcher import Nudge
from outreach.protocols.storage import Storage
from outreach.runners.desk import ProviderDesk
from outreach.runners.outbox import Outbox
from outreach.runners.singles import SinglesRunner
from outreach.runners.sms_campaigns import SmsCampaignRunner
from outreach.runners.worker import Worker


class Runner:
    """Hands each unit to the runner of its kind; implements `protocols.dispatcher.SliceRunner`."""

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        ids: IdSource,
        config: EngineConfig,
        desk: ProviderDesk,
        worker: Worker,
    ) -> None:
        self._outbox = Outbox(storage=storage, clock=clock, config=config, worker=worker)
        self._campaigns = SmsCampaignRunner(
            storage=storage, clock=clock, ids=ids, config=config, desk=desk, worker=worker, outbox=self._outbox
        )
        self._singles = SinglesRunner(
            storage=storage, clock=clock, ids=ids, config=config, desk=desk, worker=worker, outbox=self._outbox
        )

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Hold the requests in flight until it is cancelled."""
        await self._outbox.serve(task_status=task_status)

    async def run_slice(self, unit: Unit, *, epoch: int, until: float, nudge: Nudge) -> datetime | None:
        """Work on a unit; see `protocols.dispatcher.SliceRunner`."""
        match unit.kind:
            case "campaign":
                return await self._campaigns.run_slice(unit, epoch=epoch, until=until, nudge=nudge)
            case "message":
                return await self._singles.run_message(unit, epoch=epoch, nudge=nudge)
            case "call":
                return await self._singles.run_call(unit, epoch=epoch, nudge=nudge)

    async def drain(self, *, grace_seconds: float) -> None:
        """Wait for the requests in flight."""
        await self._outbox.drain(grace_seconds=grace_seconds)
