from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from outreach import NewRecipient, NewSmsCampaign, Outreach
from outreach.core.clock import SystemClock, format_timestamp
from outreach_server.cli.values import OPENING_HOURS
from outreach_server.hours import schedule_of
from tests.cli.conftest import Cli, Write

SENDER = "+14155550100"
LONG = "It\u2019s " + "b" * 80


@pytest.fixture
def file(csv_file: Write) -> str:
    """Return a file of two contacts."""
    return csv_file("phone,name\n+14155550101,Ann\n+14155550102,Bob\n")


@pytest.fixture
def flow_id(cli: Cli, workspace_id: str, tmp_path: Path) -> str:
    """Return a flow of one message."""
    steps = tmp_path / "flow.json"
    steps.write_text('[{"kind": "send", "body": "Hi"}]')
    identifier: str = cli.ask("flows", "create", workspace_id, "Welcome", "--file", str(steps))["id"]
    return identifier


@pytest.fixture
def agent_id(cli: Cli, workspace_id: str) -> str:
    """Return an agent that may call out."""
    identifier: str = cli.ask("agents", "create", workspace_id, "Ada")["id"]
    return identifier


def load(cli: Cli, workspace_id: str, file: str, *options: str) -> Any:
    """Import a campaign and return the answer."""
    return cli.ask("campaigns", "import", workspace_id, file, "--name", "C", *options)


def test_a_draft_names_each_field_and_the_command_that_sets_it(cli: Cli, workspace_id: str, file: str) -> None:
    """At the import, at a change and at the start; what is set is named no more."""
    made = load(cli, workspace_id, file, "--message", " ")
    assert [lack["path"] for lack in made["missing"]] == ["body", "from_number", "carrier"]
    command = f"outreach-server campaigns update {made['id']}"
    told = cli.tell("campaigns", "import", workspace_id, file, "--name", "C", "--message", " ")
    assert "--message TEXT --from NUMBER --carrier NAME" in told
    told = cli.refuse("campaigns", "start", made["id"])
    assert "It has no from_number: the number to send from." in told
    assert f"{command} --message TEXT --from NUMBER --carrier NAME" in told
    assert "finish_setup" not in told
    assert f"{command} --message TEXT --from NUMBER --carrier NAME" in cli.tell("campaigns", "show", made["id"])
    assert len(cli.ask("campaigns", "show", made["id"])["missing"]) == 3
    told = cli.tell("campaigns", "update", made["id"], "--message", "Hi")
    assert f"{command} --from NUMBER --carrier NAME" in told
    changed = cli.ask("campaigns", "update", made["id"], "--from", SENDER, "--carrier", "twilio")
    assert (changed["status"], changed["missing"]) == ("ready", [])
    assert "start" in cli.refuse("campaigns", "pause", made["id"])


def test_a_pool_is_named_number_by_number(cli: Cli, workspace_id: str, file: str) -> None:
    """By the import and by a change, which takes the carrier of the first; one number alone ends it."""
    other = "+14155550198"
    made = load(cli, workspace_id, file, "--message", "Hi", "--from", SENDER, "--from", other, "--carrier", "twilio")
    assert (made["status"], made["sms_from_number"], made["sms_from_numbers"]) == ("ready", SENDER, [SENDER, other])
    cli.ask("numbers", "create", workspace_id, other, "--carrier", "telnyx")
    changed = cli.ask("campaigns", "update", made["id"], "--from", other, "--from", SENDER)
    assert (changed["sms_carrier"], changed["sms_from_numbers"]) == ("telnyx", [other, SENDER])
    assert "from_numbers[1]" in cli.refuse("campaigns", "update", made["id"], "--from", other, "--from", "ACME")
    changed = cli.ask("campaigns", "update", made["id"], "--from", "ACME")
    assert (changed["sms_from_number"], changed["sms_from_numbers"]) == ("ACME", [])


def test_a_change_of_the_flow_makes_it_drive_the_campaign(cli: Cli, workspace_id: str, file: str, flow_id: str) -> None:
    """And a change of the text takes the flow away again; both at once say nothing."""
    made = load(cli, workspace_id, file, "--message", "Hi", "--from", SENDER)
    changed = cli.ask("campaigns", "update", made["id"], "--flow", flow_id)
    assert (changed["sms_message_source"], changed["sms_flow_id"]) == ("flow", flow_id)
    changed = cli.ask("campaigns", "update", made["id"], "--message", "Hello")
    assert (changed["sms_message_source"], changed["sms_message_body"]) == ("custom", "Hello")
    assert "excludes" in cli.refuse("campaigns", "update", made["id"], "--message", "Hello", "--flow", flow_id)


