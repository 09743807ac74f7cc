from __future__ import annotations

import re

import pytest

from outreach.models import TrailRule
from tests.cli.conftest import Cli, Write

ONE, TWO, LEFT = "+14155550101", "+14155550102", "+14155550103"


@pytest.fixture
def campaign_id(cli: Cli, csv_file: Write) -> str:
    """Return a campaign in which one number comes twice, and from which one was left out."""
    workspace_id = cli.ask("workspaces", "create", "Acme", "--default-region", "US")["id"]
    cli.ask("unsubscribes", "add", workspace_id, LEFT)
    path = csv_file(f"phone\n{ONE}\n{TWO}\n(415) 555-0101\n{LEFT}\n")
    loaded = cli.ask(
        "campaigns", "import", workspace_id, path, "--name", "Spring", "--message", "Hi",
        "--from", "+14155550199", "--carrier", "twilio",
    )  # fmt: skip
    return str(loaded["id"])


def test_every_step_of_every_place_is_in_the_document(cli: Cli, campaign_id: str) -> None:
    """Times, kinds, reasons and rules, as JSON has them."""
    cli.ask("campaigns", "start", campaign_id)
    first, second = cli.ask("campaigns", "why", campaign_id, "415-555-0101")
    assert (first["position"], first["status"], first["phone"]) == (0, "pending", ONE)
    assert [(step["what"], step["rule"]) for step in first["steps"]] == [("loaded", "load"), ("campaign", "operator")]
    assert re.fullmatch(r"cli:.+", first["steps"][1]["actor"])
    assert (second["position"], second["status"], second["reason"]) == (2, "skipped", "duplicate")
    end = second["steps"][-1]
    assert (end["what"], end["state"], end["reason"], end["rule"]) == ("ended", "skipped", "duplicate", "duplicate")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", end["at"])


def test_people_get_a_table_for_each_place_and_the_rules_in_words(cli: Cli, campaign_id: str) -> None:
    """Only the rules that decided something are explained."""
    text = cli.tell("campaigns", "why", campaign_id, ONE)
    assert "position 0 of 'Spring': pending" in text
    assert "position 2 of 'Spring': skipped (duplicate)" in text
    assert explained(text) == {"load", "duplicate"}


def explained(text: str) -> set[str]:
    """Return the rules whose explanation is in a text."""
    return {rule.value for rule in TrailRule if rule.text in text}


def test_contacts_left_out_are_named_from_the_register(cli: Cli, campaign_id: str) -> None:
    """The number has no place, and the register is why."""
    (found,) = cli.ask("campaigns", "why", campaign_id, LEFT)
    assert (found["position"], found["status"]) == (None, None)
    assert [(step["what"], step["rule"]) for step in found["steps"]] == [
        ("opted_out", "register"),
        ("left_out", "register"),
    ]
    assert f"{LEFT} is not a recipient of campaign 'Spring'." in cli.tell("campaigns", "why", campaign_id, LEFT)


def test_who_is_not_there_is_said_in_words(cli: Cli, campaign_id: str) -> None:
    """A number that is nowhere, and a campaign that is none."""
    said = cli.refuse("campaigns", "why", campaign_id, "+14155550177")
    assert "'+14155550177' is neither in this campaign nor on the unsubscribe register." in said
    assert "There is no campaign" in cli.refuse("campaigns", "why", "0195554e-0000-7000-8000-00000000dead", ONE)


def test_a_contact_is_named_by_the_id_of_the_application(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """The column that --map names, in `recipients` and in `why`; it stays a variable."""
    path = csv_file(f"phone,Customer No\n{ONE},crm-7\n{TWO},\n")
    campaign_id = cli.ask(
        "campaigns", "import", workspace_id, path, "--name", "C", "--message", "Hi {{Customer No}}",
        "--map", "external_id=customer no",
    )["id"]  # fmt: skip
    [found] = cli.ask("campaigns", "recipients", campaign_id, "--external-id", "crm-7")
    assert (found["phone"], found["external_id"], found["custom_variables"]) == (ONE, "crm-7", {"Customer No": "crm-7"})
    [history] = cli.ask("campaigns", "why", campaign_id, "--external-id", "crm-7")
    assert (history["position"], history["external_id"]) == (0, "crm-7")
    assert f"{ONE} (crm-7), position 0 of 'C'" in cli.tell("campaigns", "why", campaign_id, "--external-id", "crm-7")
    assert "has the external id 'x'" in cli.refuse("campaigns", "why", campaign_id, "--external-id", "x")
    assert "PHONE or by --external-id" in cli.refuse("campaigns", "why", campaign_id, code=2)
    assert cli.ask("campaigns", "recipients", campaign_id, "--external-id", "x") == []
