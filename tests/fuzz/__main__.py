"""Fuzz a running server against openapi.yaml: `python -m tests.fuzz [ARGUMENTS OF st run]`.

A sandbox is started, furnished, fuzzed in all phases with all checks, and stopped; its database goes with it.
Without arguments a few hundred examples an operation are tried, with other data each time; Schemathesis prints the
seed. `--max-examples 5000` or `--max-time 3600` goes on for longer, `--seed 7` repeats a run.

The exit status is that of Schemathesis, or 3 where the server did not take it well: it died, logged an error, or its
dispatcher failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import anyio
import attrs
import httpx

from outreach import Outreach
from tests.fuzz.hooks import Known
from tests.fuzz.workspace import furnish

ROOT: Final = Path(__file__).resolve().parents[2]
DEFAULTS: Final = ("--max-examples", "300", "--continue-on-failure")
SERVER_FAILED: Final = 3
STOP_SECONDS: Final = 30


def main(arguments: Sequence[str]) -> int:
    """Fuzz, and return the exit status."""
    with tempfile.TemporaryFile("w+") as log, sandbox(log) as (server, place):
        known = anyio.run(prepare_recipient, place)
        status = run_schemathesis(place, known, arguments)
        trouble = troubles(server, place, log)
    for line in trouble:
        print(line, file=sys.stderr)
    return status or (SERVER_FAILED if trouble else 0)


@contextmanager
def sandbox(log: IO[str]) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run a sandbox and yield it with what it says of itself."""
    command = [sys.executable, "-m", "outreach_server", "sandbox", "--json", "--log-level", "error"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as server:
        try:
            yield server, read_document(server)
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()


def read_document(server: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the JSON document that the server prints once it answers."""
    assert server.stdout is not None
    text = ""
    for line in server.stdout:
        text += line
        try:
            found: dict[str, Any] = json.loads(text)
        except json.JSONDecodeError:
            continue
        return found
    raise SystemExit("The sandbox ended before it was up.")


async def prepare_recipient(place: dict[str, Any]) -> Known:
    """Add to the sandbox what bodies may name."""
    async with Outreach.open(place["database"]) as engine:
        return await furnish(engine, place["workspace_id"], place["agent_id"])


def run_schemathesis(place: dict[str, Any], known: Known, arguments: Sequence[str]) -> int:
    """Run Schemathesis in a process of its own and return its exit status."""
    names = {f"OUTREACH_FUZZ_{name.removesuffix('_id').upper()}": value for name, value in attrs.asdict(known).items()}
    command = [sys.executable, "-m", "schemathesis.cli", "run", "openapi.yaml", "--url", place["url"]]
    command += ["--header", f"Authorization: Bearer {place['api_key']}", *DEFAULTS, *arguments]
    # schemathesis.toml, which names the hooks, is found from the root.
    environment = os.environ | {name: value for name, value in names.items() if value is not None}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def troubles(server: subprocess.Popen[str], place: dict[str, Any], log: IO[str]) -> list[str]:
    """Return what went wrong inside the server, whatever it answered."""
    if server.poll() is not None:
        return [f"The server ended by itself, with status {server.returncode}."]
    found = []
    health = httpx.get(f"{place['url']}/readyz", timeout=STOP_SECONDS).json()
    if health["dispatcher"]["failures"]:
        found.append(f"The dispatcher failed {health['dispatcher']['failures']} times.")
    log.seek(0)
    errors = [line.rstrip() for line in log if " ERROR " in line or line.startswith("Traceback")]
    return found + [f"The server logged: {line}" for line in errors[:20]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
