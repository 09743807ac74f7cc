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


def names(cli: Cli, workspace_id: str, *options: str) -> list[str]:
    """Return the names in a list."""
    return [one["name"] for one in cli.ask("campaigns", "list", workspace_id, *options)]


def test_archived_campaigns_are_listed_when_asked_for(cli: Cli, workspace_id: str, made: str) -> None:
    """And by their id they are there as ever."""
    assert "archived" in cli.tell("campaigns", "archive", made)
    assert names(cli, workspace_id) == []
    assert names(cli, workspace_id, "--archived") == ["C"]
    assert cli.ask("campaigns", "show", made)["archived_at"]
    assert cli.ask("campaigns", "unarchive", made)["archived_at"] is None
    assert names(cli, workspace_id) == ["C"]


def test_a_clone_is_reported_with_its_contacts(cli: Cli, workspace_id: str, made: str) -> None:
    """Nothing is sent until it is started."""
    told = cli.tell("campaigns", "clone", made)
    assert "'C (copy)' is ready, with 3 contacts" in told
    assert "campaigns start" in told
    document = cli.ask("campaigns", "clone", made, "--name", "D")
    assert (document["name"], document["status"], document["total_recipients"]) == ("D", "ready", 3)
    assert names(cli, workspace_id) == ["D", "C (copy)", "C"]


def test_a_follow_up_takes_the_failed(cli: Cli, workspace_id: str, made: str) -> None:
    """Several results with commas between; what is unknown is named."""
    document = cli.ask("campaigns", "follow-up", made, "--results", "failed, unreachable", "--message", "Again")
    assert (document["total_recipients"], document["selected"], document["left_out"]) == (1, 1, {})
    assert document["sms_message_body"] == "Again"
    assert "nonsense" in cli.refuse("campaigns", "follow-up", made, "--results", "nonsense")
    assert "Nobody has the result" in cli.refuse("campaigns", "follow-up", made, "--results", "expired")


def test_a_campaign_under_way_is_edited(cli: Cli, workspace_id: str, made: str) -> None:
    """Its text and rate; where it is sent from stays."""
    cli.run("campaigns", "start", made)
    cli.run("campaigns", "pause", made)
    changed = cli.ask("campaigns", "update", made, "--message", "Other", "--rate", "9")
    assert (changed["status"], changed["sms_message_body"], changed["sms_rate_per_minute"]) == ("paused", "Other", 9)
    assert "keeps its sending number" in cli.refuse("campaigns", "update", made, "--from", "+14155550177")
