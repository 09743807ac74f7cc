"""Times on the command line: read and shown by the clocks of a campaign."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.cli.conftest import Cli, Write

BERLIN = ("--timezone", "Europe/Berlin")
SUMMER, WINTER = "2097-07-01T09:00", "2097-12-01T09:00"


@pytest.fixture
def file(csv_file: Write) -> str:
    """Return a list of two contacts."""
    return csv_file("phone\n+14155550101\n+14155550102\n")


def imported(cli: Cli, workspace_id: str, file: str, *options: str) -> Any:
    """Import a campaign and return its document."""
    plain = ("--name", "C", "--message", "Hi", "--from", "+14155550100")
    return cli.ask("campaigns", "import", workspace_id, file, *plain, *options)


@pytest.mark.parametrize(
    ("written", "zone", "meant"),
    [
        (SUMMER, (), "2097-07-01T09:00:00.000000Z"),
        (SUMMER, BERLIN, "2097-07-01T07:00:00.000000Z"),
        (WINTER, BERLIN, "2097-12-01T08:00:00.000000Z"),
        (f"{WINTER}+05:30", BERLIN, "2097-12-01T03:30:00.000000Z"),
        (f"{WINTER}Z", BERLIN, "2097-12-01T09:00:00.000000Z"),
    ],
)
def test_a_time_without_an_offset_is_read_in_the_zone(
    cli: Cli, workspace_id: str, file: str, written: str, zone: tuple[str, ...], meant: str
) -> None:
    """That of --timezone, else UTC; the zone is kept, so that times are shown in it."""
    made = imported(cli, workspace_id, file, "--schedule-at", written, *zone)
    assert made["scheduled_start_at"] == meant
    name = zone[1] if zone else "UTC"
    shown = cli.tell("campaigns", "show", made["id"])
    assert re.search(rf"scheduled_start_at +2097-\d\d-01 \d\d:\d\d:00 {name}\n", shown)
    if not written[16:]:
        assert f"{written.replace('T', ' ')}:00 {name}" in shown
    assert (made["business_hours_only"], made["timezone"]) == (False, zone[1] if zone else None)


def test_a_change_reads_times_in_the_campaigns_zone(cli: Cli, workspace_id: str, file: str) -> None:
    """--timezone takes precedence; it changes no observed hours."""
    hours = ("--hours", "mon-fri 09:00-17:00", *BERLIN)
    made = imported(cli, workspace_id, file, *hours)
    changed = cli.ask("campaigns", "update", made["id"], "--expires-at", WINTER)
    assert changed["scheduled_expires_at"] == "2097-12-01T08:00:00.000000Z"
    changed = cli.ask("campaigns", "update", made["id"], "--expires-at", WINTER, "--timezone", "Asia/Tokyo")
    assert changed["scheduled_expires_at"] == "2097-12-01T00:00:00.000000Z"
    assert (changed["timezone"], changed["business_hours_only"]) == ("Europe/Berlin", True)
    plain = imported(cli, workspace_id, file)
    changed = cli.ask("campaigns", "update", plain["id"], "--expires-at", WINTER, *BERLIN)
    assert (changed["timezone"], changed["business_hours_only"]) == ("Europe/Berlin", False)
    assert "at any hour, Europe/Berlin" in cli.tell("campaigns", "show", plain["id"])


def test_times_are_shown_in_the_campaigns_zone(cli: Cli, workspace_id: str, file: str) -> None:
    """With its name, and never as UTC; programs get UTC."""
    made = imported(cli, workspace_id, file, "--hours", "daily 00:00-24:00", *BERLIN)
    commands = (
        ("campaigns", "show", made["id"]),
        ("campaigns", "why", made["id"], "+14155550101"),
        ("campaigns", "report", made["id"]),
        ("campaigns", "preflight", made["id"]),
        ("campaigns", "forecast", made["id"]),
        ("campaigns", "recipients", made["id"]),
    )
    cli.tell("campaigns", "start", made["id"])
    for command in commands:
        told = cli.tell(*command)
        assert "Europe/Berlin" in told, command
        assert not re.search(r"\d\dT\d\d:|\dZ\b|UTC", told), (command, told)
    assert cli.ask("campaigns", "show", made["id"])["started_at"].endswith("Z")
    # What belongs to no campaign is shown in UTC.
    assert re.search(r"created_at +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n", cli.tell("workspaces", "show", workspace_id))
    assert re.search(r"UTC +actor", cli.tell("audit", workspace_id))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--timezone", "Berlin"), "'Berlin' is not a time zone; did you mean Europe/Berlin?"),
        (("--timezone", "Nowhere"), "write one of the IANA database"),
        (("--hours", "mon-fri 25:00-17:00"), "'25:00' is not a time of day, from 00:00 to 24:00"),
        (("--hours", "mon-fri 9am-5pm"), "'9am' is not a time of 24 hours: it is 09:00"),
        (("--hours", "mon-fri 9-17"), "'9' has no minutes: it is 09:00"),
        (("--hours", "mon-fri 9.30-17.00"), "'9.30' is not a time of day, from 00:00 to 24:00; did you mean 09:30?"),
        (("--hours", "mo-fr 09:00-17:00"), "'mo' is not a day, such as mon or monday; did you mean mon?"),
        (
            ("--hours", "mon,wedensday 09:00-17:00"),
            "'wedensday' is not a day, such as mon or monday; did you mean wed?",
        ),
        (("--hours", "09:00-17:00"), "the days are missing"),
        (("--hours", "mon 09:00"), "'09:00' is not a time from and to"),
        (
            ("--hours", "9:00-17:00 mon-fri"),
            "the days stand before the times; did you mean 'mon-fri 09:00-17:00'?",
        ),
        (("--hours", "9am to 5pm Mo-Fr, Sonntag"), "did you mean 'mon-fri,sun 09:00-17:00'?"),
        (("--hours", "18:00-02:00 daily"), "did you mean 'daily 18:00-02:00'?"),
        (("--hours", "9:00-17:00 whenever"), "'whenever' is not a time from and to"),
        (("--hours", "mon 09:00-09:00"), "no window begins at 09:00-09:00"),
        (("--schedule-at", "9am"), "'9am' is not a time: it begins with no date; did you mean 09:00 of a day"),
        (("--schedule-at", "24.12.2097 9am"), "it begins with no date; did you mean 2097-12-24T09:00?"),
        (("--schedule-at", "5/6/2097 14:00"), "did you mean 2097-06-05T14:00 or 2097-05-06T14:00?"),
        (("--expires-at", "2097-02-03T9:00"), "'9:00' is not a time of day; did you mean 2097-02-03T09:00?"),
        (("--schedule-at", "2097-02-30T09:00"), "there is no day 2097-02-30"),
        (("--schedule-at", "2097-02-03"), "the time of day is missing"),
        (("--schedule-at", "2097-02-03T25:00"), "'25:00' is not a time of day, from 00:00 to 23:59"),
        (("--schedule-at", "2027-03-28T02:30", *BERLIN), "does not exist in Europe/Berlin: the clocks go forward"),
        (("--schedule-at", "2027-10-31T02:30", *BERLIN), "Say which: 2027-10-31T02:30+02:00 or 2027-10-31T02:30+01:00"),
        (("--holidays", "UK"), "'UK' is GB"),
        (("--holidays", "Atlantis"), "such as US"),
        (("--holidays", "DE-Bayern"), "'Bayern' is BY"),
        (("--holidays", "Germny"), "did you mean DE (Germany)?"),
        (("--holiday", "24.12.2026"), "'24.12.2026' is not a date; did you mean 2026-12-24?"),
        (("--holiday", "24/12"), "write it like 2026-12-24"),
        (("--region", "Swiss"), "'Swiss' is not a region of phone numbers; did you mean CH (Switzerland)?"),
        (("--region", "Atlantis"), "write it like US or DE"),
        (("--channel", "SMSS"), "did you mean sms?"),
    ],
)
def test_what_is_wrong_in_a_time_is_named_with_what_was_meant(
    cli: Cli, workspace_id: str, file: str, options: tuple[str, ...], said: str
) -> None:
    """Before anything is opened or created."""
    told = cli.refuse("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi", *options, code=2)
    assert said in told
    assert cli.ask("campaigns", "list", workspace_id) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("campaigns", "list", "W", "--status", "canceled"), "did you mean cancelled?"),
        (("workspaces", "create", "B", "--default-region", "Germny"), "did you mean DE (Germany)?"),
        (("settings", "prices", "set", "W", "--currency", "Euro", "--price", "sms=0.1"), "did you mean EUR?"),
        (("settings", "prices", "set", "W", "--currency", "EUR", "--price", "sms=0,1"), "did you mean 0.1?"),
        (("settings", "prices", "set", "W", "--currency", "EUR", "--price", "smss=1"), "did you mean sms?"),
        (("settings", "prices", "set", "W", "--currency", "EUR", "--price", "sms/*/Spain=1"), "did you mean ES?"),
        (("settings", "set", "W", "--retry-delay-minutes", "2h"), "not a whole number of minutes; did you mean 120?"),
        (("settings", "set", "W", "--retry-max-attempts", "many"), "'many' is not a valid integer range"),
        (("db", "archive", "--to", "old.db", "--before", "31.1.2026"), "did you mean 2026-01-31?"),
    ],
)
def test_other_commands_say_what_was_meant_too(
    cli: Cli, workspace_id: str, command: tuple[str, ...], said: str
) -> None:
    """States, regions, currencies, amounts and dates."""
    result = cli.run(*(workspace_id if word == "W" else word for word in command))
    assert result.exit_code in {1, 2}
    assert said in result.stderr


def test_the_help_gives_the_formats(cli: Cli) -> None:
    """Of times, hours, zones and holidays."""
    told = " ".join(cli.tell("campaigns", "import", "--help").split())
    examples = ("2026-11-30T09:00", "2026-11-30T09:00+01:00", "'mon-fri 09:00-17:00'", "America/New_York", "GB-ENG")
    for written in (*examples, "2026-12-24"):
        assert written in told
