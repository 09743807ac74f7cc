"""What an import shows of the numbers that will be dialled, and what it refuses before anything is created."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outreach.testing.builders import make_inbound
from tests.cli.conftest import Cli, Write
from tests.cli.test_explained import write

GERMAN = "Telefon\n015123456701\n4915123456702\n4915123456703\n0301234567\n+12015550123\n49301234567x\n"
US, DE = ("--region", "US"), ("--region", "DE")


def arguments(workspace_id: str, file: str, *more: str, message: str = "Hi") -> list[str]:
    """Return the arguments of an import."""
    return ["campaigns", "import", workspace_id, file, "--name", "C", "--message", message, *more]


def phones(cli: Cli, made: Any) -> list[str]:
    """Return the numbers of a campaign."""
    return [each["phone"] for each in cli.ask("campaigns", "recipients", made["id"])]


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)], ids=["import", "dry run"])
def test_the_numbers_are_shown_as_they_will_be_dialled(
    cli: Cli, workspace_id: str, csv_file: Write, dry_run: tuple[str, ...]
) -> None:
    """The first in E.164, all by country and kind, and the corrections with counts."""
    args = arguments(workspace_id, csv_file(GERMAN), *DE, *dry_run)
    found = cli.ask(*args)
    assert [(one["row"], one["cell"], one["phone"], one["kind"]) for one in found["numbers"]["first"]] == [
        (2, "015123456701", "+4915123456701", "mobile"),
        (3, "4915123456702", "+4915123456702", "mobile"),
        (4, "4915123456703", "+4915123456703", "mobile"),
        (5, "0301234567", "+49301234567", "landline"),
        (6, "+12015550123", "+12015550123", "unknown"),
    ]
    assert found["numbers"]["count"] == 5
    assert found["numbers"]["by_country"] == [
        {"country": "DE", "count": 4, "mobile": 3, "landline": 1, "unknown": 0},
        {"country": "US", "count": 1, "mobile": 0, "landline": 0, "unknown": 1},
    ]
    assert [(one["what"], one["count"], one["row"]) for one in found["corrected"]] == [("calling_code", 2, 3)]
    assert found["mapping"][0]["first"] == [
        "015123456701 → +4915123456701", "4915123456702 → +4915123456702", "4915123456703 → +4915123456703",
    ]  # fmt: skip
    told = cli.run(*args).stderr
    for words in (
        "row 2: 015123456701 → +4915123456701",
        "2 numbers were corrected: read with its country code, whose plus sign was missing",
        "DE              4        3          1         0",
    ):
        assert words in told


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)], ids=["import", "dry run"])
def test_a_correction_of_more_than_a_tenth_of_a_list_stands_first(
    cli: Cli, workspace_id: str, csv_file: Write, dry_run: tuple[str, ...]
) -> None:
    """Nine in a hundred are an accident, eleven may be a wrong region; the first words and the first field say so."""
    right = "".join(f"+4915123456{n:03d}\n" for n in range(90))

    def found(corrected: int) -> Any:
        file = csv_file("phone\n" + right + "".join(f"4915123457{n:03d}\n" for n in range(corrected)))
        return cli.ask(*arguments(workspace_id, file, *DE, *dry_run))

    assert found(10)["number_warnings"] == []
    many = found(11)
    assert next(iter(many)) == "number_warnings"
    assert [text.partition(":")[0] for text in many["number_warnings"]] == [
        "11 of 101 numbers (10 %) were corrected in the same way"
    ]
    told = cli.run(*arguments(workspace_id, csv_file(GERMAN), *DE, *dry_run)).output
    first = told.index("Look at this first: 2 of 5 numbers (40 %)")
    assert first < told.index("Numbers as they will be")
    assert not dry_run or first == 0


def test_landlines_are_a_warning_for_texts_and_none_for_calls(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """With the rows of the first ones."""
    file = csv_file("Telefon\n+4915123456701\n030 1234567\n030 1234568\n")
    made = cli.ask(*arguments(workspace_id, file, *DE))
    assert made["number_warnings"] == ["2 numbers are landlines, and hardly any landline takes texts (rows 3, 4)."]
    agent = cli.ask("agents", "create", workspace_id, "Ada", "--provider", "vapi")["id"]
    call = ("campaigns", "import", workspace_id, file, "--name", "C", "--channel", "call", "--agent", agent, *DE)
    assert cli.ask(*call)["number_warnings"] == []


def test_local_numbers_are_read_in_the_region_of_the_import(cli: Cli, csv_file: Write) -> None:
    """It wins over the workspace's, and is a code, a calling code or a country's name; else they are refused."""
    acme = cli.ask("workspaces", "create", "Acme", "--default-region", "US")["id"]
    file = csv_file("phone\n0151 23456701\n")
    for region in ("DE", "de", "+49", "Germany"):
        assert phones(cli, cli.ask(*arguments(acme, file, "--region", region))) == ["+4915123456701"]
    assert "not a region of phone numbers" in cli.refuse(*arguments(acme, file, "--region", "Atlantis"), code=2)
    bare = cli.ask("workspaces", "create", "Bare")["id"]
    refused = cli.refuse(*arguments(bare, csv_file("phone\n6465550102\n")))
    assert "'6465550102' has no country code; write it like +14155550102, or name its region: --region" in refused


def test_a_column_of_countries_sets_the_region_of_each_row(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """By code, calling code or name; a blank means the import's, an unknown one refuses a local number."""
    file = csv_file(
        "Name,Handy,Land\n"
        "Ann,0151 23456701,Deutschland\n"
        "Ben,06 12 34 56 78,fr\n"
        "Cleo,(201) 555-0123,+1\n"
        "Dan,07400 123456,\n"
        "Eve,0151 23456702,Atlantis\n"
        "Fay,+49 151 23456703,Atlantis\n"
    )
    made = cli.ask(*arguments(workspace_id, file, "--region", "GB"))
    assert phones(cli, made) == [
        "+4915123456701", "+33612345678", "+12015550123", "+447400123456", "+4915123456703",
    ]  # fmt: skip
    assert [bad["message"] for bad in made["rejected"]] == [
        "'0151 23456702' has no country code, and 'Atlantis' is not a known country"
    ]
    assert [(one["column"], one["is"]) for one in made["mapping"]][1:] == [
        ("Handy", "phone_number"), ("Land", "country, {{Land}}"),
    ]  # fmt: skip
    left_out = cli.ask(*arguments(workspace_id, file, "--region", "GB", "--map", "country="))
    assert phones(cli, left_out)[0] != "+4915123456701"


