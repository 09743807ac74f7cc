from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Write

SENDER = "+14155550100"


@pytest.fixture
def file(csv_file: Write) -> str:
    """Return a file of one contact."""
    return csv_file("phone,name\n+14155550101,Ann\n")


@pytest.fixture
def steps(tmp_path: Path) -> str:
    """Return a file with the steps of a flow."""
    path = tmp_path / "flow.json"
    path.write_text('[{"kind": "send", "body": "Hi"}]')
    return str(path)


def test_names_stand_for_what_there_is_one_of(cli: Cli, workspace_id: str, file: str, steps: str) -> None:
    """Workspaces, agents, trunks, flows, numbers, accounts and campaigns; in capitals or not."""
    assert cli.ask("workspaces", "show", "Acme")["id"] == workspace_id
    assert cli.ask("workspaces", "show", "acme")["id"] == workspace_id
    agent = cli.ask("agents", "create", "Acme", "Ada")["id"]
    flow = cli.ask("flows", "create", "Acme", "Welcome back", "--file", steps)["id"]
    trunk = cli.ask("trunks", "create", "Acme", "Main", "--address", "sip.example.com")["id"]
    assert cli.ask("agents", "update", "Ada", "--inactive")["id"] == agent
    assert cli.ask("agents", "update", "Acme", "ada", "--active")["is_active"] is True
    assert cli.ask("numbers", "update", "Acme", "+1 415 555 0100", "--trunk", "Main")["trunk_id"] == trunk
    made = cli.ask("campaigns", "import", "acme", file, "--name", "Spring", "--flow", "welcome back", "--from", SENDER)
    assert made["sms_flow_id"] == flow
    call = ("campaigns", "import", "Acme", file, "--name", "Calls", "--channel", "call", "--agent", "Ada")
    assert cli.ask(*call, "--trunk", "Main")["agent_id"] == agent
    assert cli.ask("campaigns", "show", "spring")["id"] == made["id"]
    assert cli.ask("campaigns", "start", "Spring")["status"] == "active"
    assert [one["id"] for one in cli.ask("stop", "Acme")["paused"]] == [made["id"]]


def test_a_name_that_two_things_have_is_refused_with_their_identifiers(cli: Cli, workspace_id: str, file: str) -> None:
    """Which one was meant cannot be known; where capitals tell them apart, they do."""
    args = ("campaigns", "import", workspace_id, file, "--message", "Hi", "--from", SENDER, "--name")
    first, second = cli.ask(*args, "Spring")["id"], cli.ask(*args, "Spring")["id"]
    told = cli.refuse("campaigns", "show", "Spring")
    assert "There are 2 campaigns 'Spring'" in told
    assert first in told
    assert second in told
    assert "'Acme'" in told
    third = cli.ask(*args, "SPRING")["id"]
    assert cli.ask("campaigns", "show", "SPRING")["id"] == third


def test_an_archived_campaign_is_found_where_no_other_has_its_name(cli: Cli, workspace_id: str, file: str) -> None:
    """It is hidden from lists, and still shown, reported and deleted."""
    args = ("campaigns", "import", workspace_id, file, "--message", "Hi", "--from", SENDER, "--name")
    first = cli.ask(*args, "Spring")["id"]
    cli.ask("campaigns", "archive", "Spring")
    assert cli.ask("campaigns", "show", "spring")["id"] == first
    second = cli.ask(*args, "Spring")["id"]
    assert cli.ask("campaigns", "show", "spring")["id"] == second


def test_what_a_command_names_is_looked_for_in_the_workspace_that_it_names(cli: Cli, workspace_id: str) -> None:
    """Two tenants may have an agent of one name each."""
    other = cli.ask("workspaces", "create", "Beta")["id"]
    ours, theirs = (cli.ask("agents", "create", one, "Ada")["id"] for one in (workspace_id, other))
    assert "There are 2 agents 'Ada'" in cli.refuse("agents", "update", "Ada", "--inactive")
    assert cli.ask("agents", "update", "Beta", "Ada", "--inactive")["id"] == theirs
    assert cli.ask("agents", "update", "Acme", "Ada", "--inactive")["id"] == ours


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("workspaces show nobody", "There is no workspace 'nobody'. List them with: outreach-server workspaces list"),
        ("campaigns show nothing", "There is no campaign 'nothing'."),
        ("numbers remove Acme +14155550199", "There is no number '+14155550199'."),
        ("trunks remove Acme nothing", "There is no trunk 'nothing'."),
    ],
)
def test_a_name_that_nothing_has_is_reported(cli: Cli, workspace_id: str, words: str, told: str) -> None:
    """With the command that lists what there is."""
    assert told in cli.refuse(*words.split())


def test_two_workspaces_share_a_name_only_with_the_option_for_it(cli: Cli, workspace_id: str) -> None:
    """This holds at creation and at a change. A workspace's own name is no conflict."""
    told = cli.refuse("workspaces", "create", "ACME")
    assert workspace_id in told
    assert "--same-name" in told
    assert len(cli.ask("workspaces", "list")) == 1
    other = cli.ask("workspaces", "create", "Beta")["id"]
    assert "already" in cli.refuse("workspaces", "update", other, "--name", "Acme")
    assert cli.ask("workspaces", "update", workspace_id, "--name", "acme")["name"] == "acme"
    assert cli.ask("workspaces", "update", other, "--name", "Acme", "--same-name")["name"] == "Acme"
    assert cli.ask("workspaces", "create", "Acme", "--same-name")["name"] == "Acme"


