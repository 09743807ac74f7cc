"""Printed commands fit how the doctor was called: by options, by the environment, as one file, beside a service."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from outreach import Outreach
from outreach.core.command_lines import pip_commands
from outreach.errors import Problem
from outreach_server.cli.doctor.invocation import Invocation, options_of, program, service_here
from tests.doctor.system import System, no_dispatcher

FILE = "sqlite:////var/lib/outreach/outreach.db"


def fitted(command: str, invocation: Invocation, url: str = FILE) -> list[str]:
    """Return what is printed in the place of a command."""
    finding = Problem(code="x", severity="info", message="It is so.", path="here", commands=[command])
    return list(invocation.fitted(finding, url).commands)


@pytest.mark.anyio
async def test_an_engine_names_its_database(system: System) -> None:
    """Its commands work in any directory, without a variable."""
    await system.write(no_dispatcher)

    async def look(engine: Outreach) -> None:
        (found,) = (await engine.diagnose(network=False)).findings
        assert found.commands == [f"outreach-server --database sqlite:///{system.database} serve"]

    await system.within(look)


def test_the_options_of_the_call_are_those_of_its_commands() -> None:
    """And a command about another file keeps its own."""
    invocation = Invocation(options=[*options_of(database=FILE, config_file=Path("/etc/my own.toml"))])
    given = f"--config '/etc/my own.toml' --database {FILE}"
    assert fitted("outreach-server db check", invocation) == [f"outreach-server {given} db check"]
    assert fitted(f"outreach-server --database {FILE} db check", invocation) == [f"outreach-server {given} db check"]
    other = "outreach-server --database sqlite:////archive.db db migrate"
    assert fitted(other, invocation) == [other]


def test_a_password_is_not_printed() -> None:
    """The URL of a database may have one."""
    url = "postgresql://me:secret@db/outreach"
    invocation = Invocation(options=[*options_of(database=url, config_file=None)])
    assert fitted("outreach-server db check", invocation, url) == ["outreach-server --database URL db check"]


def test_on_postgresql_a_worker_dispatches() -> None:
    """It needs no port, which a server there may have."""
    assert fitted("outreach-server serve", Invocation(), "postgresql://db/outreach") == ["outreach-server worker"]


def test_a_service_is_restarted(tmp_path: Path) -> None:
    """A second server beside it would only stand by, and a setting counts from its next start."""
    assert service_here([str(tmp_path)]) is None
    (tmp_path / "outreach.service").touch()
    invocation = Invocation(service=service_here([str(tmp_path)]))
    restart = "sudo systemctl restart outreach"
    assert fitted("outreach-server serve", invocation) == [restart]
    setting = "export OUTREACH_PROXY_HEADERS=127.0.0.1"
    assert fitted(setting, invocation) == [setting, restart]


def test_a_setting_is_changed_where_it_comes_from(tmp_path: Path) -> None:
    """In the configuration file, unless a variable goes before it."""
    file = tmp_path / "outreach.toml"
    file.write_text('root_path = "/x"\n')
    setting = "export OUTREACH_ROOT_PATH=/y"
    (command,) = fitted(setting, Invocation(config_file=file))
    assert shlex.split(command)[-6:] == ["-i", "-e", '1i root_path = "/y"', "-e", "/^root_path *=/d", str(file)]
    invocation = Invocation(config_file=file, environment={"OUTREACH_ROOT_PATH": "/x"})
    assert fitted(setting, invocation) == [setting]


def test_the_program_is_named_so_that_a_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name on the path, else by its own path; the one file has no pip."""
    own = tmp_path / "outreach-server"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(own)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == str(own)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == "outreach-server"
    monkeypatch.setattr(sys, "argv", ["/x/outreach_server/__main__.py"])
    assert program() == f"{shlex.quote(sys.executable)} -m outreach_server"
    assert pip_commands("check") == [f"{shlex.quote(sys.executable)} -m pip check"]
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/opt/outreach-server")
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == "/opt/outreach-server"
    assert pip_commands("check") == []
