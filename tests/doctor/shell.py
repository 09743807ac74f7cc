"""A shell as an operator has it, in which printed commands are run; stand-ins for what needs root or somebody else."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs

from tests.cli.conftest import DEADLINE, until

ROOT: Final = Path(__file__).resolve().parents[2]

_CERTBOT: Final = """
from datetime import timedelta
from pathlib import Path
from tests.listening.certificates import write_pair

place = Path({place!r})
write_pair(place / "certificate.pem", place / "key.pem", name={host!r}, host={host!r}, until=timedelta(days=60))
(place / "key.pem").chmod(0o600)
"""


@attrs.define(kw_only=True)
class Shell:
    """A shell that keeps what is exported in it.

    Attributes:
        programs: The directory of our program and of the stand-ins, first on its path.
        directory: Where it is.
        exported: What was exported in it.
    """

    programs: Path
    directory: Path
    exported: dict[str, str] = attrs.field(factory=dict)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of its commands."""
        path = f"{self.programs}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OUTREACH_LISTEN_PORT": "0", **self.exported}

    def run(self, command: str, *, stdin: str = "") -> None:
        """Run a command, which must succeed."""
        kept = self.directory / "exported"
        done = subprocess.run(
            ["/bin/sh", "-c", f"eval {shlex.quote(command)} && env -0 > {shlex.quote(str(kept))}"],
            cwd=self.directory,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        variables = dict(one.split("=", 1) for one in kept.read_text("utf-8").split("\0") if one)
        kept.unlink()
        known = self.environment
        self.exported |= {
            name: value
            for name, value in variables.items()
            if name.startswith("OUTREACH_") and known.get(name) != value
        }

    def run_until(self, command: str, condition: Callable[[], bool]) -> None:
        """Run a command that goes on, until a condition holds."""
        with subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:

            def holds() -> bool:
                assert process.poll() is None, process.stderr.read() if process.stderr is not None else ""
                return condition()

            try:
                until(holds, f"what {command} is for")
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=DEADLINE)
            finally:
                process.kill()


def open_shell(directory: Path, *, host: str) -> Shell:
    """Open a shell in a directory with a certificate for a host, which the stand-in of certbot renews."""
    programs = directory / "programs"
    programs.mkdir()
    python = shlex.quote(sys.executable)
    renew = _CERTBOT.format(place=str(directory), host=host)
    for name, text in {
        "outreach-server": f'exec {python} -m outreach_server "$@"',
        "sudo": 'exec "$@"',
        "certbot": f"exec {python} -c {shlex.quote(renew)}",
        "timedatectl": ": > synchronized",
        "apt-get": ":",
    }.items():
        file = programs / name
        file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        file.chmod(0o755)
    return Shell(programs=programs, directory=directory)
