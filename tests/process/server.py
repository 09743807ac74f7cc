"""The real server in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import httpx
import psutil

from tests.process.waiting import PATIENCE, wait_for


@attrs.define(kw_only=True)
class ServerProcess:
    """A running `outreach-server serve`.

    Attributes:
        process: The process; the first of a session of its own, so that its helpers end with it.
        url: Where it answers.
        started_at: When it was started, by the monotonic clock.
        ready_at: When it said that it answers.
        stdout: The file with its standard output.
        stderr: The file with what it logged.
    """

    process: subprocess.Popen[bytes]
    url: str
    started_at: float
    ready_at: float
    stdout: Path
    stderr: Path

    def stop(self, number: signal.Signals = signal.SIGTERM, *, seconds: float = PATIENCE) -> int:
        """Send a signal, wait for the end, and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=seconds)

    def kill(self) -> None:
        """Kill it as a power cut would, helpers included, and wait until it is gone."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=PATIENCE)

    def errors(self) -> str:
        """Return what it wrote to its standard error."""
        return self.stderr.read_text(encoding="utf-8", errors="replace")

    def health(self) -> dict[str, Any]:
        """Return what /healthz says of dispatching."""
        answer = httpx.get(f"{self.url}/healthz", timeout=PATIENCE)
        assert answer.status_code == 200, answer.text
        dispatcher: dict[str, Any] = answer.json()["dispatcher"]
        return dispatcher

    def resident_bytes(self) -> int:
        """Return how much memory it and its helpers hold now."""
        total = 0
        for process in self._family():
            with suppress(psutil.Error):
                total += process.memory_info().rss
        return total

    def cpu_seconds(self) -> float:
        """Return how much computing time it has used, the helpers that have ended included."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system + times.children_user + times.children_system

    def _family(self) -> Iterator[psutil.Process]:
        with suppress(psutil.Error):
            first = psutil.Process(self.process.pid)
            yield first
            yield from first.children(recursive=True)


def start_server(
    database_url: str, *, directory: Path, environment: Mapping[str, str], options: tuple[str, ...] = ()
) -> ServerProcess:
    """Start a server on a free port and wait until it answers.

    Args:
        database_url: Its database.
        directory: Where its output is kept.
        environment: Variables beside those of this process.
        options: More options of `serve`.
    """
    name = f"server-{time.monotonic_ns()}"
    stdout, stderr = directory / f"{name}.out", directory / f"{name}.err"
    command = [sys.executable, "-m", "outreach_server", "--json", "--database", database_url]
    begun = time.monotonic()
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(
            [*command, "serve", "--port", "0", *options],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **environment},
            start_new_session=True,
        )

    def told() -> Any:
        if process.poll() is not None:
            raise AssertionError(f"The server ended with {process.returncode}:\n{stderr.read_text()}")
        with suppress(ValueError):
            return json.loads(stdout.read_bytes())
        return None

    try:
        url = wait_for("the server to start", told)["url"]
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return ServerProcess(
        process=process, url=url, started_at=begun, ready_at=time.monotonic(), stdout=stdout, stderr=stderr
    )
