"""Each planted fault is found, and nothing else; a healthy system has no finding."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, get_args

import anyio
import httpx
import pytest
from cryptography.fernet import Fernet

from outreach import NewWorkspace, Outreach, WorkspaceStatus, WorkspaceUpdate
from outreach.insight import status
from outreach.insight.diagnosis import snapshot
from outreach.models import EngineCode
from outreach.models.diagnosis import DatabaseCode
from outreach_server.cli.doctor.answering import of_answer
from outreach_server.cli.doctor.findings import ServerCode
from outreach_server.contract import CONTRACT_NAME
from tests.doctor.faults import FAULTS, Fault, key_file
from tests.doctor.severities import SEVERITIES
from tests.doctor.system import KEPT_INSIDE, System
from tests.documents.provider import CREDENTIALS
from tests.engine.rig import until

pytestmark = pytest.mark.anyio

ROOT: Final = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "callback_setting_wrong": "tests/doctor/test_callback_settings.py",
    "config_file_exposed": "tests/doctor/test_command.py",
    "config_invalid": "tests/doctor/test_command.py",
    "connections_low": "tests/doctor/test_postgres.py",
    "database_not_usable": "tests/doctor/test_postgres.py",
    "index_not_valid": "tests/doctor/test_postgres.py",
    "receipts_missing": "tests/engine/test_missing_receipts.py",
    "server_old": "tests/doctor/test_postgres.py",
    "server_setting_unsafe": "tests/doctor/test_postgres.py",
    "transaction_old": "tests/doctor/test_postgres.py",
}
"""Codes whose faults need another system, and where that is."""


async def test_a_healthy_system_has_no_finding(system: System) -> None:
    """Nothing is skipped either, looking twice finds nothing new, and nothing is changed."""
    before = content(system)
    for _ in range(2):
        found = await system.diagnose()
        assert (found.findings, found.skipped, found.severity) == ([], [], None)
    assert content(system) == before


@pytest.mark.parametrize(("key", "code"), [(None, "key_not_usable"), ("A" * 43 + "=", "account_not_usable")])
async def test_more_accounts_than_are_listed_are_reported_by_the_key_alone(
    key: str | None, code: str, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No account is reported as in need of an older key. Other findings are reported."""
    monkeypatch.setattr(status, "MAX_LISTED", 1)

    async def connect(engine: Outreach) -> None:
        credentials = {**CREDENTIALS["retell"], "api_base": system.provider.url}
        await engine.accounts.connect(system.workspace_id, "retell", credentials)

    await system.within(connect)
    if key is None:
        key_file(system).unlink()
    else:
        key_file(system).write_text(key)
    found = await system.diagnose(network=False)
    assert [one.code for one in found.findings] == [code]


