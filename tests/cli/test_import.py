from __future__ import annotations

import csv
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from outreach import Outreach
from outreach.core.clock import SystemClock
from outreach.insight.status import StatusQuery
from outreach.models.work import Lease, WorkerLease
from tests.cli.conftest import Cli, Write


def load(cli: Cli, workspace_id: str, file: str, *more: str, stdin: bytes | None = None) -> Any:
    """Import a campaign and return the answer."""
    return cli.ask("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi", *more, stdin=stdin)


def test_a_file_becomes_a_campaign(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Headers are kept in order, fields go to their places, other columns are variables, and the carrier is known."""
    file = csv_file("Mobile,First Name,Plan,Email\n+1 415 555 0101,Ann,pro,a@example.com\n+14155550102,,,\n")
    made = load(cli, workspace_id, file, "--from", "+1 415-555-0100", "--rate", "7", "--description", "D")
    assert made["status"] == "ready"
    assert made["sms_carrier"] == "twilio"
    assert made["sms_rate_per_minute"] == 7
    assert made["description"] == "D"
    assert made["csv_column_headers"] == ["Mobile", "First Name", "Plan", "Email"]
    assert (made["rows"], made["total_recipients"], made["rejected"]) == (2, 2, [])
    ann, nobody = cli.ask("campaigns", "recipients", made["id"])
    assert (ann["position"], ann["phone_number"], ann["phone"]) == (0, "+1 415 555 0101", "+14155550101")
    assert (ann["status"], ann["reason"]) == ("pending", None)
    assert (ann["first_name"], ann["email"], ann["custom_variables"]) == ("Ann", "a@example.com", {"Plan": "pro"})
    assert (nobody["first_name"], nobody["custom_variables"]) == (None, {})


def test_an_import_prints_how_it_read_the_columns(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """It prints the next command too."""
    file = csv_file("phone,note,note\n+14155550101,a,b\n")
    args = ("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi", "--from", "+14155550100")
    told = cli.tell(*args)
    assert "its variable is 'note_2'" in told
    assert "Start it with: outreach-server campaigns start " in told


@pytest.mark.field(17)
def test_one_bad_row_in_ten_thousand_is_named_and_the_others_are_loaded(
    cli: Cli, workspace_id: str, csv_file: Write
) -> None:
    """Field, test 17 (GSA #1526, piipan #446: all or nothing, unnamed): 9,999 accepted, and the row that is bad."""
    rows = [f"+1415{n:07d}" for n in range(2_000_000, 2_010_000)]
    rows[6_542] = "not a number"
    made = load(cli, workspace_id, csv_file("phone\n" + "\n".join(rows) + "\n"))
    assert made["total_recipients"] == 9_999
    assert [(bad["row"], bad["column"]) for bad in made["rejected"]] == [(6_544, "phone")]
    assert "not a number" in str(made["rejected"])


def test_the_file_of_bad_rows_is_private_and_never_the_list(
    cli: Cli, workspace_id: str, csv_file: Write, tmp_path: Path
) -> None:
    """Nor is an earlier one emptied by a command that reads no row."""
    file = csv_file("phone,name\n+14155550101,Ann\n12,Bob\n")
    args = ("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi")
    assert "is the list itself" in cli.refuse(*args, "--rejects", file, code=2)
    assert Path(file).read_text("utf-8").count("\n") == 3
    rejects = tmp_path / "rejects.csv"
    cli.ask(*args, "--rejects", str(rejects))
    written = rejects.read_text("utf-8")
    assert ("12" in written, rejects.stat().st_mode & 0o777) == (True, 0o600)
    assert cli.run(*args, "--map", "phone=Nope", "--rejects", str(rejects)).exit_code
    assert rejects.read_text("utf-8") == written


@pytest.mark.field(17)
def test_what_is_wrong_is_named_row_by_row_and_the_rest_is_loaded(
    cli: Cli, workspace_id: str, csv_file: Write, tmp_path: Path
) -> None:
    """Field, test 17 (GSA #1526): rows are numbered as in the file, and --rejects writes them all with their cells."""
    file = csv_file(
        "phone,name\n"
        "+14155550101,Ann\n"
        ",Nobody\n"
        "\n"
        "12,Short number\n"
        '+14155550102,"Two\nlines"\n'
        "+14155550103,too,many\n"
        "+14155550104,spare,,\n"
        '+14155550105,"open\n'
        "+14155550106\n"
        "+1415555\x000107,NUL\n"
        "+14155550108," + "x" * 5000 + "\n"
        "+14155550101,Ann again\n"
    )
    rejects = tmp_path / "rejects.csv"
    made = load(cli, workspace_id, file, "--rejects", str(rejects))
    assert [(bad["row"], bad["line"], bad["column"]) for bad in made["rejected"]] == [
        (3, 3, "phone"),
        (5, 5, "phone"),
        (7, 8, None),
        (9, 10, None),
        (11, 12, "phone"),
        (12, 13, "name"),
    ]
    messages = " ".join(bad["message"] for bad in made["rejected"])
    for words in (
        "no phone number",
        "'12' is not a possible number",
        "3 cells, the header names 2",
        "is never closed",
        "NUL",
        "5000",
    ):
        assert words in messages
    assert (made["rows"], made["rejected_count"], made["total_recipients"], made["duplicates"]) == (11, 6, 5, 1)
    written = list(csv.DictReader(rejects.read_text("utf-8").splitlines()))
    assert [row["row"] for row in written] == ["3", "5", "7", "9", "11", "12"]
    assert (written[0]["name"], written[1]["phone"]) == ("Nobody", "12")
    phones = [each["phone"] for each in cli.ask("campaigns", "recipients", made["id"])]
    assert phones == ["+14155550101", "+14155550102", "+14155550104", "+14155550106", "+14155550101"]


def test_an_import_prints_the_first_bad_rows_and_where_the_others_are(
    cli: Cli, workspace_id: str, csv_file: Write, tmp_path: Path
) -> None:
    """A terminal is not flooded."""
    file = csv_file("phone\n+14155550101\n" + "bad\n" * 25)
    args = ("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi")
    told = cli.tell(*args)
    assert "row 3, column phone: 'bad' is not a phone number" in told
    assert "row 22," in told
    assert "row 23," not in told
    assert "… and 5 more; --rejects FILE.csv writes all of them" in told
    assert "cannot start:" in told
    rejects = tmp_path / "rejects.csv"
    assert f"all are in {rejects}" in cli.tell(*args, "--rejects", str(rejects))


def test_a_file_without_a_good_row_creates_nothing(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """It is a failure that names the rows."""
    args = ("campaigns", "import", workspace_id, csv_file("phone\nbad\n\nworse\n"), "--name", "C", "--message", "Hi")
    for more in ((), ("--json",)):
        told = cli.refuse(*args, *more)
        assert "row 4, column phone: 'worse'" in told
        assert "None of the 2 rows can be loaded." in told
    assert cli.ask("campaigns", "list", workspace_id) == []


def test_those_who_opted_out_are_left_out(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """They are counted, and when nobody else is left nothing is created."""
    cli.ask("unsubscribes", "add", workspace_id, "+14155550101")
    made = load(cli, workspace_id, csv_file("phone\n+14155550101\n+14155550102\n"))
    assert (made["sms_opted_out_excluded"], made["total_recipients"]) == (1, 1)
    args = ("campaigns", "import", workspace_id, csv_file("phone\n+14155550101\n"), "--name", "C", "--message", "Hi")
    assert "unsubscribe register" in cli.refuse(*args)
    assert len(cli.ask("campaigns", "list", workspace_id)) == 1


@pytest.mark.parametrize(
    ("content", "more"),
    [
        ("\ufeffphone,name\n+14155550101,Zoë\n".encode(), ()),
        ("phone;name\r\n+14155550101;Zoë\r\n".encode("cp1252"), ("--encoding", "cp1252")),
        ("phone;name\r\n+14155550101;Zoë\r\n".encode("cp1252"), ()),
        ("sep=;\r\nphone;name\r\n+14155550101;Zoë\r\n".encode("utf-16-le"), ()),
        ("phone\tname\r\n+14155550101\tZoë\r\n".encode("utf-16"), ()),
        ("phone\tname\n+14155550101\tZoë\n".encode("utf-16-be"), ("--encoding", "utf-16-be", "--delimiter", "tab")),
        ("\n\nphone#name\n+14155550101#Zoë\n".encode(), ("--delimiter", "#")),
        ("Whom,name\r+14155550101,Zoë".encode(), ("--map", "phone=whom")),
    ],
    ids=["bom", "cp1252 named", "cp1252", "utf-16-le", "utf-16", "utf-16-be", "delimiter", "old mac"],
)
def test_files_of_all_sorts_are_read(
    cli: Cli, workspace_id: str, csv_file: Write, content: bytes, more: tuple[str, ...]
) -> None:
    """What a spreadsheet writes is loaded."""
    made = load(cli, workspace_id, csv_file(content), *more)
    (zoe,) = cli.ask("campaigns", "recipients", made["id"])
    assert (zoe["phone"], zoe["custom_variables"]) == ("+14155550101", {"name": "Zoë"})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b'"phone\n', "header"),
        (b"name\nAnn\n", "No column is the phone number"),
        (b"phone\n+14155550101\nZo\x81\n", "is not utf-8 at byte 21 (line 3)"),
        (b"phone\n" + b"+14155550101\n" * 20_000 + b"\x81\n", "is not utf-8 at byte 260006 (line 20002)"),
        (b"PK\x03\x04 nothing", "is damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512, "an old or encrypted Excel file"),
        (b"%PDF-1.7 ...", "is a PDF file"),
        (b"phone,name\n\n", "has a header and no rows"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", "is a photo, not a list. Save the list as .xlsx or CSV."),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "is a picture, not a list"),
        (b"\x00\x00\x00\x18ftypheic", "is a photo or a film, not a list"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "is a picture, not a list"),
        (b"\x1f\x8b\x08\x00", "is a compressed file, not a list"),
        (b"\x7fELF\x02\x01\x01", "is a binary file, not a list"),
    ],
    ids=[
        *("empty", "blank", "quote", "no phone", "encoding", "encoding far down", "zip", "xls", "pdf", "no rows"),
        *("jpeg", "png", "heic", "webp", "gzip", "program"),
    ],
)
def test_a_file_that_cannot_be_read_creates_nothing(
    cli: Cli, workspace_id: str, csv_file: Write, content: bytes, problem: str
) -> None:
    """Also when that shows only after thousands of rows."""
    args = ("campaigns", "import", workspace_id, csv_file(content), "--name", "C", "--message", "Hi")
    assert problem in cli.refuse(*args)
    assert cli.ask("campaigns", "list", workspace_id) == []


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--carrier", "pigeon"), "--carrier"),
        (("--map", "phone"), "is not FIELD=COLUMN"),
        (("--map", "email=a", "--map", "email=b"), "names a field twice"),
        (("--encoding", "klingon"), "not a text encoding"),
        (("--encoding", "hex"), "not a text encoding"),
        (("--delimiter", "::"), "--delimiter"),
        (("--schedule-at", "2999-01-02T00:00", "--expires-at", "2999-01-01T00:00Z"), "must come after"),
    ],
)
def test_values_out_of_their_bounds_are_wrong_usage(
    cli: Cli, workspace_id: str, csv_file: Write, more: tuple[str, ...], problem: str
) -> None:
    """They are told before the file is read."""
    args = ("campaigns", "import", workspace_id, csv_file(""), "--name", "C", "--message", "Hi", *more)
    assert problem in cli.refuse(*args, code=2)


def test_all_campaigns_are_listed_beyond_one_page(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Newest first; --search and --limit narrow it."""
    file = csv_file("phone\n+14155550101\n")
    for number in range(102):
        cli.ask("campaigns", "import", workspace_id, file, "--name", f"C{number}", "--message", "Hi")
    names = [each["name"] for each in cli.ask("campaigns", "list", workspace_id)]
    assert names == [f"C{number}" for number in reversed(range(102))]
    assert [each["name"] for each in cli.ask("campaigns", "list", workspace_id, "--limit", "2")] == ["C101", "C100"]
    assert [each["name"] for each in cli.ask("campaigns", "list", workspace_id, "--search", "c77")] == ["C77"]
    assert cli.ask("campaigns", "list", workspace_id, "--status", "active") == []


def test_a_move_that_the_state_does_not_allow_is_refused(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """The message names the moves that are allowed, all of them commands."""
    made = load(cli, workspace_id, csv_file("phone\n+14155550101\n"))
    told = cli.refuse("campaigns", "pause", made["id"], "--json")
    assert told.startswith("Error: A campaign that is draft cannot pause. Moves allowed from here: cancel.")


def test_commands_print_what_comes_next(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """When a scheduled campaign starts, and that there is nobody to list."""
    times = ("--schedule-at", "2999-01-01T09:00", "--from", "+14155550100")
    made = load(cli, workspace_id, csv_file("phone\n+14155550101\n"), *times)
    assert "starts it at 2999-01-01 09:00:00 UTC, in " in cli.tell("campaigns", "start", made["id"])
    assert "is ready" in cli.tell("campaigns", "unschedule", made["id"])
    assert "No recipients match." in cli.tell("campaigns", "recipients", made["id"], "--status", "failed")
    assert "No campaigns match." in cli.tell("campaigns", "list", workspace_id, "--status", "draft")
    assert "Paused 0 campaigns." in cli.tell("stop")


def test_a_missing_dispatcher_is_reported(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """By `show`, with what to do; not while the heartbeat is fresh, and not of what is not started."""
    args = ("campaigns", "import", workspace_id, csv_file("phone\n+14155550101\n"), "--name", "C", "--message", "Hi")
    campaign_id = cli.ask(*args, "--from", "+14155550100")["id"]
    assert cli.ask("campaigns", "show", campaign_id)["blockers"] == []
    cli.ask("campaigns", "start", campaign_id)
    shown = cli.ask("campaigns", "show", campaign_id)
    assert (shown["blocked_by"], shown["blocked_until"]) == ("no_dispatcher", None)
    assert [one["by"] for one in shown["blockers"]] == ["no_dispatcher"]
    told = cli.tell("campaigns", "show", campaign_id)
    assert "No process sends from this database" in told
    assert "outreach-server serve" in told
    dispatched_at(cli, SystemClock().now())
    assert cli.ask("campaigns", "show", campaign_id)["blockers"] == []
    dispatched_at(cli, SystemClock().now() - timedelta(minutes=1))
    assert cli.ask("campaigns", "show", campaign_id)["blocked_by"] == "no_dispatcher"


def test_campaigns_of_messages_count_recipients(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """The fields of the interface and of JSON are named after calls; the text for people says recipients."""
    load(cli, workspace_id, csv_file("phone\n+14155550101\n"))
    made = load(cli, workspace_id, csv_file("phone\n+14155550101\n"))
    for told in (cli.tell("campaigns", "list", workspace_id), cli.tell("campaigns", "show", made["id"])):
        assert "recipients" in told
        assert "calls" not in told
    assert cli.ask("campaigns", "list", workspace_id)[0]["pending_calls"] == 1


def dispatched_at(cli: Cli, moment: datetime) -> None:
    """Have a process dispatch from the database at a moment."""

    async def write() -> None:
        async with Outreach.open(cli.database) as engine:
            lease = Lease(epoch=1, home=None, renewed_at=moment)
            worker = WorkerLease(epoch=1, place=1, renewed_at=moment, until=moment + timedelta(seconds=15))
            await engine._storage.write(lambda tx: (tx.leases.put(lease), tx.workers.put(worker)))

    anyio.run(write)


def test_a_start_says_whether_a_process_sends(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """A user who starts or resumes a campaign does not wait for a process that is not there."""
    campaign = load(cli, workspace_id, csv_file("phone\n+14155550101\n"), "--from", "+14155550100")["id"]
    told = cli.tell("campaigns", "start", campaign)
    assert "No process sends from this database, and none ever has." in told
    assert "outreach-server serve" in told
    cli.ask("campaigns", "pause", campaign)
    dispatched_at(cli, SystemClock().now())
    told = cli.tell("campaigns", "resume", campaign)
    assert "No process" not in told
    assert f"outreach-server campaigns watch {campaign}" in told


def test_stop_pauses_what_runs(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Of one workspace, or of all."""
    file = csv_file("phone\n+14155550101\n")
    first = load(cli, workspace_id, file, "--from", "+14155550100")["id"]
    cli.ask("campaigns", "start", first)
    other = cli.ask("workspaces", "create", "Other")["id"]
    assert cli.ask("stop", other) == {"paused": []}
    paused = cli.ask("stop")["paused"]
    assert [(each["id"], each["status"], each["pause_reason"]) for each in paused] == [(first, "paused", "operator")]
    cli.ask("campaigns", "resume", first)
    assert "Paused 1 campaign." in cli.tell("stop", workspace_id)


def test_commands_that_do_not_print_the_status_do_not_query_it(
    cli: Cli, workspace_id: str, csv_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs, and users who pause or cancel, do not wait for a look at the whole workspace."""
    campaign = load(cli, workspace_id, csv_file("phone\n+14155550101\n"), "--from", "+14155550100")["id"]
    asked: list[object] = []

    async def ask(_: StatusQuery, *args: object) -> None:
        asked.append(args)
        raise AssertionError

    monkeypatch.setattr(StatusQuery, "__call__", ask)
    for move in ("start", "pause", "resume"):
        assert cli.ask("campaigns", move, campaign)["id"] == campaign
    assert f"campaigns resume {campaign}" in cli.tell("campaigns", "pause", campaign)
    assert "is cancelled" in cli.tell("campaigns", "cancel", campaign, "--yes")
    assert asked == []


SPOILED = (
    "Téléphone;Prénom;Montant\r\n"
    '"=""+14155550101""";Zoë;12,50\r\n'
    "'+14155550102;Ben;#N/A\r\n"
    "14155550103.0;Cleo;\r\n"
    "14155550104.0;Dan;\r\n"
    "1.4E+10;Eve;\r\n"
    "#REF!;Fay;\r\n"
    "+14155550107 / +14155550108;Gus;\r\n"
).encode("cp1252")


def test_what_a_spreadsheet_did_to_numbers_is_mended_or_named(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Each correction is counted with its first row; a number that cannot be known is rejected, never guessed."""
    made = load(cli, workspace_id, csv_file(SPOILED), "--region", "US")
    assert [each["phone"] for each in cli.ask("campaigns", "recipients", made["id"])] == [
        "+14155550101", "+14155550103", "+14155550104",
    ]  # fmt: skip
    assert [(one["what"], one["count"], one["row"], one["before"], one["after"]) for one in made["corrected"]] == [
        ("decimals", 2, 4, "14155550103.0", "+14155550103"),
        ("formula", 1, 2, '="+14155550101"', "+14155550101"),
    ]
    assert [(bad["row"], bad["column"]) for bad in made["rejected"]] == [
        (3, "Montant"), (6, "Téléphone"), (7, "Téléphone"), (8, "Téléphone"),
    ]  # fmt: skip
    messages = [bad["message"] for bad in made["rejected"]]
    for words, message in zip(("#N/A", "lost digits", "spreadsheet's error", "several numbers"), messages, strict=True):
        assert words in message
    assert made["read_as"] == "separated by semicolons, cp1252"
    assert "Windows-1252" in made["notes"][0]
    assert [(column["column"], column["is"]) for column in made["mapping"]] == [
        ("Téléphone", "phone_number"), ("Prénom", "first_name"), ("Montant", "{{Montant}}"),
    ]  # fmt: skip


def test_people_see_the_columns_and_first_rows_before_the_load(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """On stderr, with what is corrected in them."""
    path = Path(csv_file(SPOILED))
    contacts = path.rename(path.with_name(f"[bold] {'long ' * 30}.csv"))
    args = ("campaigns", "import", workspace_id, str(contacts), "--name", "C", "--message", "Hi", "--region", "US")
    result = cli.run(*args)
    for words in (
        f"{contacts}: separated by semicolons, cp1252\n", "row 2", "row 4", "first_name", "{{Montant}}",
        '="+14155550101" → +14155550101', "2 numbers were corrected: zeros behind the decimal point taken away",
    ):  # fmt: skip
        assert words in result.stderr
    assert result.exit_code == 0


def test_a_dry_run_reads_the_whole_file_and_creates_nothing(
    cli: Cli, workspace_id: str, csv_file: Write, tmp_path: Path
) -> None:
    """What would be loaded, corrected and rejected, for people and for programs."""
    file = csv_file(SPOILED)
    args = ("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi", "--dry-run", "--region", "US")
    rejects = tmp_path / "rejects.csv"
    found = cli.ask(*args, "--rejects", str(rejects))
    assert (found["dry_run"], found["rows"], found["rejected_count"]) == (True, 7, 4)
    assert found["mapping"][0]["first"] == [
        '="+14155550101" → +14155550101', "14155550103.0 → +14155550103", "14155550104.0 → +14155550104",
    ]  # fmt: skip
    assert len(rejects.read_text("utf-8").splitlines()) == 5
    told = cli.tell(*args)
    assert "Of 7 rows 3 would be loaded. Nothing was created." in told
    assert "row 6, column Téléphone: '1.4E+10' has lost digits" in told
    assert cli.ask("campaigns", "list", workspace_id) == []


def test_the_place_of_a_contact_comes_from_its_list(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Its time zone, ZIP code and state. A row with an unknown zone is rejected, and its column named."""
    file = csv_file(
        "Phone,Time zone,Postal code,US state\n"
        "+12125550101,America/Denver,,\n+12125550102,,33101,\n+12125550103,,,Idaho\n+12125550104,Eastern,,\n"
    )
    made = load(cli, workspace_id, file)
    assert [(bad["row"], bad["column"]) for bad in made["rejected"]] == [(5, "Time zone")]
    found = cli.ask("campaigns", "recipients", made["id"])
    assert [(one["time_zone"], one["us_place"]) for one in found] == [
        *[("America/Denver", None), (None, "331"), (None, "ID")]
    ]
    assert found[1]["custom_variables"] == {"Postal code": "33101"}
    [history] = cli.ask("campaigns", "why", made["id"], "+12125550102")
    assert (history["time_zones"], history["zone_source"]) == (["America/New_York"], "zip")
    told = cli.tell("campaigns", "why", made["id"], "+12125550102")
    assert "Contact hours go by America/New_York, by its ZIP code." in told