def test_a_calling_campaign_is_imported_with_all_that_it_has(
    cli: Cli, workspace_id: str, file: str, agent_id: str
) -> None:
    """Agent, trunk, caller IDs, concurrency and how it calls; its variables are those of the file."""
    trunk = cli.ask("trunks", "create", workspace_id, "Main", "--address", "sip.example.com")["id"]
    options = ("--agent", agent_id, "--trunk", trunk, "--caller-id", f"{SENDER}=20", "--batch-concurrency", "3")
    made = load(cli, workspace_id, file, "--channel", "call", *options, "--double-dial", "--ivr", "--call-screen")
    assert (made["channel"], made["status"], made["agent_id"], made["sip_trunk_id"]) == (
        "call",
        "ready",
        agent_id,
        trunk,
    )
    (number,) = cli.ask("numbers", "list", workspace_id)
    assert made["cli_group_config"] == [{"phoneNumberId": number["id"], "phoneE164": SENDER, "count": 20}]
    assert (made["cli_mode"], made["batch_concurrency"]) == ("group", 3)
    assert made["double_dial"] is made["ivr_enabled"] is made["call_screen_enabled"] is True
    assert "numbers create" in cli.refuse(
        "campaigns", "import", workspace_id, file, "--name", "C", "--channel", "call", "--agent", agent_id,
        "--caller-id", "+14155550199",
    )  # fmt: skip


def test_hours_holidays_schedule_and_expiry_are_taken(cli: Cli, workspace_id: str, file: str) -> None:
    """In the words of the command line, and shown in a line each."""
    now = SystemClock().now().replace(microsecond=0)
    start, end = now + timedelta(days=1), now + timedelta(days=2)
    made = load(
        cli, workspace_id, file, "--message", "Hi", "--from", SENDER,
        "--hours", "mon-fri 09:00-17:00", "--hours", "sat 10:00-14:00", "--timezone", "America/New_York",
        "--holidays", "US", "--holiday", "2027-03-05",
        "--schedule-at", format_timestamp(start), "--expires-at", format_timestamp(end),
    )  # fmt: skip
    hours = made["business_hours_config"]
    assert hours["timezone"] == made["timezone"] == "America/New_York"
    assert hours["schedule"]["saturday"] == [{"start": "10:00", "end": "14:00"}]
    assert hours["schedule"]["friday"] == [{"start": "09:00", "end": "17:00"}]
    assert hours["schedule"]["sunday"] == []
    dates = [day["date"] for day in made["holidays_config"]["holidays"]]
    assert made["holidays_config"]["country"] == "US"
    assert "2027-03-05" in dates
    assert len(dates) > 20
    assert (made["scheduled_start_at"], made["scheduled_expires_at"]) == (
        format_timestamp(start),
        format_timestamp(end),
    )
    told = cli.tell("campaigns", "show", made["id"])
    assert "mon-fri 09:00-17:00; sat 10:00-14:00, America/New_York" in told
    assert f"US: {len(dates)} dates" in told


@pytest.mark.parametrize(
    ("wanted", "told"),
    [("GB", "GB-ENG, GB-NIR, GB-SCT, GB-WLS."), ("US", "and so on."), ("GB-SCT", None), ("SG", None)],
)
def test_an_import_notes_that_parts_of_a_country_have_their_own_holidays(
    cli: Cli, workspace_id: str, file: str, wanted: str, told: str | None
) -> None:
    """A user who names the whole of it may not know. A part, or a country without parts, needs no note."""
    options = ("--name", "C", "--message", "Hi", "--from", SENDER, "--holidays", wanted)
    result = cli.run("campaigns", "import", workspace_id, file, *options)
    assert result.exit_code == 0
    assert ("the national holidays of" in result.stderr) is (told is not None)
    assert told is None or told in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "--message or a --flow"),
        (("--channel", "call"), "needs an --agent"),
        (("--message", "Hi", "--double-dial"), "--double-dial does not apply to campaigns of channel"),
        (("--message", "Hi", "--ivr"), "--ivr does not apply to campaigns of channel"),
        (("--message", "Hi", "--batch-concurrency", "3"), "--batch-concurrency does not apply to campaigns of channel"),
        (("--channel", "call", "--message", "Hi"), "--message does not apply to campaigns of channel"),
        (("--channel", "call", "--from", SENDER), "--from does not apply to campaigns of channel"),
        (("--channel", "call", "--rate", "60"), "--rate does not apply to campaigns of channel"),
        (("--message", "Hi", "--hours", "mon-fri 09:00-17:00"), "--hours needs --timezone"),
        (("--message", "Hi", "--timezone", "UTC"), "--timezone needs --hours, --schedule-at"),
        (("--message", "Hi", "--schedule-at", "2020-01-01T09:00"), "has passed"),
        (("--message", "Hi", "--expires-at", "2020-01-01T09:00"), "has passed"),
    ],
)
def test_what_does_not_go_together_is_refused(
    cli: Cli, workspace_id: str, file: str, options: tuple[str, ...], problem: str
) -> None:
    """Before anything is opened: nothing is created, and no option does nothing."""
    args = ("campaigns", "import", workspace_id, file, "--name", "C", *options)
    assert problem in cli.refuse(*args, code=2)
    assert cli.ask("campaigns", "list", workspace_id) == []


