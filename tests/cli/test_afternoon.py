"""A campaign manager's afternoon by command line: from a spreadsheet with everything wrong in it to the second try."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from anyio.from_thread import start_blocking_portal
from openpyxl import Workbook

from outreach import Outreach
from tests import afternoon
from tests.cli.conftest import Cli, until


def spreadsheet(path: Path) -> str:
    """Write the list as an XLSX file and return its path."""
    book = Workbook()
    sheet = book.worksheets[0]
    for number, row in enumerate((afternoon.HEADER, *afternoon.ROWS), start=1):
        for column, text in enumerate(row, start=1):
            cell = sheet.cell(number, column)
            cell.value = text
            # A text that looks like a formula stays one.
            cell.data_type = "s"
    book.save(path)
    return str(path)


def test_a_campaign_managers_afternoon(cli: Cli, tmp_path: Path) -> None:
    """Mapped, corrected, looked at, tried, started, paused, changed, resumed, reported, exported and followed up."""
    workspace = cli.ask("workspaces", "create", "Acme", "--default-region", "US", "--no-contact-hours")["id"]
    cli.ask("numbers", "create", workspace, afternoon.SENDER, "--carrier", "twilio")
    cli.ask("unsubscribes", "add", workspace, afternoon.OPTED_OUT)
    cli.ask("settings", "prices", "set", workspace, "--currency", "USD", "--price", "sms=0.0079")
    load = (
        *("campaigns", "import", workspace, spreadsheet(tmp_path / "list.xlsx"), "--name", "Slots"),
        *("--message", "Hi {{first_name}}, see you at {{Slot}}.", "--from", afternoon.SENDER, "--rate", "60"),
        *("--map", "phone=Handynummer", "--map", "first_name=Vorname", "--map", "external_id=Kunde"),
    )
    looked = cli.ask(*load, "--dry-run")
    assert len(looked["rejected"]) == afternoon.REJECTED
    assert looked["mapping"]
    assert looked["corrected"]
    assert cli.ask("campaigns", "list", workspace) == []
    rejects = tmp_path / "rejects.csv"
    campaign = cli.ask(*load, "--rejects", str(rejects))["id"]
    with rejects.open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == afternoon.REJECTED

    found = cli.ask("campaigns", "preflight", campaign)
    assert (found["contacts"], found["contacted"], found["problems"]) == (8, 7, [])
    assert [(one["rule"], one["count"]) for one in found["left_out"]] == [("duplicate", 1)]
    assert cli.ask("campaigns", "forecast", campaign)["requests"] == 7

    engine = Outreach.open(cli.database, dispatch=True, sandbox_carrier=afternoon.carrier())
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(engine):
        to = ("--contact", "+14155550102", "--to", afternoon.MYSELF)
        tried = cli.ask("campaigns", "test-send", campaign, *to, "--wait", "0")
        assert "see you at 9:30" in tried["body"]
        get = engine.messages.get
        until(lambda: portal.call(get, workspace, tried["id"]).status == "accepted", "the test message")
        cli.ask("campaigns", "start", campaign)
        until(lambda: cli.ask("campaigns", "show", campaign)["completed_calls"] > 0, "the first message")
        assert cli.ask("campaigns", "pause", campaign)["status"] == "paused"
        text = "Hi {{first_name}}, at {{Slot}} after all."
        cli.ask("campaigns", "update", campaign, "--message", text, "--rate", "600")
        cli.ask("campaigns", "resume", campaign)
        until(lambda: cli.ask("campaigns", "show", campaign)["status"] == "completed", "the end of the campaign")

        async def reply() -> None:
            await engine.messages.receive(
                workspace, from_number="+14155550107", to=afternoon.SENDER, body="See you then"
            )

        portal.call(reply)
        ledger = portal.call(afternoon.ledger_of, engine, workspace, campaign, 8)

    report = cli.ask("campaigns", "report", campaign)
    lines = cli.tell("campaigns", "export", campaign, "--format", "jsonl").splitlines()
    exported = [json.loads(line) for line in lines]
    afternoon.check_figures(report, exported, ledger, "0.0079")
    assert {"after all." in str(one.body) for one in ledger} == {False, True}
    assert [one["external_id"] for one in exported] == ["K1", "K2", "K3", "K4", "K5", "K6", "K7", "K8"]

    again = cli.ask("campaigns", "follow-up", campaign, "--results", "failed,duplicate")
    assert (again["selected"], again["left_out"]["reached"]) == (3, 1)
    assert {one["phone"] for one in cli.ask("campaigns", "export", again["id"])} == afternoon.FAILING
