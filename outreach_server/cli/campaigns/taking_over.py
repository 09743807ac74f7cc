"""`campaigns resume --skip-contacted-in`: the contacts of the database that a restore replaced."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import click

from outreach import Campaign, NotFound, Outreach
from outreach.database import shown_url
from outreach.server_support import take_over, take_over_sent
from outreach_server.cli.asking import confirm
from outreach_server.cli.base import actor, state, with_campaign
from outreach_server.cli.output import plural

if TYPE_CHECKING:
    from outreach.models import ContactedMeanwhile, ListedContacts

PROVIDER: Final = "provider"
"""In place of a file: there is no replaced database, and the provider alone is asked."""


@attrs.frozen(kw_only=True)
class TakenOver:
    """The contacts that are taken over.

    Attributes:
        replaced: From the replaced database; None without one.
        listed: From the provider's list; None if it was left out.
    """

    replaced: ContactedMeanwhile | None
    listed: ListedContacts | None


def take_over_contacts(campaign_id: str, replaced: str, *, ask_provider: bool, yes: bool) -> TakenOver:
    """Show what a replaced database and the provider know of a paused campaign, ask, and continue its contacts so.

    Raises:
        click.ClickException: The other database cannot be used for that.
        click.exceptions.Exit: The answer is no.
    """
    if replaced == PROVIDER and not ask_provider:
        raise click.UsageError("--without-provider leaves out what --skip-contacted-in provider asks.")
    url = None if replaced == PROVIDER else _url_of(replaced)
    replaced = shown_place(replaced)

    def run(*, dry_run: bool) -> tuple[Campaign, TakenOver]:
        async def work(engine: Outreach, campaign: Campaign) -> tuple[Campaign, TakenOver]:
            place, seen = (campaign.workspace_id, campaign_id), set[str]()
            # A sandbox has no provider that knows more than its process.
            live = (await engine.workspaces.get(campaign.workspace_id)).mode == "live"
            if url is None and not live:
                raise click.ClickException(
                    "A sandbox has no provider to ask. Name the database that was replaced, or leave "
                    "--skip-contacted-in out: a sandbox contacts nobody."
                )
            found = None
            async with AsyncExitStack() as stack:
                if url is not None:
                    config, simulator = state().configuration()
                    opening = Outreach.open(url, create=False, config=config, simulator=simulator)
                    other = await stack.enter_async_context(opening)
                    await _require_campaign(other, campaign, replaced)
                    found = await take_over(engine, other, *place, seen=seen, dry_run=dry_run, actor=actor())
            listed = None
            if ask_provider and live:
                listed = await take_over_sent(engine, *place, known=seen, dry_run=dry_run, actor=actor())
            return campaign, TakenOver(replaced=found, listed=listed)

        return with_campaign(campaign_id, work)

    campaign, found = run(dry_run=True)
    click.echo("\n".join(_counts(found, replaced)), err=True)
    confirm(f"Resume campaign {campaign.name!r} so?", yes)
    return run(dry_run=False)[1]


async def _require_campaign(other: Outreach, campaign: Campaign, replaced: str) -> None:
    try:
        await other.campaigns.get(campaign.workspace_id, campaign.id)
    except NotFound:
        raise click.ClickException(
            f"{replaced} has no campaign {campaign.id}. Name the database that was replaced, such as "
            "outreach.db.before-restore-20261122T100000Z."
        ) from None


def _url_of(replaced: str) -> str:
    """Return the URL of the replaced database."""
    url = replaced if "://" in replaced else f"sqlite:///{Path(replaced).resolve()}"
    if url == state().database or (url.startswith("sqlite:") and _file(url) == _file(state().database)):
        raise click.UsageError(f"{shown_place(replaced)} is the database itself. Name the one that was replaced.")
    if url.startswith("sqlite:") and not _file(url).is_file():
        raise click.UsageError(f"There is no database {replaced}. Name the one that was replaced, or {PROVIDER}.")
    return url


def shown_place(replaced: str) -> str:
    """Return what was given, without the password of a URL."""
    return shown_url(replaced) if "://" in replaced else replaced


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///")).resolve()


def _counts(found: TakenOver, replaced: str) -> list[str]:
    """Return what is taken over, in sentences."""
    lines = [] if found.replaced is None else _of_database(found.replaced, replaced)
    if found.listed is None:
        lines.append("The provider's list is not read.")
    elif found.listed.provider is None:
        lines.append("The provider cannot list what it was sent.")
    else:
        lines += _of_provider(found.listed, found.listed.provider)
    return lines


def _of_database(found: ContactedMeanwhile, replaced: str) -> list[str]:
    lines = [
        f"{plural(found.contacts, 'contact')} had requests from {replaced} that this database does not know: "
        f"{found.sent:,} were reached, or may have been; {found.unknown:,} of them have an unknown outcome, which is "
        "looked up at the provider. They go on from there."
    ]
    if found.reported:
        lines.append(f"{plural(found.reported, 'contact')} had later reports there, which are taken over too.")
    if found.left_out:
        left_out = plural(found.left_out, "contact")
        lines.append(f"{left_out} had opted out, were erased, or a person had left them out: so they stay.")
    if found.kept:
        lines.append(f"{plural(found.kept, 'contact')} got something from this database since: they stay as they are.")
    if found.missing:
        lines.append(
            f"{plural(found.missing, 'contact')} that were added after the backup are missing here: add them again, "
            "and repeat this command. It finds them by number, and repeats nothing."
        )
    if not found.contacts:
        lines.append("If something was sent after the backup, this is not the database that was replaced.")
    return lines


def _of_provider(found: ListedContacts, provider: str) -> list[str]:
    lines = [f"{plural(found.contacts, 'more contact')} had requests by the list of {provider}. They go on from there."]
    if found.ambiguous:
        lines.append(
            f"For {found.ambiguous:,} of them the request may have been another one, without this text or one of "
            "several: they count as contacted."
        )
    return lines
