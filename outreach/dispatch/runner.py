"""The runner of all kinds of units."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

import anyio
from anyio.abc import TaskStatus

from outreach.core.clock import Clock, IdSource
from outreach.core.config import EngineConfig
from outreach.dispatch.campaign_runner import CampaignRunner
from outreach.dispatch.forecast_keeper import Forecaster, ForecastKeeper
from outreach.dispatch.outbox import CallChannel, Outbox, SmsChannel
from outreach.dispatch.reconciler import Reconciler
from outreach.dispatch.singles import SinglesRunner
from outreach.dispatch.worker import Worker
from outreach.ledger.leases.leases import Wanted
from outreach.models.work import WorkUnit
from outreach.protocols.dispatcher import WakeSignal
from outreach.protocols.storage import Storage
from outreach.providers.pool import ProviderPool

ScheduleRun = Callable[[str, str], Awaitable[datetime | None]]
"""Does what is due for a schedule, by workspace and id; returns when more is to be done, None until it changes."""


class Runner:
    """Hands each unit to the runner of its kind; implements `protocols.dispatcher.SliceRunner`."""

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        ids: IdSource,
        config: EngineConfig,
        provider_pool: ProviderPool,
        worker: Worker,
        forecast: Forecaster | None = None,
        run_schedule: ScheduleRun | None = None,
    ) -> None:
        self._worker = worker
        self._run_due = run_schedule
        self._forecasts = ForecastKeeper(
            storage=storage, clock=clock, forecast=forecast, log_throttle=worker.log_throttle
        )
        self._outbox = Outbox(storage=storage, clock=clock, config=config, worker=worker)
        self._reconciler = Reconciler(
            storage=storage, clock=clock, config=config, provider_pool=provider_pool, worker=worker
        )
        self._campaigns = CampaignRunner(
            storage=storage,
            clock=clock,
            config=config,
            worker=worker,
            outbox=self._outbox,
            forecasts=self._forecasts,
            provider_pool=provider_pool,
            channels={
                "sms": SmsChannel(ids=ids, config=config, provider_pool=provider_pool),
                "call": CallChannel(ids=ids, provider_pool=provider_pool),
            },
        )
        self._singles = SinglesRunner(
            storage=storage,
            clock=clock,
            ids=ids,
            config=config,
            provider_pool=provider_pool,
            worker=worker,
            outbox=self._outbox,
        )

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run requests until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._reconciler.serve)
            tasks.start_soon(self._forecasts.serve)
            await self._outbox.serve(task_status=task_status)
            tasks.cancel_scope.cancel()

    async def run_slice(self, unit: WorkUnit, *, epoch: int, until: float, wake_signal: WakeSignal) -> datetime | None:
        """Run a unit; see `protocols.dispatcher.SliceRunner`."""
        match unit.kind:
            case "campaign":
                return await self._campaigns.run_slice(unit, epoch=epoch, until=until, wake_signal=wake_signal)
            case "message":
                return await self._singles.run_message(unit, epoch=epoch, wake_signal=wake_signal)
            case "call":
                return await self._singles.run_call(unit, epoch=epoch, wake_signal=wake_signal)
            case "schedule":
                return await self._run_schedule(unit)

    async def _run_schedule(self, unit: WorkUnit) -> datetime | None:
        """Run a schedule in the one worker that drives the single requests of its workspace.

        Two workers that both believe so do no harm: a run is made once under its time.
        """
        if self._run_due is None:
            return None
        with self._worker.claims.slice(unit) as slice_claims:
            if not await slice_claims.take(Wanted(workspace_id=unit.workspace_id, campaign=None)):
                return None
            return await self._run_due(unit.workspace_id, unit.id)

    async def drain(self, *, grace_seconds: float) -> None:
        """Wait for the requests in flight."""
        await self._outbox.drain(grace_seconds=grace_seconds)
