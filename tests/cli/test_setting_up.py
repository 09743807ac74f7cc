from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from outreach import NewMessage, Outreach
from tests.cli.conftest import Cli

NOBODY = str(uuid.UUID(int=7))


def test_a_workspace_is_changed_only_where_something_is_named(cli: Cli, workspace_id: str) -> None:
    """The other fields stay, and the change is in the audit trail under the operator's name."""
    before = cli.ask("workspaces", "show", workspace_id)
    after = cli.ask("workspaces", "update", workspace_id, "--status", "suspended", "--no-request-limit")
    assert after == before | {"status": "suspended", "request_limit": None, "updated_at": after["updated_at"]}
    newest = cli.ask("audit", workspace_id, "--limit", "1")
    assert [entry["action"] for entry in newest] == ["workspace.update"]
    assert newest[0]["actor"].startswith("cli:")


@pytest.mark.parametrize(
    ("made_with", "field", "made", "changed_by", "changed"),
    [
        ([], "mode", "sandbox", ["--name", "B"], "sandbox"),
        (["--live"], "mode", "live", ["--name", "B"], "live"),
        ([], "request_limit", 600, ["--no-request-limit"], None),
        (["--no-request-limit"], "request_limit", None, ["--request-limit", "5"], 5),
        ([], "contact_hours", False, ["--contact-hours"], True),
        (["--contact-hours"], "contact_hours", True, ["--no-contact-hours"], False),
        (["--live"], "contact_hours", True, ["--name", "B"], True),
        (["--live", "--no-contact-hours"], "contact_hours", False, ["--name", "B"], False),
        ([], "frequency_cap", None, ["--frequency-cap", "1"], 1),
        (["--frequency-cap", "3"], "frequency_cap", 3, ["--name", "B"], 3),
        (["--frequency-cap", "3"], "frequency_cap", 3, ["--no-frequency-cap"], None),
    ],
)
def test_what_a_workspace_keeps_to_is_set_at_its_making_and_at_a_change(
    cli: Cli, made_with: list[str], field: str, made: object, changed_by: list[str], changed: object
) -> None:
    """What is not named stays; nobody reaches real people by leaving an option out."""
    workspace = cli.ask("workspaces", "create", "A", *made_with)
    assert workspace[field] == made
    assert cli.ask("workspaces", "update", workspace["id"], *changed_by)[field] == changed


def test_what_people_wrote_back_is_listed(cli: Cli, workspace_id: str) -> None:
    """Nobody has, before anybody does."""
    assert cli.ask("messages", "inbound", workspace_id) == []
    assert "There are no messages." in cli.tell("messages", "inbound", workspace_id)
    assert "There is no workspace" in cli.refuse("messages", "inbound", NOBODY)


