"""The metrics of one engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

import outreach
from outreach.core.clock import StepWatch
from outreach.core.logged_errors import masked
from outreach.engine import Outreach
from outreach.errors import StorageError
from outreach.integrations.prometheus import families
from outreach.integrations.prometheus.families import Family
from outreach.integrations.prometheus.gauges import of_dispatcher, of_figures, of_files
from outreach.integrations.prometheus.tallies import BoundedNames, Collector, Counts, Histograms, Labels, Metric, gauge
from outreach.integrations.prometheus.write_errors import WRITE_ERRORS, write_error
from outreach.models.base import Channel
from outreach.models.database import EngineFigures, WebhookLag
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallReport, Report
from outreach.models.states import DispatchState
from outreach.protocols.instrumentation import Instrumentation
from outreach.rules.webhooks import is_success

LOOK_SECONDS: Final = 0.5
"""How often the event loop's lag and the clocks are looked at."""

REFRESH_SECONDS: Final = 15.0
"""How often the figures are read from the database, however often Prometheus asks."""

MAX_WORKSPACES: Final = 1000
"""The most workspaces with labels of their own, where labels by workspace are on; the others share `other`."""

MAX_PROVIDERS: Final = 50
MAX_REASONS: Final = 60

_OUTCOMES: Final = ("accepted", "refused", "deferred", "not_sent", "withdrawn", "unknown")
_FAILURES: Final = frozenset(
    {DispatchState.REFUSED, DispatchState.DEFERRED, DispatchState.NOT_SENT, DispatchState.UNKNOWN}
)
_REASONS: Final = (
    "provider_auth",
    "provider_funds",
    "provider_error",
    "rate_limited",
    "temporary",
    "not_connected",
    "timeout",
    "dropped",
    "unreadable",
    "rejected",
    "bad_sender",
)
"""Reasons that begin with a zero, so that alerts see the first one."""

_RESULTS: Final = ("delivered", "refused", "target_refused", "not_connected", "timeout", "dropped")
"""The results of requests to webhooks: refused is any answer but 2xx; the last four are those without an answer."""

_SOURCES: Final = ("operator", "import", "keyword", "carrier", "call")


