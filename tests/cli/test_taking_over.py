"""`campaigns resume --skip-contacted-in`: after a restore nothing is repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from outreach import Campaign, Outreach
from outreach.testing.plugin import ENGINE_CONFIG
from tests.cli.conftest import Cli

COUNT = 4


def dispatch_until(cli: Cli, campaign_id: str, fits: Callable[[Campaign], bool]) -> Campaign:
    """Send from the database until a campaign is so."""

    async def work() -> Campaign:
        async with Outreach.open(cli.database, dispatch=True, config=ENGINE_CONFIG) as engine:
            with anyio.fail_after(60):
                while not fits(found := await engine.campaigns.get_anywhere(campaign_id)):  # noqa: ASYNC110 - of a database
                    await anyio.sleep(0.05)
            return found

    return anyio.run(work)


@pytest.fixture
def restored(cli: Cli, workspace_id: str, tmp_path: Path) -> tuple[str, str]:
    """Restore a backup that lacks all that was sent; return the campaign, and the file of what was replaced."""
    people = tmp_path / "people.csv"
    people.write_text("phone\n" + "".join(f"+1415555010{number}\n" for number in range(COUNT)))
    options = ("--name", "C", "--message", "Hi", "--from", "+14155550199", "--carrier", "twilio", "--rate", "600")
    campaign: str = cli.ask("campaigns", "import", workspace_id, str(people), *options)["id"]
    cli.ask("campaigns", "start", campaign)
    backup = tmp_path / "backup.db"
    cli.ask("db", "backup", str(backup))
    dispatch_until(cli, campaign, lambda found: found.counters.pending == 0)
    kept = cli.ask("db", "restore", str(backup))["kept"]
    assert dispatch_until(cli, campaign, lambda found: found.status == "paused").pause_reason == "restored"
    return campaign, kept


def test_what_was_sent_from_the_replaced_database_is_not_sent_again(cli: Cli, restored: tuple[str, str]) -> None:
    """The counts are shown before; without a terminal nothing is done unless --yes is given."""
    campaign, kept = restored
    said = cli.run("campaigns", "resume", campaign, "--skip-contacted-in", kept)
    assert said.exit_code == 2
    assert f"{COUNT} contacts had requests" in said.output
    assert "add --yes" in said.output
    assert cli.ask("campaigns", "show", campaign)["status"] == "paused"
    done = cli.ask("campaigns", "resume", campaign, "--skip-contacted-in", f"sqlite:///{kept}", "--yes")
    assert (done["taken_over"]["contacts"], done["taken_over"]["sent"]) == (COUNT, COUNT)
    ended = dispatch_until(cli, campaign, lambda found: found.is_terminal)
    assert (ended.status, ended.counters.successful) == ("completed", COUNT)
    assert all(one["attempts"] == 1 for one in cli.ask("campaigns", "recipients", campaign))


def test_another_database_is_refused(cli: Cli, restored: tuple[str, str], tmp_path: Path) -> None:
    """The database itself, a file that is not there, one without the campaign; --yes alone has nothing to say."""
    campaign, _ = restored
    other = tmp_path / "other.db"
    Cli(f"sqlite:///{other}").ask("workspaces", "create", "Other")
    refusals: Any = (
        (("--skip-contacted-in", cli.database, "--yes"), "the database itself", 2),
        (("--skip-contacted-in", str(tmp_path / "none.db"), "--yes"), "There is no database", 2),
        (("--skip-contacted-in", str(other), "--yes"), "has no campaign", 1),
        (("--yes",), "--skip-contacted-in", 2),
    )
    for options, words, code in refusals:
        assert words in cli.refuse("campaigns", "resume", campaign, *options, code=code)
    assert cli.ask("campaigns", "show", campaign)["status"] == "paused"
