"""`campaigns resume --skip-contacted-in`: after a restore nothing is repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from outreach import Campaign, Outreach
from outreach.models import ContactedMeanwhile, ListedContacts
from outreach.testing.plugin import ENGINE_CONFIG
from outreach_server.cli.campaigns.taking_over import TakenOver, _counts, shown_place
from outreach_server.words import CONTACTED_TWICE
from tests.cli.conftest import Cli, Start

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


def back_up(cli: Cli, workspace_id: str, tmp_path: Path) -> tuple[str, Path]:
    """Make a backup that lacks all that is sent after it; return the campaign, and the backup."""
    people = tmp_path / "people.csv"
    people.write_text("phone\n" + "".join(f"+1415555010{number}\n" for number in range(COUNT)))
    options = ("--name", "C", "--message", "Hi", "--from", "+14155550199", "--carrier", "twilio", "--rate", "600")
    campaign: str = cli.ask("campaigns", "import", workspace_id, str(people), *options)["id"]
    # A worker has begun here, as in each database that has sent something.
    dispatch_until(cli, campaign, lambda found: found.status == "ready")
    cli.ask("campaigns", "start", campaign)
    backup = tmp_path / "backup.db"
    cli.ask("db", "backup", str(backup))
    dispatch_until(cli, campaign, lambda found: found.counters.pending == 0)
    return campaign, backup


def restore(cli: Cli, workspace_id: str, tmp_path: Path) -> tuple[str, str]:
    """Restore a backup that lacks all that was sent; return the campaign, and the file of what was replaced."""
    campaign, backup = back_up(cli, workspace_id, tmp_path)
    kept = cli.ask("db", "restore", str(backup))["kept"]
    assert dispatch_until(cli, campaign, lambda found: found.status == "paused").pause_reason == "restored"
    return campaign, kept


@pytest.fixture
def restored(cli: Cli, workspace_id: str, tmp_path: Path) -> tuple[str, str]:
    """Restore a backup of a sandbox."""
    return restore(cli, workspace_id, tmp_path)


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
    assert done["listed"] is None
    ended = dispatch_until(cli, campaign, lambda found: found.is_terminal)
    assert (ended.status, ended.counters.successful) == ("completed", COUNT)
    assert all(one["attempts"] == 1 for one in cli.ask("campaigns", "recipients", campaign))


def test_the_provider_lists_what_was_sent(cli: Cli, start: Start, tmp_path: Path) -> None:
    """Also where there is no replaced database any more."""
    credentials = tmp_path / "credentials.json"
    start("stand-in", "twilio", "--credentials", str(credentials), "--json").document()
    live = cli.ask("workspaces", "create", "Live", "--live", "--default-region", "US", "--no-contact-hours")["id"]
    cli.ask("accounts", "connect", live, "twilio", "--file", str(credentials))
    cli.ask("numbers", "create", live, "+14155550199", "--carrier", "twilio")
    campaign, kept = restore(cli, live, tmp_path)
    said = cli.run("campaigns", "resume", campaign, "--skip-contacted-in", kept).output
    assert f"{COUNT} contacts had requests from {kept}" in said
    assert "0 more contacts had requests by the list of twilio" in said
    said = cli.run("campaigns", "resume", campaign, "--skip-contacted-in", kept, "--without-provider").output
    assert "The provider's list is not read." in said
    done = cli.ask("campaigns", "resume", campaign, "--skip-contacted-in", "provider", "--yes")
    assert done["taken_over"] is None
    assert done["listed"] == {"provider": "twilio", "contacts": COUNT, "ambiguous": 0}
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
        (("--skip-contacted-in", "provider", "--yes"), "A sandbox has no provider", 1),
        (("--skip-contacted-in", "provider", "--without-provider", "--yes"), "leaves out", 2),
        ((), f"{CONTACTED_TWICE} Add --skip-contacted-in REPLACED_DATABASE, which", 2),
        (("--without-provider",), "--skip-contacted-in", 2),
    )
    for options, words, code in refusals:
        assert words in cli.refuse("campaigns", "resume", campaign, *options, code=code)
    assert cli.ask("campaigns", "show", campaign)["status"] == "paused"
    assert cli.ask("campaigns", "resume", campaign, "--yes")["status"] == "active"


def test_a_backup_that_goes_on_elsewhere_is_not_resumed_without_a_question(
    cli: Cli, workspace_id: str, tmp_path: Path
) -> None:
    """Its host is lost, for example: nothing shows how much was sent after the backup."""
    campaign, backup = back_up(cli, workspace_id, tmp_path)
    elsewhere = Cli(f"sqlite:///{tmp_path / 'elsewhere.db'}")
    elsewhere.ask("db", "restore", str(backup))
    assert dispatch_until(elsewhere, campaign, lambda found: found.status == "paused").pause_reason == "moved"
    said = elsewhere.refuse("campaigns", "resume", campaign, code=2)
    risk = "--skip-contacted-in provider, which contacts nobody twice, or take the risk: add --yes."
    assert f"{CONTACTED_TWICE} Add {risk}" in said
    assert elsewhere.ask("campaigns", "show", campaign)["status"] == "paused"
    assert elsewhere.ask("campaigns", "resume", campaign, "--yes")["status"] == "active"


def test_a_password_of_the_replaced_database_is_not_shown() -> None:
    """A file is shown as it was given."""
    assert shown_place("postgresql://ann:SECRET@db.example/outreach") == "postgresql://db.example/outreach"
    assert shown_place("a@b.db") == "a@b.db"


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (None, ["The provider's list is not read."]),
        (ListedContacts(), ["The provider cannot list what it was sent."]),
        (ListedContacts(provider="twilio", contacts=2), ["2 more contacts had requests by the list of twilio"]),
        (ListedContacts(provider="twilio", contacts=3, ambiguous=1), ["3 more contacts", "For 1 of them"]),
    ],
)
def test_the_counts_tell_what_comes_from_the_file_and_what_from_the_provider(
    listed: ListedContacts | None, words: list[str]
) -> None:
    """Each in its own sentences; without a file those of the provider alone."""
    for replaced in (None, ContactedMeanwhile(contacts=5, sent=4)):
        told = _counts(TakenOver(replaced=replaced, listed=listed), "old.db")
        assert all(one.startswith(part) for one, part in zip(told[-len(words) :], words, strict=True))
        assert any(one.startswith("5 contacts had requests from old.db") for one in told) is (replaced is not None)
