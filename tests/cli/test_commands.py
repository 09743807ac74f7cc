from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import click
import pytest

from outreach import Outreach
from outreach.ledger.settling.ledger import close_open_recipients
from outreach.protocols import SystemClock
from outreach.storage.unit_of_work import Transaction
from outreach_server.cli import main
from outreach_server.cli.output import program
from tests.cli.conftest import Cli


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Go through the commands that do something, by their names."""
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from leaves(child, (*path, name))
    else:
        yield " ".join(path), command


COMMANDS = dict(leaves(main))


def options(command: click.Command) -> set[str]:
    """Return all spellings of a command's options."""
    return {
        spelling
        for param in command.params
        if isinstance(param, click.Option)
        for spelling in (*param.opts, *param.secondary_opts)
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_common_options(name: str) -> None:
    """Every command takes --json and --config, and --database unless it makes a database of its own."""
    common = {"--json", "--config"} | (set() if name in {"sandbox", "demo"} else {"--database"})
    assert options(COMMANDS[name]) >= common


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_says_what_a_command_and_each_option_does(cli: Cli, name: str) -> None:
    """Nobody has to read the source."""
    text = cli.tell(*name.split(), "--help")
    assert text.startswith(f"Usage: outreach-server {name}".rstrip())
    command = COMMANDS.get(name, main)
    assert command.help
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, param.name
            assert param.opts[0] in text


FLOW = b'[{"kind": "send", "body": "Hi"}]'


HOOK = "https://app.example/hook"
WEEKLY = ("--rule", "FREQ=WEEKLY", "--timezone", "UTC", "--starts-on", "2026-03-02", "--at", "09:00")


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory, acme: tuple[bytes, str]) -> tuple[Path, dict[str, str]]:
    """Return a database that holds one thing of each kind, made once, and their identifiers."""
    content, workspace_id = acme
    path = tmp_path_factory.mktemp("furnished") / "test.db"
    path.write_bytes(content)
    cli = Cli(f"sqlite:///{path}")
    rows, twice = path.with_name("contacts.csv"), path.with_name("twice.csv")
    rows.write_text("phone,first_name\n+14155550101,Ann\n", "utf-8")
    twice.write_text("phone\n+14155550102\n+14155550102\n", "utf-8")

    def campaign(*more: str) -> str:
        made = (
            "campaigns",
            "import",
            workspace_id,
            str(rows),
            "--name",
            "C",
            "--message",
            "Hi",
            "--from",
            "+14155550100",
        )
        identifier: str = cli.ask(*made, *more)["id"]
        return identifier

    active, paused, scheduled = campaign(), campaign(), campaign("--schedule-at", "2999-01-01T00:00")
    for each in (active, paused, scheduled):
        cli.ask("campaigns", "start", each)
    cli.ask("campaigns", "pause", paused)
    cancelled = campaign()
    cli.ask("campaigns", "cancel", cancelled)
    with_duplicate = cli.ask("campaigns", "import", workspace_id, str(twice), "--name", "S", "--message", "Hi")["id"]
    cli.ask("campaigns", "cancel", with_duplicate)
    anyio.run(_close, cli.database, workspace_id, with_duplicate)
    with pytest.MonkeyPatch.context() as somebody_else:
        somebody_else.setenv("LOGNAME", "ben")
        others = campaign()
        schedule = cli.ask("schedules", "create", workspace_id, "S", "--template", others, *WEEKLY)["id"]
    return path, {
        "SCHEDULE": schedule,
        "WEBHOOK": cli.ask("webhooks", "add", workspace_id, HOOK)["id"],
        "W": workspace_id,
        "KEY": cli.ask("keys", "create", workspace_id)["id"],
        "TRUNK": cli.ask("trunks", "create", workspace_id, "T", "--address", "sip.example.com")["id"],
        "NUMBER_ID": cli.ask("numbers", "create", workspace_id, "+14155550188")["id"],
        "FLOW_ID": cli.ask("flows", "create", workspace_id, "F", "--file", "-", stdin=FLOW)["id"],
        "AGENT": cli.ask("agents", "create", workspace_id, "Ada")["id"],
        "READY": campaign(),
        "OTHERS": others,
        "ACTIVE": active,
        "PAUSED": paused,
        "SCHEDULED": scheduled,
        "CANCELLED": cancelled,
        "TWICE": with_duplicate,
        "EMAIL": cli.ask("users", "create", "ann@acme.example")["email"],
    }