def test_a_stop_is_listed_with_what_was_written_and_by_whom(cli: Cli, workspace_id: str) -> None:
    """The message with its keyword and carrier; the register's entry with source, evidence and time."""

    async def write() -> None:
        async with Outreach.open(cli.database) as engine:
            new = NewMessage(to="+14155550102", body="Hi", from_number="+14155550100", carrier="twilio")
            await engine.messages.send(workspace_id, new)
            for provider_id, body in (("SM1", "please stop"), ("SM2", "thanks")):
                await engine.messages.receive(
                    workspace_id,
                    from_number="+14155550102",
                    to="+14155550100",
                    body=body,
                    provider="twilio",
                    provider_id=provider_id,
                    written_at=datetime(2026, 3, 2, 9, 30, tzinfo=UTC),
                )

    anyio.run(write)
    thanks, stop = cli.ask("messages", "inbound", workspace_id)
    assert (stop["keyword"], stop["provider"], stop["provider_id"]) == ("stop", "twilio", "SM1")
    assert (thanks["keyword"], stop["written_at"]) == (None, "2026-03-02T09:30:00.000000Z")
    assert cli.ask("messages", "inbound", workspace_id, "--unanswered") == [thanks]
    (sent,) = cli.ask("messages", "list", workspace_id)
    assert (sent["to"], sent["purpose"], sent["status"]) == ("+14155550102", "message", "queued")
    assert "+14155550102" in cli.tell("messages", "list", workspace_id)
    told = cli.tell("messages", "inbound", workspace_id)
    assert "please stop" in told
    assert "twilio" in told
    history = cli.ask("contacts", "history", workspace_id, "+1 (415) 555-0102")
    assert [(one["kind"], one["direction"], one["reason"]) for one in history] == [
        ("message", "inbound", None),
        ("opted_out", None, "keyword"),
        ("message", "inbound", "stop"),
        ("message", "outbound", None),
    ]
    assert "please stop" in cli.tell("contacts", "history", workspace_id, "+14155550102")
    first = cli.ask("contacts", "history", workspace_id, "+14155550102", "--limit", "1")
    assert first == history[:1]
    assert "nothing of this number" in cli.tell("contacts", "history", workspace_id, "+14155550103")
    assert "write it like +14155550102" in cli.refuse("contacts", "history", workspace_id, "Ann")
    (entry,) = cli.ask("unsubscribes", "list", workspace_id)
    assert (entry["source"], entry["scope"], entry["created_at"]) == ("keyword", "all", stop["received_at"])
    assert entry["evidence"] == 'wrote "please stop" (phrase; twilio SM1), 2026-03-02T09:30:00.000000Z'
    assert "please stop" in cli.tell("unsubscribes", "list", workspace_id)


def test_the_steps_of_a_flow_are_explained_where_they_are_asked_for(cli: Cli) -> None:
    """The help has one example of each kind, on a line of its own."""
    told = cli.tell("flows", "create", "--help")
    for kind in ("send", "wait", "stop_if_replied"):
        assert any(line.strip().startswith(f'{{"kind": "{kind}"') for line in told.splitlines())


def test_a_key_is_shown_once(cli: Cli, workspace_id: str) -> None:
    """The list tells keys apart without giving one away."""
    made = cli.ask("keys", "create", workspace_id, "--name", "ci")
    assert made.keys() == {"id", "api_key", "scopes"}
    assert made["scopes"] == ["send"]
    listed = cli.run("keys", "list", workspace_id, "--json").stdout
    assert made["api_key"] not in listed
    assert [key["name"] for key in json.loads(listed)] == ["ci"]
    assert cli.ask("keys", "revoke", made["id"])["revoked_at"] is not None


def test_a_key_has_the_scopes_that_were_named(cli: Cli, workspace_id: str) -> None:
    """Each once, in one order; another word is wrong usage."""
    made = cli.ask("keys", "create", workspace_id, "--scope", "read", "--scope", "manage", "--scope", "read")
    assert made["scopes"] == ["manage", "read"]
    (listed,) = cli.ask("keys", "list", workspace_id)
    assert listed["scopes"] == ["manage", "read"]
    assert "'send', 'manage', 'read'" in cli.refuse("keys", "create", workspace_id, "--scope", "all", code=2)


def test_an_agent_is_changed_by_its_identifier_alone(cli: Cli, workspace_id: str) -> None:
    """The workspace may be named, and then it must be the agent's."""
    agent_id = cli.ask("agents", "create", workspace_id, "Ada")["id"]
    other = cli.ask("workspaces", "create", "Other")["id"]
    assert cli.ask("agents", "update", agent_id, "--inactive")["is_active"] is False
    assert cli.ask("agents", "update", workspace_id, agent_id, "--active")["is_active"] is True
    assert "There is no agent" in cli.refuse("agents", "update", other, agent_id, "--active")
    assert "There is no agent" in cli.refuse("agents", "update", NOBODY, "--active")
    assert "Give one agent" in cli.refuse("agents", "update", other, agent_id, agent_id, "--active", code=2)


