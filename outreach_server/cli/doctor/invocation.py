"""How this program was called: the commands that are shown to people must work in the same environment."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from outreach.errors import Problem
from outreach.server_support import PROGRAM, database_option
from outreach_server.config import ServerConfig

SERVICE: Final = "outreach.service"
"""The unit of examples/hosting."""

_UNITS: Final = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
_SERVE: Final = "serve"


@attrs.frozen(kw_only=True)
class Invocation:
    """How the program was called.

    Attributes:
        program: What starts it.
        options: Those of the call that every command needs.
        config_file: The file that the configuration comes from, if any.
        environment: The variables of the call.
        service: The unit that runs the server of this machine, if any.
    """

    program: str = PROGRAM
    options: Sequence[str] = ()
    config_file: Path | None = None
    environment: Mapping[str, str] = attrs.Factory(dict)
    service: str | None = None

    def fitted(self, finding: Problem, url: str) -> Problem:
        """Return a finding with commands that work for this call.

        Args:
            finding: The finding, as an engine or this package writes it.
            url: The database's URL.
        """
        return finding.with_commands(lambda command: self._fitted(command, url))

    def _fitted(self, command: str, url: str) -> Iterator[str]:
        name, _, rest = command.partition(" ")
        if name == "export":
            yield self._setting(command, rest)
            if self.service is not None:
                yield self._restart()
        elif name != PROGRAM:
            yield command
        else:
            yield self._called(rest, url)

    def _called(self, rest: str, url: str) -> str:
        own = f"{database_option(url)} "
        if rest.startswith("--database ") and not rest.startswith(own):
            # About another file, such as an archive.
            return f"{self.program} {rest}"
        rest = rest.removeprefix(own)
        if rest == _SERVE and self.service is not None:
            return self._restart()
        if rest == _SERVE and not url.startswith("sqlite:"):
            # On a database of several processes, this one needs no port.
            rest = "worker"
        return " ".join([self.program, *self.options, rest])

    def _restart(self) -> str:
        return f"sudo systemctl restart {self.service}"

    def _setting(self, command: str, assignment: str) -> str:
        """Return what sets a setting where it comes from: in the configuration file, unless a variable goes before."""
        variable, _, value = shlex.split(assignment)[0].partition("=")
        keys = {one.variable: one.key for one in ServerConfig.settings()}
        file = self.config_file
        if variable not in keys or variable in self.environment or file is None or not _has_content(file):
            return command
        key = keys[variable]
        # Before the first line, where no table has begun; the earlier value goes.
        inserted = ["-e", f"1i {key} = {json.dumps(value)}"] if value else []
        script = shlex.join([*inserted, "-e", f"/^{key} *=/d"])
        root = "" if os.access(file, os.W_OK) and os.access(file.parent, os.W_OK) else "sudo "
        return f"{root}sed -i {script} {shlex.quote(str(file.absolute()))}"


def program() -> str:
    """Return what starts this program from a shell: its name where that finds it, else its path."""
    own = Path(sys.executable if getattr(sys, "frozen", False) else sys.argv[0])
    if own.name == "__main__.py" and own.parent.name == "outreach_server":
        return f"{shlex.quote(sys.executable)} -m outreach_server"
    if own.name != PROGRAM:
        return PROGRAM
    found = shutil.which(PROGRAM)
    if found is not None and Path(found).samefile(own):
        return PROGRAM
    return shlex.quote(str(own.absolute()))


def options_of(*, database: str | None, config_file: Path | None) -> Iterator[str]:
    """Yield the options that this call was given."""
    if config_file is not None:
        yield f"--config {shlex.quote(str(config_file.absolute()))}"
    if database is not None:
        # Without its password, if it has one.
        yield database_option(database) or f"--database {shlex.quote(database)}"


def service_here(units: Sequence[str] = _UNITS) -> str | None:
    """Return the unit that runs the server of this machine; None where there is none."""
    return SERVICE.removesuffix(".service") if any(Path(unit, SERVICE).exists() for unit in units) else None


def _has_content(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False