@pytest.fixture
def things(database: str, furnished: tuple[Path, dict[str, str]]) -> dict[str, str]:
    """Return the identifiers of one thing of each kind, in the test's database."""
    path, identifiers = furnished
    directory = Path(database.removeprefix("sqlite:///")).parent
    shutil.copytree(path.parent, directory, dirs_exist_ok=True)
    return {**identifiers, "CSV": str(directory / "contacts.csv")}


async def _close(database: str, workspace_id: str, campaign_id: str) -> None:
    """End what is open of a cancelled campaign, as somebody who dispatches does."""

    def close(tx: Transaction) -> None:
        close_open_recipients(tx, workspace_id, campaign_id, now=SystemClock().now(), limit=10)

    async with Outreach.open(database) as engine:
        await engine._storage.write(close)


CALLS = {
    "workspaces create": "Acme --live --same-name",
    "workspaces update": "W --status suspended",
    "workspaces set-hours": "W US-FL --hours HOURS --source Law",
    "workspaces list": "",
    "workspaces show": "W",
    "webhooks add": f"W {HOOK}/2 --type call.ended --payload full",
    "webhooks list": "W",
    "webhooks show": "W WEBHOOK",
    "webhooks update": "W WEBHOOK --description Ours --no-types",
    "webhooks test": "W WEBHOOK",
    "webhooks rotate": "W WEBHOOK --overlap-hours 1",
    "webhooks replay": "W WEBHOOK --from 1",
    "webhooks attempts": "W WEBHOOK",
    "webhooks pause": "W WEBHOOK",
    "webhooks enable": "W WEBHOOK",
    "webhooks remove": "W WEBHOOK",
    "keys create": "W --name ci",
    "keys list": "W",
    "keys revoke": "KEY",
    "users create": "new@acme.example --workspace W --role viewer",
    "users list": "W",
    "users invite": "W ben@acme.example",
    "users role": "EMAIL --operator",
    "users disable": "EMAIL",
    "users reset": "EMAIL",
    "users sessions": "EMAIL",
    "accounts list": "W",
    "accounts rekey": "",
    "agents create": "W Bob --direction inbound --allow-outbound --inactive",
    "agents list": "W",
    "agents update": "AGENT --inactive",
    "agents remove": "AGENT",
    "trunks create": "W Main --address sip.example.com",
    "trunks list": "W",
    "trunks update": "W TRUNK --address b.example.com",
    "trunks remove": "W TRUNK",
    "numbers create": "W +14155550199",
    "numbers list": "W",
    "numbers update": "W +14155550188 --rate 5",
    "numbers remove": "W +14155550188",
    "flows create": "W Welcome --file FLOW",
    "flows list": "W",
    "flows contacts": "W FLOW_ID",
    "flows update": "W FLOW_ID --name Hello",
    "flows remove": "W FLOW_ID",
    "schedules create": f"W Again --template OTHERS {' '.join(WEEKLY)} --except 2026-03-09",
    "schedules list": "W",
    "schedules show": "W SCHEDULE",
    "schedules update": "W SCHEDULE --at 10:00 --no-except",
    "schedules next": "W SCHEDULE",
    "schedules occurrences": "W SCHEDULE",
    "schedules pause": "W SCHEDULE",
    "schedules resume": "W SCHEDULE",
    "schedules run-now": "W SCHEDULE",
    "schedules skip-next": "W SCHEDULE",
    "schedules approve": "W SCHEDULE --most-contacts 5",
    "schedules remove": "W SCHEDULE",
    "unreachable list": "W",
    "unreachable remove": "W +14155550177",
    "settings show": "W",
    "settings set": "W --max-segments 2",
    "settings prices show": "W",
    "settings prices set": "W --currency USD --price sms=0.01",
    "settings prices remove": "W",
    "unsubscribes add": "W +14155550150",
    "unsubscribes remove": "W +14155550150 --evidence Letter",
    "unsubscribes list": "W",
    "unsubscribes held": "W",
    "unsubscribes import": "W CSV",
    "campaigns import": "W CSV --name C --message Hi",
    "campaigns add": "READY CSV",
    "campaigns list": "W",
    "campaigns update": "READY --rate 10",
    "campaigns start": "READY",
    "campaigns pause": "ACTIVE",
    "campaigns resume": "PAUSED",
    "campaigns cancel": "ACTIVE --yes",
    "campaigns unschedule": "SCHEDULED",
    "campaigns approval": "READY",
    "campaigns approve": "OTHERS",
    "campaigns close": "READY",
    "campaigns show": "ACTIVE",
    "campaigns watch": "CANCELLED",
    "campaigns recipients": "ACTIVE",
    "campaigns clock": "ACTIVE",
    "campaigns forecasts": "ACTIVE",
    "campaigns now": "ACTIVE",
    "campaigns progress": "ACTIVE",
    "campaigns skip": "ACTIVE 0",
    "campaigns why": "ACTIVE +14155550101",
    "campaigns report": "ACTIVE",
    "campaigns export": "ACTIVE",
    "campaigns clone": "READY",
    "campaigns follow-up": "TWICE --results duplicate",
    "campaigns archive": "READY",
    "campaigns unarchive": "READY",
    "campaigns delete": "READY --yes",
    "simulate reply": "W +14155550101 Yes --to +14155550100",
    "simulate stop": "W +14155550101 --to +14155550100",
    "simulate receipt": "W +14155550101 failed",
    "simulate busy": "W +14155550101",
    "simulate no-answer": "W +14155550101",
    "simulate voicemail": "W +14155550101",
    "purge": "W +14155550101 --yes",
    "retention run": "",
    "campaigns preflight": "ACTIVE",
    "campaigns forecast": "ACTIVE",
    "campaigns test-send": "ACTIVE --contact +14155550101 --to +14155550142 --wait 0",
    "messages list": "W",
    "contacts history": "W +14155550101",
    "messages inbound": "W --unclear",
    "events list": "",
    "dispatches unknown": "W",
    "test-send": "W --to +14155550177 --wait 0",
    "status": "W",
    "doctor": "--offline",
    "stop": "W",
    "audit": "W",
    "config": "",
    "db archives": "",
}