@pytest.mark.parametrize("variable", ["OUTREACH_SECRET_KEY", "OUTREACH_SECRET_KEY_FILE"])
async def test_a_given_key_that_is_none_is_found_without_accounts(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server starts without its console; where no key is given, nothing needs one yet."""
    async with Outreach.open(f"sqlite:///{tmp_path / 'outreach.db'}") as engine:
        assert "key_not_usable" not in {one.code for one in (await engine.diagnose(network=False)).findings}
    monkeypatch.setenv(variable, "not-a-key")
    async with Outreach.open(f"sqlite:///{tmp_path / 'outreach.db'}") as engine:
        assert "key_not_usable" in {one.code for one in (await engine.diagnose(network=False)).findings}


async def test_a_server_may_run_meanwhile(system: System) -> None:
    """It dispatches from the same file, and goes on."""
    async with Outreach.open(f"sqlite:///{system.database}", dispatch=True, config=system.config) as engine:

        async def dispatches() -> bool:
            return engine.health().dispatching

        await until(dispatches)
        assert (await system.diagnose()).findings == []
        assert engine.health().dispatching
        assert (await engine.readiness()).ready


def content(system: System) -> tuple[list[str], list[str]]:
    """Return the names of the files, and what the database holds."""
    with closing(sqlite3.connect(system.database)) as raw:
        return list(raw.iterdump()), sorted(path.name for path in system.directory.iterdir())


async def test_without_the_network_nobody_is_asked(system: System) -> None:
    """What was not looked at is told."""
    system.provider.status, system.addresses = 401, []
    found = await system.diagnose(network=False)
    assert found.findings == []
    assert system.provider.asked == []
    (skipped,) = found.skipped
    assert "accounts" in skipped


async def test_only_accounts_that_send_are_asked_about(system: System) -> None:
    """Not those of a workspace that is suspended, nor of a sandbox."""
    system.provider.status = 401

    async def change(engine: Outreach) -> None:
        sandbox = await engine.workspaces.create(NewWorkspace(name="Trial"))
        credentials = {**CREDENTIALS["twilio"], "api_base": system.provider.url}
        await engine.accounts.connect(sandbox.id, "twilio", credentials)
        await engine.workspaces.update(system.workspace_id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))

    await system.within(change)
    assert (await system.diagnose()).findings == []
    assert system.provider.asked == []


async def test_a_start_that_waits_for_its_workspace_is_not_overdue(system: System) -> None:
    """Nothing starts while the workspace is suspended: no log says why, and no person has to look."""
    await system.campaign(scheduled_start_at=datetime.now(UTC) - timedelta(minutes=5))
    suspended = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
    await system.within(lambda engine: engine.workspaces.update(system.workspace_id, suspended))
    assert (await system.diagnose()).findings == []


async def test_an_older_key_is_needed_by_the_accounts_of_every_workspace(system: System) -> None:
    """Taken away too early it would be missing when the workspace is active again."""
    file = key_file(system)
    file.write_text(f"{Fernet.generate_key().decode()}\n{file.read_text('ascii')}", encoding="ascii")
    suspended = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
    await system.within(lambda engine: engine.workspaces.update(system.workspace_id, suspended))
    found = await system.diagnose()
    assert [one.code for one in found.findings] == ["rekey_unfinished"]


async def test_more_accounts_than_one_look_takes_are_reported(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are looked at."""
    monkeypatch.setattr(snapshot, "MAX_ACCOUNTS", 1)

    async def connect(engine: Outreach) -> None:
        credentials = {**CREDENTIALS["retell"], "api_base": system.provider.url}
        await engine.accounts.connect(system.workspace_id, "retell", credentials)

    await system.within(connect)
    found = await system.diagnose()
    assert found.findings == []
    (skipped,) = found.skipped
    assert "accounts were looked at" in skipped


@pytest.mark.parametrize("fault", FAULTS, ids=[one.id for one in FAULTS])
async def test_a_planted_fault_is_found_alone(system: System, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """With where it is, and what fixes it or shows more; what it implies is told too, and nothing more."""
    await fault.plant(system, monkeypatch)
    found = await system.diagnose()
    assert sorted(one.code for one in found.findings) == sorted([fault.code, *fault.implied])
    for one in found.findings:
        assert one.path
        assert one.severity in SEVERITIES[one.code]
        assert " " in one.message
        assert one.commands or one.looks
        assert all("\n" not in command for command in [*one.commands, *one.looks])


@pytest.mark.parametrize(
    ("error", "said"), [(httpx.ConnectError("refused"), "refused"), (httpx.ReadTimeout(""), "ReadTimeout")]
)
async def test_a_public_address_without_an_answer_is_reported(error: Exception, said: str) -> None:
    """With the reason, or its class where it has no words."""

    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    (found,) = await of_answer("https://outreach.test", transport=httpx.MockTransport(fail))
    assert f"openapi.yaml: no answer came ({said})." in found.message


@pytest.mark.parametrize("kept", ["in the variable", "in a named file", "beside the database", "beside, and gone"])
async def test_a_lost_key_is_mended_where_it_was(
    kept: str, system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says where, and fixes it; connecting is named where a new key is made for that."""
    own = system.directory / "outreach.db.key"
    copy = tmp_path / "copy of the key"
    shutil.copy2(own, copy)
    where, command = str(own), f"install -m 600 FILE {shlex.quote(str(own))}"
    match kept:
        case "in the variable":
            monkeypatch.setenv("OUTREACH_SECRET_KEY", "not-a-key")
            where, command = "OUTREACH_SECRET_KEY", 'export OUTREACH_SECRET_KEY="$(cat FILE)"'
        case "in a named file":
            file = system.directory / "named"
            monkeypatch.setenv("OUTREACH_SECRET_KEY_FILE", str(file))
            where, command = str(file), f"install -m 600 FILE {shlex.quote(str(file))}"
        case "beside the database":
            own.write_text("not a key")
        case _:
            own.unlink()
    (found,) = (await system.diagnose()).findings
    assert (found.code, found.path, found.commands[0]) == ("key_not_usable", where, command)
    connecting = [f"outreach-server accounts connect {system.workspace_id} twilio"]
    assert found.commands[1:] == (connecting if kept == "beside, and gone" else [])
    if kept == "in the variable":
        monkeypatch.setenv("OUTREACH_SECRET_KEY", copy.read_text("ascii"))
    else:
        await anyio.run_process([str(copy) if word == "FILE" else word for word in shlex.split(command)])
    assert (await system.diagnose()).findings == []


@pytest.mark.parametrize("source", ["variable", "file", "credential"])
async def test_a_key_file_that_is_not_used_is_not_judged(
    system: System, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key comes from elsewhere, and an old file lies beside the database."""
    old = key_file(system)
    if source == "variable":
        monkeypatch.setenv("OUTREACH_SECRET_KEY", old.read_text("ascii").strip())
    else:
        used = system.directory / "outreach-secret-key"
        used.write_text(old.read_text("ascii"), "ascii")
        used.chmod(0o400)
        name, value = {
            "file": ("OUTREACH_SECRET_KEY_FILE", used),
            "credential": ("CREDENTIALS_DIRECTORY", system.directory),
        }[source]
        monkeypatch.setenv(name, str(value))
    old.chmod(0o644)
    assert (await system.diagnose()).findings == []


def test_the_public_address_is_asked_what_proxies_let_through() -> None:
    """The examples keep from the outside what `System` does, and not what the doctor asks for."""
    for name, kept in (("nginx.conf", "location = {} { return 404; }"), ("Caddyfile", "{}")):
        text = (ROOT / "examples" / "hosting" / name).read_text("utf-8")
        for path in KEPT_INSIDE:
            assert kept.replace("{}", path, 1) in text
        assert CONTRACT_NAME not in text


def test_every_code_has_a_fault() -> None:
    """No finding that nobody has seen."""
    every = {*get_args(EngineCode), *get_args(DatabaseCode), *get_args(ServerCode)}
    planted = {one.code for one in FAULTS}
    assert planted | set(ELSEWHERE) == every
    assert not planted & set(ELSEWHERE)
    assert len(planted) >= 25


async def test_an_engine_that_serves_diagnoses_itself(system: System) -> None:
    """In the process that has the database open; what the engine knows is a part of what the doctor says."""
    system.provider.status = 401

    async def look(engine: Outreach) -> None:
        found = await engine.diagnose()
        assert [one.code for one in found.findings] == ["account_refused"]
        assert found.findings[0].workspace_id == system.workspace_id
        assert await engine.workspaces.list()

    await system.within(look)


@pytest.mark.parametrize("ending", ["-wal", "-shm", ".dispatch", ".dispatch.2", ".dispatch-note", ".dispatch-position"])
async def test_a_file_beside_the_database_that_may_not_be_written_is_named(
    system: System, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """A command of another user may have left it, and then nothing is sent, or nothing is written."""
    file = Path(f"{system.database}{ending}")
    file.touch()
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: path != file and allowed(path, mode, **more))
    (found,) = [one for one in (await system.diagnose()).findings if one.code == "database_not_writable"]
    assert (found.path, found.commands[1]) == (str(file), f"chmod u+rw {shlex.quote(str(file))}")
