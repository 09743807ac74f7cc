from __future__ import annotations

import json
import shutil
import socket
import time
from collections import namedtuple
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import httpx
import pytest
import yaml
from starlette.applications import Starlette

from outreach import EngineConfig, NewMessage, Outreach, Workspace, WorkspaceMode
from outreach.errors import StorageError
from outreach.metrics import engine_metrics
from outreach.metrics.families import ENGINE_FAMILIES
from outreach.operations.waves import leases
from outreach.protocols import SystemClock
from outreach.protocols.storage import Storage
from outreach.services.status import FiguresQuery
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.clock import ShiftedClock
from outreach.testing.fault_server import Answer, Fault, FaultServer
from outreach.testing.scripted import ScriptedCarrier, accept, refuse
from outreach_server import ServerMetrics, create_app
from outreach_server.endpoints.campaigns import Campaigns
from outreach_server.monitoring.server_metrics import SERVER_FAMILIES
from tests.engine.rig import QUICK, WatchedStorage, contacts, given_campaign, given_workspace, reaches, until
from tests.monitoring.exposition import Sample
from tests.monitoring.promql import Scrape, evaluate, names_in
from tests.monitoring.watcher import RULES, Watcher, rules
from tests.providers.carriers import SENDER, Twilio

DASHBOARD: Final = RULES.with_name("outreach.dashboard.json")
CALM: Final = EngineConfig(change_poll_seconds=5.0)
"""Looks around rarely, so that minutes of virtual time take little."""

Disk = namedtuple("Disk", ["total", "used", "free"])


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk has room, whatever this machine's has."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1000, 500, 500))


@pytest.fixture(autouse=True)
def unhurried(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where time is real, a machine that is busy blocks the event loop too: only the test of that looks at it."""
    if request.node.get_closest_marker("anyio"):
        monkeypatch.setattr(engine_metrics, "LOOK_SECONDS", 3600.0)


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
        sandbox_carrier=carrier or ScriptedCarrier(),
        instrumentation=[metrics.engine],
    )
    async with engine, metrics.engine.watching(engine):
        watcher = Watcher(metrics)
        made = await given_workspace(engine, **workspace)
        assert await watcher.follow(minutes=0.5) == set()
        yield Scene(engine=engine, watcher=watcher, workspace=made, storage=storage, clock=clock)


@pytest.mark.virtual_time
async def test_no_alert_fires_while_everything_is_well() -> None:
    """A campaign that is sent, with receipts, over twelve minutes."""
    async with scene(MemoryStorage(), carrier=ScriptedCarrier(lambda _: accept().delivered())) as here:
        campaign = await here.start(20, rate_per_minute=2)
        assert await here.watcher.follow(minutes=12, sleep=True) == set()
        await reaches(here.engine, campaign, "completed")


PROVIDER_FAULTS: Final[Mapping[str, tuple[Fault | Answer, str]]] = {
    "drop_before": ("drop_before", "OutreachDispatchesUnknown"),
    "drop_during": ("drop_during", "OutreachDispatchesUnknown"),
    "drop_after": ("drop_after", "OutreachDispatchesUnknown"),
    "silence": ("silence", "OutreachDispatchesUnknown"),
    "500": (Answer(status=500), "OutreachDispatchesUnknown"),
    "401": (Answer(status=401), "OutreachProviderRejectsCredentials"),
    "402": (Answer(status=402), "OutreachProviderOutOfFunds"),
    "429": (Answer(status=429, headers={"retry-after": "3600"}), "OutreachAccountsThrottled"),
    "400": (Answer(status=400, body=json.dumps({"code": 1}).encode()), "OutreachCampaignsPaused"),
}


@pytest.mark.anyio
@pytest.mark.sample(4)
@pytest.mark.parametrize("fault", [*PROVIDER_FAULTS, "refused"])
async def test_each_fault_of_a_provider_fires_its_alert_and_no_other(tmp_path: Path, fault: str) -> None:
    """The network's and the provider's, over HTTP; `refused` is a port at which nobody listens."""
    part = Twilio()
    config = attrs.evolve(QUICK, provider_timeout_seconds=0.5, public_url="https://outreach.test")
    live: dict[str, Any] = {"mode": WorkspaceMode.LIVE, "sms_campaigns_enabled": True, "contact_hours": False}
    storage = SqliteStorage(tmp_path / "o.db", clock=SystemClock())
    async with FaultServer(part.stand_in.accept) as provider, scene(storage, config=config, **live) as here:
        broken, alert = PROVIDER_FAULTS.get(fault, (None, "OutreachProviderUnreachable"))
        base = provider.url
        if isinstance(broken, str):
            provider.fault = broken
        elif broken is not None:
            answer = broken
            provider.answer = lambda _: answer
        else:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                base = f"http://127.0.0.1:{free.getsockname()[1]}"
        await here.engine.accounts.connect(here.workspace.id, "twilio", {**part.credentials, "api_base": base})
        # Five in a row that the provider itself refuses are what pauses a campaign; some are on their way meanwhile.
        campaign = await here.start(30 if fault == "400" else 1, carrier="twilio", from_number=SENDER)

        async def happened() -> bool:
            found = await here.engine.campaigns.get(campaign.workspace_id, campaign.id)
            dispatches = await here.engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, 0)
            settled = any(one.state != "dispatching" for one in dispatches)
            return settled and (fault in {"400", "401", "402"}) == (found.status == "paused")

        await until(happened)
        assert await here.watcher.follow(minutes=15) == {alert}


@pytest.mark.anyio
async def test_a_full_disk_fires_its_alert_and_no_other(tmp_path: Path) -> None:
    """Writes that fail for want of room."""
    storage = SqliteStorage(tmp_path / "o.db", clock=SystemClock())
    async with scene(storage, dispatch=True, database=tmp_path / "o.db") as here:

        def fill(tx: Any) -> None:
            connection = tx.audit._rows.backend.connection
            used = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {used}")

        await storage.write(fill)
        with pytest.raises(StorageError, match="full"):
            await given_campaign(here.engine, here.workspace, 2000)
        assert await here.watcher.follow(minutes=3) == {"OutreachDatabaseWritesFail"}


@pytest.mark.virtual_time
async def test_a_disk_that_is_nearly_full_fires_its_alert_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it has been so for five minutes."""
    async with scene(MemoryStorage(), database=tmp_path / "o.db") as here:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1000, 960, 40))
        assert await here.watcher.follow(minutes=4, sleep=True) == set()
        assert await here.watcher.follow(minutes=6, sleep=True) == {"OutreachDiskAlmostFull"}


