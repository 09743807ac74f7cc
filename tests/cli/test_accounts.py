from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fake_provider import CREDENTIALS, FakeAdapter


@pytest.fixture
def live_id(cli: Cli) -> str:
    """Return the id of a live workspace."""
    identifier: str = cli.ask("workspaces", "create", "Acme", "--live")["id"]
    return identifier


@pytest.fixture
def credentials(tmp_path: Path) -> str:
    """Return a file with valid credentials."""
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps(CREDENTIALS))
    return str(path)


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


def test_the_fields_of_a_provider_are_told(cli: Cli, fake: FakeAdapter) -> None:
    """Before anybody looks for them."""
    names = [field["name"] for field in cli.ask("accounts", "fields", "twilio")]
    assert names == ["account", "token", "signing_secret", "region"]


@pytest.mark.parametrize(
    ("options", "stdin", "code", "words"),
    [
        (["--file", "-"], b"[]", 1, "one JSON object"),
        (["--file", "-"], b"{", 1, "no JSON object"),
        (["--file", "-"], b'{"account": 1}', 1, "texts"),
        (["--file", "-"], b" " * 100_001, 1, "no JSON object"),
        (["--set", "token=x"], b"", 2, "is a secret"),
        (["--set", "token"], b"", 2, "NAME=VALUE"),
        ([], b"", 1, "credentials.token"),
    ],
)
def test_what_is_wrong_with_what_was_given_is_told(
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
    cli.ask("numbers", "add", live_id, "+14155550100", "--carrier", "twilio")
    assert "accounts connect" in cli.refuse("test-send", live_id, "--to", "+14155550101")


def test_variables_belong_to_calls(cli: Cli, live_id: str) -> None:
    """A message has none."""
    words = cli.refuse("test-send", live_id, "--to", "+14155550101", "--variable", "a=b", code=2)
    assert "--agent" in words
