"""The commands that tell before the start: preflight, dry run, prices, forecast, and a test to oneself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Write

ROWS = (
    "phone,first_name,city\n"
    "415-555-0101,Ana,Rome\n"
    "(415) 555-0102,,Paris\n"
    "+18085550123,\u0141ukasz,Oslo\n"
    "+18085550123,Dup,Oslo\n"
    "abc,x,y\n"
)
OPTIONS = ("--name", "Spring", "--message", "Hi {{first_name}} \u2013 {{city}}, {{plan}}", "--from", "+14155550100")


def imported(cli: Cli, workspace_id: str, file: str) -> Any:
    """Load the campaign."""
    return cli.ask("campaigns", "import", workspace_id, file, *OPTIONS)


def test_a_dry_run_creates_nothing_and_shows_what_the_campaign_would_do(
    cli: Cli, workspace_id: str, csv_file: Write
) -> None:
    """The same for the file as for the campaign, and the rows that cannot be loaded besides."""
    cli.ask("unsubscribes", "add", workspace_id, "+14155550102")
    file = csv_file(ROWS)
    told = cli.ask("campaigns", "import", workspace_id, file, *OPTIONS, "--dry-run")
    assert cli.ask("campaigns", "list", workspace_id) == []
    assert (told["campaign_id"], told["rows"], told["rejected_count"], told["contacts"]) == (None, 5, 1, 4)
    assert {one["rule"]: one["count"] for one in told["left_out"]} == {"duplicate": 1, "opted_out": 1}
    assert told["unknown_placeholders"] == ["plan"]
    assert len(told["rejected"]) == 1
    made = imported(cli, workspace_id, file)
    after = cli.ask("campaigns", "preflight", made["id"])
    assert (after["contacted"], after["segments"]) == (told["contacted"], told["segments"]) == (2, 2)
    assert after["encodings"] == told["encodings"]
    assert {one["rule"]: one["count"] for one in after["left_out"]} == {"duplicate": 1}


def test_people_read_it_too(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Rules in words with examples, characters, texts, and what is in the way."""
    cli.ask("unsubscribes", "add", workspace_id, "+14155550102")
    said = cli.tell("campaigns", "import", workspace_id, csv_file(ROWS), *OPTIONS, "--dry-run")
    for text in (
        "Their number occurs earlier in the list.",
        "en dash",
        "Hi Ana \u2013 Rome,",
        "Nothing fills {{plan}}",
        "Of 5 rows 3 would be loaded, 1 of them a duplicate; 1 has opted out. Nothing was created.",
        "no prices",
    ):
        assert text in said, text


