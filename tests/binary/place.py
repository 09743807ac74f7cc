"""Running the executable in its place: commands, servers, and what they leave."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import attrs
import httpx
import psutil

from tests.binary.jail import Jail
from tests.process.books import Books
from tests.process.waiting import wait_for

SECONDS: Final = 120.0

_HANDING_OVER: Final = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""


@attrs.define(kw_only=True)
class Running:
    """A server.

    Attributes:
        process: Its first process.
        url: Where it answers; empty where it does not.
        log: The file with what it logged.
    """

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Ask for something."""
        return httpx.get(f"{self.url}{path}", headers=headers, trust_env=False, timeout=SECONDS)

    def family(self) -> list[psutil.Process]:
        """Return its processes: the server, and a helper while a large body is read."""
        first = psutil.Process(self.process.pid)
        return [first, *first.children(recursive=True)]

    def stop(self) -> None:
        """End it as a service manager does."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(SECONDS) == 0, self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """Kill its first process alone, as somebody does who knows its number; the others must go with it."""
        family = self.family()
        self.process.kill()
        self.process.wait(SECONDS)
        _, alive = psutil.wait_procs(family, timeout=SECONDS)
        assert alive == [], "a process goes on after the first was killed"


@attrs.define(kw_only=True)
class Place:
    """A database in a jail.

    Attributes:
        jail: The jail.
        name: The name of the database.
        settings: Variables of every command.
    """

    jail: Jail
    name: str = "outreach"
    settings: Mapping[str, str] = attrs.Factory(dict)

    @property
    def database(self) -> Path:
        """The database, as this process sees it."""
        return self.jail.data / f"{self.name}.db"

    @property
    def books(self) -> Books:
        """The database and the simulator's log, to be read."""
        return Books(database=self.database, log=self.jail.data / f"{self.name}.jsonl")

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run a command, and return what it says on stdout, or on stderr where it says nothing there.

        Raises:
            AssertionError: It ended with another status, or in a traceback.
        """
        done = subprocess.run(
            self.jail.command(*arguments),
            env=self._environment({}),
            cwd=self.jail.data,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        told = f"{' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == status, told
        assert "Traceback" not in done.stderr, told
        return done.stdout or done.stderr

    def ask(self, *arguments: str) -> Any:
        """Run a command and return its document."""
        return json.loads(self.run(*arguments, "--json"))

    def serving(
        self, *options: str, handed: socket.socket | None = None, **more: str
    ) -> AbstractContextManager[Running]:
        """Run a server on a free port, or on a socket handed over as systemd does; it is killed at the end."""
        return self.running("serve", "--port", "0", *options, handed=handed, **more)

    @contextmanager
    def running(self, *words: str, handed: socket.socket | None = None, **more: str) -> Iterator[Running]:
        """Run a command that goes on until it is ended; it is killed at the end."""
        command = self.jail.command(*words, "--json")
        if handed is not None:
            command = [sys.executable, "-c", _HANDING_OVER, str(handed.fileno()), *command]
        out = self.jail.data.parent / f"{words[0]}-{time.monotonic_ns()}"
        log = out.with_suffix(".log")
        with out.open("wb") as stdout, log.open("wb") as stderr:
            process = subprocess.Popen(
                command,
                pass_fds=[] if handed is None else [handed.fileno()],
                env=self._environment(more),
                cwd=self.jail.data,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

        def document() -> Any:
            assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")
            with suppress(ValueError):
                return json.loads(out.read_bytes())
            return None

        try:
            told = wait_for(f"the {words[0]} to start", document, seconds=SECONDS)
            yield Running(process=process, url=told.get("url") or "", log=log)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(SECONDS)

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        seen = self.jail.seen
        return self.jail.environment(
            {
                "OUTREACH_DATABASE_URL": f"sqlite:///{seen}/{self.name}.db",
                "OUTREACH_SIMULATOR_LOG": f"{seen}/{self.name}.jsonl",
                "OUTREACH_SIMULATOR_LATENCY_MS": "20",
                "OUTREACH_RECONCILE_DELAY_SECONDS": "1",
                "OUTREACH_RECONCILE_INTERVAL_SECONDS": "0.5",
                "OUTREACH_HOST_ID": "binary-check",
                **self.settings,
                **more,
            }
        )