class EngineMetrics(Instrumentation, Collector):
    """Counts what an engine does: one of its instrumentations, and a collector of Prometheus.

    Labels never hold data of tenants, and the values of each are bounded.

    Args:
        by_workspace: Whether dispatches, reports and the lags of webhooks have the workspace's id as a label; the first
            `MAX_WORKSPACES` have their own.
        database: The SQLite file whose size is shown, if any.
    """

    def __init__(self, *, by_workspace: bool = False, database: Path | None = None) -> None:
        self._by_workspace = by_workspace
        self._database = database
        self._workspaces = BoundedNames(MAX_WORKSPACES)
        self._providers = BoundedNames(MAX_PROVIDERS)
        self._reasons = BoundedNames(MAX_REASONS, _REASONS)
        self._waits = BoundedNames(MAX_REASONS)
        self._sources = BoundedNames(len(_SOURCES), _SOURCES)
        self._dispatches = Counts(self._with_workspace(families.DISPATCHES))
        self._failures = Counts(families.FAILURES)
        self._duration = Histograms(families.DURATION)
        self._lag = Histograms(families.PACE_LAG)
        self._reports = Counts(self._with_workspace(families.REPORTS))
        self._report_delay = Histograms(families.REPORT_DELAY)
        self._callbacks_refused = Counts(families.CALLBACKS_REFUSED)
        self._opt_outs = Counts(families.OPT_OUTS)
        self._leases_lost = Counts(families.LEASES_LOST)
        self._commits = Histograms(families.COMMITS)
        self._groups = Histograms(families.GROUPS)
        self._write_failures = Counts(families.WRITE_FAILURES)
        self._loop_lag = Histograms(families.LOOP_LAG)
        self._clock_steps = Counts(families.CLOCK_STEPS)
        self._webhook_attempts = Counts(families.WEBHOOK_ATTEMPTS)
        self._figures_failures = Counts(families.FIGURES_FAILURES)
        self._started: set[Labels] = set()
        self._intents = self._in_flight = self._queued = 0
        self._engine: Outreach | None = None
        self._figures_since = 0.0
        self._figures: EngineFigures | None = None
        self._leases_lost.start()
        self._figures_failures.start()
        for direction in ("back", "forth"):
            self._clock_steps.start(direction)
        for error in WRITE_ERRORS:
            self._write_failures.start(error)
        for source in _SOURCES:
            self._opt_outs.start(source)
        for result in _RESULTS:
            self._webhook_attempts.start(result)

    def _with_workspace(self, family: Family) -> Family:
        if not self._by_workspace:
            return family
        return Family(family.name, family.kind, family.help, (*family.labels, "workspace"), family.buckets)

    def _workspace(self, workspace_id: str) -> Labels:
        return (self._workspaces(workspace_id),) if self._by_workspace else ()

    # The reports of the engine.

    def intent_committed(self, dispatch: Dispatch) -> None:
        """Count it as waiting."""
        self._intents += 1
        channel, provider, workspace_id = dispatch.channel, dispatch.provider, dispatch.workspace_id
        # A name beyond its bound is never among them, and is looked up each time.
        if ((channel, provider, workspace_id) if self._by_workspace else (channel, provider)) not in self._started:
            self._start(channel, provider, self._workspace(workspace_id))

    def _start(self, channel: Channel, name: str, workspace: Labels) -> None:
        """Show zeros for a provider that is seen for the first time."""
        provider = self._providers(name)
        labels = (channel, provider, *workspace)
        if labels not in self._started:
            self._started.add(labels)
            for outcome in _OUTCOMES:
                self._dispatches.start(channel, provider, outcome, *workspace)
            self._start_failures(channel, provider)

    def _start_failures(self, channel: Channel, provider: str) -> None:
        for reason in _REASONS:
            self._failures.start(channel, provider, reason)

    def request_started(self, dispatch: Dispatch, *, late_seconds: float) -> None:
        """Note how late it is."""
        self._intents -= 1
        self._in_flight += 1
        self._lag.observe(late_seconds, dispatch.channel)

    def request_ended(self, dispatch: Dispatch, outcome: DispatchOutcome, *, seconds: float | None) -> None:
        """Count the outcome."""
        channel, provider = dispatch.channel, self._providers(dispatch.provider)
        if seconds is None:
            self._intents -= 1
        else:
            self._in_flight -= 1
            self._duration.observe(seconds, channel, provider)
        state = outcome.state
        if self._by_workspace:
            self._dispatches.add(channel, provider, state, self._workspaces(dispatch.workspace_id))
        else:
            self._dispatches.add(channel, provider, state)
        if state in _FAILURES:
            self._failures.add(channel, provider, self._reasons(outcome.reason or str(state)))

    def report_received(self, dispatch: Dispatch | None, report: Report, *, delay_seconds: float | None) -> None:
        """Count the report."""
        channel = "call" if isinstance(report, CallReport) else "sms"
        provider = self._providers(report.provider)
        self._reports.add(channel, provider, report.status, *self._workspace(report.workspace_id))
        if delay_seconds is not None:
            self._report_delay.observe(delay_seconds, channel, provider)

    def callback_refused(self, provider: str) -> None:
        """Count it."""
        self._callbacks_refused.add(self._providers(provider))

    def webhook_answered(self, webhook_id: str, *, status: int | None, error: str | None, seconds: float) -> None:
        """Count what came of it."""
        answered = "delivered" if is_success(status) else "refused"
        self._webhook_attempts.add(answered if status is not None else error or "dropped")

    def lease_lost(self) -> None:
        """Count it."""
        self._leases_lost.add()

    def transaction_committed(self, *, operations: int, seconds: float, queued: int) -> None:
        """Note its size and duration."""
        self._commits.observe(seconds)
        self._groups.observe(operations)
        self._queued = queued

    def transaction_failed(self, *, operations: int, error: str) -> None:
        """Count it."""
        self._write_failures.add(write_error(error))

    # The state that is looked at.

    @asynccontextmanager
    async def watching(self, engine: Outreach) -> AsyncIterator[None]:
        """Look at an open engine, the event loop and the clocks until the end of the block."""
        # Figures that could never be read are as old as the watch.
        self._engine, self._figures_since = engine, engine._clock.monotonic()
        for provider in engine.accounts.providers():
            channel: Channel = "sms" if provider.kind == "carrier" else "call"
            self._callbacks_refused.start(self._providers(provider.name))
            # Which workspaces dispatch is not known yet, but failures are not counted by workspace.
            if self._by_workspace:
                self._start_failures(channel, self._providers(provider.name))
            else:
                self._start(channel, provider.name, ())
        # No task group, which would put an error of the block into an exception group.
        tasks = [asyncio.create_task(self._watch_loop_lag(engine)), asyncio.create_task(self._refresh_again())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._engine = None

    async def refresh(self) -> None:
        """Read the figures from the database now; `watching` does so every `REFRESH_SECONDS`."""
        engine = self._engine
        if engine is None:
            return
        began = engine._clock.monotonic()
        try:
            figures = await engine.figures(None if self._figures is None else self._figures.until)
        except Exception as error:  # whatever it is, the server that is watched goes on
            self._figures_failures.add()
            self._log_failure(engine, error)
            return
        for source, count in figures.opt_outs.items():
            self._opt_outs.add(self._sources(source), amount=count)
        self._figures, self._figures_since = figures, began

    def _log_failure(self, engine: Outreach, error: Exception) -> None:
        # No problem of the database as such: it may take writes, and the server be ready.
        kind = type(error).__name__
        engine._log_throttle.problem(
            ("figures",),
            kind,
            "The figures for the metrics could not be read: %s",
            masked(error.message) if isinstance(error, StorageError) else kind,
            level=logging.ERROR,
            error=None if isinstance(error, StorageError) else error,
            action="figures_failed",
            error_type=kind,
        )

    async def _refresh_again(self) -> None:
        while True:
            await self.refresh()
            await anyio.sleep(REFRESH_SECONDS)

    async def _watch_loop_lag(self, engine: Outreach) -> None:
        steps = StepWatch(_Clocks(engine))
        while True:
            due = anyio.current_time() + LOOK_SECONDS
            await anyio.sleep(LOOK_SECONDS)
            self._loop_lag.observe(max(anyio.current_time() - due, 0.0))
            if seconds := steps.step().total_seconds():
                self._clock_steps.add("back" if seconds < 0 else "forth")

    # The metrics for Prometheus.

    def collect(self) -> Iterator[Metric]:
        """Yield every metric as it is now."""
        yield gauge(families.BUILD, {(outreach.__version__,): 1})
        for value in vars(self).values():
            if isinstance(value, Counts | Histograms):
                yield value.metric()
        yield gauge(families.IN_FLIGHT, {(): self._in_flight})
        yield gauge(families.INTENTS, {(): self._intents})
        yield gauge(families.QUEUED, {(): self._queued})
        if self._database is not None:
            yield from of_files(self._database)
        if self._engine is not None:
            yield from of_dispatcher(self._engine.health())
            if self._figures is not None:
                yield from of_figures(self._figures, self._engine.now(), reasons=self._waits, providers=self._providers)
                yield from self._lags(self._figures.webhook_lags)
            # Not by the wall clock, which may be set.
            yield gauge(families.FIGURES_AGE, {(): max(self._engine._clock.monotonic() - self._figures_since, 0.0)})

    def _lags(self, lags: Mapping[str, WebhookLag]) -> Iterator[Metric]:
        """Yield how far webhooks are behind: the greatest numbers of each workspace, or of all."""
        events: dict[Labels, float] = {} if self._by_workspace else {(): 0}
        seconds = dict(events)
        for workspace_id, lag in lags.items():
            labels = self._workspace(workspace_id)
            events[labels] = max(events.get(labels, 0), lag.events)
            seconds[labels] = max(seconds.get(labels, 0), lag.seconds)
        yield gauge(self._with_workspace(families.WEBHOOK_LAG_EVENTS), events)
        yield gauge(self._with_workspace(families.WEBHOOK_LAG), seconds)


class _Clocks:
    """The engine's wall clock beside the event loop's."""

    def __init__(self, engine: Outreach) -> None:
        self.now = engine.now

    def monotonic(self) -> float:
        """Return seconds on the event loop's clock."""
        return anyio.current_time()