def test_who_is_contacted_later_is_shown_with_examples(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Whenever it is, it is night for one of these."""
    phones = ("+12125552368", "+81312345678", "+442079460018")
    cli.run("workspaces", "update", workspace_id, "--contact-hours")
    said = cli.tell("campaigns", "import", workspace_id, csv_file("\n".join(["phone", *phones])), *OPTIONS, "--dry-run")
    _, _, later = said.partition("Contacted later:")
    table, _, _ = later.partition("Texts:")
    assert any(phone in table for phone in phones), said


def test_one_contact_is_shown_alone(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Both of its places, in whatever notation it is asked for."""
    file = csv_file(ROWS)
    made = imported(cli, workspace_id, file)
    said = cli.tell("campaigns", "preflight", made["id"], "--contact", "(808) 555-0123")
    assert "contacted" in said
    assert "left out: duplicate" in said
    assert "Ana" not in said
    asked = cli.ask("campaigns", "preflight", made["id"], "--contact", "(808) 555-0123")["asked"]
    assert [(one["position"], one["outcome"], one["messages"][0]["encoding"]) for one in asked] == [
        (2, "contacted", "UCS-2"),
        (3, "left_out", "UCS-2"),
    ]
    assert "is not among the contacts" in cli.refuse("campaigns", "preflight", made["id"], "--contact", "+14155550999")
    tried = cli.tell("campaigns", "import", workspace_id, file, *OPTIONS, "--dry-run", "--contact", "4155550101")
    assert "Hi Ana" in tried
    assert "dry-run" in cli.refuse("campaigns", "import", workspace_id, file, *OPTIONS, "--contact", "1", code=2)


def test_prices_are_set_shown_and_removed(cli: Cli, workspace_id: str, csv_file: Write, tmp_path: Path) -> None:
    """By option, or from the file that `show --json` has written; the preflight counts by them."""
    prices = ("settings", "prices")
    made = imported(cli, workspace_id, csv_file(ROWS))
    assert cli.ask(*prices, "show", workspace_id) == {"currency": None, "prices": []}
    given = ("--price", "sms/twilio/US=0.0083", "--price", "sms/*/CA=0.01", "--price", "call=0.120")
    table = cli.ask(*prices, "set", workspace_id, "--currency", "USD", *given)
    assert table["prices"][0] == {"kind": "sms", "amount": "0.0083", "provider": "twilio", "country": "US"}
    assert [one["amount"] for one in table["prices"]] == ["0.0083", "0.01", "0.120"]
    cost = cli.ask("campaigns", "preflight", made["id"])["cost"]
    assert (cost["amount"], cost["currency"], cost["unpriced"]) == ("0.0249", "USD", 0)
    assert "0.0083 USD" in cli.tell(*prices, "show", workspace_id)
    file = tmp_path / "prices.json"
    file.write_text(json.dumps(table))
    cli.ask(*prices, "remove", workspace_id)
    assert "no prices" in cli.tell(*prices, "show", workspace_id)
    assert cli.ask(*prices, "set", workspace_id, "--file", str(file)) == table


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ((), 2, "--currency"),
        (("--price", "sms=1"), 2, "--currency"),
        (("--currency", "USD", "--price", "fax=1"), 2, "KIND"),
        (("--currency", "USD", "--price", "sms=cheap"), 2, "not an amount"),
        (("--currency", "dollars", "--price", "sms=1"), 1, "three capital letters"),
    ],
)
def test_wrong_prices_are_refused(cli: Cli, workspace_id: str, given: tuple[str, ...], code: int, said: str) -> None:
    """With what is wrong."""
    assert said in cli.refuse("settings", "prices", "set", workspace_id, *given, code=code)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("[]", "an object"),
        ('{"currency": "USD"}', "prices"),
        ('{"currency": "USD", "prices": [{"kind": "sms"}]}', "prices[0].amount"),
        ('{"currency": "USD", "prices": [{"kind": "sms", "amount": "x"}]}', "prices[0].amount"),
        ('{"currency": "USD", "prices": [{"kind": "sms", "amount": 1}]}', "prices[0].amount"),
    ],
)
def test_a_wrong_file_of_prices_is_refused(
    cli: Cli, workspace_id: str, tmp_path: Path, content: str, said: str
) -> None:
    """With the place."""
    file = tmp_path / "prices.json"
    file.write_text(content)
    assert said in cli.refuse("settings", "prices", "set", workspace_id, "--file", str(file))


def test_the_forecast_is_a_line_of_the_campaign_and_a_table_of_its_own(
    cli: Cli, workspace_id: str, csv_file: Write
) -> None:
    """Also where hours and a late start put it off."""
    rows = "phone\n" + "".join(f"+1415555{n:04d}\n" for n in range(180))
    late = ("--name", "Late", "--message", "Hi", "--from", "+14155550100", "--schedule-at", "2099-01-05T12:00:00Z")
    made = cli.ask(
        "campaigns",
        "import",
        workspace_id,
        csv_file(rows),
        *late,
        "--hours",
        "mon-fri 14:00-14:02",
        "--timezone",
        "UTC",
    )
    told = cli.ask("campaigns", "forecast", made["id"])
    assert (told["starts_at"], told["ends_at"]) == ("2099-01-05T14:00:00.000000Z", "2099-01-06T14:00:59.000000Z")
    assert [(one["requests"], one["bound_by"]) for one in told["phases"]][-1] == (60, "pace")
    assert sum(one["requests"] for one in told["hours"]) == told["requests"] == 180
    shown = cli.tell("campaigns", "show", made["id"])
    assert "Forecast: 180 messages to go, from 2099-01-05 14:00 UTC on, done at 2099-01-06 14:00 UTC" in shown
    said = cli.tell("campaigns", "forecast", made["id"], "--failure-rate", "0.5")
    assert "Assumed: 50% of messages fail for now." in said
    assert "2099-01-05 14:00" in said


def test_a_contact_s_text_is_queued_as_a_test(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """No server runs here, so that it waits; and who is not in the list, or has opted out, is said."""
    made = imported(cli, workspace_id, csv_file(ROWS))
    command = ("campaigns", "test-send", made["id"], "--to", "+14155550199", "--wait", "0")
    sent = cli.ask(*command, "--contact", "4155550101")
    assert (sent["purpose"], sent["status"], sent["from_number"]) == ("test", "queued", "+14155550100")
    assert sent["body"].startswith("Hi Ana \u2013 Rome, ")
    assert "is not among the campaign's contacts" in cli.refuse(*command, "--contact", "+14155550999")
    cli.ask("unsubscribes", "add", workspace_id, "+14155550199")
    assert "unsubscribe register" in cli.refuse(*command, "--contact", "4155550101")
