"""`campaigns delete`, `purge` and `retention`: what is erased for good."""

from __future__ import annotations

import sys

import click

from outreach import Campaign, Conflict, Outreach
from outreach.http import to_json
from outreach.models import PurgeResult
from outreach_server.cli import documents
from outreach_server.cli.asking import YES, confirm
from outreach_server.cli.base import EXIT_FAILED, Command, Group, actor, state, with_campaign, with_engine
from outreach_server.cli.output import echo_json, note, plural
from outreach_server.cli.problems import problem_text
from outreach_server.cli.values import CAMPAIGN, WORKSPACE


@click.command("delete", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@YES
def delete_(campaign_id: str, yes: bool) -> None:
    """Delete a campaign that has not started, or erase the contacts and texts of an ended one.

    An erased campaign keeps its figures, and is archived.
    """
    confirm("Delete the campaign with its contacts?", yes)

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Campaign, Campaign | None]:
        try:
            return campaign, await engine.campaigns.delete(campaign.workspace_id, campaign_id, actor=actor())
        except Conflict as error:
            problem = (await engine.status(campaign.workspace_id)).dispatching.problem
            if not campaign.is_terminal or problem is None:
                raise
            raise click.ClickException(
                f"{error.message} They are not closed until a server runs. {problem_text(problem, engine.now())}"
            ) from None

    before, erased = with_campaign(campaign_id, work)
    if state().as_json:
        document = documents.campaign(erased or before)
        echo_json({"deleted": erased is None, "erased": erased is not None, "campaign": document})
    elif erased is None:
        click.echo(f"Campaign {before.name!r} and its {plural(before.counters.total, 'contact')} are deleted.")
    else:
        click.echo(f"The contacts and texts of campaign {erased.name!r} are erased; its figures stay.")


@click.command("purge", cls=Command)
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phone")
@YES
def purge(workspace_id: str, phone: str, yes: bool) -> None:
    """Erase one person from a workspace: number, names, texts, replies, calls. An opt-out stays, as a hash."""
    confirm("Erase everything about this number?", yes)
    result = with_engine(lambda engine: engine.erasure.purge(workspace_id, phone, actor=actor()))
    if result == PurgeResult():
        raise click.ClickException(f"{phone} is not in this workspace: nothing was erased. Check the number.")
    if state().as_json:
        echo_json(to_json(result))
        return
    erased = (
        (result.contacts, "place in a campaign", "places in campaigns"),
        (result.messages, "message", "messages"),
        (result.calls, "call", "calls"),
        (result.replies, "reply", "replies"),
        (result.callbacks, "event of a provider", "events of providers"),
    )
    click.echo(f"Erased: {', '.join(f'{count} {one if count == 1 else many}' for count, one, many in erased)}.")
    if result.still_opted_out:
        note("The number stays on the unsubscribe register, as a hash: it is not contacted again.")
    note("Backups of the database still hold it.")


@click.group(cls=Group)
def retention() -> None:
    """Erase what workspaces keep no longer."""


@retention.command("run")
@click.argument("workspace_id", type=WORKSPACE, required=False)
def run_(workspace_id: str | None) -> None:
    """Erase now what is older than `workspaces update --retention-days`, in one workspace or in all.

    A server that dispatches does so by itself.
    """
    result = with_engine(lambda engine: engine.erasure.apply_retention(workspace_id, actor=actor()))
    if state().as_json:
        echo_json(to_json(result))
        sys.exit(EXIT_FAILED if result.unreachable else 0)
    click.echo(f"Erased {result.campaigns} campaigns, in {result.slices} slices.")
    if result.more:
        note("More is left: run it again.")
    for problem in result.unreachable:
        note(f"Erased campaigns are still in an archive. {problem}")
    if result.unreachable:
        sys.exit(EXIT_FAILED)