def test_a_column_that_holds_no_countries_is_not_read_as_such(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """`Land` is a state in other lists; a note says so, and --map insists."""
    file = csv_file("Handy,Land\n0151 23456701,Bayern\n0151 23456702,Hessen\n")
    made = cli.ask(*arguments(workspace_id, file, *DE))
    assert phones(cli, made) == ["+4915123456701", "+4915123456702"]
    assert "'Land' is not read as the country of the numbers, because 'Bayern'" in made["notes"][0]
    insisted = cli.refuse(*arguments(workspace_id, file, *DE, "--map", "country=Land"))
    assert "'Bayern' is not a known country" in insisted


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)], ids=["import", "dry run"])
def test_where_the_phone_column_is_empty_the_next_one_is_read(
    cli: Cli, workspace_id: str, csv_file: Write, dry_run: tuple[str, ...]
) -> None:
    """Empty is a cell without a digit; the summary counts by column. A number that is wrong is not replaced."""
    file = csv_file(
        "Handy,Telefon,Number,Name\n"
        "0151 23456701,030 1234561,,Ann\n"
        ",030 1234562,,Ben\n"
        "-,0151 23456703,,Cem\n"
        "0151,030 1234564,,Dan\n"
        ",,030 1234565,Eve\n"
        "n/a,030,,Fay\n"
    )
    made = cli.ask(*arguments(workspace_id, file, *DE, *dry_run))
    assert made["other_columns"] == [{"column": "Telefon", "count": 2, "row": 3}]
    assert [one["phone"] for one in made["numbers"]["first"]] == ["+4915123456701", "+49301234562", "+4915123456703"]
    assert [(bad["row"], bad["column"]) for bad in made["rejected"]] == [(5, "Handy"), (6, "Handy"), (7, "Telefon")]
    shown = {one["column"]: one["first"] for one in made["mapping"]}
    assert shown["Handy"] == ["0151 23456701 → +4915123456701", "", "-"]
    assert shown["Telefon"] == ["030 1234561", "030 1234562 → +49301234562", "0151 23456703 → +4915123456703"]
    told = cli.run(*arguments(workspace_id, file, *DE, *dry_run)).output
    assert "2 numbers are from 'Telefon', as 'Handy' is empty there (row 3)." in told
    alone = cli.ask(*arguments(workspace_id, file, *DE, *dry_run, "--map", "phone=Handy"))
    assert (alone["numbers"]["count"], alone["other_columns"]) == (1, [])


