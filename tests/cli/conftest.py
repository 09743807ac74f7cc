"""The command line, run in this process, or in one of its own where signals and sockets matter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Self

import pytest
from click.testing import CliRunner, Result

from outreach.storage.sqlite.memory import empty_database
from outreach_server.cli import main

ROOT = Path(__file__).resolve().parents[2]
STOP_SIGNALS = [
    signal.SIGTERM,
    signal.SIGINT,
    *([signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL else []),
]
"""What stops a server in order; under `nohup` its processes ignore the end of the terminal."""

DEADLINE = 60.0
"""Seconds for a condition that normally holds within one: only what hangs reaches it."""


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition holds and return what it returned."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"Not within {DEADLINE} s: {what}")


class Cli:
    """Runs commands in this process on one database."""

    def __init__(self, database: str) -> None:
        self.database = database

    def run(self, *args: str, stdin: bytes | None = None) -> Result:
        """Run a command."""
        runner = CliRunner(env={"OUTREACH_DATABASE_URL": self.database})
        return runner.invoke(main, list(args), input=stdin, prog_name="outreach-server")

    def ask(self, *args: str, stdin: bytes | None = None) -> Any:
        """Run a command with --json and return its document."""
        result = self.run(*args, "--json", stdin=stdin)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def tell(self, *args: str, stdin: bytes | None = None) -> str:
        """Run a command for people and return what it says on stdout and stderr."""
        result = self.run(*args, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.output

    def refuse(self, *args: str, stdin: bytes | None = None, code: int = 1) -> str:
        """Run a command that fails, with an empty stdout, and return what it says on stderr."""
        result = self.run(*args, stdin=stdin)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return result.stderr


class Process:
    """A command in a process of its own."""

    def __init__(self, args: Sequence[str], environment: dict[str, str], stdout: int = subprocess.PIPE) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "outreach_server", *args],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.out: list[str] = []
        self.err: list[str] = []
        pairs: list[tuple[IO[str] | None, list[str]]]
        pairs = [(self._popen.stdout, self.out), (self._popen.stderr, self.err)]
        self._streams = [(stream, lines) for stream, lines in pairs if stream is not None]
        self._readers = [
            threading.Thread(target=_collect, args=(stream, lines), daemon=True) for stream, lines in self._streams
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()
        for reader in self._readers:
            reader.join()
        for stream, _ in self._streams:
            stream.close()

    @property
    def stdout(self) -> str:
        """What it has printed so far."""
        return "".join(self.out)

    @property
    def stderr(self) -> str:
        """What it has said on stderr so far."""
        return "".join(self.err)

    def document(self) -> Any:
        """Wait for the JSON document on its stdout."""
        return until(self._document, f"a document on stdout; stderr: {self.stderr}")

    def says(self, text: str) -> None:
        """Wait for a text on its stdout or stderr."""
        until(lambda: text in self.stdout + self.stderr, f"{text!r} in:\n{self.stdout}\n{self.stderr}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._popen.send_signal(number)

    def wait(self, seconds: float = DEADLINE) -> int:
        """Wait for its end and return the exit status."""
        status = self._popen.wait(seconds)
        for reader in self._readers:
            reader.join()
        return status

    def _document(self) -> Any:
        try:
            return json.loads(self.stdout)
        except ValueError:
            assert self._popen.poll() is None, self.stderr
            return None


Write = Callable[[str | bytes], str]
"""Writes a file of contacts, and returns its path."""

Start = Callable[..., Process]
"""Starts a command in a process of its own."""


def _collect(stream: Any, lines: list[str]) -> None:
    lines.extend(iter(stream.readline, ""))


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Return the URL of a database of the test's own, which is migrated: migrating takes longer than most commands."""
    path = tmp_path / "test.db"
    path.write_bytes(empty_database())
    return f"sqlite:///{path}"


@pytest.fixture
def cli(database: str) -> Cli:
    """Return the command line on that database."""
    return Cli(database)


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """Return a database that holds a sandbox workspace with a number, made once, and the workspace."""
    path = tmp_path_factory.mktemp("acme") / "test.db"
    path.write_bytes(empty_database())
    cli = Cli(f"sqlite:///{path}")
    identifier: str = cli.ask("workspaces", "create", "Acme", "--default-region", "US")["id"]
    cli.ask("numbers", "create", identifier, "+14155550100", "--carrier", "twilio")
    return path.read_bytes(), identifier


@pytest.fixture
def workspace_id(database: str, acme: tuple[bytes, str]) -> str:
    """Return a sandbox workspace that has a number, in the test's database."""
    content, identifier = acme
    Path(database.removeprefix("sqlite:///")).write_bytes(content)
    return identifier


@pytest.fixture
def start(database: str) -> Iterator[Start]:
    """Return a function that starts a command in a process of its own, which ends with the test."""
    started: list[Process] = []

    def run(*args: str, stdout: int = subprocess.PIPE, **environment: str) -> Process:
        process = Process(args, {"OUTREACH_DATABASE_URL": database, **environment}, stdout)
        started.append(process)
        return process

    yield run
    for process in started:
        process.__exit__()


@pytest.fixture
def csv_file(tmp_path: Path) -> Write:
    """Return a function that writes a file and returns its path."""

    def write(content: str | bytes) -> str:
        path = tmp_path / "contacts.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write
