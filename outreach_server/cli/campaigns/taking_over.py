"""`campaigns resume --skip-contacted-in`: what was sent from the database that a restore replaced."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from outreach import Campaign, NotFound, Outreach
from outreach.server_support import take_over
from outreach_server.cli.asking import confirm
from outreach_server.cli.base import actor, state, with_campaign
from outreach_server.cli.output import amount

if TYPE_CHECKING:
    from outreach.models import ContactedMeanwhile


def take_over_contacts(campaign_id: str, replaced: str, *, yes: bool) -> ContactedMeanwhile:
    """Show what a replaced database knows of a paused campaign, ask, and continue its contacts from there.

    Raises:
        click.ClickException: The other database cannot be used for that.
        click.exceptions.Exit: The answer is no.
    """
    url = _url_of(replaced)

    def run(*, dry_run: bool) -> tuple[Campaign, ContactedMeanwhile]:
        async def work(engine: Outreach, campaign: Campaign) -> tuple[Campaign, ContactedMeanwhile]:
            config, simulator = state().configuration()
            async with Outreach.open(url, create=False, config=config, simulator=simulator) as other:
                try:
                    await other.campaigns.get(campaign.workspace_id, campaign_id)
                except NotFound:
                    raise click.ClickException(
                        f"{replaced} has no campaign {campaign_id}. Name the database that was replaced, such as "
                        "outreach.db.before-restore-20261122T100000Z."
                    ) from None
                return campaign, await take_over(
                    engine, other, campaign.workspace_id, campaign_id, dry_run=dry_run, actor=actor()
                )

        return with_campaign(campaign_id, work)

    campaign, found = run(dry_run=True)
    click.echo(_counts(found, replaced), err=True)
    confirm(f"Resume campaign {campaign.name!r} so?", yes)
    return run(dry_run=False)[1]


def _url_of(replaced: str) -> str:
    """Return the URL of the replaced database."""
    url = replaced if "://" in replaced else f"sqlite:///{Path(replaced).resolve()}"
    if url == state().database or (url.startswith("sqlite:") and _file(url) == _file(state().database)):
        raise click.UsageError(f"{replaced} is the database itself. Name the one that was replaced.")
    if url.startswith("sqlite:") and not _file(url).is_file():
        raise click.UsageError(f"There is no database {replaced}.")
    return url


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///")).resolve()


def _counts(found: ContactedMeanwhile, replaced: str) -> str:
    """Return what is taken over, in sentences."""
    lines = [
        f"{amount(found.contacts, 'contact')} had requests from {replaced} that this database does not know: "
        f"{found.sent:,} were reached, or may have been; {found.unknown:,} of them have an unknown outcome, which is "
        "looked up at the provider. They go on from there."
    ]
    if found.reported:
        lines.append(f"{amount(found.reported, 'contact')} had later reports there, which are taken over too.")
    if found.left_out:
        lines.append(f"{amount(found.left_out, 'contact')} had opted out, or a person had left them out: so they stay.")
    if found.kept:
        lines.append(f"{amount(found.kept, 'contact')} got something from this database since: they stay as they are.")
    if found.missing:
        lines.append(
            f"{amount(found.missing, 'contact')} that were added after the backup are missing here: add them again, "
            "but for those who were reached."
        )
    if not found.contacts:
        lines.append("If something was sent after the backup, this is not the database that was replaced.")
    return "\n".join(lines)