def test_settings_are_set_one_by_one(cli: Cli, workspace_id: str) -> None:
    """What is not named stays; variables can be declared and taken away."""
    before = cli.ask("settings", "show", workspace_id)
    after = cli.ask("settings", "set", workspace_id, "--no-footer", "--variable", "plan", "--variable", "slot")
    assert after == before | {"footer_enabled": False, "custom_variables": ["plan", "slot"]}
    assert cli.ask("settings", "set", workspace_id, "--no-variables") == before | {"footer_enabled": False}
    assert "--variable and --no-variables exclude" in cli.refuse(
        "settings", "set", workspace_id, "--variable", "a", "--no-variables", code=2
    )


def test_settings_of_calling_campaigns_stand_beside_those_of_messages(cli: Cli, workspace_id: str) -> None:
    """docs/rules.md#retry: 3 attempts and 30 minutes before any change; one budget for all reasons."""
    before = cli.ask("settings", "show", workspace_id)
    assert (before["call_retry_max_attempts"], before["call_retry_delay_minutes"]) == (3, 30)
    after = cli.ask("settings", "set", workspace_id, "--call-retry-max-attempts", "10", "--no-footer")
    assert after == before | {"call_retry_max_attempts": 10, "footer_enabled": False}
    after = cli.ask("settings", "set", workspace_id, "--call-retry-delay-minutes", "1440")
    assert cli.ask("settings", "show", workspace_id) == after
    assert (after["call_retry_max_attempts"], after["call_retry_delay_minutes"]) == (10, 1440)
    actions = [entry["action"] for entry in cli.ask("audit", workspace_id)]
    assert actions.count("call_settings.update") == 2


def test_the_answers_to_keywords_are_shown_as_they_are_sent(cli: Cli, workspace_id: str) -> None:
    """With their segments; an empty text takes the default again, and nothing else changes."""
    before = cli.ask("settings", "show", workspace_id)
    assert (before["reply_enabled"], before["reply_help_when_opted_out"]) == (True, False)
    assert "Reply START" in before["reply_stop_text"]
    assert [before[f"reply_{name}_segments"] for name in ("stop", "start", "help")] == [1, 1, 1]
    own = ("--help-text", "Mail a@b.c. " + "é" * 160, "--no-replies", "--help-when-opted-out")
    after = cli.ask("settings", "set", workspace_id, *own)
    assert after == before | {
        "reply_enabled": False,
        "reply_help_when_opted_out": True,
        "reply_help_text": "Mail a@b.c. " + "é" * 160,
        "reply_help_segments": 2,
    }
    back = ("--help-text", "", "--replies", "--no-help-when-opted-out")
    assert cli.ask("settings", "set", workspace_id, *back) == before
    assert cli.ask("settings", "set", workspace_id, "--stop-text", "Bye", "--start-text", "Hi") == before | {
        "reply_stop_text": "Bye",
        "reply_start_text": "Hi",
    }
    assert "320" in cli.refuse("settings", "set", workspace_id, "--stop-text", "x" * 321, code=2)
    assert "blank" in cli.refuse("settings", "set", workspace_id, "--stop-text", " ", "--no-footer")
    assert cli.ask("settings", "show", workspace_id)["footer_enabled"] is True


