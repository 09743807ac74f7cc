"""Contacts without a value for a placeholder are counted before anything is sent."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Cli, Write

LIST = "phone,Vorname,Plan\n" + "".join(
    f"+1415555010{at},{name},{plan}\n"
    for at, (name, plan) in enumerate(
        [("Ann", "pro"), ("", "pro"), ("Cy", ""), (" ", "pro"), ("Eve", "pro"), ("", ""), ("Gil", "x"), ("\u200b", "y")]
    )
)


def args(workspace_id: str, file: str, message: str) -> tuple[str, ...]:
    """Return the command that imports a list."""
    return ("campaigns", "import", workspace_id, file, "--name", "C", "--message", message, "--from", "+14155550100")


def test_import_preflight_and_start_count_contacts_without_a_value(
    cli: Cli, workspace_id: str, csv_file: Write
) -> None:
    """With examples; a placeholder with a fallback is none of them."""
    command = args(workspace_id, csv_file(LIST), "Hi {{first_name}}, {{Plan|basic}}")
    previewed = cli.ask(*command, "--dry-run")
    made = cli.ask(*command)
    checked = cli.ask("campaigns", "preflight", made["id"])
    started = cli.ask("campaigns", "start", made["id"])
    for found in (previewed, made, checked, started):
        (problem,) = found["placeholder_problems"]
        assert (problem["name"], problem["problem"], problem["count"]) == ("first_name", "no_value", 4)
        assert [one["position"] for one in problem["examples"]] == [1, 3, 5, 7]
        assert problem["examples"][0]["phone_number"] == "+14155550101"
    (problem,) = made["placeholder_problems"]
    assert [one["detail"] for one in problem["examples"]] == ["row 3", "row 5", "row 7", "row 9"]


def test_commands_print_how_many_have_no_value_and_what_to_do(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Each command names the total too."""
    command = args(workspace_id, csv_file(LIST), "Hi {{first_name}}, {{Plan|basic}}")
    told = cli.tell(*command)
    assert "Of 8 rows, 4 have no value for {{first_name}}: a blank is sent in its place (row 3, row 5" in told
    assert "{{first_name|there}}" in told
    assert "Plan" not in told.partition("have no value")[2]
    campaign = cli.ask("campaigns", "list", workspace_id)[0]["id"]
    assert "Of 8 contacts that will be contacted, 4 have no value" in cli.tell("campaigns", "preflight", campaign)
    assert "Of 8 contacts, 4 have no value" in cli.tell("campaigns", "start", campaign)


