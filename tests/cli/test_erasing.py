from __future__ import annotations

import pytest

from outreach import Outreach
from tests.cli.conftest import Cli
from tests.cli.test_explained import campaign_id

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
    cli.run("campaigns", "cancel", campaign)
    return campaign


def test_a_person_is_purged(cli: Cli, workspace_id: str, made: str) -> None:
    """The others stay, and what was opted out stays so."""
    cli.run("unsubscribes", "add", workspace_id, "+14155550103")
    told = cli.tell("purge", workspace_id, "+14155550103", "--yes")
    assert "1 place in a campaign, 0 messages" in told
    assert "as a hash" in told
    document = cli.ask("purge", workspace_id, "+14155550101", "--yes")
    assert document == {"contacts": 1, "messages": 0, "calls": 0, "callbacks": 0, "still_opted_out": False}
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
