"""The real server, or the engine alone, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import attrs
import httpx
import psutil

from tests.process.waiting import PATIENCE, wait_for

P = TypeVar("P", bound="EngineProcess")


@attrs.define(kw_only=True)
class EngineProcess:
    """A process that dispatches from a database.

    Attributes:
        process: The process; the first of a session of its own, so that its helpers end with it.
        told: The document that it printed when it was ready.
        started_at: When it was started, by the monotonic clock.
        ready_at: When it said that it is ready.
        stdout: The file with its standard output.
        stderr: The file with what it logged.
    """

    process: subprocess.Popen[bytes]
    told: dict[str, Any]
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


@attrs.define(kw_only=True)
class ServerProcess(EngineProcess):
    """A running `outreach-server serve`."""

    @property
    def url(self) -> str:
        """Where it answers."""
        url: str = self.told["url"]
        return url

    def health(self) -> dict[str, Any]:
        """Return what /readyz says of dispatching."""
        answer = httpx.get(f"{self.url}/readyz", timeout=PATIENCE)
        dispatcher: dict[str, Any] = answer.json()["dispatcher"]
        return dispatcher


def start_server(
    database_url: str,
    *,
    directory: Path,
    environment: Mapping[str, str],
    options: tuple[str, ...] = (),
    words: Sequence[str] = ("serve", "--port", "0"),
    descriptors: int | None = None,
) -> ServerProcess:
    """Start a server on a free port and wait until it answers.

    Args:
        database_url: Its database.
        directory: Where its output is kept.
        environment: Variables beside those of this process.
        options: More options of the command.
        words: The command.
        descriptors: How many files and connections it may have open; None for as many as this process.
    """
    command = ["outreach_server", "--json", "--database", database_url, *words, *options]
    return start_module(ServerProcess, command, directory, environment, descriptors=descriptors)


def start_worker(
    database_url: str, *, directory: Path, environment: Mapping[str, str], options: tuple[str, ...] = ()
) -> EngineProcess:
    """Start a worker and wait until it has asked for the right to dispatch."""
    command = ["outreach_server", "--json", "--database", database_url, "worker", *options]
    return start_module(EngineProcess, command, directory, environment)


def start_engine(
    database_url: str, *, directory: Path, environment: Mapping[str, str], config: Mapping[str, float]
) -> EngineProcess:
    """Start an engine without a server and wait until it has asked for the right to dispatch.

    Args:
        database_url: Its database.
        directory: Where its output is kept.
        environment: Variables beside those of this process.
        config: Settings of `EngineConfig` that differ from the defaults; a server has no options for these.
    """
    return start_module(
        EngineProcess, ["tests.process.engine", database_url, json.dumps(config)], directory, environment
    )


def start_module(
    kind: type[P],
    module_and_arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    *,
    descriptors: int | None = None,
) -> P:
    """Start a module in a process of its own, and wait until it has printed its one document."""
    name = f"process-{time.monotonic_ns()}"
    stdout, stderr = directory / f"{name}.out", directory / f"{name}.err"
    bounded = [] if descriptors is None else ["/bin/sh", "-c", 'ulimit -n "$0" && exec "$@"', str(descriptors)]
    begun = time.monotonic()
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(
            [*bounded, sys.executable, "-m", *module_and_arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **environment},
            start_new_session=True,
        )

    def told() -> Any:
        if process.poll() is not None:
            raise AssertionError(f"The process ended with {process.returncode}:\n{stderr.read_text()}")
        with suppress(ValueError):
            return json.loads(stdout.read_bytes())
        return None

    try:
        document = wait_for("the process to start", told)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return kind(
        process=process, told=document, started_at=begun, ready_at=time.monotonic(), stdout=stdout, stderr=stderr
    )