@pytest.mark.parametrize(
    "args",
    ["workspaces update ID", "agents update ID", "settings set ID", "campaigns update ID"],
)
def test_a_change_of_nothing_is_wrong_usage(cli: Cli, args: str) -> None:
    """It is a slip, and is told as one."""
    assert "Name something to change" in cli.refuse(*args.replace("ID", NOBODY).split(), code=2)


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ("workspaces show ID", "workspace"),
        ("workspaces update ID --status active", "workspace"),
        ("keys create ID", "workspace"),
        ("keys list ID", "workspace"),
        ("keys revoke ID", "key"),
        ("agents create ID Ada", "workspace"),
        ("agents list ID", "workspace"),
        ("trunks create ID T --address sip.example.com", "workspace"),
        ("trunks list ID", "workspace"),
        ("numbers create ID +14155550100", "workspace"),
        ("numbers list ID", "workspace"),
        ("flows list ID", "workspace"),
        ("settings show ID", "workspace"),
        ("settings set ID --max-segments 1", "workspace"),
        ("unsubscribes add ID +14155550100", "workspace"),
        ("unsubscribes remove ID +14155550100", "workspace"),
        ("unsubscribes list ID", "workspace"),
        ("campaigns list ID", "workspace"),
        ("campaigns update ID --rate 5", "campaign"),
        ("campaigns start ID", "campaign"),
        ("campaigns show ID", "campaign"),
        ("campaigns watch ID", "campaign"),
        ("campaigns recipients ID", "campaign"),
        ("calls show ID", "call"),
        ("dispatches unknown ID", "workspace"),
        ("dispatches resolve ID --retry", "dispatch"),
        ("stop ID", "workspace"),
        ("audit ID", "workspace"),
    ],
)
def test_what_is_not_there_is_named(cli: Cli, workspace_id: str, args: str, kind: str) -> None:
    """An unknown identifier is a failure, and an unknown name; what has no names takes none. With --json as well."""
    assert f"There is no {kind} '{NOBODY}'." in cli.refuse(*args.replace("ID", NOBODY).split(), "--json")
    code = 2 if kind in {"key", "call", "dispatch"} else 1
    assert f"There is no {kind} 'nobody'" in cli.refuse(*args.replace("ID", "nobody").split(), code=code)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("7", "must hold an array of steps"),
        ('{"steps": [], "more": 1}', "must hold an array of steps"),
        ("[7]", "steps[0] must be an object"),
        ('[{"kind": "send", "text": "Hi"}]', "steps[0] has 'text'"),
        ('[{"kind": "wait", "wait_minutes": "5"}]', "steps[0].wait_minutes must be an integer"),
        ('[{"kind": 7}]', "steps[0].kind must be text"),
        ('[{"body": "Hi"}]', "steps[0].kind must be"),
        ('[{"kind": "wait", "wait_minutes": 5}]', "no step sends anything"),
        ('[{"kind": "wait"}, {"kind": "wait"}]', "3 problems"),
        (" " * 1_000_001, "larger than a flow can be"),
    ],
)
def test_a_flow_that_is_none_is_refused(
    cli: Cli, workspace_id: str, tmp_path: Path, content: str, problem: str
) -> None:
    """The message names the place."""
    file = tmp_path / "flow.json"
    file.write_text(content)
    assert problem in cli.refuse("flows", "create", workspace_id, "F", "--file", str(file))
    assert cli.ask("flows", "list", workspace_id) == []


def test_the_register_is_kept(cli: Cli, workspace_id: str) -> None:
    """Numbers are added in any form, listed as E.164, and removed."""
    added = cli.ask("unsubscribes", "add", workspace_id, "+1 (415) 555-0102", "--scope", "sms", "--evidence", "mail")
    assert [(entry["phone"], entry["scope"], entry["evidence"]) for entry in added] == [("+14155550102", "sms", "mail")]
    assert cli.ask("unsubscribes", "list", workspace_id) == added
    assert "+14155550102" in cli.tell("unsubscribes", "list", workspace_id)
    assert cli.ask("unsubscribes", "remove", workspace_id, "14155550102", "+14155550199") == {"removed": 1}
    assert cli.ask("unsubscribes", "list", workspace_id) == []
    assert "The register is empty." in cli.tell("unsubscribes", "list", workspace_id)
    assert "not a phone number" in cli.refuse("unsubscribes", "add", workspace_id, "nonsense")


def test_names_are_shown_as_they_are_and_do_nothing(cli: Cli) -> None:
    """Markup is text, and what a terminal would obey is made visible."""
    cli.ask("workspaces", "create", "[bold]x[/bold] \x1b[31mred")
    text = cli.tell("workspaces", "list")
    assert "[bold]x[/bold] ␛[31mred" in text


