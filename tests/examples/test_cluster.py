"""The files of examples/cluster: Docker Compose reads the one, and the plain processes of the other send a campaign."""

from __future__ import annotations

import asyncio
import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx
import psutil
import pytest
from cryptography.fernet import Fernet

from outreach_server.cli.serving.serving import END_SECONDS
from outreach_server.config import ServerConfig
from tests import postgres
from tests.documents.commands import check
from tests.examples.running import EXAMPLES, ROOT
from tests.examples.test_hosting import VARIABLES, needs, run
from tests.process.waiting import wait_for

CLUSTER: Final = EXAMPLES / "cluster"
SECONDS: Final = 240
"""How long five servers and a campaign may take on a machine that does other things."""

COMPOSE: Final = CLUSTER / "compose.yaml"
CADDYFILE: Final = (CLUSTER / "Caddyfile").read_text("utf-8")
SECRETS: Final = {"OUTREACH_SECRET_KEY": Fernet.generate_key().decode(), "POSTGRES_PASSWORD": "secret-of-the-database"}

RUN: Final = (sys.executable, str(CLUSTER / "run.py"), "--port", "0")

KNOWN_FINDINGS: Final = {
    "CL-0005",  # The proxy is there to be reached from outside.
    "CL-0019",  # A digest in an example would be that of an old image soon.
}


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """Return the services as Docker Compose reads them."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    read = run("docker-compose", "--file", COMPOSE, "config", "--format", "json")
    found: Mapping[str, Any] = json.loads(read)["services"]
    return found


@needs("docker-compose")
def test_docker_compose_reads_it_without_a_warning(services: Mapping[str, Any]) -> None:
    """Two nodes, three workers, a database and a proxy."""
    replicas = {name: one.get("deploy", {}).get("replicas", 1) for name, one in services.items()}
    assert replicas == {"postgres": 1, "node": 2, "worker": 3, "proxy": 1}


@needs("docker-compose")
@pytest.mark.parametrize("missing", SECRETS)
def test_it_is_refused_without_a_secret(missing: str) -> None:
    """There is no default that everybody would have."""
    environment = {**os.environ, **SECRETS}
    del environment[missing]
    program = Path(sys.executable).with_name("docker-compose")
    done = subprocess.run(
        [program, "--file", COMPOSE, "config"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "export it first" in done.stderr


@needs("docker-compose")
def test_its_commands_and_settings_are_those_of_the_server(services: Mapping[str, Any], tmp_path: Path) -> None:
    """And the node does not send, and the container is not killed before the server has ended."""
    assert (services["node"]["command"], services["worker"]["command"]) == (["serve", "--no-dispatch"], ["worker"])
    health = services["worker"]["healthcheck"]["test"]
    check(shlex.join(health[2:]), tmp_path)
    assert health[-1] == f"http://{services['worker']['environment']['OUTREACH_METRICS']}"
    for name in ("node", "worker"):
        service = services[name]
        check(shlex.join(service["command"]), tmp_path)
        assert service["environment"].keys() <= VARIABLES | {"OUTREACH_SECRET_KEY", "PGPASSWORD"}
        assert service["environment"]["OUTREACH_DISPATCHER"] == "procrastinate"
        assert float(service["stop_grace_period"].removesuffix("s")) > END_SECONDS
        assert service["read_only"]


def test_its_linter_finds_nothing_but_what_is_meant() -> None:
    """compose-lint, which comes with the development tools."""
    program = Path(sys.executable).with_name("compose-lint")
    done = subprocess.run([program, "check", "--format", "json", COMPOSE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(re.findall(r"CL-\d{4}", done.stdout)) <= KNOWN_FINDINGS, done.stdout


def test_its_proxy_asks_all_nodes_and_hides_the_probes() -> None:
    """By the service's name, at the port that the image exposes; bodies as large as the server takes."""
    (port,) = re.findall(r"dynamic a node (\d+) ", CADDYFILE)
    assert int(port) == ServerConfig().listen_port
    (megabytes,) = re.findall(r"max_size (\d+)MiB", CADDYFILE)
    assert int(megabytes) * 2**20 == ServerConfig().max_body_bytes
    assert "path /healthz /readyz" in CADDYFILE


