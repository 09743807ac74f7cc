"""Commands that are shown to people, who copy them into a shell: they must work there as they are."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from outreach.errors import Problem

PROGRAM: Final = "outreach-server"

SERVE: Final = f"{PROGRAM} serve"
"""The command that dispatches."""

_FILE: Final = "sqlite:///"


def database_option(url: str) -> str | None:
    """Return the option that names a database to the program; None for one that no other process can open.

    Args:
        url: The database's URL. Where it may hold a password, the option says `URL` instead.
    """
    if url.startswith(_FILE):
        return f"--database {shlex.quote(_FILE + os.path.abspath(url.removeprefix(_FILE)))}"
    scheme, _, rest = url.partition("://")
    if scheme not in {"postgresql", "postgres"}:
        return None
    return "--database URL" if "@" in rest or "?" in rest else f"--database {shlex.quote(url)}"


def naming_database(problem: Problem, url: str) -> Problem:
    """Return a problem whose commands name its database, where they are of the program and name none."""
    option = database_option(url)

    def named(command: str) -> str:
        words = command.split(" ", 2)
        if option is None or words[0] != PROGRAM or words[1] == "--database":
            return command
        return f"{PROGRAM} {option}{command.removeprefix(PROGRAM)}"

    return problem.with_commands(lambda command: [named(command)])


def pip_commands(*arguments: str) -> Sequence[str]:
    """Return the command that runs this environment's pip; none where there is no pip, as in an executable."""
    if getattr(sys, "frozen", False) or find_spec("pip") is None:
        return []
    return [f"{shlex.quote(sys.executable)} -m pip {shlex.join(arguments)}"]
