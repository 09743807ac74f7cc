from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from tests import postgres
from tests.cli.conftest import ROOT, STOP_SIGNALS, Start, until

STOP_SECONDS = 10.0


def until_dispatching(url: str) -> None:
    """Wait until the worker at a URL has the right to dispatch."""
    until(
        lambda: httpx.get(f"{url}/readyz", trust_env=False).json()["dispatcher"]["dispatching"],
        "the right to dispatch",
    )


def test_a_worker_works_until_a_signal_stops_it(start: Start) -> None:
    """It says where its health is, answers there, and ends cleanly within ten seconds."""
    process = start("worker", "--metrics", "127.0.0.1:0", "--json")
    url = process.document()["url"]
    until_dispatching(url)
    shown = httpx.get(f"{url}/metrics", trust_env=False).text
    assert "outreach_dispatcher" in shown
    assert 'outreach_database_file_bytes{file="main"}' in shown
    assert "outreach_disk_free_bytes " in shown
    for method, path, code in (("GET", "/calls", "not_found"), ("POST", "/metrics", "method_not_allowed")):
        refused = httpx.request(method, f"{url}{path}", trust_env=False)
        assert refused.json()["error"]["code"] == code
        assert refused.json()["error"]["request_id"] == refused.headers["X-Request-Id"]
    asked = subprocess.run(
        [sys.executable, "-m", "outreach_server", "healthcheck", "--url", url], cwd=ROOT, timeout=60, check=False
    )
    assert asked.returncode == 0
    began = time.monotonic()
    process.signal(STOP_SIGNALS[-1])
    assert process.wait() == 0
    assert time.monotonic() - began < STOP_SECONDS
    assert "Traceback" not in process.stderr


def test_jobs_need_postgresql(start: Start) -> None:
    """Said before anything is opened."""
    process = start("worker", OUTREACH_DISPATCHER="procrastinate")
    assert process.wait() != 0
    assert "keeps its jobs in PostgreSQL" in process.stderr


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """A server of PostgreSQL that a test may stop."""
    with postgres.Server() as server:
        yield server


def test_a_worker_waits_for_a_database_that_is_away(start: Start, server: postgres.Server) -> None:
    """It says so once, begins as soon as the database is there, and ends cleanly where it is to end before."""
    url = server.url("postgres")
    server.stop()
    given_up, process = start("worker", OUTREACH_DATABASE_URL=url), start("worker", "--json", OUTREACH_DATABASE_URL=url)
    for one in (given_up, process):
        one.says("Waiting for the database")
    given_up.signal(signal.SIGTERM)
    assert given_up.wait() == 0
    server.start()
    assert process.document()["dispatcher"] == "in_process"
    process.signal(signal.SIGINT)
    assert process.wait() == 0
    for one in (given_up, process):
        assert one.stderr.count("Waiting for the database") == 1
        assert "Traceback" not in one.stderr


def test_a_worker_does_not_wait_for_a_database_that_refuses_it(start: Start, server: postgres.Server) -> None:
    """A wrong name is the fault of a setting: waiting would hide it."""
    process = start("worker", OUTREACH_DATABASE_URL=server.url("no_such_database"))
    assert process.wait() != 0
    assert "no_such_database" in process.stderr


def test_a_worker_of_jobs_logs_no_tracebacks_while_its_database_is_read_only(
    start: Start, server: postgres.Server
) -> None:
    """One of each that writes, where there were tracebacks, several a second; afterwards the worker goes on."""
    server.execute("CREATE DATABASE jobs")
    process = start(
        *("worker", "--metrics", "127.0.0.1:0", "--json"),
        OUTREACH_DATABASE_URL=server.url("jobs"),
        OUTREACH_DISPATCHER="procrastinate",
    )
    url = process.document()["url"]
    until_dispatching(url)
    server.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    server.execute("SELECT pg_reload_conf()")
    try:
        process.says("takes no writes")
        time.sleep(5)  # several heartbeats of Procrastinate's worker, and of ours
    finally:
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            connection.execute("SELECT pg_reload_conf()")
    until_dispatching(url)
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert "Traceback" not in process.stderr
    told = [line for line in process.stderr.splitlines() if "read-only" in line]
    assert 1 <= len(told) <= 3, told
