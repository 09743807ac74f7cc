from __future__ import annotations

import attrs
import pytest

from outreach import Outreach, RecipientStatus
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW
from tests.cli.conftest import Cli
from tests.cli.test_explained import campaign_id, write

__all__ = ["Outreach", "campaign_id"]


@pytest.fixture(name="made")
def _made(campaign_id: str) -> str:
    """Return a campaign of three, of whom one failed at the carrier."""
    return campaign_id


def test_what_cannot_be_undone_is_asked_for(cli: Cli, workspace_id: str, made: str) -> None:
    """Without a terminal, by an option."""
    assert "--yes" in cli.refuse("campaigns", "delete", made, code=2)
    assert "--yes" in cli.refuse("purge", workspace_id, "+14155550101", code=2)
    assert cli.ask("campaigns", "show", made)["total_recipients"] == 3


def test_an_ended_campaign_is_erased(cli: Cli, workspace_id: str, made: str) -> None:
    """Its figures stay, and its contacts are gone; a ready one is gone whole."""
    copy = cli.ask("campaigns", "clone", made)["id"]
    assert "are deleted" in cli.tell("campaigns", "delete", copy, "--yes")
    cli.refuse("campaigns", "show", copy)
    assert "still open" in cli.refuse("campaigns", "delete", cancelled(cli, made), "--yes")


def cancelled(cli: Cli, campaign: str) -> str:
    """Cancel a campaign, whose open contacts only a dispatcher closes; return it."""
    cli.run("campaigns", "cancel", campaign, "--yes")
    return campaign


def test_a_person_is_purged(cli: Cli, workspace_id: str, made: str) -> None:
    """The others stay, and what was opted out stays so."""
    cli.run("unsubscribes", "add", workspace_id, "+14155550103")
    told = cli.tell("purge", workspace_id, "+14155550103", "--yes")
    assert "1 place in a campaign, 0 messages" in told
    assert "as a hash" in told
    document = cli.ask("purge", workspace_id, "+14155550101", "--yes")
    nothing = {"messages": 0, "calls": 0, "replies": 0, "callbacks": 0, "still_opted_out": False}
    assert document == {"contacts": 1, **nothing}
    rows = cli.ask("campaigns", "recipients", made)
    assert [(row["status"], row["reason"]) for row in rows] == [
        ("skipped", "erased"),
        ("failed", "filtered"),
        ("skipped", "erased"),
    ]
    assert {row["first_name"] for row in rows if "first_name" in row} <= {None}
    [entry] = cli.ask("unsubscribes", "list", workspace_id)
    assert entry["phone"].startswith("#")


def test_the_retention_is_a_setting_of_the_workspace(cli: Cli, workspace_id: str, made: str) -> None:
    """Nothing is that old yet."""
    assert cli.ask("workspaces", "update", workspace_id, "--retention-days", "90")["retention_days"] == 90
    assert cli.ask("retention", "run") == {"campaigns": 0, "slices": 0, "more": False, "unreachable": []}
    assert "Erased 0 campaigns" in cli.tell("retention", "run", workspace_id)
    assert cli.ask("workspaces", "update", workspace_id, "--no-retention-days")["retention_days"] is None
    cli.refuse("workspaces", "update", workspace_id, "--retention-days", "0", code=2)


def started(cli: Cli, campaign: str) -> str:
    """Start a campaign; return it."""
    cli.tell("campaigns", "start", campaign)
    return campaign


def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command line ask, as at a terminal."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)


def test_a_campaign_that_was_started_asks_before_it_is_cancelled(
    cli: Cli, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With how many contacts are left; without a terminal it needs --yes, and a ready one asks nothing."""
    ready = cli.ask("campaigns", "clone", made)["id"]
    assert "is cancelled" in cli.tell("campaigns", "cancel", ready)
    started(cli, made)
    assert "--yes" in cli.refuse("campaigns", "cancel", made, code=2)
    answered(monkeypatch)
    refused = cli.run("campaigns", "cancel", made, stdin=b"n\n")
    assert refused.exit_code == 1
    assert refused.stderr.endswith("Nothing was changed.\n")
    assert "Interrupted" not in refused.stderr
    asked = " ".join(refused.output.split())
    assert "which is active? 2 of its 3 contacts are open, and are not contacted any more." in asked
    broken_off = cli.run("campaigns", "cancel", made, stdin=b"")
    assert broken_off.exit_code == 130
    assert broken_off.stderr.endswith("Interrupted.\n")
    assert cli.ask("campaigns", "show", made)["status"] == "active"
    assert "is cancelled" in cli.tell("campaigns", "cancel", made, stdin=b"y\n")


def test_a_cancelled_campaign_names_the_command_that_contacts_the_others(
    cli: Cli, workspace_id: str, made: str
) -> None:
    """It works once they are closed; programs get the document alone."""
    told = cli.tell("campaigns", "cancel", started(cli, made), "--yes")
    command = f"campaigns follow-up {made} --results canceled"
    assert f"outreach-server {command}" in told

    def close(tx: Transaction) -> None:
        for position in (0, 2):
            recipient = tx.recipients.get(workspace_id, made, position)
            assert recipient is not None
            tx.recipients.put(workspace_id, attrs.evolve(recipient, status=RecipientStatus.CANCELED, ended_at=NOW))

    write(cli, close)
    assert cli.ask(*command.split())["total_recipients"] == 2


def test_a_deletion_says_that_open_contacts_wait_for_a_server(cli: Cli, made: str) -> None:
    """Where none runs nobody closes them, however long somebody waits."""
    for command in ("show", "report", "recipients"):
        assert "not attempted yet" in cli.tell("campaigns", command, started(cli, made) if command == "show" else made)
    told = cli.refuse("campaigns", "delete", cancelled(cli, made), "--yes")
    for command in ("show", "report", "recipients"):
        shown = " ".join(cli.tell("campaigns", command, made).split())
        assert "the campaign was cancelled before its turn: a running server closes it" in shown
        assert "not attempted yet" not in shown
    assert "cancelled before its turn" in cli.tell("campaigns", "why", made, "+14155550101")
    assert "cancelled before its turn" in cli.tell("campaigns", "export", made)
    assert "They are not closed until a server runs." in told
    assert "outreach-server serve" in told
