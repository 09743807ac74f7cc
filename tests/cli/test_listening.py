"""What `serve` listens on beside a port, what it answers there, and `healthcheck`."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from outreach_server.cli.serving.serving import bind
from outreach_server.cli.serving.sockets import handed_over
from tests.cli.conftest import ROOT, Cli, Start, until
from tests.listening.certificates import write_pair


def get(path: Path, target: str, **headers: str) -> httpx.Response:
    """Ask a server at a Unix socket."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), trust_env=False, timeout=30.0) as client:
        return client.get(f"http://server{target}", headers=headers)


def test_serve_listens_on_a_unix_socket_and_deletes_it(start: Start, tmp_path: Path, cli: Cli) -> None:
    """It says where; the socket of a killed server is no obstacle, that of a running one and a file are."""
    path = tmp_path / "outreach.sock"
    first = start("serve", "--uds", str(path), "--json")
    assert first.document()["url"] == f"unix:{path}"
    assert get(path, "/healthz").json()["status"] == "ok"
    assert cli.run("--help", "healthcheck").exit_code == 0
    assert "Another process listens" in cli.refuse("serve", "--uds", str(path))
    first.signal(signal.SIGKILL)
    first.wait()
    assert path.is_socket()
    second = start("serve", "--uds", str(path), "--json")
    second.document()
    assert get(path, "/healthz").status_code == 200
    second.signal(signal.SIGTERM)
    assert second.wait() == 0
    assert not path.exists()
    path.write_text("mine", encoding="utf-8")
    refused = cli.refuse("serve", "--uds", str(path))
    assert "is a file and no socket" in refused
    # It may be the database.
    assert "delete" not in refused
    assert path.read_text(encoding="utf-8") == "mine"


def test_below_a_root_path_everything_names_it(start: Start, tmp_path: Path) -> None:
    """The proxy takes it off; what the server says of itself has it."""
    path = tmp_path / "outreach.sock"
    process = start("serve", "--uds", str(path), "--root-path", "/outreach/", "--json")
    process.document()
    assert get(path, "/healthz").status_code == 200
    assert "url: /outreach\n" in get(path, "/openapi.yaml").text.replace('"', "")
    assert get(path, "/docs").status_code == 200
    assert get(path, "/sms-campaigns").status_code == 401


ACTIVATED = """
import os, sys
number, process, count = sys.argv[1:]
os.dup2(int(number), 3)
os.environ.update(LISTEN_PID=process or str(os.getpid()), LISTEN_FDS=count)
os.execv(sys.executable, [sys.executable, "-m", "outreach_server", "serve", "--port", "0", "--json"])
"""


def activated(listener: socket.socket, process: str, count: str, database: str) -> subprocess.Popen[str]:
    """Start a server as systemd does: with a socket as descriptor 3, and variables for the process that has it."""
    return subprocess.Popen(
        [sys.executable, "-c", ACTIVATED, str(listener.fileno()), process, count],
        pass_fds=[listener.fileno()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"OUTREACH_DATABASE_URL": database, "PYTHONPATH": str(ROOT)},
        text=True,
    )


@pytest.mark.parametrize(("process", "taken"), [("", True), ("1", False)])
def test_a_socket_that_is_handed_over_is_listened_on(database: str, process: str, taken: bool) -> None:
    """That of this process alone: variables are inherited from others too."""
    with bind("127.0.0.1", 0) as listener, activated(listener, process, "1", database) as server:
        assert server.stdout is not None
        try:
            url = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["url"]
            port = listener.getsockname()[1]
            assert (url == f"http://127.0.0.1:{port}") == taken
            assert httpx.get(f"{url}/healthz", trust_env=False, timeout=30.0).status_code == 200
        finally:
            server.terminate()
            assert server.wait(60) == 0


def test_what_is_no_listening_socket_is_reported_in_words(database: str) -> None:
    """Such as a connection, by a socket unit with Accept=yes."""
    one, other = socket.socketpair()
    with one, other, activated(one, "", "1", database) as server:
        _, told = server.communicate(timeout=60)
        assert server.returncode == 1
    assert "Descriptor 3 of LISTEN_FDS is no listening stream socket" in told


def test_without_the_variables_nothing_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with an empty one."""
    monkeypatch.setenv("LISTEN_FDS", "")
    assert handed_over() == []


@pytest.mark.parametrize("how", ["port", "uds", "tls"])
def test_healthcheck_asks_the_server_of_the_configuration(
    how: str, start: Start, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its port, its Unix socket, or with TLS, whatever name the certificate is for."""
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    settings: dict[str, str] = {"OUTREACH_LISTEN_PORT": str(port)}
    if how == "uds":
        settings = {"OUTREACH_LISTEN_UDS": str(tmp_path / "outreach.sock")}
    elif how == "tls":
        write_pair(tmp_path / "c.pem", tmp_path / "k.pem", name="elsewhere")
        settings |= {"OUTREACH_TLS_CERTIFICATE": str(tmp_path / "c.pem"), "OUTREACH_TLS_KEY": str(tmp_path / "k.pem")}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert "No server answers at" in cli.refuse("healthcheck")
    process = start("serve", "--json", **settings)
    url = process.document()["url"]
    assert url.partition(":")[0] == {"port": "http", "uds": "unix", "tls": "https"}[how]
    assert cli.tell("healthcheck") == "ok\n"
    assert cli.tell("healthcheck", "--ready") == "ready\n"
    told: Any = cli.ask("healthcheck", "--ready")
    assert told["dispatcher"]["state"] == "dispatching"
    if how != "tls":
        for name in settings:
            monkeypatch.delenv(name)
        assert cli.tell("healthcheck", "--url", url) == "ok\n"
        assert cli.refuse("healthcheck", "--url", "nowhere").endswith("protocol.\n")


@pytest.mark.parametrize("document", ["[]", '{"state": "fine"}', '"ok"'])
def test_healthcheck_takes_nothing_else_for_the_server(document: str, cli: Cli) -> None:
    """Another program may listen at that port, and answer in JSON too."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(document.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            for option in ([], ["--json"]):
                refused = cli.refuse(*option, "healthcheck", "--url", f"http://127.0.0.1:{other.server_port}")
                assert "something else answers" in refused
        finally:
            other.shutdown()
            thread.join()


def test_healthcheck_fails_where_the_server_cannot_work(
    start: Start, cli: Cli, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --ready, and the reasons; without it the process lives."""
    process = start("serve", "--port", "0", "--json")
    url = process.document()["url"]
    Path(database.removeprefix("sqlite:///")).rename(database.removeprefix("sqlite:///") + ".gone")
    assert cli.tell("healthcheck", "--url", url) == "ok\n"
    until(lambda: cli.run("healthcheck", "--ready", "--url", url).exit_code == 1, "a server that is not ready")
    monkeypatch.setenv("OUTREACH_LISTEN_PORT", "0")
    assert "name the server with --url" in cli.refuse("healthcheck", code=2)


def test_a_key_without_a_certificate_is_refused(cli: Cli) -> None:
    """Else it would serve plain HTTP."""
    assert "without tls_certificate" in cli.refuse("serve", "--port", "0", "--tls-key", "key.pem")
