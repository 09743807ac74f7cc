from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import httpx
import pytest

from tests.cli.conftest import ROOT, STOP_SIGNALS, Process, until

STOP_SECONDS = 10.0


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_worker_works_until_it_is_told_to_stop(start: Callable[..., Process], number: signal.Signals) -> None:
    """It says where its health is, answers there, and ends cleanly within ten seconds."""
    process = start("worker", "--metrics", "127.0.0.1:0", "--json")
    url = process.document()["url"]

    def dispatching() -> bool:
        return bool(httpx.get(f"{url}/readyz", trust_env=False).json()["dispatcher"]["dispatching"])

    until(dispatching, "the right to dispatch")
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
    process.signal(number)
    assert process.wait() == 0
    assert time.monotonic() - began < STOP_SECONDS
    assert "Traceback" not in process.stderr


def test_jobs_need_postgresql(start: Callable[..., Process]) -> None:
    """Said before anything is opened."""
    process = start("worker", OUTREACH_DISPATCHER="procrastinate")
    assert process.wait() != 0
    assert "keeps its jobs in PostgreSQL" in process.stderr
