from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from prometheus_client import CollectorRegistry

from outreach import NewAgent, NewCall, NewWorkspace, Outreach
from outreach.core.log_throttle import LogThrottle
from outreach.errors import ConfigError, NotFound, StorageError
from outreach.integrations.prometheus import EngineMetrics
from outreach.integrations.prometheus import engine_metrics as module
from outreach.integrations.prometheus.families import ENGINE_FAMILIES
from outreach.models import NewSimulation, NewWebhook
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import MessageReport, Report
from outreach.models.states import DispatchState, MessageStatus
from outreach.models.work import WorkUnit
from outreach.protocols import Instrumentation
from outreach.protocols.instrumentation import Instruments
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.builders import NOW, make_dispatch
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, accept, refuse
from outreach_server.monitoring.server_metrics import SERVER_FAMILIES
from tests.engine.rig import QUICK, given_campaign, given_workspace, reaches, until
from tests.monitoring.exposition import exposed, families, problems, samples, value


class Notes(Instrumentation):
    """Records each call about a dispatch."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def unit_changed(self, unit: WorkUnit) -> None:
        """Note it."""
        self.told.append(("unit", unit.kind))

    def intent_committed(self, dispatch: Dispatch) -> None:
        """Note it."""
        self.told.append(("intent", dispatch.id))

    def request_started(self, dispatch: Dispatch, *, late_seconds: float) -> None:
        """Note it."""
        assert 0 <= late_seconds < 5
        self.told.append(("start", dispatch.id))

    def request_ended(self, dispatch: Dispatch, outcome: DispatchOutcome, *, seconds: float | None) -> None:
        """Note it."""
        assert seconds is not None
        self.told.append((str(outcome.state), dispatch.id))

    def report_received(self, dispatch: Dispatch | None, report: Report, *, delay_seconds: float | None) -> None:
        """Note it."""
        assert dispatch is not None
        assert delay_seconds is not None
        self.told.append((str(report.status), dispatch.id))


class Broken(Instrumentation):
    """Raises an error for each intent."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def intent_committed(self, dispatch: Dispatch) -> None:
        """Raise it."""
        raise self._error


