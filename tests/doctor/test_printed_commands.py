"""What the doctor prints is run in a shell as it is printed, and the doctor is silent about the fault afterwards."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import click
import pytest
from click.testing import Result

from outreach.database import backup_database
from tests.cli.conftest import DEADLINE
from tests.doctor.faults import FAULTS, Fault, key_file
from tests.doctor.shell import open_shell
from tests.doctor.system import HOST, System
from tests.documents.commands import PROGRAM, check
from tests.documents.provider import CREDENTIALS

Doctor = Callable[..., Result]


def _nothing(_: System) -> None:
    """Leave everything as it is."""


def _clock_is_synchronized(system: System) -> None:
    assert (system.directory / "synchronized").exists()
    system.provider.clock_ahead = 0


@attrs.frozen(kw_only=True)
class Mend:
    """How what is printed mends a fault.

    Attributes:
        which: The printed commands that are run: all of them, or one of several ways.
        goes_on: Whether the last one is a server.
        asks: Whether it asks for the account's credentials at a terminal: here they come from a file.
        then: What happens outside meanwhile.
    """

    which: slice = slice(None)
    goes_on: bool = False
    asks: bool = False
    then: Callable[[System], None] = _nothing


ALL: Final = Mend()
FIRST: Final = Mend(which=slice(0, 1))
SECOND: Final = Mend(which=slice(1, 2))
SERVER: Final = Mend(goes_on=True)

IN_ANOTHER_WAY: Final[Mapping[str, Sequence[Mend]]] = {
    "database_missing-in-an-empty-file": [FIRST, SECOND],
    "database_moved": [SERVER],
    "database_restored": [SERVER],
    "key_not_usable-missing": [FIRST],
    "account_not_usable": [Mend(asks=True)],
    "account_refused": [Mend(asks=True)],
    "clock_wrong": [Mend(then=_clock_is_synchronized)],
    "clock_wrong-ahead,-and-far": [Mend(then=_clock_is_synchronized)],
    "no_dispatcher": [SERVER],
    "orphaned_claims": [SERVER],
    "number_held": [FIRST, SECOND],
}
"""The faults that are not mended by all of the printed commands in their order; each in every way that is printed."""

NOT_MENDED: Final[Mapping[str, str]] = {
    "archive_missing": "the command names where the archive is, and there is none: tests/cli/test_db.py",
    "database_older": "only this process knows the later migration: tests/cli/test_db.py runs the command",
    "database_newer": "pip installs a newer version from elsewhere",
    "network_file_system": "the command copies to /var/lib, and the configuration has to name the copy",
    "public_url_local-a-private-address": "the stand-in of the resolver gives every name this address",
    "sender_takes_no_replies": "it is good to know, and stays",
    "time_zones_missing": "pip and apt-get install from elsewhere",
}
"""The other faults with a command that fixes them, and why it is not run."""

ONLY_SHOWN: Final = {
    "account_disabled",
    "account_without_funds",
    "adapter_not_usable",
    "behind",
    "callback_elsewhere",
    "callback_misdirected",
    "callback_not_set",
    "campaign_overdue",
    "certificate_key_mismatch",
    "certificate_not_usable",
    "certificate_not_valid_yet",
    "check_failed",
    "database_copied",
    "database_foreign",
    "database_log_deleted",
    "integrity_not_checked",
    "log_large",
    "numbers_misread",
    "provider_unreachable",
    "public_url_unanswered",
    "public_url_unresolvable",
    "requests_overdue",
}
"""Codes that no command can fix: a person decides, or somebody else has to act."""


def findings(result: Result) -> Mapping[str, Any]:
    """Return what the doctor has found, by code."""
    return {one["code"]: one for one in json.loads(result.stdout)["findings"]}


CASES: Final = [
    pytest.param(fault, mend, id=f"{fault.id}-{number}")
    for fault in FAULTS
    if fault.id not in NOT_MENDED and fault.code not in ONLY_SHOWN
    for number, mend in enumerate(IN_ANOTHER_WAY.get(fault.id, [ALL]))
]


@pytest.mark.sample(6, turn=4)
@pytest.mark.parametrize(("fault", "mend"), CASES)
def test_the_printed_commands_mend_the_fault(
    fault: Fault, mend: Mend, system: System, run: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed into a shell, with only what they leave to a person filled in."""
    backup, key = system.directory / "a backup.db", system.directory / "a copy of the key"
    backup_database(f"sqlite:///{system.database}", backup)
    key.write_bytes(key_file(system).read_bytes())
    shell = open_shell(system.directory, host=HOST)
    anyio.run(fault.plant, system, monkeypatch)

    def is_silent() -> bool:
        return fault.code not in findings(run("--json", **shell.exported))

    assert not is_silent()
    printed = findings(run("--json"))[fault.code]["commands"][mend.which]
    assert printed
    for number, command in enumerate(printed, start=1):
        file = key if fault.code == "key_not_usable" else backup
        if "db backup" in command:
            file = backup.with_name("another.db")
        typed = re.sub(r"\bFILE\b", shlex.quote(str(file)), command).replace(" NAME", " Clinic")
        if mend.goes_on and number == len(printed):
            shell.run_until(typed, is_silent)
        elif mend.asks:
            credentials = {**CREDENTIALS["twilio"], "auth_token": "b" * 32, "api_base": system.provider.url}
            shell.run(f"{typed} --file -", stdin=json.dumps(credentials))
        else:
            shell.run(typed)
    mend.then(system)
    if not mend.goes_on:
        assert is_silent()


def test_every_exception_is_of_a_fault() -> None:
    """At least 25 are planted, each under a name of its own."""
    assert len({one.id for one in FAULTS}) == len(FAULTS) >= 25
    assert {*IN_ANOTHER_WAY, *NOT_MENDED} <= {one.id for one in FAULTS}
    assert {one.code for one in FAULTS} >= ONLY_SHOWN


@pytest.mark.parametrize("fault", FAULTS, ids=[one.id for one in FAULTS])
def test_every_printed_command_is_one(
    fault: Fault, system: System, run: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours is taken by our own command line, with the configuration of the call; those of others by the shell."""
    (tmp_path / "list.csv").touch()
    anyio.run(fault.plant, system, monkeypatch)
    finding = findings(run("--json"))[fault.code]
    assert bool(finding["commands"]) == (fault.code not in ONLY_SHOWN)
    for command in [*finding["commands"], *finding["looks"]]:
        subprocess.run(["/bin/sh", "-n", "-c", command], check=True, timeout=DEADLINE)
        program, *words = shlex.split(command)
        if program == PROGRAM:
            assert words[:2] == ["--config", str(system.directory / "outreach.toml")] or words[0] == "--database"
            # `--version` is looked at first, and ends it.
            with suppress(click.exceptions.Exit):
                file = str(tmp_path / "list.csv")
                check(shlex.join(file if word == "FILE" else word for word in words), tmp_path)