@pytest.mark.virtual_time
@pytest.mark.parametrize("minutes", [-30, 30])
async def test_a_clock_that_is_set_fires_its_alert_and_no_other(minutes: int) -> None:
    """Back or forth, once."""
    async with scene(MemoryStorage()) as here:
        await here.start(20, rate_per_minute=2)
        await here.watcher.follow(minutes=1, sleep=True)
        here.clock.shift(timedelta(minutes=minutes))
        assert await here.watcher.follow(minutes=5, sleep=True) == {"OutreachClockStepped"}


@pytest.mark.virtual_time
async def test_a_lost_lease_fires_its_alert_and_no_other() -> None:
    """Somebody else has taken it; this process takes it again a moment later."""
    async with scene(MemoryStorage()) as here:
        await here.storage.write(lambda tx: leases.take_over(tx, home=None, noted=None, now=here.clock.now()))
        assert await here.watcher.follow(minutes=3, sleep=True) == {"OutreachLeaseLost"}


@pytest.mark.virtual_time
async def test_a_process_that_does_not_dispatch_fires_the_alert_that_nobody_does() -> None:
    """Where no other one does."""
    async with scene(MemoryStorage(), dispatch=False) as here:
        assert await here.watcher.follow(minutes=3, sleep=True) == {"OutreachNobodyDispatches"}


@pytest.mark.virtual_time
async def test_a_heartbeat_that_is_late_fires_its_alert_and_no_other() -> None:
    """While writes fail, but the lease has not ended yet."""
    storage = WatchedStorage(MemoryStorage())
    async with scene(storage) as here:

        def fail() -> None:
            raise StorageError("gone")

        storage.before_write = fail
        assert await here.watcher.follow(minutes=0.25, sleep=True) == {"OutreachHeartbeatLate"}


@pytest.mark.virtual_time
async def test_a_process_whose_lease_has_run_out_does_not_count_as_one_that_dispatches() -> None:
    """A heartbeat that is late changes nothing while the lease lasts, and the next one that is written ends it."""
    storage = WatchedStorage(MemoryStorage())
    async with scene(storage) as here:

        def fail() -> None:
            raise StorageError("gone")

        storage.before_write = fail
        await anyio.sleep(10)
        assert (here.engine.health().state, here.engine.health().dispatching) == ("dispatching", True)
        await anyio.sleep(10)
        assert (here.engine.health().state, here.engine.health().dispatching) == ("lease_expired", False)
        assert "OutreachNobodyDispatches" in await here.watcher.follow(minutes=3, sleep=True)
        storage.before_write = lambda: None
        await anyio.sleep(10)
        assert here.engine.health().state == "dispatching"