@pytest.mark.virtual_time
@pytest.mark.parametrize("error", [ZeroDivisionError("0"), asyncio.CancelledError(), SystemExit(3)], ids=repr)
async def test_each_step_of_a_dispatch_is_instrumented_and_an_error_there_changes_nothing(
    caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """From the change to the receipt, in this order; the broken one is in the log, once."""
    notes, clock = Notes(), ShiftedClock()
    carrier = ScriptedCarrier(lambda _: accept().delivered())
    engine = Outreach(
        MemoryStorage(),
        dispatch=True,
        clock=clock,
        config=QUICK,
        sandbox_carrier=carrier,
        instrumentation=[Broken(error), notes],
    )
    async with engine:
        campaign = await given_campaign(engine, await given_workspace(engine), 3)
        await engine.campaigns.start(campaign.workspace_id, campaign.id)
        await reaches(engine, campaign, "completed")
        await until(lambda: _has(notes, "delivered", 3))
    assert ("unit", "campaign") in notes.told
    for request in carrier.requests:
        steps = [step for step, dispatch_id in notes.told if dispatch_id == request.dispatch_id]
        assert steps == ["intent", "start", "accepted", "delivered"]
    lines = [record for record in caplog.records if getattr(record, "action", None) == "instrumentation_failed"]
    assert [record.levelno for record in lines] == [logging.WARNING]
    assert "Broken failed" in lines[0].getMessage()


def test_ctrl_c_in_an_instrumentation_is_raised() -> None:
    """A person pressed it to end the process."""
    instruments = Instruments([Broken(KeyboardInterrupt())], LogThrottle(ShiftedClock()))
    with pytest.raises(KeyboardInterrupt):
        instruments.intent_committed(make_dispatch())


async def _has(notes: Notes, step: str, count: int) -> bool:
    return [told for told, _ in notes.told].count(step) == count


def test_what_is_no_instrumentation_is_refused() -> None:
    """As one, or as a list of something else."""
    for wrong in (Notes(), [object()]):
        with pytest.raises(ConfigError, match="must be a list of outreach"):
            Outreach(MemoryStorage(), instrumentation=wrong)  # type: ignore[arg-type]


class Awaited(Instrumentation):
    """Notes leases in an async method."""

    async def lease_lost(self) -> None:  # type: ignore[override]
        """Note nothing."""


def test_an_async_method_of_an_instrumentation_is_refused() -> None:
    """Nothing would await it."""
    with pytest.raises(ConfigError, match=r"lease_lost must be a function without async .*Awaited"):
        Outreach(MemoryStorage(), instrumentation=[Awaited()])


@pytest.mark.virtual_time
async def test_a_campaign_is_seen_in_the_metrics() -> None:
    """Messages by provider and outcome, pace, reports, what is open, and who dispatches."""
    metrics, clock = EngineMetrics(), ShiftedClock()
    steps = [accept().delivered(), refuse("invalid_number"), accept().undelivered("unreachable")]
    engine = Outreach(
        MemoryStorage(),
        dispatch=True,
        clock=clock,
        config=QUICK,
        sandbox_carrier=ScriptedCarrier(steps, name="twilio"),
        instrumentation=[metrics],
    )
    async with engine, metrics.watching(engine):
        workspace = await given_workspace(engine)
        campaign = await given_campaign(engine, workspace, 3)
        await engine.campaigns.start(campaign.workspace_id, campaign.id)
        await metrics.refresh()
        text = exposed(metrics)
        assert value(text, "outreach_campaigns", status="active") == 1
        assert value(text, "outreach_recipients_open") == 3
        await reaches(engine, campaign, "completed")
        await anyio.sleep(5)
        await engine.unsubscribes.add(workspace.id, "+14155550100")
        await metrics.refresh()
        text = exposed(metrics)
        dispatches = "outreach_dispatches_total"
        assert value(text, dispatches, channel="sms", provider="twilio", outcome="accepted") == 2
        assert value(text, dispatches, outcome="refused") == 1
        assert value(text, dispatches, outcome="unknown") == 0
        assert value(text, "outreach_dispatch_failures_total", reason="invalid_number") == 1
        assert value(text, "outreach_dispatch_duration_seconds_count") == 3
        assert value(text, "outreach_pace_lag_seconds_bucket", le="+Inf") == 3
        assert value(text, "outreach_pace_lag_seconds_sum") < 0.1
        assert value(text, "outreach_reports_total", status="delivered") == 1
        assert value(text, "outreach_report_delay_seconds_count") >= 2
        assert value(text, "outreach_opt_outs_total", source="operator") == 1
        assert value(text, "outreach_campaigns", status="active") == 0
        assert value(text, "outreach_recipients_open") == 0
        assert value(text, "outreach_requests_in_flight") == value(text, "outreach_intents_waiting") == 0
        assert value(text, "outreach_dispatcher_state", state="dispatching") == 1
        assert value(text, "outreach_dispatcher_state") == 1
        assert 0 < value(text, "outreach_lease_remaining_seconds") <= QUICK.lease_seconds
        assert value(text, "outreach_lease_epoch") == 1
        assert value(text, "outreach_clock_steps_total") == 0
        clock.shift(timedelta(minutes=-5))
        await anyio.sleep(1)
        assert value(exposed(metrics), "outreach_clock_steps_total", direction="back") == 1
    assert "outreach_dispatcher_state{" not in exposed(metrics)


@pytest.mark.virtual_time
async def test_requests_of_a_sandbox_are_not_counted_as_a_carriers() -> None:
    """Messages and calls of a sandbox, their reports and simulated events have the simulator as their provider."""
    metrics = EngineMetrics()
    engine = Outreach(MemoryStorage(), dispatch=True, clock=ShiftedClock(), config=QUICK, instrumentation=[metrics])
    async with engine, metrics.watching(engine):
        workspace = await given_workspace(engine)
        campaign = await given_campaign(engine, workspace, 3)
        await engine.campaigns.start(campaign.workspace_id, campaign.id)
        await reaches(engine, campaign, "completed")
        agent = await engine.agents.create(workspace.id, NewAgent(name="Ada", provider="vapi"))
        call = await engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to="+14155550101"))
        await anyio.sleep(1)
        await engine.simulate(workspace.id, NewSimulation(event="busy", phone_number="+14155550101"))
        assert (await engine.calls.get(workspace.id, call.id)).outcome == "busy"
        counted = {
            (one.name, one.labels["channel"], one.labels["provider"])
            for one in samples(exposed(metrics))
            if one.name in {"outreach_dispatches_total", "outreach_reports_total"} and one.value
        }
    assert counted == {
        (name, channel, "simulator")
        for name in ("outreach_dispatches_total", "outreach_reports_total")
        for channel in ("sms", "call")
    }


