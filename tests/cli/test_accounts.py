from __future__ import annotations

import json
import re
import socket
import subprocess
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
import pytest

from outreach.protocols import SystemClock
from outreach.services.tenants.account_rekeying import AccountRekeying
from outreach.storage.sqlite import SqliteStorage
from outreach.testing.builders import make_provider_throttle
from tests.cli.conftest import ROOT, Cli
from tests.fake_provider import CREDENTIALS, FakeAdapter


@pytest.fixture
def live_id(cli: Cli) -> str:
    """Return the id of a live workspace."""
    identifier: str = cli.ask("workspaces", "create", "Live", "--live")["id"]
    return identifier


@pytest.fixture
def credentials(tmp_path: Path) -> str:
    """Return a file with valid credentials."""
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps(CREDENTIALS))
    return str(path)


def test_a_callback_url_is_tested(
    cli: Cli, live_id: str, credentials: str, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong is said, with the exit status 1; with --json it is a document."""
    made = cli.ask("accounts", "connect", live_id, "twilio", "--file", credentials)
    assert "OUTREACH_PUBLIC_URL" in cli.refuse("accounts", "check", made["id"], "--callback")
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("OUTREACH_PUBLIC_URL", f"https://127.0.0.1:{port}")
    told = cli.refuse("accounts", "check", made["id"], "--callback")
    assert f"Nothing accepts connections at 127.0.0.1:{port}." in told


def test_an_account_is_connected_listed_checked_and_removed(
    cli: Cli, live_id: str, credentials: str, fake: FakeAdapter
) -> None:
    """Its whole life, and no secret is shown at any point of it."""
    made = cli.ask("accounts", "connect", live_id, "twilio", "--file", credentials, "--set", "region=eu")
    assert made["credentials"] == {"account": "AC1", "token": "set", "signing_secret": "set", "region": "eu"}
    (listed,) = cli.ask("accounts", "list", live_id)
    assert listed == made
    assert cli.ask("accounts", "check", made["id"])["ok"]
    told = cli.tell("accounts", "check", made["id"])
    assert told.startswith("The account is in order.")
    assert "OUTREACH_PUBLIC_URL" in told
    shown = cli.tell("accounts", "list", live_id)
    assert made["id"] in shown
    assert cli.ask("accounts", "remove", made["id"])["removed"]
    assert cli.ask("accounts", "list", live_id) == []
    assert "s3cret" not in json.dumps(made) + told + shown
    actions = [entry["action"] for entry in cli.ask("audit", live_id)]
    assert actions[:2] == ["account.remove", "account.connect"]


def test_a_check_that_finds_something_wrong_fails(cli: Cli, live_id: str, credentials: str, fake: FakeAdapter) -> None:
    """The exit status tells scripts, the words tell people."""
    wrong = json.dumps({**CREDENTIALS, "token": "other"}).encode()
    made = cli.ask("accounts", "connect", live_id, "twilio", "--file", "-", stdin=wrong)
    assert "The token is wrong." in cli.refuse("accounts", "check", made["id"])


def test_an_account_that_cannot_be_opened_is_listed_with_what_to_do(
    cli: Cli, live_id: str, credentials: str, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list goes on, in words and in JSON; a check of that account fails with the same words."""
    made = cli.ask("accounts", "connect", live_id, "twilio", "--file", credentials)
    assert made["problem"] is None
    monkeypatch.setenv("OUTREACH_SECRET_KEY", "A" * 43 + "=")
    (listed,) = cli.ask("accounts", "list", live_id)
    assert (listed["id"], listed["credentials"]) == (made["id"], {})
    assert "connect the account at twilio anew" in listed["problem"]
    assert listed["problem"] in cli.tell("accounts", "list", live_id)
    assert listed["problem"] in cli.refuse("accounts", "check", made["id"])


@pytest.mark.parametrize(
    ("options", "stdin", "code", "words"),
    [
        (["--file", "-"], b"[]", 1, "one JSON object"),
        (["--file", "-"], b"{", 1, "not a JSON object"),
        (["--file", "-"], b'{"account": 1}', 1, "strings"),
        (["--file", "-"], b" " * 100_001, 1, "not a JSON object"),
        (["--set", "token=x"], b"", 2, "is a secret"),
        (["--set", "token"], b"", 2, "NAME=VALUE"),
        ([], b"", 1, "credentials.token"),
    ],
)
def test_what_is_wrong_with_what_was_given_is_reported(
    cli: Cli, live_id: str, fake: FakeAdapter, options: list[str], stdin: bytes, code: int, words: str
) -> None:
    """And nothing is stored."""
    assert words in cli.refuse("accounts", "connect", live_id, "twilio", *options, stdin=stdin, code=code)
    assert cli.ask("accounts", "list", live_id) == []


def test_an_account_that_is_not_there(cli: Cli, workspace_id: str) -> None:
    """The error says how to list those that are."""
    nobody = "0195554e-0000-7000-8000-00000000cafe"
    for command in ("check", "remove"):
        assert "accounts list WORKSPACE_ID" in cli.refuse("accounts", command, nobody)


def test_a_test_message_in_a_live_workspace_without_an_account(cli: Cli, live_id: str, fake: FakeAdapter) -> None:
    """It says which command connects one."""
    cli.ask("numbers", "create", live_id, "+14155550100", "--carrier", "twilio")
    assert "accounts connect" in cli.refuse("test-send", live_id, "--to", "+14155550101")


def test_variables_belong_to_calls(cli: Cli, live_id: str) -> None:
    """A message has none."""
    words = cli.refuse("test-send", live_id, "--to", "+14155550101", "--variable", "a=b", code=2)
    assert "--agent" in words


def hold(cli: Cli, workspace_id: str, provider: str = "twilio") -> datetime:
    """Have a provider throttle for an hour; return when that is over."""
    now = SystemClock().now().replace(microsecond=0)
    asked = make_provider_throttle(
        workspace_id=workspace_id, provider=provider, since=now, until=now + timedelta(hours=1)
    )

    async def put() -> None:
        async with SqliteStorage(Path(cli.database.removeprefix("sqlite:///")), clock=SystemClock()) as storage:
            await storage.write(lambda tx: tx.provider_throttles.put(asked))

    anyio.run(put)
    return asked.until


def test_a_throttled_provider_is_reported(cli: Cli, live_id: str, credentials: str, fake: FakeAdapter) -> None:
    """By `list` and `check`, in words and in JSON, until it is over or the account is connected again."""
    connect = partial(cli.ask, "accounts", "connect", live_id, "twilio", "--file", credentials)
    made = connect()
    until = hold(cli, live_id)
    for words in (("list", live_id), ("check", made["id"])):
        told = cli.tell("accounts", *words)
        for part in ("throttles this workspace (429", f"until {until:%Y-%m-%d %H:%M:%S} UTC", "accounts connect"):
            assert part in told
    (listed,) = cli.ask("accounts", "list", live_id)
    checked = cli.ask("accounts", "check", made["id"])
    for document in (listed, checked):
        assert document["throttled_by"] == "provider_throttle"
        assert datetime.fromisoformat(document["throttled_until"]) == until
    assert checked["ok"]
    assert connect()["throttled_by"] is None
    for words in (("list", live_id), ("check", made["id"])):
        assert "left alone" not in cli.tell("accounts", *words)
    checked = cli.ask("accounts", "check", made["id"])
    assert (checked["throttled_by"], checked["throttled_until"]) == (None, None)


def test_a_test_message_that_nothing_takes_has_failed(
    cli: Cli, live_id: str, credentials: str, fake: FakeAdapter
) -> None:
    """It says why: the provider throttles, or no process serves; one that was to be queued only is not waited for."""
    cli.ask("numbers", "create", live_id, "+14155550100", "--carrier", "twilio")
    cli.ask("accounts", "connect", live_id, "twilio", "--file", credentials)
    send = ("test-send", live_id, "--to", "+14155550101", "--wait")
    result = cli.run(*send, "0.1")
    assert result.exit_code == 1
    assert "Is a server running" in result.stderr
    until = hold(cli, live_id)
    result = cli.run(*send, "0.1")
    assert result.exit_code == 1
    assert f"until {until:%Y-%m-%d %H:%M:%S} UTC" in result.stderr
    assert "Is a server running" not in result.stderr
    result = cli.run(*send, "0.1", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["throttled_by"], datetime.fromisoformat(document["throttled_until"])) == (
        "provider_throttle",
        until,
    )
    assert cli.ask(*send, "0")["status"] == "queued"


def test_a_missing_callback_address_is_named(
    cli: Cli, live_id: str, credentials: str, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`connect`, `list` and `check` name the variable while there is no callback address, and only then."""
    told = cli.tell("accounts", "connect", live_id, "twilio", "--file", credentials)
    (account,) = cli.ask("accounts", "list", live_id)
    assert account["callback_url"] is None
    for shown in (told, cli.tell("accounts", "list", live_id), cli.tell("accounts", "check", account["id"])):
        assert "set OUTREACH_PUBLIC_URL" in shown
        assert "for the server (serve" in shown
    monkeypatch.setenv("OUTREACH_PUBLIC_URL", "https://outreach.example.com")
    shown = cli.tell("accounts", "list", live_id)
    assert f"https://outreach.example.com/webhooks/{account['id']}" in shown
    assert "OUTREACH_PUBLIC_URL" not in shown + cli.tell("accounts", "check", account["id"])


def test_an_account_keeps_its_address_until_it_is_removed(
    cli: Cli, live_id: str, credentials: str, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other credentials change nothing of it; removing says that it is gone, and what is lost by that."""
    monkeypatch.setenv("OUTREACH_PUBLIC_URL", "https://outreach.example.com")
    connect = partial(cli.ask, "accounts", "connect", live_id, "twilio", "--file", credentials)
    other = Path(credentials).with_name("other.json")
    other.write_text(json.dumps({**CREDENTIALS, "signing_secret": "s3cret-second"}))
    first, second = connect(), connect("--set", "region=eu")
    assert [second[name] for name in ("id", "callback_url")] == [first[name] for name in ("id", "callback_url")]
    # The region is no secret; then the secret was replaced, which is told once.
    assert second["previous_accepted_until"] is None
    replace = ("accounts", "connect", live_id, "twilio", "--file", str(other))
    assert "--refuse-previous" in cli.tell(*replace)
    assert "--refuse-previous" not in cli.tell(*replace)
    assert cli.ask(*replace)["previous_accepted_until"] is not None
    assert connect("--refuse-previous")["previous_accepted_until"] is None
    told = cli.tell("accounts", "remove", first["id"])
    for part in (f"/webhooks/{first['id']}", "404", "STOP", "connect without removing"):
        assert part in told
    assert connect()["callback_url"] != first["callback_url"]


def test_a_sandbox_says_that_nothing_leaves_it(
    cli: Cli, workspace_id: str, live_id: str, credentials: str, fake: FakeAdapter
) -> None:
    """Beside the answers of a real account that look like success, and with the command that makes a live workspace."""
    cli.ask("numbers", "create", live_id, "+14155550100", "--carrier", "twilio")
    for identifier in (live_id, workspace_id):
        runs = [cli.run("accounts", "connect", identifier, "twilio", "--file", credentials)]
        (account,) = cli.ask("accounts", "list", identifier)
        runs.append(cli.run("accounts", "check", account["id"]))
        send = ("test-send", identifier, "--to", "+14155550101", "--wait", "0")
        runs.append(cli.run(*send))
        for result in runs:
            assert result.exit_code == 0, result.output
            told = "is a sandbox" in result.stderr and "workspaces create NAME --live" in result.stderr
            assert told is (identifier == workspace_id)
            assert "is a sandbox" not in result.stdout
    agent_id = cli.ask("agents", "create", workspace_id, "Ada")["id"]
    call = cli.run("test-send", workspace_id, "--to", "+14155550101", "--wait", "0", "--agent", agent_id)
    assert (call.exit_code, "is a sandbox" in call.stderr) == (0, True)
    # A program that reads JSON gets its document alone.
    (account,) = cli.ask("accounts", "list", workspace_id)
    assert cli.ask("accounts", "check", account["id"])["ok"]


def test_the_key_beside_the_database_is_changed_as_the_documentation_says(
    cli: Cli, live_id: str, credentials: str, fake: FakeAdapter, tmp_path: Path
) -> None:
    """docs/secret-key.md#changing-the-key: its commands, in a shell, with the file of this database."""
    cli.ask("accounts", "connect", live_id, "twilio", "--file", credentials)
    key = Path(cli.database.removeprefix("sqlite:///") + ".key")
    old = key.read_text()
    page = (ROOT / "docs" / "secret-key.md").read_text("utf-8")
    (adding,) = re.findall(r"```sh\n   (\(umask 077.*?)```", page, re.DOTALL)
    (removing,) = re.findall(r"`(sed -i [^`]*)`", page)
    _shell(adding.replace("outreach.db.key", str(key)))
    assert key.read_text().splitlines()[1:] == old.splitlines()
    told = cli.tell("accounts", "rekey")
    assert "Secrets encrypted with the newest key: 1; already before: 0; left: 0." in told
    assert "The older keys are needed for backups that were made before" in told
    _shell(removing.replace("outreach.db.key", str(key)))
    assert len(key.read_text().splitlines()) == 1
    assert old not in key.read_text()
    (listed,) = cli.ask("accounts", "list", live_id)
    assert listed["problem"] is None
    told = cli.tell("accounts", "rekey")
    assert "Secrets encrypted with the newest key: 0; already before: 1; left: 0." in told
    # There is one key, so none is older.
    assert "Nothing needs an older key." in told
    assert "backups" not in told
    key.write_text(old)
    assert "Nothing was changed" in cli.refuse("accounts", "rekey")


def test_a_rekey_that_leaves_something_fails(
    cli: Cli, live_id: str, credentials: str, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit status tells scripts that the older key is still needed."""
    cli.ask("accounts", "connect", live_id, "twilio", "--file", credentials)
    monkeypatch.setattr(AccountRekeying, "_rekey_slice", lambda *_: 0)
    key = Path(cli.database.removeprefix("sqlite:///") + ".key")
    key.write_text("A" * 43 + "=\n" + key.read_text())
    result = cli.run("accounts", "rekey")
    assert result.exit_code == 1
    assert "left: 1." in result.stdout
    assert "restart it, and run this again" in result.stderr


def _shell(script: str) -> None:
    subprocess.run(["/bin/sh", "-ec", script], check=True)