@needs("caddy")
def test_caddy_can_read_its_example() -> None:
    """And finds it formatted."""
    run("caddy", "validate", "--adapter", "caddyfile", "--config", CLUSTER / "Caddyfile")
    run("caddy", "fmt", "--diff", CLUSTER / "Caddyfile")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory for what the example writes; the path of a Unix socket may have some hundred characters."""
    with TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture
def environment(place: Path) -> Mapping[str, str]:
    """Variables of a process of the example, with directories for what it writes."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(place), "XDG_RUNTIME_DIR": str(place)}


@pytest.mark.nightly("more courses of the example of a cluster")
def test_plain_processes_send_a_campaign(environment: Mapping[str, str]) -> None:
    """On a database that is named, from the first request at the proxy to the last contact."""
    status, told = _run(
        [sys.executable, "-W", "error", *RUN[1:], "--database", postgres.empty_database(), "--campaign", "30"],
        environment,
    )
    assert status == 0, told
    assert told.count("completed: 30 of 30") == 1, told
    assert len(set(re.findall(r"^((?:node|worker) \d) is process", told, re.MULTILINE))) == 5


@pytest.mark.nightly("more courses of the example of a cluster")
def test_a_database_of_its_own_is_started_and_ended(environment: Mapping[str, str], place: Path) -> None:
    """As root it says what to do instead: PostgreSQL would refuse. So this is somebody else to it."""
    somebody: list[str] = []
    if os.geteuid() == 0:
        refused = subprocess.run(RUN, env=environment, cwd=CLUSTER, capture_output=True, text=True, check=False)
        assert (refused.returncode, "does not run as root" in refused.stderr) == (1, True)
        somebody = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--"]
        if subprocess.run([*somebody, "true"], check=False, capture_output=True).returncode:
            pytest.skip("root cannot be somebody else here")
    status, told = _run([*somebody, *RUN, "--campaign", "5"], environment)
    assert status == 0, told
    assert "completed: 5 of 5" in told
    assert not list(place.glob("outreach-cluster-*"))
    running = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    assert not [words for words in running if str(place) in words]


def test_a_campaign_is_followed_over_an_outage() -> None:
    """Of the database, for which a node answers 503, and of the nodes."""
    left = [httpx.Response(503), None, httpx.Response(200, json={"status": "completed", "successful_calls": 3})]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(201, json={"id": "it"})
        found = left.pop(0)
        if found is None:
            raise httpx.ConnectError("nobody listens")
        return found

    async def follow() -> None:
        transport = httpx.MockTransport(answer)
        async with httpx.AsyncClient(base_url="http://cluster", transport=transport) as client:
            await runpy.run_path(RUN[1])["send_campaign"](client, 3)

    asyncio.run(follow())
    assert not left


@pytest.mark.soak("it starts five servers")
@pytest.mark.parametrize("more", [(), ("--campaign", "3000")], ids=["without a campaign", "during a campaign"])
def test_what_is_killed_is_started_again(environment: Mapping[str, str], tmp_path: Path, more: Sequence[str]) -> None:
    """Requests go to the other node meanwhile; Ctrl-C ends everything, and leaves no process."""
    log = tmp_path / "log"
    with log.open("w") as out:
        running = subprocess.Popen(
            [*RUN, "--database", postgres.empty_database(), *more],
            cwd=CLUSTER,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = wait_for("the proxy", lambda: re.findall(r"Serving (http\S+) with", log.read_text()), seconds=SECONDS)[0]
        links = wait_for("a link of the set-up", lambda: re.findall(r" (\S+)/console/setup#", log.read_text()))
        assert set(links) == {url}
        wait_for("a campaign that sends", lambda: not more or "active: " in log.read_text(), seconds=SECONDS)
        (node,) = re.findall(r"node 1 is process (\d+)", log.read_text())
        os.kill(int(node), signal.SIGKILL)
        wait_for("it to be started again", lambda: len(re.findall("node 1 is process", log.read_text())) == 2)
        for _ in range(4):
            assert httpx.get(f"{url}/healthz", timeout=30).is_success
        children = psutil.Process(running.pid).children(recursive=True)
        assert len(children) >= 5
        running.send_signal(signal.SIGINT)
        assert running.wait(SECONDS) == 0, log.read_text()
        assert not [child for child in children if child.is_running()]
    finally:
        _end(running)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run the example to its end; return its status, and all that it said. Whatever happens, it leaves no process."""
    running = subprocess.Popen(
        command,
        cwd=CLUSTER,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = running.communicate(timeout=SECONDS)
        return running.returncode, told
    finally:
        _end(running)


def _end(running: subprocess.Popen[Any]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()