@pytest.mark.parametrize("name", ["", "x" * 256, "\udcff"])
def test_a_name_out_of_its_bounds_is_wrong_usage(cli: Cli, name: str) -> None:
    """It is refused before anything is opened."""
    assert "NAME" in cli.refuse("workspaces", "create", name, code=2)


def test_what_was_set_can_be_cleared(cli: Cli) -> None:
    """By an option of its own; one that sets and one that clears exclude each other."""
    workspace_id = cli.ask("workspaces", "create", "Acme", "--default-region", "US")["id"]
    agent_id = cli.ask("agents", "create", workspace_id, "Ada", "--from", "4155550100", "--placeholder", "x")["id"]
    assert cli.ask("workspaces", "update", workspace_id, "--no-default-region")["default_region"] is None
    cleared = cli.ask("agents", "update", agent_id, "--no-from", "--no-placeholder")
    assert (cleared["from_number"], cleared["placeholders"]) == (None, None)
    assert "--from and --no-from exclude" in cli.refuse(
        "agents", "update", agent_id, "--from", "+14155550100", "--no-from", code=2
    )
    assert "--default-region and --no-default-region exclude" in cli.refuse(
        "workspaces", "update", workspace_id, "--default-region", "US", "--no-default-region", code=2
    )
    assert "--request-limit and --no-request-limit exclude" in cli.refuse(
        "workspaces", "create", "Other", "--request-limit", "5", "--no-request-limit", code=2
    )


def test_a_workspace_has_narrower_hours_for_a_state_until_they_are_removed(cli: Cli, workspace_id: str) -> None:
    """Each with its legal source; those of other places stay."""
    hours = ("--hours", "mon-fri 08:00-20:00", "--hours", "sat 10:00-12:00", "--source", "Fla. Stat. 501.616")
    cli.ask("workspaces", "set-hours", workspace_id, "fr", "--hours", "mon 10:00-13:00", "--source", "A decree")
    made = cli.ask("workspaces", "set-hours", workspace_id, "us-fl", *hours)
    france, florida = made["narrower_hours"]
    assert (france["place"], florida["place"], florida["source"]) == ("FR", "US-FL", "Fla. Stat. 501.616")
    assert florida["schedule"]["saturday"] == [{"start": "10:00", "end": "12:00"}]
    told = cli.tell("workspaces", "show", workspace_id)
    assert "US-FL: mon-fri 08:00-20:00; sat 10:00-12:00 (Fla. Stat. 501.616)" in told
    removed = cli.ask("workspaces", "set-hours", workspace_id, "FR", "--remove")
    assert removed["narrower_hours"] == [florida]
    assert "has no hours of FR" in cli.refuse("workspaces", "set-hours", workspace_id, "FR", "--remove")


@pytest.mark.parametrize(
    ("place", "options", "told"),
    [
        ("FR", [], "Give --hours and --source, or --remove alone"),
        ("FR", ["--source", "A decree"], "Give --hours and --source, or --remove alone"),
        ("FR", ["--source", "A decree", "--remove"], "Give --hours and --source, or --remove alone"),
        ("FR", ["--hours", "mon 07:00-13:00", "--source", "A decree"], "must lie within 08:00 to 21:00"),
        ("France", ["--hours", "mon 08:00-13:00", "--source", "A decree"], "must be a country such as FR"),
        ("US-QQ", ["--hours", "mon 08:00-13:00", "--source", "A decree"], "is no known state of the United States"),
    ],
)
def test_narrower_hours_that_cannot_be_are_refused(
    cli: Cli, workspace_id: str, place: str, options: list[str], told: str
) -> None:
    """Nothing is changed."""
    code = 2 if "--remove" in told else 1
    assert told in cli.refuse("workspaces", "set-hours", workspace_id, place, *options, code=code)
    assert cli.ask("workspaces", "show", workspace_id)["narrower_hours"] == []
