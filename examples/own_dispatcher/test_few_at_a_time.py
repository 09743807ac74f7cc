"""The dispatcher keeps the engine's contract: `pytest test_few_at_a_time.py`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from few_at_a_time import FewAtATime

from outreach import EngineConfig
from outreach.protocols import Dispatcher, DispatcherParts, ReportSink, ReportSource, SystemClock
from outreach.testing.dispatcher_contract import DispatcherContract, MakeDispatcher
from outreach.testing.scripted_dispatch import ScriptedRunner, ScriptedWorker

QUICK = EngineConfig(change_poll_seconds=0.02, heartbeat_interval_seconds=0.03, lock_retry_seconds=0.03)


@pytest.mark.anyio
class TestFewAtATime(DispatcherContract):
    @pytest.fixture
    def make(self) -> MakeDispatcher:
        def make(
            worker: ScriptedWorker, runner: ScriptedRunner, sources: Sequence[ReportSource], report: ReportSink
        ) -> Dispatcher:
            parts = DispatcherParts(
                worker=worker, runner=runner, sources=sources, report=report, clock=SystemClock(), config=QUICK
            )
            return FewAtATime(parts)

        return make