@pytest.mark.virtual_time
async def test_figures_that_cannot_be_read_fire_their_alert_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two minutes."""
    async with scene(MemoryStorage()) as here:

        async def fail(_: object = None) -> None:
            raise StorageError("gone")

        monkeypatch.setattr(here.engine, "figures", fail)
        assert await here.watcher.follow(minutes=4, sleep=True) == {"OutreachFiguresOld"}


@pytest.mark.virtual_time
async def test_figures_that_could_never_be_read_fire_their_alert_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the start on."""

    def fail(*_: object) -> None:
        raise StorageError("gone")

    monkeypatch.setattr(FiguresQuery, "_look", fail)
    async with scene(MemoryStorage()) as here:
        assert await here.watcher.follow(minutes=4, sleep=True) == {"OutreachFiguresOld"}


def test_an_account_that_two_processes_see_throttled_is_one() -> None:
    """Both read it from one database."""
    seen = [
        Sample("outreach_accounts_throttled", {"provider": "twilio", "instance": instance}, 1.0)
        for instance in ("a", "b")
    ]
    found = evaluate(rules()["OutreachAccountsThrottled"]["expr"], [Scrape(15.0, seen)], 15.0)
    assert list(found.values()) == [1.0]


@pytest.mark.virtual_time
async def test_requests_that_start_late_fire_their_alert_and_no_other() -> None:
    """A provider that takes seconds, and too few requests that may be in flight."""
    config = attrs.evolve(CALM, max_requests_in_flight=1)
    carrier = ScriptedCarrier(lambda _: accept(seconds=3.0))
    async with scene(MemoryStorage(), carrier=carrier, config=config) as here:
        await here.start(100)
        assert await here.watcher.follow(minutes=4, sleep=True) == {"OutreachPaceBehind"}


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("reason", "alert"),
    [("provider_auth", "OutreachProviderRejectsCredentials"), ("provider_funds", "OutreachProviderOutOfFunds")],
)
async def test_an_account_that_is_refused_fires_its_alert_without_a_campaign_too(reason: str, alert: str) -> None:
    """Where only single messages are sent, nothing is paused."""
    async with scene(MemoryStorage(), carrier=ScriptedCarrier(lambda _: refuse(reason))) as here:
        new = NewMessage(to="+14155550101", body="Hi", from_number="+14155550199", carrier="twilio")
        await here.engine.messages.send(here.workspace.id, new)
        assert await here.watcher.follow(minutes=3, sleep=True) == {alert}


@pytest.mark.virtual_time
async def test_a_campaign_that_pauses_itself_fires_its_alert_and_no_other() -> None:
    """Refused five times in a row, for a reason that is not its contacts'."""
    async with scene(MemoryStorage(), carrier=ScriptedCarrier(lambda _: refuse("rejected"))) as here:
        await here.start(10)
        assert await here.watcher.follow(minutes=3, sleep=True) == {"OutreachCampaignsPaused"}


@pytest.mark.anyio
async def test_an_event_loop_that_is_blocked_fires_its_alert_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """By code that waits without giving way."""
    monkeypatch.setattr(engine_metrics, "LOOK_SECONDS", 0.5)
    async with scene(MemoryStorage()) as here:
        await anyio.sleep(0.6)
        here.watcher.scrape()
        for _ in range(2):
            time.sleep(1.2)  # noqa: ASYNC251 - that is the fault
            await anyio.sleep(0.05)
        assert await here.watcher.follow(minutes=3) == {"OutreachEventLoopBlocked"}


