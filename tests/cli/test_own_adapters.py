from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fake_provider import CREDENTIALS
from tests.own_adapter import package


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with one adapter that works, and one that does not."""
    points = {"outreach.adapters": {"mycarrier": "own_things:ADAPTER", "gone": "no_such_module:ADAPTER"}}
    with package(tmp_path, monkeypatch, points):
        yield


def test_an_installed_carrier_is_connected_like_any_other(cli: Cli) -> None:
    """Its fields, its account, numbers and campaigns; what is required comes from its fields."""
    workspace = cli.ask("workspaces", "create", "Live", "--live")["id"]
    assert "account" in {one["name"] for one in cli.ask("accounts", "fields", "mycarrier")}
    given = json.dumps({key: value for key, value in CREDENTIALS.items() if key != "account"}).encode()
    assert "account: is missing" in cli.refuse(
        "accounts", "connect", workspace, "mycarrier", "--file", "-", stdin=given
    ).replace("credentials.account", "account")
    made = cli.ask("accounts", "connect", workspace, "mycarrier", "--file", "-", "--set", "account=AC1", stdin=given)
    assert (made["provider"], made["kind"]) == ("mycarrier", "carrier")
    assert cli.ask("accounts", "check", made["id"])["ok"]
    assert cli.ask("numbers", "create", workspace, "+14155550100", "--carrier", "mycarrier")["carrier"] == "mycarrier"


def test_the_providers_are_listed_with_where_they_come_from(cli: Cli) -> None:
    """An adapter that cannot be used is named, and the others are there."""
    found = {one["name"]: one for one in cli.ask("accounts", "providers")}
    assert found["twilio"] == {"name": "twilio", "kind": "carrier", "source": "outreach"}
    assert found["mycarrier"] == {"name": "mycarrier", "kind": "carrier", "source": "own-things 1.2"}
    assert "No module named 'no_such_module'" in cli.tell("accounts", "providers")
    assert "mycarrier" in cli.tell("accounts", "connect", "--help")


def test_an_unknown_provider_is_refused_with_those_that_there_are(cli: Cli) -> None:
    """As every wrong choice is."""
    words = cli.refuse("accounts", "fields", "other", code=2)
    assert "'twilio'" in words
    assert "'mycarrier'" in words


def test_the_status_names_an_adapter_that_cannot_be_used(cli: Cli) -> None:
    """Among what needs a person."""
    cli.ask("workspaces", "create", "Acme")
    found = json.loads(cli.run("status", "--json").stdout)
    assert ("adapter_not_usable", "gone") in [(one["kind"], one["id"]) for one in found["findings"]]
    assert "No module named 'no_such_module'" in cli.run("status").output
