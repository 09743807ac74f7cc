"""A rehearsal from the list to the report: with simulated events, and with each provider's adapter and its stand-in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outreach_server.cli.serving.serving import bind
from outreach_server.cli.serving.stand_in import STAND_INS
from tests.cli.conftest import Cli, Start, Write, until

SENDER = "+14155550100"
USUAL, REFUSED, FAILED, OPTED_OUT, ANSWERED, SILENT = (
    f"+1415555{last}" for last in ("0102", "0191", "0192", "0193", "0194", "0195")
)
PEOPLE = (USUAL, REFUSED, FAILED, OPTED_OUT, ANSWERED, SILENT)
LIST = "phone,first_name\n" + "".join(f"{phone},Ana\n" for phone in PEOPLE)
TEXT = ("--message", "Hi {{first_name}}", "--from", SENDER)
CARRIERS = ("twilio", "telnyx", "vonage")
_SOAK = pytest.mark.turn(4, "starts a server and a stand-in for each provider")


def results(cli: Cli, campaign_id: str) -> dict[str, tuple[str, str | None]]:
    """Return what came of each contact of a campaign."""
    found = cli.ask("campaigns", "recipients", campaign_id)
    return {row["phone"]: (row["status"], row["reason"]) for row in found}


def ended(cli: Cli, campaign_id: str) -> Any:
    """Wait until a campaign is completed, and return its report."""
    until(lambda: cli.ask("campaigns", "show", campaign_id)["status"] == "completed", "the end of the campaign")
    return cli.ask("campaigns", "report", campaign_id)


def test_a_rehearsal_with_simulated_events(cli: Cli, workspace_id: str, csv_file: Write, start: Start) -> None:
    """Import, preflight, start, replies, a STOP, failures, a report, as docs/rehearsing.md has it."""
    args = ("campaigns", "import", workspace_id, csv_file(LIST), "--name", "Spring", *TEXT, "--carrier", "twilio")
    planned = cli.ask(*args, "--dry-run")
    assert (planned["contacted"], planned["forecast"]["requests"], planned["problems"]) == (6, 6, [])
    assert "Forecast: 6 messages to go" in cli.tell(*args, "--dry-run")
    campaign_id = cli.ask(*args)["id"]
    assert cli.ask("campaigns", "preflight", campaign_id)["contacted"] == 6
    assert cli.ask("simulate", "receipt", workspace_id, FAILED, "failed")["kept"]
    start("serve", "--port", "0").says("Serving ")
    cli.ask("campaigns", "start", campaign_id)
    report = ended(cli, campaign_id)
    assert report["contacts"] == 6
    until(lambda: results(cli, campaign_id)[FAILED] == ("failed", "unreachable"), "the receipt")
    [failure] = cli.ask("campaigns", "report", campaign_id)["failures"]
    assert "simulated a failed receipt" in failure["meaning"]
    cli.ask("simulate", "reply", workspace_id, ANSWERED, "Which table?")
    cli.ask("simulate", "stop", workspace_id, OPTED_OUT)
    written = cli.ask("messages", "inbound", workspace_id)
    assert {one["body"] for one in written} == {"Which table?", "STOP"}
    assert [one["phone"] for one in cli.ask("unsubscribes", "list", workspace_id)] == [OPTED_OUT]
    live = cli.ask("workspaces", "create", "Live", "--live")["id"]
    assert "live" in cli.refuse("simulate", "stop", live, OPTED_OUT)


@pytest.mark.parametrize(
    "provider", ["twilio", *(pytest.param(one, marks=_SOAK) for one in STAND_INS if one != "twilio")]
)
def test_a_rehearsal_with_a_stand_in(provider: str, cli: Cli, csv_file: Write, start: Start, tmp_path: Path) -> None:
    """The provider's own adapter sends, and takes signed callbacks, a STOP and failures."""
    credentials = tmp_path / "credentials.json"
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    # The stand-in knows from it where the account's callbacks go, as the operator would tell the provider.
    public = {"OUTREACH_PUBLIC_URL": f"http://127.0.0.1:{port}"}
    start("stand-in", provider, "--credentials", str(credentials), "--json", **public).document()
    workspace = cli.ask("workspaces", "create", "Live", "--live", "--default-region", "US", "--no-contact-hours")["id"]
    account = cli.ask("accounts", "connect", workspace, provider, "--file", str(credentials))
    assert cli.ask("accounts", "check", account["id"])["ok"]
    args = ["campaigns", "import", workspace, csv_file(LIST), "--name", "Spring"]
    if provider in CARRIERS:
        cli.ask("numbers", "create", workspace, SENDER, "--carrier", provider)
        args += [*TEXT, "--carrier", provider]
    else:
        agent = cli.ask(
            *("agents", "create", workspace, "Ada", "--provider", provider, "--provider-agent-id", "agent-1"),
            *(("--from", SENDER) if provider == "retell" else ()),
        )
        args += ["--channel", "call", "--agent", agent["id"]]
        cli.ask("settings", "set", workspace, "--call-retry-max-attempts", "1")
    planned = cli.ask(*args, "--dry-run")
    assert (planned["contacted"], planned["problems"]) == (6, [])
    campaign_id = cli.ask(*args)["id"]
    start("serve", "--port", str(port), **public).says("Serving ")
    cli.ask("campaigns", "start", campaign_id)
    ended(cli, campaign_id)

    def opted_out() -> bool:
        return [one["phone"] for one in cli.ask("unsubscribes", "list", workspace)] == [OPTED_OUT]

    until(opted_out, "the opt-out")
    expected = {
        USUAL: ("completed", None),
        REFUSED: ("failed", "invalid_number"),
        FAILED: ("failed", "unreachable" if provider in CARRIERS else "busy"),
    }
    if provider not in CARRIERS:
        expected |= {ANSWERED: ("failed", "voicemail"), SILENT: ("failed", "no_answer")}
    until(lambda: expected.items() <= results(cli, campaign_id).items(), f"what is expected of {provider}")
    if provider in CARRIERS:
        assert {one["body"] for one in cli.ask("messages", "inbound", workspace)} == {"STOP", "Yes, please"}
