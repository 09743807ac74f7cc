from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import httpx
import pytest
import yaml
from starlette.applications import Starlette

from outreach import NewMessage
from outreach.errors import StorageError
from outreach.insight.status import FiguresQuery
from outreach.integrations.prometheus import engine_metrics
from outreach.integrations.prometheus.families import ENGINE_FAMILIES
from outreach.models.dispatch import FailureClass
from outreach.protocols import SystemClock
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.scripted import ScriptedCarrier, accept, refuse
from outreach_server import create_app
from outreach_server.endpoints.campaigns import Campaigns
from outreach_server.monitoring.server_metrics import SERVER_FAMILIES
from tests.engine.rig import WatchedStorage, given_campaign, reaches
from tests.monitoring.exposition import Sample, samples
from tests.monitoring.promql import Scrape, evaluate, names_in
from tests.monitoring.scenes import CALM, Disk, scene, stand_still
from tests.monitoring.watcher import RULES, rules

DASHBOARD: Final = RULES.with_name("outreach.dashboard.json")


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk has room, whatever this machine's has."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1000, 500, 500))


@pytest.fixture(autouse=True)
def unhurried(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where time is real, a machine that is busy blocks the event loop too: only the test of that looks at it."""
    if request.node.get_closest_marker("anyio"):
        monkeypatch.setattr(engine_metrics, "LOOK_SECONDS", 3600.0)


@pytest.mark.virtual_time
async def test_no_alert_fires_while_everything_is_well() -> None:
    """A campaign that is sent, with receipts, over twelve minutes."""
    async with scene(MemoryStorage(), carrier=ScriptedCarrier(lambda _: accept().delivered(), name="twilio")) as here:
        campaign = await here.start(20, rate_per_minute=2)
        assert await here.watcher.follow(minutes=12, sleep=True) == set()
        await reaches(here.engine, campaign, "completed")


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
async def test_a_process_that_does_not_dispatch_fires_the_alert_that_nobody_does() -> None:
    """Where no other one does."""
    async with scene(MemoryStorage(), dispatch=False) as here:
        assert await here.watcher.follow(minutes=3, sleep=True) == {"OutreachNobodyDispatches"}


@pytest.mark.virtual_time
async def test_a_heartbeat_that_is_late_fires_its_alert_and_no_other() -> None:
    """While writes hang, before the lease has ended and after: it is still one fault."""
    storage = WatchedStorage(MemoryStorage())
    async with scene(storage) as here:

        def fail() -> None:
            raise StorageError("gone")

        storage.before_write = fail
        assert await here.watcher.follow(minutes=0.5, sleep=True) == set()
        assert await here.watcher.follow(minutes=15, sleep=True) == {"OutreachHeartbeatLate"}


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
        await here.watcher.follow(minutes=0.5, sleep=True)
        assert here.watcher.value("outreach_dispatcher_state", state="dispatching") == 0
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


_FAILURE: Final = {'outreach_transaction_failures_total{error="SQLITE_FULL"}': (0.0, 3.0)}
_NO_HEARTBEAT: Final = {"outreach_heartbeat_age_seconds": (30.0, 2.0)}
_BLOCKED: Final = {"outreach_event_loop_lag_seconds_sum": (0.0, 60.0), "outreach_event_loop_lag_seconds_count": (0, 60)}


@pytest.mark.parametrize(
    ("alert", "seen", "cause"),
    [
        ("OutreachNobodyDispatches", {'outreach_dispatcher_state{state="dispatching"}': (0.0, 0.0)}, _FAILURE),
        ("OutreachHeartbeatLate", {"outreach_heartbeat_age_seconds": (2.0, 30.0)}, _FAILURE),
        ("OutreachLeaseLost", {"outreach_leases_lost_total": (0.0, 1.0)}, _FAILURE),
        ("OutreachFiguresOld", {"outreach_figures_age_seconds": (15.0, 130.0)}, _FAILURE),
        (
            "OutreachPaceBehind",
            {
                'outreach_pace_lag_seconds_sum{channel="sms"}': (0.0, 20.0),
                'outreach_pace_lag_seconds_count{channel="sms"}': (0.0, 10.0),
            },
            _BLOCKED,
        ),
        (
            "OutreachServerErrors",
            {'outreach_http_requests_total{operation="GET /campaigns",status="500"}': (0.0, 1.0)},
            _FAILURE,
        ),
        (
            "OutreachServerErrors",
            {'outreach_http_requests_total{operation="GET /campaigns",status="500"}': (0.0, 1.0)},
            _NO_HEARTBEAT,
        ),
    ],
)
def test_what_follows_from_another_fault_is_left_out(
    alert: str, seen: dict[str, tuple[float, float]], cause: dict[str, tuple[float, float]]
) -> None:
    """The same without its cause holds, and of another process's cause too where it is the process's own matter."""

    def holds(**causes: dict[str, tuple[float, float]]) -> bool:
        series = [(text, "a", values) for text, values in seen.items()]
        series += [(text, instance, values) for instance, of in causes.items() for text, values in of.items()]
        scrapes = [
            Scrape(
                at,
                [
                    attrs.evolve(one, labels={**one.labels, "instance": instance}, value=values[moment])
                    for text, instance, values in series
                    for one in samples(f"{text} 0")
                ],
            )
            for moment, at in enumerate((15.0, 75.0))
        ]
        return bool(evaluate(rules()[alert]["expr"], scrapes, 75.0))

    assert holds()
    assert not holds(a=cause)
    shared = {"OutreachNobodyDispatches", "OutreachFiguresOld", "OutreachPaceBehind"}
    assert holds(b=cause) == (alert not in shared)


@pytest.mark.virtual_time
async def test_requests_that_start_late_fire_their_alert_and_no_other() -> None:
    """A provider that takes seconds, and too few requests that may be in flight."""
    config = attrs.evolve(CALM, max_requests_in_flight=1)
    carrier = ScriptedCarrier(lambda _: accept(seconds=3.0), name="twilio")
    async with scene(MemoryStorage(), carrier=carrier, config=config) as here:
        await here.start(300)
        assert await here.watcher.follow(minutes=12, sleep=True) == {"OutreachPaceBehind"}


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("reason", "alert"),
    [("provider_auth", "OutreachProviderRejectsCredentials"), ("provider_funds", "OutreachProviderOutOfFunds")],
)
async def test_an_account_that_is_refused_fires_its_alert_without_a_campaign_too(
    reason: FailureClass, alert: str
) -> None:
    """Where only single messages are sent, nothing is paused."""
    async with scene(MemoryStorage(), carrier=ScriptedCarrier(lambda _: refuse(reason), name="twilio")) as here:
        new = NewMessage(to="+14155550101", body="Hi", from_number="+14155550199", carrier="twilio")
        await here.engine.messages.send(here.workspace.id, new)
        assert await here.watcher.follow(minutes=3, sleep=True) == {alert}


@pytest.mark.virtual_time
async def test_a_campaign_that_pauses_itself_fires_its_alert_and_no_other() -> None:
    """Refused five times in a row, for a reason that is not its contacts'."""
    async with scene(MemoryStorage(), carrier=ScriptedCarrier(lambda _: refuse("rejected"), name="twilio")) as here:
        await here.start(10)
        assert await here.watcher.follow(minutes=3, sleep=True) == {"OutreachCampaignsPaused"}


@pytest.mark.virtual_time
@pytest.mark.parametrize("seconds", [1.0, 4.0])
async def test_an_event_loop_that_is_blocked_fires_its_alert_and_no_other(seconds: float) -> None:
    """By code that waits without giving way, again and again; requests that start late because of it are no second."""
    async with scene(MemoryStorage()) as here, anyio.create_task_group() as tasks:

        async def block() -> None:
            while True:
                await anyio.sleep(0.7)
                stand_still(seconds)

        await here.start(60, rate_per_minute=30)
        tasks.start_soon(block)
        assert await here.watcher.follow(minutes=15, sleep=True) == {"OutreachEventLoopBlocked"}
        tasks.cancel_scope.cancel()


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
        assert await here.watcher.follow(minutes=3, sleep=True) == {"OutreachHeartbeatLate"}


@pytest.mark.anyio
@pytest.mark.parametrize(("refused", "fires"), [(100, False), (101, True)])
async def test_many_requests_without_a_valid_key_fire_an_alert(refused: int, fires: bool) -> None:
    """A client whose key was revoked comes some times; not a hundred times in ten minutes, as a guesser does."""
    async with scene(MemoryStorage()) as here:
        app = create_app(engine=here.engine, metrics=here.watcher.metrics)
        # Prometheus sees no increase in the first value of a series.
        assert await asked(app, "/calls/one") == 401
        here.watcher.scrape()
        assert {await asked(app, "/calls/one") for _ in range(refused)} == {401}
        here.watcher.scrape()
        assert here.watcher.firing() == ({"OutreachUnauthorizedRequests"} if fires else set())


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


@pytest.mark.soak("plays an hour of callbacks")
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
        # What is signed with its time is refused while the clock is wrong.
        here.clock.shift(timedelta(hours=1))
        await anyio.sleep(1)
        for _ in range(10):
            told.callback_refused("twilio")
        assert await here.watcher.follow(minutes=1) == {"OutreachClockStepped"}


def test_every_rule_is_fired_by_a_test() -> None:
    """One that is added without a fault is noticed."""
    tests = [Path(__file__), Path(__file__).with_name("test_faults_and_alerts.py")]
    source = "".join(one.read_text("utf-8") for one in tests)
    for name in rules():
        assert f'"{name}"' in source, name


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


def _without_receipts(*, refused: float = 0.0) -> list[Scrape]:
    return [
        Scrape(
            at,
            [
                Sample("outreach_accounts_without_receipts", {"provider": "twilio", "instance": "a"}, 2.0),
                Sample("outreach_accounts_without_receipts", {"provider": "twilio", "instance": "b"}, 2.0),
                Sample("outreach_callbacks_refused_total", {"provider": "twilio", "instance": "a"}, total),
            ],
        )
        for at, total in ((0.0, 0.0), (600.0, refused))
    ]


def test_missing_receipts_fire_their_alert_unless_they_come_and_are_refused() -> None:
    """Accounts that two processes see are counted once; where callbacks are refused, the alert of that says it."""
    expression = rules()["OutreachReceiptsMissing"]["expr"]
    assert list(evaluate(expression, _without_receipts(), 600.0).values()) == [2.0]
    assert not evaluate(expression, _without_receipts(refused=9.0), 600.0)
