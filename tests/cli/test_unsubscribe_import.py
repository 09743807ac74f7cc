"""`unsubscribes import` and `undo`: which column is read, and what is shown, refused and taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Write

ANN, BEN = "+14155550101", "+14155550102"
OWN = "+14155550100"


def registered(cli: Cli, workspace_id: str) -> list[str]:
    """Return the numbers on the register."""
    return [entry["phone"] for entry in cli.ask("unsubscribes", "list", workspace_id)]


def load(cli: Cli, workspace_id: str, file: str, *more: str) -> Any:
    """Import a list and return the answer."""
    return cli.ask("unsubscribes", "import", workspace_id, file, *more)


@pytest.mark.parametrize(
    "content",
    [
        f"customer_id,customer_phone\n4155550199,{ANN}\n4155550198,{BEN}\n",
        f"Mobile;Kunde\n{ANN};4155550199\n{BEN};4155550198\n",
        f"{ANN}\n{BEN}\n",
        f"\n{ANN},Ann\n{BEN},Ben\n",
        f"Ann,,{ANN}\nBen,,{BEN}\n",
        f"{ANN};STOP;2026-01-01\n{BEN};STOP;2026-01-02\n",
        f"01/02/26,{ANN}\n02.01.2026,{BEN}\n",
    ],
    ids=["customer", "before an id", "bare", "bare with names", "behind names", "before a date", "behind a date"],
)
def test_the_column_of_the_numbers_is_found(cli: Cli, workspace_id: str, csv_file: Write, content: str) -> None:
    """By its name, or in a list without a header by its number; never a column of ids."""
    load(cli, workspace_id, csv_file(content), "--region", "US")
    assert registered(cli, workspace_id) == [ANN, BEN]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f"Account,Opt-out number\n4155550199,{ANN}\n", "The columns are: 'Account', 'Opt-out number'."),
        (f"From,To,Error\n{OWN},{ANN},30003\n", "The columns are: 'From', 'To', 'Error'."),
        (f"customer_number\n{ANN}\n", "The columns are: 'customer_number'."),
        (f"4155550199,Ann,{ANN}\n", "columns 1 and 3 look like phone numbers"),
        (f"2026-01-01,4155550199,{ANN}\n", "Say which one it is: --map phone=2"),
        ("customer,ref\nAnn,\n", "The columns are: 'customer', 'ref'."),
    ],
)
def test_a_list_without_a_known_phone_column_is_refused(
    cli: Cli, workspace_id: str, csv_file: Write, content: str, problem: str
) -> None:
    """It names the columns and the option that chooses one, and writes nothing."""
    refused = cli.refuse("unsubscribes", "import", workspace_id, csv_file(content))
    assert problem in refused
    assert "--map phone=" in refused
    assert registered(cli, workspace_id) == []


def test_map_names_the_phone_column(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """By name or by number, with a header and without one; other fields have no meaning here."""
    named = csv_file(f"Account,Opt-out number\n4155550199,{ANN}\n")
    assert load(cli, workspace_id, named, "--map", "phone=opt-out number")["column"] == "'Opt-out number' (column 2)"
    assert load(cli, workspace_id, named, "--map", "phone=2")["rows"] == 1
    bare = csv_file(f"4155550199,Ann,{BEN}\n4155550198,Cleo,bad\n")
    assert load(cli, workspace_id, bare, "--map", "phone=3")["rows"] == 2
    assert registered(cli, workspace_id) == [ANN, BEN]
    for wrong in ("first_name=1", "phone="):
        cli.refuse("unsubscribes", "import", workspace_id, named, "--map", wrong, code=2)
    assert "no column 'Handy'" in cli.refuse("unsubscribes", "import", workspace_id, named, "--map", "phone=Handy")


@pytest.mark.parametrize("header", ["Nr.,Home phone,Cell", "Nr.,Phone,Phone"], ids=["two names", "one name twice"])
def test_every_phone_column_is_read(cli: Cli, workspace_id: str, csv_file: Write, header: str) -> None:
    """A blank cell is no reject beside a number, a number that stands twice in a row counts once, and it is said."""
    home = "+14155550103"
    file = csv_file(f"{header}\n1,{home},{ANN}\n2,,{BEN}\n3,12,+14155550104\n4,(415) 555-0105,+14155550105\n5,,\n")
    _, first, second = header.split(",")
    found = load(cli, workspace_id, file, "--region", "US", "--dry-run")
    assert (found["rows"], found["would_add"]) == (5, 5)
    assert found["column"] == f"'{first}' (column 2) and '{second}' (column 3)"
    assert [(bad["row"], bad["column"]) for bad in found["rejected"]] == [(4, first), (6, None)]
    told = cli.tell("unsubscribes", "import", workspace_id, file, "--region", "US")
    assert f"the numbers are in {found['column']}." in told
    assert "2 cells are not numbers to unsubscribe" in told
    assert f"Every phone column is read, '{first}' and '{second}': --map phone=COLUMN reads one alone." in told
    assert registered(cli, workspace_id) == [ANN, BEN, home, "+14155550104", "+14155550105"]
    evidence = [entry["evidence"].partition(", ")[2] for entry in cli.ask("unsubscribes", "list", workspace_id)]
    assert evidence == ["row 2", "row 3", "row 2", "row 4", "row 5"]


def test_map_reads_one_of_several_phone_columns(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """The blank cells of that column are rejected then, and nothing is said of one that is the only one."""
    file = csv_file(f"phone,mobile\n{ANN},+14155550103\n,{BEN}\n")
    done = load(cli, workspace_id, file, "--map", "phone=phone")
    assert (done["column"], done["added"], done["rejected_count"], done["notes"]) == ("'phone' (column 1)", 1, 1, [])
    assert load(cli, workspace_id, csv_file(f"mobile\n{ANN}\n"))["notes"] == []
    assert registered(cli, workspace_id) == [ANN]


def test_own_numbers_are_refused_in_every_phone_column(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """The person's number beside it is read."""
    done = load(cli, workspace_id, csv_file(f"phone,mobile\n{OWN},{ANN}\n{OWN},{OWN}\n"))
    assert done["number_warnings"][0].startswith("2 rows hold a number of this workspace itself")
    assert registered(cli, workspace_id) == [ANN]