@pytest.mark.virtual_time
@pytest.mark.parametrize("by_workspace", [False, True])
async def test_failures_begin_with_a_zero_before_anything_is_sent(by_workspace: bool) -> None:
    """So that an alert sees the first one, with labels of workspaces too."""
    metrics = EngineMetrics(by_workspace=by_workspace)
    engine = Outreach(MemoryStorage(), clock=ShiftedClock(), instrumentation=[metrics])
    async with engine, metrics.watching(engine):
        failures = [one for one in samples(exposed(metrics)) if one.name == "outreach_dispatch_failures_total"]
    assert {("sms", "twilio", "not_connected"), ("call", "vapi", "timeout")} <= {
        (one.labels["channel"], one.labels["provider"], one.labels["reason"]) for one in failures
    }
    assert {one.value for one in failures} == {0}


@pytest.mark.anyio
async def test_the_writer_and_the_files_are_seen_in_the_metrics(tmp_path: Path) -> None:
    """Groups and their time, the sizes of database, log and disk; and a transaction that failed, by its error."""
    path = tmp_path / "o.db"
    metrics = EngineMetrics(database=path)
    storage = SqliteStorage(path, clock=ShiftedClock())
    async with Outreach(storage, instrumentation=[metrics]) as engine, metrics.watching(engine):
        await engine.workspaces.create(NewWorkspace(name="Acme"))
        text = exposed(metrics)
        assert value(text, "outreach_transaction_duration_seconds_count") >= 1
        assert value(text, "outreach_transaction_operations_sum") >= 1
        assert value(text, "outreach_operations_queued") == 0
        assert value(text, "outreach_transaction_failures_total") == 0
        assert value(text, "outreach_database_file_bytes", file="main") == path.stat().st_size
        assert value(text, "outreach_database_file_bytes", file="wal") > 0
        assert 0 < value(text, "outreach_disk_free_bytes") <= value(text, "outreach_disk_size_bytes")
        await storage.write(lambda tx: _limit(tx, 0))
        with pytest.raises(StorageError, match="full"):
            await _fill(engine)
        assert value(exposed(metrics), "outreach_transaction_failures_total", error="SQLITE_FULL") >= 1


def _limit(tx: Any, more: int) -> None:
    connection = tx.audit._rows.backend.connection
    used = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {used + more}")


async def _fill(engine: Outreach) -> None:
    for number in range(1000):
        await engine.workspaces.create(NewWorkspace(name=f"Acme {number}" * 10))


@pytest.mark.anyio
async def test_a_loop_that_stands_still_is_seen() -> None:
    """What blocks it makes a task late that slept meanwhile."""
    metrics = EngineMetrics()
    async with Outreach(MemoryStorage()) as engine, metrics.watching(engine):
        await anyio.sleep(0.05)
        time.sleep(module.LOOK_SECONDS + 0.3)  # noqa: ASYNC251 - that is the fault
        await until(lambda: _late(metrics))


async def _late(metrics: EngineMetrics) -> bool:
    return "outreach_event_loop_lag_seconds_sum" in (text := exposed(metrics)) and (
        value(text, "outreach_event_loop_lag_seconds_sum") >= 0.2
    )