@pytest.mark.parametrize(
    ("written", "days"),
    [
        ("mon-fri 09:00-17:00", "monday tuesday wednesday thursday friday"),
        ("Fri-Mon 9:00-17:00", "friday saturday sunday monday"),
        ("sat, sunday 10:00-24:00", "saturday sunday"),
        ("daily 18:00-02:00", "monday tuesday wednesday thursday friday saturday sunday"),
    ],
)
def test_opening_hours_are_read_as_people_write_them(written: str, days: str) -> None:
    """Days by name or three letters, ranges over the end of the week, windows into the next day."""
    assert set(schedule_of([OPENING_HOURS.convert(written, None, None)])) == set(days.split())


def test_placeholders_that_nothing_fills_are_reported_and_refused(cli: Cli, workspace_id: str, file: str) -> None:
    """At the import with what there is, and at the start with how to go on."""
    text = ("--message", "Hi {{first_nam}} {{name}} {{first_name|there}}", "--from", SENDER)
    made = load(cli, workspace_id, file, *text)
    assert made["unknown_placeholders"] == ["first_nam"]
    told = cli.tell("campaigns", "import", workspace_id, file, "--name", "C", *text)
    assert "No value for {{first_nam}}:" in told
    assert "these variables: name." in told
    told = cli.refuse("campaigns", "start", made["id"])
    assert f"outreach-server campaigns start {made['id']} --allow-unknown-placeholders" in told
    assert cli.ask("campaigns", "start", made["id"], "--allow-unknown-placeholders")["status"] == "active"
    good = load(cli, workspace_id, file, "--message", "Hi {{name}}", "--from", SENDER)
    assert good["unknown_placeholders"] == []
    assert cli.ask("campaigns", "start", good["id"])["status"] == "active"


