from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from fair import FairDispatcher

from outreach import EngineConfig
from outreach.protocols import DispatcherParts, ReportSource, SliceRunner, Worker
from outreach.testing.dispatcher_contract import DispatcherContract
from outreach.testing.virtual_time import clock_of_loop


async def report(_: object) -> None: ...


CONFIG = EngineConfig(
    change_poll_seconds=0.02, heartbeat_interval_seconds=0.05, lock_retry_seconds=0.02, cleanup_interval_seconds=0.05
)


@pytest.mark.anyio
class TestFairDispatcher(DispatcherContract):
    @pytest.fixture
    def make(self) -> Callable[[Worker, SliceRunner, Sequence[ReportSource]], FairDispatcher]:
        return lambda worker, runner, sources: FairDispatcher(
            DispatcherParts(
                worker=worker, runner=runner, sources=sources, report=report, clock=clock_of_loop(), config=CONFIG
            )
        )