@pytest.mark.virtual_time
@pytest.mark.parametrize("error", ["SQLITE_IOERR_WRITE", "SQLITE_READONLY", "DiskFull", "OperationalError", "Unheard"])
async def test_the_first_write_that_fails_fires_its_alert_and_no_other(error: str) -> None:
    """Whatever fails: SQLite's extended codes, PostgreSQL's errors, and those that nobody knows."""
    async with scene(MemoryStorage()) as here:
        here.watcher.metrics.engine.transaction_failed(operations=1, error=error)
        assert await here.watcher.follow(minutes=3, sleep=True) == {"OutreachDatabaseWritesFail"}


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/campaigns", "/nowhere"])
async def test_the_first_error_of_the_server_fires_its_alert_and_no_other(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an operation that nobody has asked for since the start, or of a path that is none."""
    async with scene(MemoryStorage()) as here:
        app = create_app(engine=here.engine, metrics=here.watcher.metrics)
        here.watcher.scrape()

        async def fail(*_: object) -> None:
            raise ZeroDivisionError("0")

        monkeypatch.setattr(Campaigns, "list", fail)
        monkeypatch.setattr(app.router, "default", fail)
        assert await asked(app, path) == 500
        assert await here.watcher.follow(minutes=3) == {"OutreachServerErrors"}


@pytest.mark.virtual_time
async def test_a_server_that_is_not_ready_fires_the_alert_of_the_fault_alone() -> None:
    """What asks `/readyz` every few seconds gets a 503, which is an answer and no error of the server."""
    storage = WatchedStorage(MemoryStorage())
    async with scene(storage) as here:
        app = create_app(engine=here.engine, metrics=here.watcher.metrics)
        here.watcher.scrape()

        def fail() -> None:
            raise StorageError("gone")

        storage.before_write = fail
        assert await asked(app, "/readyz") == 503
        assert await here.watcher.follow(minutes=0.25, sleep=True) == {"OutreachHeartbeatLate"}


async def asked(app: Starlette, path: str) -> int:
    """Ask an app; return the status."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        return (await client.get(path)).status_code


@pytest.mark.virtual_time
async def test_a_server_that_is_gone_fires_its_alert_and_no_other() -> None:
    """Prometheus notes by itself whether it could read."""
    async with scene(MemoryStorage()) as here:
        here.watcher.up = False
        assert await here.watcher.follow(minutes=3) == {"OutreachDown"}


def _known_names() -> set[str]:
    names = set()
    for family in (*ENGINE_FAMILIES, *SERVER_FAMILIES):
        suffixes = ("_bucket", "_count", "_sum") if family.kind == "histogram" else ("",)
        names |= {f"{family.name}{suffix}" for suffix in suffixes}
    return names | {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "process_max_fds"}


def test_rules_name_metrics_that_there_are_and_say_what_to_do() -> None:
    """A rule over a name that nobody writes would never fire."""
    for name, rule in rules().items():
        assert names_in(rule["expr"]) <= _known_names(), name
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert set(rule["annotations"]) == {"summary", "action"}


@pytest.mark.virtual_time
async def test_callbacks_that_are_refused_again_and_again_fire_an_alert() -> None:
    """Two within an hour do not: anybody may send something to the address."""
    async with scene(MemoryStorage()) as here:
        told = here.watcher.metrics.engine
        for _ in range(2):
            told.callback_refused("twilio")
        assert await here.watcher.follow(minutes=5) == set()
        told.callback_refused("twilio")
        assert await here.watcher.follow(minutes=1) == {"OutreachCallbacksRefused"}
        await here.watcher.follow(minutes=65)
        assert here.watcher.firing() == set()


def test_every_rule_is_fired_by_a_test_and_explained() -> None:
    """One that is added without a fault is noticed."""
    source, page = Path(__file__).read_text("utf-8"), RULES.parents[2] / "docs" / "monitoring.md"
    for name in rules():
        assert f'"{name}"' in source, name
        assert f"`{name}`" in page.read_text("utf-8"), name


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    """Each panel has a title, a unit and a place, and asks for names that somebody writes."""
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    shown: set[str] = set()
    for panel in panels:
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            assert names_in(target["expr"]) <= _known_names(), panel["title"]
            assert names_in(target["expr"])
            shown |= names_in(target["expr"])
    missing = {family.name for family in ENGINE_FAMILIES if not any(one.startswith(family.name) for one in shown)}
    assert missing == {"outreach_build_info", "outreach_lease_epoch"}


@pytest.mark.parametrize("expression", ["up == up", "rate(x", "1", "a ? b", "sum(a) sum(b)"])
def test_what_the_evaluator_does_not_know_is_an_error(expression: str) -> None:
    """It must not take a rule for one that never fires."""
    with pytest.raises(ValueError, match=r"understood|compared|early|number"):
        evaluate(expression, [], 0)


def test_the_rules_are_yaml_that_prometheus_reads() -> None:
    """Groups of rules with known keys."""
    document = yaml.safe_load(RULES.read_text("utf-8"))
    assert list(document) == ["groups"]
    for group in document["groups"]:
        assert set(group) == {"name", "rules"}
        for rule in group["rules"]:
            assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