def test_a_field_without_a_column_is_blank_for_everybody(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """`{{email}}` is known, but a list without it fills it for nobody."""
    made = cli.ask(*args(workspace_id, csv_file(LIST), "Hi {{email}}"))
    assert made["unknown_placeholders"] == []
    assert [(one["name"], one["count"]) for one in made["placeholder_problems"]] == [("email", 8)]


def test_a_start_says_how_many_of_a_large_campaign_it_looked_at(
    cli: Cli, workspace_id: str, csv_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads no more than so many."""
    monkeypatch.setattr("outreach.services.campaigns.moves.MAX_LOOKED_AT", 3)
    monkeypatch.setattr("outreach.services.campaigns.moves._SLICE", 3)
    made = cli.ask(*args(workspace_id, csv_file(LIST), "Hi {{first_name}}"))
    assert "Of the first 3 of 8 contacts, 1 has no value" in cli.tell("campaigns", "start", made["id"])


@pytest.mark.parametrize("written", ["{first_name}", "((first_name))", "*|FNAME|*", "{{first_name"])
def test_import_preflight_and_start_name_placeholders_of_other_programs(
    cli: Cli, workspace_id: str, csv_file: Write, written: str
) -> None:
    """With the right spelling, in words and in JSON."""
    command = args(workspace_id, csv_file(LIST), f"Hi {written}, welcome")
    assert "{{first_name}}" in cli.tell(*command, "--dry-run").partition(f"{written} is sent as it is")[2]
    made = cli.ask(*command)
    for found in (made, cli.ask("campaigns", "preflight", made["id"]), cli.ask("campaigns", "start", made["id"])):
        assert [(one["written"], one["meant"]) for one in found["text_warnings"]] == [(written, "{{first_name}}")]


def text_of(cli: Cli, campaign_id: str) -> str:
    """Return the first contact's text."""
    text: str = cli.ask("campaigns", "preflight", campaign_id)["samples"][0]["messages"][0]["text"]
    return text.partition("\n")[0]


def test_columns_keep_their_names_in_texts(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Those that are fields by their usual names, and those that were mapped; also in a text that comes later."""
    file = csv_file("Telefon,Vorname,Chef\n+14155550101,Ann,Bo\n")
    made = cli.ask(*args(workspace_id, file, "{{Vorname}} {{Chef}} {{Telefon}}"), "--map", "company=Chef")
    assert made["unknown_placeholders"] == made["placeholder_problems"] == []
    assert text_of(cli, made["id"]) == "Ann Bo +14155550101"
    cli.ask("campaigns", "update", made["id"], "--message", "Hallo {{Vorname}} {{company}}!")
    assert text_of(cli, made["id"]) == "Hallo Ann Bo!"
    assert cli.ask("campaigns", "start", made["id"])["status"] == "active"
    dry = cli.ask(*args(workspace_id, file, "{{Vorname}} {{Chef}}"), "--map", "company=Chef", "--dry-run")
    assert dry["samples"][0]["messages"][0]["text"].startswith("Ann Bo")


def test_a_mapped_column_wins_over_the_usual_one(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """`{{Vorname}}` is what stands in that column, whichever is the first name."""
    file = csv_file("Telefon,Vorname,Rufname\n+14155550101,Annegret,Ann\n")
    command = args(workspace_id, file, "{{Vorname}} {{Rufname}} {{first_name}}")
    made = cli.ask(*command, "--map", "first_name=Rufname")
    assert text_of(cli, made["id"]) == "Annegret Ann Ann"
    dry = cli.ask(*command, "--map", "first_name=Rufname", "--dry-run")
    assert dry["samples"][0]["messages"][0]["text"].startswith("Annegret Ann Ann")


def test_the_advice_for_a_missing_date_keeps_its_format(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """A fallback alone would lose it."""
    file = csv_file("phone,slot\n+14155550101,2026-12-08 08:00\n+14155550102,\n")
    told = cli.tell(*args(workspace_id, file, "On {{slot|date:d.m.}} at {{slot|date:h:mm}}"))
    assert "Of 2 rows, 1 has no value for {{slot}}" in told
    assert "such as {{slot|date:d.m.|there}}." in told


def test_a_date_that_cannot_be_read_for_certain_is_counted(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """It is sent as it is, and the import prints a note."""
    file = csv_file("phone,slot\n+14155550101,2026-12-08 08:00\n+14155550102,8.12.2026\n+14155550103,12/8/2026\n")
    command = args(workspace_id, file, "See you on {{slot|date:d mmmm}}")
    made = cli.ask(*command)
    (problem,) = made["placeholder_problems"]
    assert (problem["problem"], problem["count"]) == ("no_date", 1)
    assert problem["examples"][0]["detail"] == "row 4: '12/8/2026'"
    assert "not read as a date" in cli.tell(*command)
    texts = [one["messages"][0]["text"] for one in cli.ask("campaigns", "preflight", made["id"])["samples"]]
    assert [text.splitlines()[0] for text in texts] == [
        "See you on 8 December",
        "See you on 8 December",
        "See you on 12/8/2026",
    ]


def test_one_row_and_one_contact_are_singular(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """In everything that is said of a list with one row, from its import to its start."""
    row = csv_file("phone,first_name\n+14155550101,\n")
    said = [cli.tell(*args(workspace_id, row, "Hi {{first_name}}"), *more) for more in (("--dry-run",), ())]
    made = cli.ask("campaigns", "list", workspace_id)[0]["id"]
    said += [cli.tell("campaigns", *command, made) for command in (["preflight"], ["clone"], ["forecast"], ["start"])]
    said.append(cli.refuse(*args(workspace_id, csv_file("phone\n12\n"), "Hi")))
    listed = csv_file("4155550102\n")
    said += [cli.tell("unsubscribes", "import", workspace_id, listed, "--region", "US") for _ in range(2)]
    told = "\n".join(said)
    for words in (
        "Of 1 row 1 would be loaded",
        "Of 1 contact that will be contacted, 1 has no value for {{first_name}}",
        "Of 1 row, 1 has no value for {{first_name}}",
        "Of 1 contact, 1 has no value for {{first_name}}",
        ", with 1 contact: ",
        "The only row cannot be loaded",
    ):
        assert words in told
    assert not re.search(r"(?<![\d,.])1 (rows|contacts|numbers)\b", told)