def test_a_first_row_that_lost_digits_is_a_row_and_no_header(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """It is reported, so that its person is not lost."""
    done = load(cli, workspace_id, csv_file(f"12345\n{ANN}\n"))
    assert (done["added"], [bad["row"] for bad in done["rejected"]]) == (1, [1])


def test_a_header_is_found_below_a_title(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """As in a list of contacts."""
    done = load(cli, workspace_id, csv_file(f"Opt-outs of May,\n,\nAccount,Phone\n4155550199,{ANN}\n"))
    assert (done["column"], done["rows"]) == ("'Phone' (column 2)", 1)
    assert "Row 3 looks like the header. Row 1 above it is not read." in done["notes"]
    done = load(cli, workspace_id, csv_file(f"Opt-outs,\nStand: 27.11.2026,\nAccount,Phone\n4155550199,{ANN}\n"))
    assert (done["column"], done["rows"]) == ("'Phone' (column 2)", 1)
    assert registered(cli, workspace_id) == [ANN]


def test_a_dry_run_shows_what_would_be_stored_and_writes_nothing(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """The numbers in E.164, by country and kind, and what was corrected."""
    file = csv_file("Telefon,Land\n015123456701,Deutschland\n0301234567,DE\n2 01555 0123,+1\n,DE\n")
    found = load(cli, workspace_id, file, "--dry-run")
    assert (found["dry_run"], found["would_add"], found["rejected_count"]) == (True, 3, 1)
    assert found["numbers"]["first"] == [
        {"row": 2, "cell": "015123456701", "phone": "+4915123456701", "country": "DE", "kind": "mobile"},
        {"row": 3, "cell": "0301234567", "phone": "+49301234567", "country": "DE", "kind": "landline"},
        {"row": 4, "cell": "2 01555 0123", "phone": "+12015550123", "country": "US", "kind": "unknown"},
    ]
    assert found["numbers"]["by_country"] == [
        {"country": "DE", "count": 2, "mobile": 1, "landline": 1, "unknown": 0},
        {"country": "US", "count": 1, "mobile": 0, "landline": 0, "unknown": 1},
    ]
    told = cli.tell("unsubscribes", "import", workspace_id, file, "--dry-run")
    for words in ("row 2: 015123456701 → +4915123456701", "3 numbers would be added. Nothing was written."):
        assert words in told
    assert registered(cli, workspace_id) == []


def test_an_entry_names_its_import_its_file_and_its_row(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """And the command that takes it back is shown."""
    file = csv_file(f"name,phone\nAnn,{ANN}\nBad,12\n\nBen,{BEN}\n")
    done = load(cli, workspace_id, file)
    evidence = [entry["evidence"] for entry in cli.ask("unsubscribes", "list", workspace_id)]
    assert evidence == [f"import {done['import_id']}: contacts.csv, row {row}" for row in (2, 5)]
    again = cli.run("unsubscribes", "import", workspace_id, file)
    assert "2 of them were on the register already" in again.stderr
    assert f"outreach-server unsubscribes undo {workspace_id} " in again.stderr


def test_an_import_is_undone(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Only what it added and nothing else confirms."""
    cli.ask("unsubscribes", "add", workspace_id, ANN)
    done = load(cli, workspace_id, csv_file(f"{ANN}\n{BEN}\n+14155550103\n"))
    cli.ask("unsubscribes", "add", workspace_id, BEN)
    told = cli.tell("unsubscribes", "undo", workspace_id, done["import_id"])
    assert "Removed 1 of 3 numbers" in told
    assert "The others stay" in told
    assert registered(cli, workspace_id) == [ANN, BEN]
    for unknown in (done["import_id"], "nothing"):
        assert "no number on the register of import" in cli.refuse("unsubscribes", "undo", workspace_id, unknown)


def test_the_workspaces_own_numbers_are_refused(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """A report of the carrier has its senders in the first column."""
    cli.ask("numbers", "create", workspace_id, "+525512345678")
    refused = cli.refuse("unsubscribes", "import", workspace_id, csv_file(f"phone\n{OWN}\n+5215512345678\n"))
    assert "row 3: +5215512345678 is a number of this workspace itself" in refused
    assert f"row 2: {OWN} is a number of this workspace itself" in refused
    assert "nothing was added" in refused
    file = csv_file(f"From,To,Error\n{OWN},{ANN},30003\n{BEN},{OWN},\n")
    done = load(cli, workspace_id, file, "--map", "phone=From")
    assert done["number_warnings"] == [
        "1 row holds a number of this workspace itself: 'From' (column 1) may be the wrong column."
    ]
    assert registered(cli, workspace_id) == [BEN]


def test_a_correction_of_much_of_a_list_stands_first(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """For people and for programs."""
    file = csv_file("phone\n4915123456701\n4915123456702\n+4915123456703\n")
    told = cli.run("unsubscribes", "import", workspace_id, file, "--region", "DE", "--dry-run")
    assert told.stderr.startswith("Look at this first: 2 of 3 numbers (66 %) were corrected in the same way: ")
    assert "(row 2: 4915123456701 → +4915123456701)" in told.stderr.splitlines()[0]
    found = load(cli, workspace_id, file, "--region", "DE", "--dry-run")
    assert next(iter(found)) == "number_warnings"
    assert [(one["what"], one["count"]) for one in found["corrected"]] == [("calling_code", 2)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"phone\n", "has a header and no rows"),
        (b"phone\nbad\n", "nothing was added"),
        (b"phone\n" + b"+14155550101\n" * 2000 + b"Zo\x81\n", "is not utf-8 at byte"),
    ],
    ids=["header", "no number", "encoding far down"],
)
def test_a_list_that_cannot_be_read_adds_nothing(
    cli: Cli, workspace_id: str, csv_file: Write, content: bytes, problem: str
) -> None:
    """Also when that shows only after thousands of rows."""
    assert problem in cli.refuse("unsubscribes", "import", workspace_id, csv_file(content))
    assert registered(cli, workspace_id) == []


def test_the_name_of_a_file_may_be_in_any_encoding(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """It is evidence, and stored as text."""
    path = Path(csv_file(f"{ANN}\n"))
    renamed = path.rename(path.with_name("l\udce9gal.csv"))
    load(cli, workspace_id, str(renamed))
    [entry] = cli.ask("unsubscribes", "list", workspace_id)
    assert entry["evidence"].endswith(": l?gal.csv, row 1")