def test_a_start_says_how_many_will_fail(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """For a text over the segment cap."""
    cli.ask("settings", "set", workspace_id, "--max-segments", "1")
    file = csv_file(f"phone,first_name\n+14155550101,Ann\n+14155550102,{'x' * 200}\n")
    made = load(cli, workspace_id, file, "--message", "Hi {{first_name}}", "--from", SENDER)
    started = cli.ask("campaigns", "start", made["id"])
    assert (started["status"], started["looked_at"], started["will_fail"]) == ("active", 2, {"over_segment_cap": 1})
    made = load(cli, workspace_id, file, "--message", "Hi {{first_name}}", "--from", SENDER)
    assert "Of 2 contacts, 1 will fail: 1 with a text over the segment cap" in cli.tell(
        "campaigns", "start", made["id"]
    )


def test_a_start_whose_time_has_passed_says_so(cli: Cli, workspace_id: str) -> None:
    """The library and HTTP take any time, and a time ahead passes."""
    passed = SystemClock().now() - timedelta(seconds=1)
    new = NewSmsCampaign(
        name="C",
        body="Hi",
        carrier="twilio",
        from_number=SENDER,
        schedule_type="scheduled",
        scheduled_start_at=passed,
    )

    async def create() -> str:
        async with Outreach.open(cli.database) as engine:
            made = await engine.campaigns.create_sms(workspace_id, new, [NewRecipient(phone_number="+14155550101")])
            return made.campaign.id

    assert "has passed: it starts at once" in cli.tell("campaigns", "start", anyio.run(create))


def test_what_is_in_the_way_of_a_ready_campaign_is_reported_before_its_start(
    cli: Cli, workspace_id: str, file: str
) -> None:
    """As its text is changed, and whenever somebody looks; and not that it only waits to be started."""
    made = load(cli, workspace_id, file, "--message", "Hi", "--from", SENDER)
    changed = cli.ask("campaigns", "update", made["id"], "--message", "Hi {{fist_name}}")
    assert (changed["status"], [lack["path"] for lack in changed["missing"]]) == ("ready", ["placeholders"])
    for command in ("show", "update"):
        told = cli.tell("campaigns", command, made["id"], *(["--rate", "30"] if command == "update" else []))
        assert "cannot start:\n  No value for {{fist_name}}" in told
        assert "It waits to be started" not in told


def test_a_new_sending_number_brings_its_carrier(cli: Cli, workspace_id: str, file: str) -> None:
    """As at an import, however it is written; a named carrier counts, and a number of nobody's changes none."""
    cli.ask("numbers", "create", workspace_id, "+14155550111", "--carrier", "telnyx")
    made = load(cli, workspace_id, file, "--message", "Hi")
    changed = cli.ask("campaigns", "update", made["id"], "--from", "+1 (415) 555-0111")
    assert (changed["sms_carrier"], changed["status"], changed["missing"]) == ("telnyx", "ready", [])
    named = cli.ask("campaigns", "update", made["id"], "--from", "+14155550111", "--carrier", "vonage")
    assert named["sms_carrier"] == "vonage"
    assert cli.ask("campaigns", "update", made["id"], "--from", "+14155550112")["sms_carrier"] == "vonage"


def test_plain_characters_are_a_switch_of_a_campaign(cli: Cli, workspace_id: str, file: str) -> None:
    """Off unless asked for, at the import or later; calls have none."""
    told = cli.tell("campaigns", "import", workspace_id, file, "--name", "C", "--message", LONG, "--dry-run")
    assert "With --replace-characters, 2 texts would be in plain characters, which saves 2 segments:" in told
    assert "    - It\u2019s b" in told
    assert "    + It's b" in told
    made = load(cli, workspace_id, file, "--message", LONG, "--replace-characters")
    assert made["replace_characters"] is True
    assert "replace_characters" in cli.tell("campaigns", "show", made["id"])
    told = cli.tell("campaigns", "preflight", made["id"])
    assert "Characters are replaced in 2 texts of 2 contacts, which saves 2 segments:" in told
    assert cli.ask("campaigns", "update", made["id"], "--no-replace-characters")["replace_characters"] is False
    assert cli.ask("campaigns", "update", made["id"], "--rate", "9")["replace_characters"] is False
    assert cli.ask("campaigns", "update", made["id"], "--replace-characters")["replace_characters"] is True
    cli.tell("campaigns", "update", made["id"], "--message", "Hi")
    assert "replaced" not in cli.tell("campaigns", "preflight", made["id"])
    assert load(cli, workspace_id, file, "--message", LONG)["replace_characters"] is False


def test_when_a_campaign_runs_is_changed(cli: Cli, workspace_id: str, file: str) -> None:
    """Start, expiry, hours and holidays, each by the option of the import; each is cleared again."""
    made = load(cli, workspace_id, file, "--message", "Hi", "--from", SENDER)
    start, end = (format_timestamp(SystemClock().now() + timedelta(days=days)) for days in (1, 2))
    when = ("--schedule-at", start, "--expires-at", end, "--hours", "mon-fri 09:00-17:00", "--timezone", "Europe/Oslo")
    changed = cli.ask("campaigns", "update", made["id"], *when, "--holidays", "GB-ENG", "--description", "For us")
    assert (changed["schedule_type"], changed["scheduled_start_at"]) == ("scheduled", start)
    assert (changed["scheduled_expires_at"], changed["description"]) == (end, "For us")
    assert changed["business_hours_only"] is True
    assert changed["business_hours_config"]["timezone"] == "Europe/Oslo"
    assert changed["holidays_config"]["subdivision"] == "ENG"
    assert cli.ask("campaigns", "start", made["id"])["status"] == "scheduled"
    cli.ask("campaigns", "unschedule", made["id"])
    cleared = ("--no-schedule-at", "--no-expires-at", "--no-hours", "--no-holidays")
    changed = cli.ask("campaigns", "update", made["id"], *cleared)
    assert (changed["schedule_type"], changed["scheduled_start_at"], changed["scheduled_expires_at"]) == (
        "immediate",
        None,
        None,
    )
    assert (changed["business_hours_config"], changed["holidays_config"]) == (None, None)
    assert cli.ask("campaigns", "start", made["id"])["status"] == "active"


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        ("--schedule-at 2020-01-01T00:00:00Z", "has passed", 2),
        ("--expires-at 2020-01-01T00:00:00Z", "nobody would be contacted", 2),
        ("--timezone Europe/Oslo", "--timezone needs --hours", 2),
        ("--hours mon~09:00-17:00 --timezone Europe/Oslo --no-hours", "exclude each other", 2),
        ("--holidays US --no-holidays", "exclude each other", 2),
        ("--holiday 2026-12-24 --no-holidays", "exclude each other", 2),
        ("--expires-at 2099-01-01T00:00:00Z --no-expires-at", "exclude each other", 2),
        ("--schedule-at 2099-01-01T00:00:00Z --no-schedule-at", "exclude each other", 2),
        ("--hours mon~09:00-17:00 --timezone Nowhere/Land", "'Nowhere/Land' is not a time zone", 2),
        ("--holidays XX", "--holidays 'XX': the country must be", 2),
        ("--expires-at 2098-01-01T00:00:00Z", "must be later than scheduled_start_at", 1),
    ],
)
def test_a_time_that_cannot_be_is_refused_at_a_change(
    cli: Cli, workspace_id: str, file: str, options: str, said: str, code: int
) -> None:
    """By the rules of the import, and against what the campaign has already."""
    made = load(cli, workspace_id, file, "--message", "Hi", "--from", SENDER, "--schedule-at", "2098-06-01T00:00:00Z")
    words = [word.replace("~", " ") for word in options.split()]
    assert said in cli.refuse("campaigns", "update", made["id"], *words, code=code)