ONCE = {
    "purge",
    "users create",
    "campaigns start",
    "campaigns resume",
    "campaigns cancel",
    "campaigns unschedule",
    "campaigns delete",
    "numbers create",
    "numbers remove",
    "trunks remove",
    "flows remove",
    "schedules run-now",
    "schedules remove",
    "webhooks remove",
    "agents remove",
}
"""What cannot be done a second time."""


def test_every_command_is_called() -> None:
    """By the test below, or by another file's: that of a command which needs a provider, a file or a server."""
    others = (path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))
    text = "\n".join(others)
    left = COMMANDS.keys() - CALLS.keys()
    # Its words, one after the other, in code.
    assert [name for name in left if not re.search('"' + r"\W+".join(name.split()) + r"\b", text)] == []


@pytest.mark.parametrize("name", CALLS)
def test_a_command_answers_with_one_document_or_with_text(
    cli: Cli, things: dict[str, str], tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """With --json there is exactly one JSON document on stdout; without it text that is none."""
    flow = tmp_path_factory.mktemp("flow") / "flow.json"
    flow.write_text('{"steps": [{"kind": "send", "body": "Hi"}, {"kind": "wait", "wait_minutes": 5}]}')
    given = {**things, "FLOW": str(flow), "HOURS": "daily 08:00-20:00"}
    args = [given.get(word, word) for word in (name + " " + CALLS[name]).split()]
    # Nobody dispatches what is active here, which these tell by their exit status too.
    expected = 4 if name in {"status", "doctor"} else 0
    answer = cli.run(*args, "--json")
    assert answer.exit_code == expected, answer.output
    assert isinstance(json.loads(answer.stdout), dict | list)
    if name not in ONCE:
        result = cli.run(*args)
        assert result.exit_code == expected
        assert not result.stdout.startswith(("{", "["))


@pytest.mark.parametrize("words", ["--database {} workspaces list", "workspaces --database {} list",
                                   "workspaces list --database {}"])  # fmt: skip
def test_the_database_may_be_named_anywhere(cli: Cli, database: str, words: str) -> None:
    """The command line goes before the environment, wherever it names the database."""
    cli.ask("workspaces", "create", "Acme")
    other = Cli("sqlite:////nowhere/at/all.db")
    assert [each["name"] for each in other.ask(*words.format(database).split())] == ["Acme"]


def test_the_version_is_printed(cli: Cli) -> None:
    """The name and the version."""
    assert re.fullmatch(r"outreach-server, version \d+\.\d+\.\d+\n", cli.tell("--version"))


def test_a_line_to_be_copied_calls_the_command_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`make demo` installs into .venv, which no PATH has: what it prints must work all the same."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv/bin/outreach-server"])
    assert program() == ".venv/bin/outreach-server"
    monkeypatch.setattr(sys, "argv", ["outreach_server/__main__.py"])
    monkeypatch.setattr(sys, "executable", "/opt/my python")
    assert program() == "'/opt/my python' -m outreach_server"
    script = tmp_path / "outreach-server"
    script.touch(mode=0o755)
    assert program() == "outreach-server"
