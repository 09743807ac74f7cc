"""Sides in processes of their own: scripts that measure and end, and servers that answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, NoReturn, Self
from urllib.parse import urlsplit

import attrs
import psutil

from benchmarks.settings import ROOT, Base

PATIENCE: Final = 120.0
_LOOK_AGAIN_SECONDS: Final = 0.005
_MAX_SIDE_SECONDS: Final = 3600.0
_ENVIRONMENT: Final = {"OUTREACH_HOST_ID": "benchmark", "OUTREACH_SIMULATOR_LATENCY_MS": "0"}
_SECRET_KEY: Final = {"OUTREACH_SECRET_KEY": "A" * 43 + "="}
"""Where no file is beside the database."""


def end_when_told() -> None:
    """Let a SIGTERM end this process as an exception: what it has started ends with it, and files are deleted."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)


def run_side(module: str, arguments: Mapping[str, Any], *, base: Base | None = None) -> dict[str, Any]:
    """Run `benchmarks.sides.MODULE`, which prints one JSON document; return that.

    Args:
        module: Its name.
        arguments: What it is told, as JSON.
        base: The earlier version that runs it; None for this one.

    Raises:
        RuntimeError: It failed.
    """
    done = subprocess.run(
        [str(base.python) if base else sys.executable, "-m", f"benchmarks.sides.{module}", json.dumps(arguments)],
        cwd=base.root if base else ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **_ENVIRONMENT},
        timeout=_MAX_SIDE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{module} ended with {done.returncode}:\n{done.stderr.decode(errors='replace')[-4000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@attrs.define
class Server:
    """A server in a process of its own; a context manager that ends it.

    Attributes:
        url: Where it answers.
        process: The process; the first of a session of its own, so that its helpers end with it.
        started_at: When it was started, by `time.perf_counter`.
    """

    url: str
    process: subprocess.Popen[bytes]
    started_at: float

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def resident_bytes(self) -> int:
        """Return how much memory it and its helpers hold now, what they share counted once each."""
        total = 0
        with suppress(psutil.Error):
            first = psutil.Process(self.process.pid)
            for process in (first, *first.children(recursive=True)):
                with suppress(psutil.Error):
                    total += process.memory_info().rss
        return total

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=PATIENCE)


def serve_outreach(
    database: Path | str, *options: str, environment: Mapping[str, str] | None = None, base: Base | None = None
) -> Server:
    """Start `outreach-server serve` on a file or the database of a URL, and a free port; then it answers.

    `base` is the earlier version that serves; None for this one.
    """
    url, key = (f"sqlite:///{database}", {}) if isinstance(database, Path) else (database, _SECRET_KEY)
    command = ["-m", "outreach_server", "--json", "--database", url]
    served = [*command, "serve", "--port", "0", "--log-level", "error", *options]
    return _serve(served, {**key, **(environment or {})}, base)


def serve_side(module: str, arguments: Mapping[str, Any]) -> Server:
    """Start `benchmarks.sides.MODULE`, which prints where it answers."""
    return _serve(["-m", f"benchmarks.sides.{module}", json.dumps(arguments)], {})


def _serve(arguments: Sequence[str], environment: Mapping[str, str], base: Base | None = None) -> Server:
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [str(base.python) if base else sys.executable, *arguments],
            cwd=base.root if base else ROOT,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=errors,
            env={**os.environ, **_ENVIRONMENT, **environment},
            start_new_session=True,
        )
        server = Server("", process, begun)
        try:
            while not server.url:
                with suppress(ValueError):
                    server.url = json.loads(_written(told))["url"]
                if process.poll() is not None:
                    raise RuntimeError(f"A server ended with {process.returncode}:\n{_written(errors)[-4000:]}")
                if time.perf_counter() > begun + PATIENCE:
                    raise RuntimeError(f"A server said nothing for {PATIENCE:g} s: {_written(errors)[-4000:]}")
                if not server.url:
                    time.sleep(_LOOK_AGAIN_SECONDS)
        except BaseException:
            server.__exit__()
            raise
    return server


def _written(file: IO[bytes]) -> str:
    """Return what a process wrote to a file; the position that both share stays where the process writes next."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()