def test_contacts_of_a_file_are_added_to_a_campaign(cli: Cli, workspace_id: str, file: str) -> None:
    """Once: the same file again adds duplicates alone. A campaign that stays open is closed by a command."""
    made = load(cli, workspace_id, file, "--message", "Hi", "--stay-open")
    assert made["stay_open"] is True
    again = cli.ask("campaigns", "add", made["id"], file)
    assert (again["added"], again["skipped"]) == (made["total_recipients"], made["total_recipients"])
    assert "duplicates" in cli.tell("campaigns", "add", made["id"], file)
    assert cli.ask("campaigns", "show", made["id"])["total_recipients"] == 3 * made["total_recipients"]
    assert cli.ask("campaigns", "close", made["id"])["stay_open"] is False
    cli.ask("campaigns", "cancel", made["id"], "--yes")
    assert "takes no contacts" in cli.refuse("campaigns", "add", made["id"], file)


def test_a_campaign_keeps_what_an_application_attaches(cli: Cli, workspace_id: str, file: str) -> None:
    """It is shown, and lists find it by its id; what is no JSON object is refused."""
    own = ("--external-id", "order-42", "--metadata", '{"team": 7}')
    made = load(cli, workspace_id, file, "--message", "Hi", *own)
    load(cli, workspace_id, file, "--message", "Hi")
    assert (made["external_id"], made["metadata"]) == ("order-42", {"team": 7})
    assert "order-42" in cli.tell("campaigns", "show", made["id"])
    [found] = cli.ask("campaigns", "list", workspace_id, "--external-id", "order-42")
    assert found["id"] == made["id"]
    for listed in ("messages", "calls"):
        assert cli.ask(listed, "list", workspace_id, "--external-id", "order-42") == []
        assert cli.ask(listed, "list", workspace_id, "--metadata", "team=7") == []
    [found] = cli.ask("campaigns", "list", workspace_id, "--metadata", "team=7")
    assert found["id"] == made["id"]
    assert cli.ask("campaigns", "list", workspace_id, "--metadata", "team=8") == []
    for listed in ("campaigns", "messages", "calls"):
        assert "such as team=7" in cli.refuse(listed, "list", workspace_id, "--metadata", "team")
    for wrong, words in (("[]", "object"), ("{", "JSON"), ('{"a": 1e999}', "64 bits")):
        refused = cli.refuse("campaigns", "import", workspace_id, file, "--name", "C", "--metadata", wrong, code=2)
        assert words in refused
        assert "body" not in refused
