from __future__ import annotations

import json
import signal
import socket
import sqlite3
from typing import Any

import httpx
import psycopg
import pytest
import yaml
from starlette.testclient import TestClient

from outreach.errors import ConfigError
from outreach.integrations.prometheus.write_errors import POSTGRES_ERRORS, SQLITE_ERRORS, write_error
from outreach_server import ServerMetrics, create_app
from outreach_server.cli.serving.metrics_address import metrics_of
from outreach_server.config import ServerConfig, host_and_port
from outreach_server.contract import contract_bytes
from outreach_server.monitoring.server_metrics import ERRORS, OTHER, operations_of
from outreach_server.routes import ROUTES
from tests.cli.conftest import Cli, Process, database, start, until
from tests.monitoring.exposition import samples, value

__all__ = ["database", "start"]

OPERATIONS = operations_of(ROUTES)


def get(url: str) -> httpx.Response:
    """Get it from this machine, whatever proxies there are."""
    return httpx.get(url, trust_env=False, timeout=60)


def test_metrics_have_an_address_of_their_own_and_the_log_is_json(start: Any) -> None:
    """The API does not know the path; the process, its requests and its database are there; each line is an object."""
    server: Process = start(
        "serve", "--json", "--port", "0", "--metrics", "127.0.0.1:0", "--log-format", "json", "--metrics-by-workspace"
    )
    told = server.document()
    assert get(f"{told['url']}/metrics").status_code == 404
    assert get(f"{told['url']}/healthz").status_code == 200

    def shown() -> str | None:
        answer = get(told["metrics_url"])
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        return answer.text if "outreach_recipients_open" in answer.text else None

    text = until(shown, "figures")
    assert value(text, "outreach_http_requests_total", operation="GET /healthz", status="200") == 1
    assert value(text, "outreach_http_requests_total", operation="other", status="404") == 1
    assert value(text, "outreach_dispatcher_state", state="dispatching") == 1
    assert value(text, "outreach_database_file_bytes", file="main") > 0
    assert value(text, "process_resident_memory_bytes") > 0
    assert get(told["metrics_url"].removesuffix("/metrics")).status_code == 404
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    lines = [json.loads(line) for line in server.stderr.splitlines()]
    assert {"lease_taken", "http_request", "serving"} <= {line["action"] for line in lines}
    assert {line["request_id"] is None for line in lines if line["action"] == "http_request"} == {False}
    told_once = [line["message"] for line in lines if line["logger"] == "uvicorn.error"]
    assert "Application shutdown complete." in told_once
    assert len(told_once) == len(set(told_once))
    with pytest.raises(httpx.ConnectError):
        get(told["metrics_url"])


@pytest.mark.parametrize(
    ("options", "client"),
    [
        ((), None),
        (("--log-client-address",), "127.0.0.1"),
        (("--log-client-address", "--proxy-headers", "127.0.0.1"), "203.0.113.9"),
    ],
)
def test_the_log_has_the_clients_address_where_it_is_set(
    start: Any, options: tuple[str, ...], client: str | None
) -> None:
    """Personal data: not by default; behind a proxy it is what a trusted one says."""
    server: Process = start("serve", "--json", "--port", "0", "--no-dispatch", "--log-format", "json", *options)
    address = f"{server.document()['url']}/nowhere"
    httpx.get(address, trust_env=False, timeout=60, headers={"X-Forwarded-For": "203.0.113.9"})
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    (line,) = [one for one in map(json.loads, server.stderr.splitlines()) if one["action"] == "http_request"]
    assert line.get("client") == client
    assert line["message"].endswith("unknown" if client is None else f", client {client}")


def test_metrics_are_off_unless_asked_for(start: Any) -> None:
    """And the log is text."""
    server: Process = start("serve", "--json", "--port", "0", "--no-dispatch")
    assert server.document()["metrics_url"] is None
    server.says("Serving http://")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_an_address_that_is_taken_is_reported_in_words() -> None:
    """Before anything is opened."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = Cli("memory://").refuse("serve", "--port", "0", "--metrics", f"127.0.0.1:{port}")
    assert f"Port {port} on 127.0.0.1 is taken" in said
    with pytest.raises(ConfigError, match="--metrics HOST:PORT"):
        metrics_of(ServerConfig(metrics_by_workspace=True), "o.db")
    assert host_and_port("[::1]:9464") == ("::1", 9464)


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_failed_start_is_logged_in_the_configured_form(start: Any, form: str) -> None:
    """A program that reads lines of JSON gets nothing else, also of a port that is taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        server: Process = start("serve", "--port", port, "--log-format", form)
        assert server.wait() == 1
    if form == "text":
        assert server.stderr.startswith(f"Error: Port {port} on 127.0.0.1 is taken.")
        return
    [line] = [json.loads(line) for line in server.stderr.splitlines()]
    assert (line["action"], line["level"]) == ("command_failed", "error")
    assert line["message"].startswith(f"Port {port} on 127.0.0.1 is taken.")


def test_requests_are_counted_by_operation_however_many_paths_and_methods_there_are() -> None:
    """A path that is none, or a method that nobody knows, is `other`."""
    metrics = ServerMetrics()
    with TestClient(create_app("memory://", dispatch=False, metrics=metrics)) as client:
        for number in range(50):
            client.get(f"/calls/{number}")
            client.get(f"/nowhere/{number}")
            client.request(f"METHOD{number}", "/calls")
            client.head("/healthz")
        text = metrics.text()[0].decode()
        scraper = TestClient(metrics.app())
        assert scraper.get("/metrics", headers={"accept": "application/openmetrics-text"}).text.endswith("# EOF\n")
    assert value(text, "outreach_http_requests_total", operation="GET /calls/{id:path}", status="401") == 50
    assert value(text, "outreach_http_requests_total", operation="GET /healthz", status="200") == 50
    assert value(text, "outreach_http_requests_total", operation="other", status="404") == 50
    assert value(text, "outreach_http_requests_total", operation="other", status="405") == 50
    assert value(text, "outreach_http_request_duration_seconds_count", operation="other") == 100
    counted = [one for one in samples(text) if one.name == "outreach_http_requests_total"]
    begun = {(one.labels["operation"], one.labels["status"]) for one in counted if not one.value}
    assert begun == {(operation, error) for operation in (*OPERATIONS.values(), OTHER) for error in ERRORS}
    assert len(counted) == len(begun) + 4


def test_every_operation_of_the_interface_has_a_name_of_its_own() -> None:
    """As openapi.yaml has them, the documents and the callbacks beside them."""
    paths = yaml.safe_load(contract_bytes())["paths"]
    documented = {
        (method.upper(), path)
        for path, item in paths.items()
        for method in item
        if method in {"get", "post", "put", "patch", "delete"}
    }
    counted = {
        (method, path.replace(":path", "")) for method, _, path in (one.partition(" ") for one in OPERATIONS.values())
    }
    assert documented <= counted
    assert len(set(OPERATIONS.values())) == len(OPERATIONS)


def test_errors_of_the_database_are_those_that_its_libraries_name() -> None:
    """A name that neither of them has would stay at zero for ever; the page knows what stands for all others."""
    assert all(hasattr(sqlite3, name) for name in SQLITE_ERRORS)
    assert all(hasattr(psycopg.errors, name) or hasattr(psycopg, name) for name in POSTGRES_ERRORS)
    assert [write_error(name) for name in ("SQLITE_IOERR_FSYNC", "SQLITE_FULL", "DiskFull", "SQLITE_ODD", "Odd")] == [
        "SQLITE_IOERR",
        "SQLITE_FULL",
        "DiskFull",
        "other",
        "other",
    ]
