"""Imports of several files, and whom imports, clones and follow-ups leave out."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_explained import campaign_id

__all__ = ["campaign_id"]

Write = Callable[..., str]
"""Writes a list into a file of a name, and returns its path."""

TEXT = ("--message", "Hi", "--from", "+14155550100")


@pytest.fixture
def list_file(tmp_path: Path) -> Write:
    """Return a function that writes a list."""

    def write(content: str, *, name: str = "list.csv") -> str:
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write


def lines(*numbers: int, header: str = "phone") -> str:
    """Return a list of numbers."""
    return "\n".join([header, *(f"+1415555{number:04}" for number in numbers)]) + "\n"


def imported(cli: Cli, workspace_id: str, *files: str, name: str = "New", more: tuple[str, ...] = ()) -> Any:
    """Import a campaign and return the answer."""
    return cli.ask("campaigns", "import", workspace_id, *files, "--name", name, *TEXT, *more)


def people(document: Any) -> dict[str, tuple[int, bool]]:
    """Return the people of each campaign, and whether they are left out."""
    return {one["name"]: (one["people"], one["left_out"]) for one in document["audience"]["campaigns"]}


def test_several_files_are_one_list(cli: Cli, workspace_id: str, list_file: Write) -> None:
    """A number of one file that is in an earlier one is contacted once; every file tells what it was read as."""
    first = list_file("phone,first_name\n+14155550101,Ann\n+14155550102,Ben\nnone,Carl\n", name="first.csv")
    second = list_file("Name,Mobile\nDora,+14155550103\nBen,+1 415 555 0102\n", name="second.csv")
    made = imported(cli, workspace_id, first, second)
    assert (made["rows"], made["total_recipients"], made["duplicates"], made["rejected_count"]) == (5, 4, 1, 1)
    assert made["csv_column_headers"] == ["phone", "first_name", "Name", "Mobile"]
    assert [(one["file"], one["rows"], one["rejected_count"]) for one in made["files"]] == [
        (first, 3, 1),
        (second, 2, 0),
    ]
    assert [one["is"] for one in made["files"][1]["mapping"]] != [one["is"] for one in made["files"][0]["mapping"]]
    assert [(one["file"], one["row"]) for one in made["rejected"]] == [(first, 4)]
    told = cli.tell("campaigns", "import", workspace_id, first, second, "--name", "C", *TEXT)
    assert f"{second}: 2 rows, 2 read" in told
    assert f"{first}, row 4" in told


def test_rejected_rows_of_several_files_name_theirs(
    cli: Cli, workspace_id: str, list_file: Write, tmp_path: Path
) -> None:
    """In one file, for which all need the same columns."""
    first, second = (list_file(f"phone,n\n+1415555010{n},a\nbad,{n}\n", name=f"{n}.csv") for n in (1, 2))
    rejects = tmp_path / "bad.csv"
    imported(cli, workspace_id, first, second, more=("--rejects", str(rejects)))
    rows = list(csv.reader(rejects.read_text().splitlines()))
    assert rows[0] == ["file", "row", "column", "message", "phone", "n"]
    assert [(row[0], row[1], *row[4:]) for row in rows[1:]] == [(first, "3", "bad", "1"), (second, "3", "bad", "2")]
    other = list_file(lines(1, header="mobile"), name="other.csv")
    args = ("campaigns", "import", workspace_id, first, other, "--name", "C", *TEXT, "--rejects", str(rejects))
    assert "same columns" in cli.refuse(*args, code=2)


def test_an_import_leaves_out_contacts_of_other_campaigns(cli: Cli, workspace_id: str, list_file: Write) -> None:
    """And says how many of the list are where: of those named, and of the newest."""
    old = imported(cli, workspace_id, list_file(lines(*range(20)), name="old.csv"), name="Old")
    imported(cli, workspace_id, list_file(lines(30, 31), name="newer.csv"), name="Newer")
    files = (list_file(lines(*range(10, 31)), name="a.csv"), list_file(lines(10, 32), name="b.csv"))
    more = ("--leave-out-campaign", old["id"])
    args = ("campaigns", "import", workspace_id, *files, "--name", "New", *TEXT, *more)
    planned = cli.ask(*args, "--dry-run")
    assert people(planned) == {"Old": (10, True), "Newer": (1, False)}
    assert {one["rule"]: one["count"] for one in planned["left_out"]} == {"in_other_campaign": 11}
    told = cli.tell(*args, "--dry-run")
    assert f"10 of these are in 'Old' ({old['id']}), left out." in told
    assert "1 of these is in 'Newer'" in told
    assert "Of 23 rows 12 would be loaded; 11 would be left out. Nothing was created." in told
    made = imported(cli, workspace_id, *files, more=more)
    assert made["audience"] == planned["audience"]
    assert (made["total_recipients"], made["audience"]["left_out"]) == (12, 11)
    told = cli.tell("campaigns", "import", workspace_id, files[1], "--name", "Again", *TEXT)
    assert "2 of these are in 'New'" not in told
    assert "1 of these is in 'New'" in told
    assert "every contact" in cli.refuse(
        *("campaigns", "import", workspace_id, files[0], "--name", "X", *TEXT, *more, "--leave-out-campaign"),
        made["id"],
    )


def test_who_was_contacted_lately_is_left_out(cli: Cli, workspace_id: str, campaign_id: str, list_file: Write) -> None:
    """A clone leaves out whom a request of the campaign went to; a follow-up is told whom it leaves out too."""
    cli.run("campaigns", "clone", campaign_id)
    numbers = [one["phone"] for one in cli.ask("campaigns", "recipients", campaign_id)]
    other = list_file("phone\n+14155550999\n" + "\n".join(numbers) + "\n", name="again.csv")
    made = imported(cli, workspace_id, other, more=("--leave-out-days", "3650"))
    assert (made["audience"]["contacted"], made["total_recipients"]) == (1, len(numbers))
    told = cli.tell("campaigns", "import", workspace_id, other, "--name", "C", *TEXT, "--leave-out-days", "3650")
    assert "1 of these was contacted within 3,650 days, left out." in told
    assert cli.ask("campaigns", "clone", campaign_id, "--leave-out-days", "3650")["audience"]["left_out"] == 1
    follow_up = ("campaigns", "follow-up", campaign_id, "--results", "failed")
    assert "every contact" in cli.refuse(*follow_up, "--leave-out-days", "3650")
    followed = cli.ask(*follow_up)
    assert followed["audience"]["left_out"] == 0
    assert (1, False) in people(followed).values()


def test_an_unknown_campaign_to_leave_out_is_named(cli: Cli, workspace_id: str, list_file: Write) -> None:
    """And nothing is created."""
    unknown = "0195554e-0000-7000-8000-00000000dead"
    args = ("campaigns", "import", workspace_id, list_file(lines(1)), "--name", "C", *TEXT)
    assert "no such campaign" in cli.refuse(*args, "--leave-out-campaign", unknown)
    assert cli.ask("campaigns", "list", workspace_id) == []
