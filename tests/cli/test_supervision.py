"""What `serve` tells systemd: ready, alive while its dispatcher is, stopping."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import httpx
import pytest

from outreach.models import DispatcherHealth
from outreach_server.cli.serving.supervision import Pulse, ServiceManager
from tests.cli.conftest import ROOT, Start, until

HEALTHY = DispatcherHealth(
    state="dispatching", dispatching=True, epoch=1, active_units=0, failures=0, last_error=None, heartbeat_seconds_ago=1
)

HANGING = """
import sys
import anyio
from outreach.dispatch.worker import Worker
from outreach_server.cli import main

renew = Worker.renew

async def hanging(self, epoch):
    await renew(self, epoch)
    await anyio.sleep_forever()  # as where the disk answers no more

Worker.renew = hanging
main(sys.argv[1:])
"""


@attrs.frozen
class Manager:
    """The socket of a service manager."""

    socket: socket.socket
    address: str

    def hears(self) -> str:
        """Return the next datagram."""
        return self.socket.recv(4096).decode()

    def hears_nothing(self, seconds: float) -> bool:
        """Whether for so long nothing comes."""
        self.socket.settimeout(seconds)
        try:
            self.hears()
        except TimeoutError:
            return True
        return False


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    """Listen as systemd does, on either kind of address."""
    path = str(tmp_path / "notify") if request.param == "path" else f"\0outreach-test-{os.getpid()}-{id(tmp_path)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(path)
        heard.settimeout(60)
        yield Manager(heard, path.replace("\0", "@"))


def test_systemd_is_notified_when_serve_is_ready_alive_and_stopping(start: Start, manager: Manager) -> None:
    """In this order; the watchdog is fed once a second."""
    process = start("serve", "--port", "0", "--json", NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="30000000")
    assert manager.hears() == f"READY=1\nSTATUS=Serving {process.document()['url']}"
    assert manager.hears() == "WATCHDOG=1"
    assert manager.hears() == "WATCHDOG=1"
    process.signal(signal.SIGTERM)
    while (told := manager.hears()) == "WATCHDOG=1":
        pass
    assert told.startswith("STOPPING=1")
    assert process.wait() == 0


@pytest.mark.parametrize("manager", ["path"], indirect=True)
@pytest.mark.parametrize("variables", [{}, {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}])
def test_a_watchdog_that_nobody_asked_for_is_not_fed(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    """Nor one of another process."""
    for name, value in (variables | {"NOTIFY_SOCKET": manager.address}).items():
        monkeypatch.setenv(name, value)
    service_manager = ServiceManager.of_environment()
    service_manager.alive()
    service_manager.stopping()
    assert manager.hears().startswith("STOPPING=1")


@pytest.mark.soak("waits until the heartbeat is late")
@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_the_watchdog_is_fed_no_more_when_the_heartbeat_stops(database: str, manager: Manager) -> None:
    """The server still answers: only the dispatcher hangs."""
    settings = {"OUTREACH_HEARTBEAT_INTERVAL_SECONDS": "0.1", "OUTREACH_LEASE_SECONDS": "2"}
    with subprocess.Popen(
        [sys.executable, "-c", HANGING, "serve", "--port", "0"],
        env={
            **os.environ,
            **settings,
            "OUTREACH_DATABASE_URL": database,
            "NOTIFY_SOCKET": manager.address,
            "WATCHDOG_USEC": "30000000",
        },
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            url = manager.hears().rpartition(" ")[2]
            assert manager.hears() == "WATCHDOG=1"
            until(lambda: manager.hears_nothing(2.5), "a watchdog that is fed no more")
            assert httpx.get(f"{url}/healthz", trust_env=False, timeout=30.0).status_code == 200
        finally:
            process.kill()


def test_a_dispatcher_is_alive_while_it_tries() -> None:
    """On a full disk, standing by, after a crash no restart helps; where no heartbeat comes or fails it does."""
    now = 100.0
    pulse = Pulse(15.0, monotonic=lambda: now)
    assert pulse.is_alive(HEALTHY)
    silent = attrs.evolve(HEALTHY, heartbeat_seconds_ago=15.0)
    assert not pulse.is_alive(silent)
    failing = attrs.evolve(silent, failures=1)
    assert pulse.is_alive(failing)
    now += 14.9
    assert pulse.is_alive(failing)
    now += 0.2
    assert not pulse.is_alive(failing)
    assert pulse.is_alive(attrs.evolve(failing, failures=2))
    for state in ("off", "standing_by", "checking", "refused"):
        assert pulse.is_alive(attrs.evolve(HEALTHY, state=state, epoch=None, heartbeat_seconds_ago=None))


def test_a_manager_that_is_gone_ends_nothing(tmp_path: Path) -> None:
    """Its socket is missing, or nobody reads it."""
    ServiceManager(str(tmp_path / "missing"), watchdog=True).alive()
    ServiceManager(None, watchdog=True).ready("Serving")


def test_the_variables_are_kept_from_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper process must not speak for the server."""
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere")
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert ServiceManager.of_environment().watchdog
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & os.environ.keys()
