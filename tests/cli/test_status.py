"""`status`: what needs a person, with a command that fixes it."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from cryptography.fernet import Fernet

from outreach import Outreach
from outreach.ledger.campaigns.transitions import move
from outreach.models.campaign import PauseReason
from outreach.models.states import CampaignAction, DispatchState
from outreach.protocols import SystemClock
from outreach.rules.status_findings import FULL_BYTES, LOW_BYTES
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_dispatch, make_message, make_provider_throttle
from outreach_server.cli.problems import EXIT_STATUS
from outreach_server.cli.upkeep.status import _size
from tests.cli.conftest import Cli, Start, Write
from tests.documents.commands import arguments_of, check

PERSON = "+14155550123"
SENDER = "+14155550100"


@pytest.fixture
def campaign_id(cli: Cli, workspace_id: str, csv_file: Write) -> str:
    """Return an active campaign."""
    rows = csv_file("phone,first_name\n+14155550101,Ann\n")
    imported = cli.ask("campaigns", "import", workspace_id, rows, "--name", "Spring", "--message", "Hi",
                       "--from", SENDER)  # fmt: skip
    identifier: str = imported["id"]
    cli.ask("campaigns", "start", identifier)
    return identifier


def within(database: str, work: Callable[[Outreach], Awaitable[Any]]) -> None:
    """Do something with an engine on the database, and close it."""

    async def run() -> None:
        async with Outreach.open(database) as engine:
            await work(engine)

    anyio.run(run)


def write(database: str, operation: Callable[[Transaction], object]) -> None:
    """Write to the database what only an engine with a provider would."""
    within(database, lambda engine: engine._storage.write(operation))


def pause(database: str, workspace_id: str, campaign_id: str, reason: PauseReason) -> None:
    """Pause a campaign as the engine does."""

    def operation(tx: Transaction) -> None:
        campaign = tx.campaigns.get(workspace_id, campaign_id)
        assert campaign is not None
        move(tx, campaign, CampaignAction.PAUSE, now=SystemClock().now(), actor="engine", pause_reason=reason)

    write(database, operation)


def given_unknown(tx: Transaction, workspace_id: str) -> None:
    """Write a request of which nobody knows what became."""
    message = make_message(workspace_id=workspace_id)
    tx.messages.insert(message)
    tx.dispatches.insert(
        make_dispatch(
            workspace_id=workspace_id,
            message_id=message.id,
            state=DispatchState.UNKNOWN,
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
    )


def asked(cli: Cli, *args: str) -> Any:
    """Return the document of a status, whose exit status is that of its severity."""
    result = cli.run("status", *args, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == EXIT_STATUS[found["severity"]]
    return found


def told_by(cli: Cli) -> str:
    """Return what a status tells people."""
    result = cli.run("status")
    assert result.exit_code in EXIT_STATUS.values()
    return result.output


def kinds(found: Any) -> list[str]:
    """Return the kinds of what needs a person."""
    return [finding["kind"] for finding in found["findings"]]


def follow(cli: Cli, command: str) -> None:
    """Type a command as it was shown."""
    arguments = arguments_of(command)
    assert arguments is not None
    cli.tell(*shlex.split(arguments))


def test_nobody_dispatches_until_a_server_is_started(cli: Cli, start: Start) -> None:
    """The command that is named fixes it."""
    cli.ask("workspaces", "create", "Acme")
    found = asked(cli)
    [finding] = found["findings"]
    assert (finding["kind"], finding["commands"]) == ("no_dispatcher", ["outreach-server serve"])
    assert found["dispatching"]["by"] == "no_process"
    # Nothing is to be sent, so it can wait.
    assert found["severity"] == "warning"
    told = told_by(cli)
    assert "nobody is dispatching" in told
    assert "none ever has" in told
    server = start("serve", "--port", "0")
    server.says("http://")
    found = asked(cli)
    assert (found["dispatching"]["by"], found["findings"]) == ("another_process", [])
    assert found["dispatching"]["heartbeat_seconds_ago"] < 15
    told = told_by(cli)
    assert "a process dispatches; the last heartbeat was" in told
    assert "Nothing needs a person." in told
    # A server that was stopped dispatches no more, however young its last heartbeat is.
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert asked(cli)["dispatching"]["by"] == "no_process"


@pytest.mark.parametrize(
    ("reason", "commands"),
    [
        ("error_budget", ["campaigns resume"]),
        ("provider_auth", ["accounts connect", "campaigns resume"]),
    ],
)
def test_a_campaign_that_the_engine_has_paused_is_reported_with_what_resumes_it(
    cli: Cli,
    database: str,
    workspace_id: str,
    campaign_id: str,
    tmp_path: Path,
    reason: PauseReason,
    commands: list[str],
) -> None:
    """In words; and it goes on by what was shown."""
    pause(database, workspace_id, campaign_id, reason)
    found = asked(cli, workspace_id)
    assert kinds(found) == ["no_dispatcher", "campaign_paused"]
    finding = found["findings"][1]
    assert (finding["workspace_id"], finding["id"]) == (workspace_id, campaign_id)
    assert finding["why"].startswith("Campaign 'Spring' is paused: ")
    shown = [arguments_of(command) or "" for command in finding["commands"]]
    assert [" ".join(words.split()[:2]) for words in shown] == commands
    for words in shown:
        check(words, tmp_path)
    told = told_by(cli)
    assert f"Campaign 'Spring' of workspace {workspace_id} is paused: " in told
    assert all(command in told for command in finding["commands"])
    follow(cli, finding["commands"][-1])
    found = asked(cli)
    assert (kinds(found), found["active_campaigns"]) == (["no_dispatcher"], 1)


@pytest.mark.parametrize(("reason", "place"), [("restored", "REPLACED_DATABASE"), ("moved", "provider")])
def test_a_campaign_of_a_copied_database_is_reported_with_what_contacts_nobody_twice(
    cli: Cli, database: str, workspace_id: str, campaign_id: str, reason: PauseReason, place: str
) -> None:
    """People type what is shown."""
    pause(database, workspace_id, campaign_id, reason)
    [finding] = [each for each in asked(cli)["findings"] if each["kind"] == "campaign_paused"]
    assert finding["commands"] == [f"outreach-server campaigns resume {campaign_id} --skip-contacted-in {place}"]


@pytest.mark.parametrize("options", [["--inactive"], ["--no-allow-outbound"], ["--inactive", "--no-allow-outbound"]])
def test_a_calling_campaign_is_reported_with_what_lets_its_agent_call(
    cli: Cli, database: str, workspace_id: str, csv_file: Write, options: list[str]
) -> None:
    """Both commands in turn let it go on, whatever was taken from its agent."""
    agent_id = cli.ask("agents", "create", workspace_id, "Ada", "--direction", "inbound", "--allow-outbound")["id"]
    rows = csv_file("phone\n+14155550101\n")
    imported = cli.ask("campaigns", "import", workspace_id, rows, "--name", "Calls", "--channel", "call",
                       "--agent", agent_id)  # fmt: skip
    cli.ask("campaigns", "start", imported["id"])
    cli.ask("agents", "update", agent_id, *options)
    pause(database, workspace_id, imported["id"], "agent_unavailable")
    [finding] = [each for each in asked(cli)["findings"] if each["kind"] == "campaign_paused"]
    assert len(finding["commands"]) == 2
    for command in finding["commands"]:
        follow(cli, command)
    assert kinds(asked(cli)) == ["no_dispatcher"]


def test_what_somebody_paused_needs_nobody_else(cli: Cli, campaign_id: str) -> None:
    """Who has paused it knows."""
    cli.ask("campaigns", "pause", campaign_id)
    found = asked(cli)
    assert (kinds(found), found["active_campaigns"]) == (["no_dispatcher"], 0)


def test_requests_in_doubt_are_counted(cli: Cli, database: str, workspace_id: str) -> None:
    """With the command that lists them, and since when."""
    write(database, lambda tx: given_unknown(tx, workspace_id))
    finding = asked(cli)["findings"][1]
    assert (finding["kind"], finding["workspace_id"]) == ("requests_unknown", workspace_id)
    assert finding["why"] == "The outcome of a request of 2026-01-01T00:00:00.000000Z is unknown."
    assert finding["commands"] == [f"outreach-server dispatches unknown {workspace_id}"]
    follow(cli, finding["commands"][0])
    write(database, lambda tx: given_unknown(tx, workspace_id))
    assert "outcome of 2 requests, the oldest of 2026-01-01" in told_by(cli)


def test_who_is_held_back_is_reported_with_what_decides(cli: Cli, database: str, workspace_id: str) -> None:
    """What was written stands beside it, made harmless for a terminal; either decision ends it."""
    for option in ("--opted-out", "--not-opted-out"):
        within(
            database,
            lambda engine: engine.messages.receive(
                workspace_id, from_number=PERSON, to=SENDER, body="\x1b[2J bus stop?"
            ),
        )
        finding = asked(cli, workspace_id)["findings"][1]
        assert (finding["kind"], finding["id"], "stop?" in finding["why"]) == ("number_held", PERSON, True)
        told = told_by(cli)
        assert "stop?" in told
        assert "\x1b" not in told
        [command] = [command for command in finding["commands"] if command.endswith(f" {option}")]
        assert command in told
        follow(cli, command)
        assert kinds(asked(cli)) == ["no_dispatcher"]
        cli.ask("unsubscribes", "remove", workspace_id, PERSON)


def test_throttles_are_reported_with_their_ends(cli: Cli, database: str, workspace_id: str) -> None:
    """Nobody has to do anything about it."""
    until = SystemClock().now() + timedelta(hours=1)
    hold = make_provider_throttle(workspace_id=workspace_id, provider="telnyx", until=until)
    write(database, lambda tx: tx.provider_throttles.put(hold))
    found = asked(cli)
    [wait] = found["throttles"]
    assert (wait["workspace_id"], wait["provider"], kinds(found)) == (workspace_id, "telnyx", ["no_dispatcher"])
    told = told_by(cli)
    assert f"telnyx for workspace {workspace_id}, sending paused until {until:%Y-%m-%d %H:%M:%S} UTC, in " in told


def test_what_is_cut_is_said(cli: Cli, database: str, workspace_id: str) -> None:
    """A hundred of each list are shown."""

    async def write_to_us(engine: Outreach) -> None:
        for number in range(101):
            await engine.messages.receive(
                workspace_id, from_number=f"+14155551{number:03}", to=SENDER, body="bus stop?"
            )

    within(database, write_to_us)
    found = asked(cli)
    assert (len(found["held"]), found["truncated"]) == (100, ["held"])
    assert "There are more held numbers" in told_by(cli)


def test_a_workspace_that_is_none_is_refused(cli: Cli, workspace_id: str) -> None:
    """With the command that lists them; a name does."""
    assert "workspaces list" in cli.refuse("status", "Nobody")
    assert asked(cli, "Acme")["workspace_id"] == workspace_id


def test_what_runs_is_shown_with_the_command_that_watches_it(cli: Cli, campaign_id: str) -> None:
    """How far each is; that nobody sends it is urgent."""
    found = asked(cli)
    [running] = found["running"]
    assert (running["id"], running["name"], running["recipients"], running["ended"]) == (campaign_id, "Spring", 1, 0)
    assert (found["severity"], found["findings"][0]["severity"]) == ("critical", "critical")
    told = told_by(cli)
    assert "Spring: 0 of 1 ended, 0 %" in told
    assert f"outreach-server campaigns watch {campaign_id}" in told
    assert "! No process sends from this database" in told


def test_the_disk_is_shown(cli: Cli, database: str, workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And needs a person before it is full."""
    path = database.removeprefix("sqlite:///")
    disk = asked(cli)["disk"]
    assert (disk["path"], disk["database_bytes"]) == (path, Path(path).stat().st_size)
    assert disk["free_bytes"] > 0
    assert f"({path})" in told_by(cli)
    for free, severity in ((FULL_BYTES - 1, "critical"), (LOW_BYTES - 1, "warning"), (LOW_BYTES, None)):
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr("outreach.insight.status.shutil", SimpleNamespace(disk_usage=lambda _, it=usage: it))
        found = [finding for finding in asked(cli)["findings"] if finding["kind"] == "disk_low"]
        assert [finding["severity"] for finding in found] == ([severity] if severity else [])
        assert [finding["commands"] for finding in found] == [["outreach-server doctor"]] * len(found)


def test_an_account_that_cannot_be_opened_is_reported_with_what_mends_it(
    cli: Cli, database: str, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here: the key that sealed it was lost."""
    secrets = f'{{"account_sid": "AC{"0" * 32}", "auth_token": "{"0" * 32}"}}'.encode()
    cli.ask("accounts", "connect", workspace_id, "twilio", "--file", "-", stdin=secrets)
    assert "account_not_usable" not in kinds(asked(cli))
    monkeypatch.setenv("OUTREACH_SECRET_KEY", Fernet.generate_key().decode())
    [finding] = [each for each in asked(cli, workspace_id)["findings"] if each["kind"] == "account_not_usable"]
    assert finding["commands"] == [f"outreach-server accounts connect {workspace_id} twilio"]
    assert "encrypted with another key" in finding["why"]
    assert finding["commands"][0] in told_by(cli)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 KB"), (52_428_800, "50.0 MB"), (10**15, "909 TB")],
)
def test_sizes_are_reported_in_units_that_people_read(count: int, text: str) -> None:
    """One decimal below a hundred."""
    assert _size(count) == text