@pytest.mark.anyio
async def test_figures_that_cannot_be_read_are_counted_and_the_last_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape shows how old they are."""
    metrics = EngineMetrics()
    await metrics.refresh()
    async with Outreach(MemoryStorage()) as engine, metrics.watching(engine):
        await until(lambda: _age_shown(metrics))

        async def fail(_: object = None) -> None:
            raise StorageError("gone")

        monkeypatch.setattr(engine, "figures", fail)
        await metrics.refresh()
        text = exposed(metrics)
        assert value(text, "outreach_figures_failures_total") == 1
        assert value(text, "outreach_figures_age_seconds") >= 0


@pytest.mark.virtual_time
@pytest.mark.parametrize("minutes", [-30, 30])
async def test_a_wall_clock_that_is_set_makes_figures_neither_older_nor_younger(minutes: int) -> None:
    """Their age goes by the monotonic clock."""
    metrics, clock = EngineMetrics(), ShiftedClock()
    async with Outreach(MemoryStorage(), clock=clock) as engine, metrics.watching(engine):
        await metrics.refresh()
        await anyio.sleep(5)
        clock.shift(timedelta(minutes=minutes))
        assert 4.9 < value(exposed(metrics), "outreach_figures_age_seconds") < 5.1


@pytest.mark.virtual_time
async def test_an_unexpected_error_of_the_figures_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is watched goes on; the log has it once, and figures that were never read get old."""
    metrics = EngineMetrics()

    async def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async with Outreach(MemoryStorage(), clock=ShiftedClock()) as engine:
        monkeypatch.setattr(engine, "figures", fail)
        async with metrics.watching(engine):
            await anyio.sleep(2.5 * module.REFRESH_SECONDS)
            text = exposed(metrics)
    assert value(text, "outreach_figures_failures_total") == 3
    assert value(text, "outreach_figures_age_seconds") >= 2 * module.REFRESH_SECONDS
    lines = [record for record in caplog.records if getattr(record, "action", None) == "figures_failed"]
    assert [record.levelno for record in lines] == [logging.ERROR]


@pytest.mark.virtual_time
async def test_an_error_leaves_the_watch_as_it_was_raised() -> None:
    """An application catches the error that the engine raised, with metrics as without."""
    metrics = EngineMetrics()
    async with Outreach(MemoryStorage(), clock=ShiftedClock()) as engine:
        with pytest.raises(NotFound):
            async with metrics.watching(engine):
                await engine.workspaces.get("unknown")
    assert "outreach_figures_age_seconds " not in exposed(metrics)


async def _age_shown(metrics: EngineMetrics) -> bool:
    return "outreach_figures_age_seconds " in exposed(metrics)


def _told_of_everything(metrics: EngineMetrics, workspaces: int) -> int:
    """Tell of dispatches of many workspaces, providers and reasons; return how many samples there are."""
    for number in range(workspaces):
        dispatch = attrs.evolve(make_dispatch(), id=f"d{number}", workspace_id=f"w{number}", provider=f"p{number}")
        metrics.intent_committed(dispatch)
        metrics.request_started(dispatch, late_seconds=0.1)
        outcome = DispatchOutcome(state=DispatchState.REFUSED, reason=f"reason {number}")
        metrics.request_ended(dispatch, outcome, seconds=0.1)
        report = MessageReport(
            workspace_id=f"w{number}",
            provider=f"p{number}",
            dispatch_id=None,
            provider_id=None,
            status=MessageStatus.DELIVERED,
            at=NOW,
        )
        metrics.report_received(dispatch, report, delay_seconds=1)
        metrics.transaction_failed(operations=1, error=f"error {number}")
    return len(samples(exposed(metrics)))


