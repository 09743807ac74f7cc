from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from outreach.core.config import EngineConfig
from outreach.integrations.procrastinate import ProcrastinateDispatcher, install
from outreach.protocols.carrier import ReportSink
from outreach.protocols.dispatcher import Dispatcher, DispatcherParts, ReportSource
from outreach.testing.dispatcher_contract import DispatcherContract, MakeDispatcher, running, unit
from outreach.testing.scripted_dispatch import ScriptedRunner, ScriptedWorker, ignore_report, past
from outreach.testing.virtual_time import clock_of_loop
from tests import postgres


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Make a database with the tables of jobs."""
    with postgres.server().database(template=postgres.template()) as name:
        install(postgres.server().url(name))
        yield postgres.server().url(name)


@pytest.mark.anyio
class TestProcrastinateDispatcher(DispatcherContract):
    """The dispatcher whose slices are jobs keeps the contract, on a real PostgreSQL."""

    @pytest.fixture
    def make(self, url: str) -> MakeDispatcher:
        """Return what makes a dispatcher that looks around quickly, without jobs of another test."""
        postgres.server().execute(
            "TRUNCATE outreach_jobs.procrastinate_jobs, outreach_jobs.procrastinate_workers, "
            "outreach_jobs.procrastinate_periodic_defers CASCADE",
            url.rpartition("/")[2],
        )

        def make(
            worker: ScriptedWorker, runner: ScriptedRunner, sources: Sequence[ReportSource], report: ReportSink
        ) -> Dispatcher:
            return ProcrastinateDispatcher(
                DispatcherParts(
                    worker=worker,
                    runner=runner,
                    report=report,
                    sources=sources,
                    clock=clock_of_loop(),
                    config=EngineConfig(
                        change_poll_seconds=0.02, heartbeat_interval_seconds=0.03, lock_retry_seconds=0.03
                    ),
                ),
                url=url,
                look_after_cron="* * * * * *",
            )

        return make

    @pytest.mark.parametrize("driven_by", [77, 0])
    async def test_a_refused_slice_hands_its_job_on_and_it_is_never_lost(
        self, make: MakeDispatcher, driven_by: int
    ) -> None:
        """It goes to the worker that drives its unit, or, once that one gives it up, to a worker with room."""
        worker, runner, due = ScriptedWorker(1), ScriptedRunner(), unit()
        worker.refusals[due] = driven_by
        worker.put(due, past())
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: runner.count(due) == 2)
        assert runner.overlaps == []