def test_a_number_is_changed_and_removed(cli: Cli, workspace_id: str, file: str) -> None:
    """One that was added without carrier gets one; one in use stays, and what uses it is named."""
    number = cli.ask("numbers", "create", workspace_id, "+14155550120", "--rate", "30")
    changed = cli.ask("numbers", "update", workspace_id, "+14155550120", "--carrier", "telnyx", "--no-rate")
    assert (changed["id"], changed["carrier"], changed["rate_per_minute"]) == (number["id"], "telnyx", None)
    args = ("numbers", "update", workspace_id, "+14155550120")
    assert "exclude" in cli.refuse(*args, "--rate", "5", "--no-rate", code=2)
    assert "Name something" in cli.refuse(*args, code=2)
    load = ("campaigns", "import", workspace_id, file, "--name", "Spring", "--message", "Hi", "--from", "+14155550120")
    campaign = cli.ask(*load)["id"]
    agent = cli.ask("agents", "create", workspace_id, "Ada", "--from", "+14155550120")["id"]
    told = cli.refuse("numbers", "remove", workspace_id, number["id"])
    assert "campaign 'Spring' (ready), agent 'Ada'" in told
    cli.ask("campaigns", "cancel", campaign)
    cli.ask("agents", "update", agent, "--inactive")
    assert cli.ask("numbers", "remove", workspace_id, "+14155550120")["removed"] is True
    assert [one["phone"] for one in cli.ask("numbers", "list", workspace_id)] == [SENDER]
    assert cli.ask("numbers", "create", workspace_id, "+14155550120")["carrier"] is None


def test_a_trunk_is_changed_and_removed(cli: Cli, workspace_id: str, file: str) -> None:
    """A campaign that is over keeps its identifier; one that is not keeps the trunk."""
    trunk = cli.ask("trunks", "create", workspace_id, "Main", "--address", "a.example", "--provider-trunk-id", "T1")[
        "id"
    ]
    changed = cli.ask("trunks", "update", workspace_id, trunk, "--address", "b.example", "--no-provider-trunk-id")
    assert (changed["name"], changed["address"], changed["provider_trunk_id"]) == ("Main", "b.example", None)
    agent = cli.ask("agents", "create", workspace_id, "Ada")["id"]
    load = ("campaigns", "import", workspace_id, file, "--name", "Calls", "--channel", "call", "--agent", agent)
    campaign = cli.ask(*load, "--trunk", trunk)["id"]
    cli.ask("numbers", "update", workspace_id, SENDER, "--trunk", trunk)
    told = cli.refuse("trunks", "remove", workspace_id, trunk)
    assert f"campaign 'Calls' (ready), number {SENDER}" in told
    cli.ask("campaigns", "cancel", campaign)
    cli.ask("numbers", "update", workspace_id, SENDER, "--no-trunk")
    assert cli.ask("trunks", "remove", workspace_id, trunk)["removed"] is True
    assert cli.ask("trunks", "list", workspace_id) == []
    assert cli.ask("campaigns", "show", campaign)["sip_trunk_id"] == trunk
    assert "There is no trunk" in cli.refuse(*load, "--trunk", trunk)
    assert "There is no trunk" in cli.refuse("trunks", "update", workspace_id, trunk, "--name", "X")


def test_a_flow_is_changed_and_removed(cli: Cli, workspace_id: str, file: str, steps: str, tmp_path: Path) -> None:
    """Its steps not while contacts stand at them."""
    flow = cli.ask("flows", "create", workspace_id, "Welcome", "--file", steps)["id"]
    other = tmp_path / "other.json"
    other.write_text('[{"kind": "send", "body": "Hello"}]')
    load = ("campaigns", "import", workspace_id, file, "--name", "Spring", "--flow", flow, "--from", SENDER)
    campaign = cli.ask(*load)["id"]
    changed = cli.ask("flows", "update", workspace_id, flow, "--file", str(other))
    assert changed["steps"][0]["body"] == "Hello"
    cli.ask("campaigns", "start", campaign)
    told = cli.refuse("flows", "update", workspace_id, flow, "--file", steps)
    assert "campaign 'Spring' (active)" in told
    assert cli.ask("flows", "update", workspace_id, flow, "--name", "Bye")["name"] == "Bye"
    assert "campaign 'Spring' (active)" in cli.refuse("flows", "remove", workspace_id, flow)
    cli.ask("campaigns", "cancel", campaign, "--yes")
    assert cli.ask("flows", "remove", workspace_id, flow)["removed"] is True
    assert cli.ask("flows", "list", workspace_id) == []
    assert cli.ask("campaigns", "show", campaign)["sms_flow_id"] == flow
    assert "no such flow" in cli.refuse(*load)


def test_a_new_database_is_reported_where_it_is(tmp_path: Path) -> None:
    """A user in the wrong directory sees where the database is."""
    file = tmp_path / "new.db"
    assert f"Created a new database: {file}" in Cli(f"sqlite:///{file}").tell("workspaces", "create", "Acme")
    assert str(file) not in Cli(f"sqlite:///{file}").tell("workspaces", "create", "Beta")
