from __future__ import annotations

from collections.abc import Sequence

import pytest

from outreach.clock import SystemClock
from outreach.config import EngineConfig
from outreach.dispatch.in_process import InProcessDispatcher
from outreach.protocols.dispatcher import Dispatcher, ReportSource
from outreach.testing.dispatcher_contract import DispatcherContract, Make
from outreach.testing.dispatcher_doubles import DirectedRunner, DirectedWorker, ignore


class TestInProcessDispatcher(DispatcherContract):
    """The dispatcher of the engine's own process keeps the contract."""

    @pytest.fixture
    def make(self) -> Make:
        """Return what makes an in-process dispatcher that looks around quickly."""

        def make(worker: DirectedWorker, runner: DirectedRunner, sources: Sequence[ReportSource]) -> Dispatcher:
            return InProcessDispatcher(
                worker=worker,
                runner=runner,
                report=ignore,
                sources=sources,
                clock=SystemClock(),
                config=EngineConfig(poll_seconds=0.02, heartbeat_seconds=0.03, lock_seconds=0.03),
            )

        return make