def test_start_and_resume_show_the_warnings(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """In words, and in JSON: here of a sending number that the sandbox does not have."""
    file = csv_file("phone\n+14155550101\n")
    told = []
    for as_json in (True, False):
        campaign = cli.ask(*arguments(workspace_id, file), "--from", "+14155550199", "--carrier", "twilio")["id"]
        for move in ("start", "resume"):
            if as_json:
                [warning] = cli.ask("campaigns", move, campaign)["warnings"]
                told.append(warning)
            else:
                told.append(cli.run("campaigns", move, campaign).stderr)
            cli.run("campaigns", "pause", campaign)
    assert ["Its sending number +14155550199 is not a number of the workspace" in one for one in told] == [True] * 4
    assert all("Warning: Its sending" in one for one in told[2:])


def test_a_text_over_the_cap_for_everybody_is_refused_at_once(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Nothing is created; a text that suits somebody is loaded."""
    file = csv_file("phone,note\n+14155550101,\n+14155550102," + "x" * 600 + "\n")
    refused = cli.refuse(*arguments(workspace_id, file, message="x" * 1600))
    assert "cannot be sent to any contact (11 segments, of at most 5)" in refused
    assert "--max-segments" in refused
    assert cli.ask("campaigns", "list", workspace_id) == []
    assert cli.ask(*arguments(workspace_id, file, message="{{note}}" + "x" * 400))["total_recipients"] == 2
    tall = csv_file("phone,note\n" + "".join(f"+1415555{n:04d},{'x' * 600}\n" for n in range(1200)) + "+14155559999,\n")
    assert cli.ask(*arguments(workspace_id, tall, message="{{note}}" + "x" * 400))["total_recipients"] == 1201


def test_a_dry_run_ends_with_the_refusal_of_the_import(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Its preview is shown before; a draft and a text that suits somebody are accepted."""
    file = csv_file("phone,note\n+14155550101,\n+14155550102," + "x" * 600 + "\n")
    tall = arguments(workspace_id, file, "--dry-run", message="x" * 1600)
    real = cli.refuse(*arguments(workspace_id, file, message="x" * 1600))
    for more in ((), ("--json",), ("--contact", "+14155550102")):
        refused = cli.run(*tall, *more)
        assert refused.exit_code == 1
        assert refused.stderr.endswith(real.splitlines()[-1] + "\n")
        assert "would be loaded" not in refused.stderr
        assert "over_segment_cap" in refused.stdout
    for message in ("", "{{note}}" + "x" * 400):
        told = cli.tell(*arguments(workspace_id, file, "--dry-run", message=message))
        assert "Of 2 rows 2 would be loaded" in told


def test_a_text_that_is_empty_for_everybody_is_refused_at_once(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """As it would be at the start."""
    cli.ask("settings", "set", workspace_id, "--no-footer")
    file = csv_file("phone,note\n+14155550101,\n")
    assert "it is empty for each of them" in cli.refuse(*arguments(workspace_id, file, message="{{note}}"))


def test_an_export_or_a_report_under_a_foreign_ending_is_refused(
    cli: Cli, workspace_id: str, csv_file: Write, tmp_path: Path
) -> None:
    """A PDF reader would call a CSV file damaged; --format insists."""
    made = cli.ask(*arguments(workspace_id, csv_file("phone\n+14155550101\n")))["id"]
    target = tmp_path / "x.pdf"
    for command, known in (("export", ".csv, .jsonl, .ndjson, .xlsx"), ("report", ".html, .htm, .json, .txt")):
        for more in ((), ("--json",)):
            refused = cli.refuse("campaigns", command, made, "--output", str(target), *more, code=2)
            assert f"A file named .pdf cannot be written. Name --output with one of {known}" in refused
        assert not target.exists()
    cli.tell("campaigns", "export", made, "--output", str(target), "--format", "csv")
    assert target.read_bytes().startswith(b"\xef\xbb\xbf") or b"phone" in target.read_bytes()


def test_a_purge_of_a_number_that_is_not_there_fails(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """A mistyped number must not look like an erased person; one on the register alone, or who wrote, is erased."""
    cli.ask(*arguments(workspace_id, csv_file("phone\n+14155550101\n")))
    assert "nothing was erased" in cli.refuse("purge", workspace_id, "+14155550102", "--yes")
    cli.ask("unsubscribes", "add", workspace_id, "+14155550103")
    assert cli.ask("purge", workspace_id, "+14155550103", "--yes")["still_opted_out"] is True
    written = make_inbound(workspace_id=workspace_id, from_number="+14155550104")
    write(cli, lambda tx: tx.inbound.insert(written))
    assert "1 reply" in cli.tell("purge", workspace_id, "+14155550104", "--yes")