@pytest.mark.parametrize("by_workspace", [False, True])
def test_labels_stay_bounded_over_ten_thousand_workspaces(by_workspace: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many workspaces, providers and reasons there are; what is beyond the bound is counted as other."""
    monkeypatch.setattr(module, "MAX_PROVIDERS", 3)
    monkeypatch.setattr(module, "MAX_REASONS", 20)
    few = _told_of_everything(EngineMetrics(by_workspace=by_workspace), 1500)
    metrics = EngineMetrics(by_workspace=by_workspace)
    assert _told_of_everything(metrics, 10_000) == few < 12_000
    text = exposed(metrics)
    named = {one.labels["workspace"] for one in samples(text) if "workspace" in one.labels}
    assert len(named) == (module.MAX_WORKSPACES + 1 if by_workspace else 0)
    assert value(text, "outreach_dispatches_total", outcome="refused") == 10_000
    assert value(text, "outreach_dispatches_total", outcome="refused", provider="other") == 9_997


def test_requests_to_webhooks_are_counted_by_their_result() -> None:
    """Any answer but 2xx is a refusal; results begin with a zero."""
    metrics = EngineMetrics()
    for status, error in ((204, None), (500, None), (302, None), (None, "timeout")):
        metrics.webhook_answered("w", status=status, error=error, seconds=0.1)
    results = {
        one.labels["result"]: one.value
        for one in samples(exposed(metrics))
        if one.name == "outreach_webhook_attempts_total"
    }
    assert results == {
        **dict.fromkeys(("target_refused", "not_connected", "dropped"), 0),
        "delivered": 1,
        "refused": 2,
        "timeout": 1,
    }


@pytest.mark.virtual_time
@pytest.mark.parametrize("by_workspace", [False, True])
async def test_the_webhook_that_is_furthest_behind_is_seen(by_workspace: bool) -> None:
    """Of all, or of each workspace where labels by workspace are on."""
    metrics = EngineMetrics(by_workspace=by_workspace)
    engine = Outreach(MemoryStorage(), clock=ShiftedClock(), instrumentation=[metrics])
    async with engine, metrics.watching(engine):
        places = [await given_workspace(engine) for _ in range(2)]
        for events, place in enumerate(places):
            await engine.webhooks.create(place.id, NewWebhook(url="https://app.example/hook"))
            for number in range(events + 1):
                await engine.unsubscribes.add(place.id, f"+1212555000{number}")
        await anyio.sleep(7)
        await metrics.refresh()
        seen = {
            name: sorted(one.value for one in samples(exposed(metrics)) if one.name == f"outreach_webhook_lag_{name}")
            for name in ("events", "seconds")
        }
    assert seen["events"] == ([1, 2] if by_workspace else [2])
    assert all(7 <= one < 8 for one in seen["seconds"])


def test_names_units_and_help_are_as_promtool_wants_them() -> None:
    """`promtool check metrics` would have nothing to say."""
    for family in (*ENGINE_FAMILIES, *SERVER_FAMILIES):
        assert not list(problems(family.name, family.kind, family.help, family.labels)), family.name
        assert bool(family.buckets) == (family.kind == "histogram")
        assert list(family.buckets) == sorted(family.buckets)
    assert len({family.name for family in ENGINE_FAMILIES}) == len(ENGINE_FAMILIES)


@pytest.mark.parametrize(
    ("name", "kind", "labels", "said"),
    [
        ("outreach_lag_ms", "gauge", (), "abbreviated"),
        ("outreach_lag_milliseconds", "gauge", (), "base unit"),
        ("outreach_calls", "counter", (), "_total"),
        ("outreach_calls_total", "gauge", (), "_total"),
        ("outreach_gauge_bytes", "gauge", (), "its type"),
        ("outreachCalls", "gauge", (), "camelCase"),
        ("outreach_calls_count", "gauge", (), "reserved"),
        ("outreach_calls", "gauge", ("le",), "reserved"),
    ],
)
def test_a_problem_that_promtool_would_report_is_reported(
    name: str, kind: str, labels: tuple[str, ...], said: str
) -> None:
    """The rules find what they are for."""
    assert any(said in problem for problem in problems(name, kind, "Help.", labels))


@pytest.mark.virtual_time
async def test_every_metric_that_is_shown_is_in_the_table_and_the_other_way_round() -> None:
    """Those of an engine that has sent, failed and been reported on."""
    metrics = EngineMetrics(database=Path(__file__))
    engine = Outreach(
        MemoryStorage(),
        dispatch=True,
        clock=ShiftedClock(),
        config=QUICK,
        sandbox_carrier=ScriptedCarrier(),
        sandbox_voice=ScriptedVoice(),
        instrumentation=[metrics],
    )
    async with engine, metrics.watching(engine):
        await metrics.refresh()
        _told_of_everything(metrics, 1)
        metrics.transaction_committed(operations=1, seconds=0.1, queued=0)
        await anyio.sleep(1)
        registry = CollectorRegistry()
        registry.register(metrics)
        shown = {(one.name + "_total" if one.type == "counter" else one.name): one.type for one in registry.collect()}
        assert shown == {family.name: family.kind for family in ENGINE_FAMILIES}
        assert {one.name for one in families(exposed(metrics))} == {name.removesuffix("_total") for name in shown}
