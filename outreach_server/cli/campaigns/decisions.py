"""`dispatches`: requests with an unknown outcome, and decisions about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

import attrs
import click

from outreach import Dispatch, Outreach
from outreach.http import to_json
from outreach.models import DecisionResult, DispatchFilter, DispatchLookUp, OperatorDecision
from outreach_server.cli import documents
from outreach_server.cli.asking import YES, confirm
from outreach_server.cli.base import Group, actor, state, with_engine
from outreach_server.cli.campaigns.times import with_offset
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import echo_json, plural, show, show_list
from outreach_server.cli.values import CAMPAIGN, DISPATCH, MOMENT, WORKSPACE, options

_FILTER = (
    click.option("--workspace", "workspace_id", type=WORKSPACE, help="All requests of this workspace."),
    click.option("--campaign", "campaign_id", type=CAMPAIGN, help="Only those of this campaign."),
    click.option("--provider", help="Only those to this carrier or voice provider."),
    click.option("--since", type=MOMENT, help="Only those made from then on, such as 2026-11-30T09:00, in UTC."),
    click.option("--until", type=MOMENT, help="Only those made before then."),
    click.option(
        "--reason",
        help="Only those with this reason, or this error code of the provider; after a decision assumed_sent or "
        "operator_retry.",
    ),
    click.option("--dry-run", is_flag=True, help="Only count them."),
    YES,
)


@attrs.frozen(kw_only=True)
class _Chosen:
    """The requests that a command is about.

    Attributes:
        workspace_id: Their workspace; None for that of their campaign.
        yes: Whether nobody is asked before the change.
    """

    workspace_id: str | None
    which: DispatchFilter
    dry_run: bool
    yes: bool

    @classmethod
    def of_options(
        cls,
        *,
        workspace_id: str | None,
        since: datetime | None,
        until: datetime | None,
        dry_run: bool,
        yes: bool,
        **conditions: Any,
    ) -> Self:
        """Return the requests that the options of `_FILTER` choose."""
        which = DispatchFilter(
            since=with_offset("--since", since, "UTC"), until=with_offset("--until", until, "UTC"), **conditions
        )
        return cls(workspace_id=workspace_id, which=which, dry_run=dry_run, yes=yes)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a workspace nor a condition."""
        return self.workspace_id is None and self.which == DispatchFilter()

    def decide(self, engine: Outreach, workspace_id: str, decision: OperatorDecision | None, *, dry_run: bool) -> Any:
        """Decide about the requests, or take the decisions about them back."""
        if decision is None:
            return engine.dispatches.undo_many(workspace_id, self.which, dry_run=dry_run, actor=actor())
        return engine.dispatches.resolve_many(workspace_id, decision, self.which, dry_run=dry_run, actor=actor())

    def run(self, decision: OperatorDecision | None, question: str, warning: str) -> None:
        """Show what a decision does, ask, and make it.

        Raises:
            click.UsageError: No workspace is named.
        """
        if self.workspace_id is None and self.which.campaign_id is None:
            raise click.UsageError("Say whose requests: --workspace or --campaign.")

        async def work(engine: Outreach, *, dry_run: bool) -> DecisionResult:
            workspace_id = self.workspace_id
            if workspace_id is None:
                workspace_id = (await engine.campaigns.get_anywhere(self.which.campaign_id or "")).workspace_id
            result: DecisionResult = await self.decide(engine, workspace_id, decision, dry_run=dry_run)
            return result

        if self.dry_run or not self.yes:
            planned = with_engine(lambda engine: work(engine, dry_run=True))
            if state().as_json and (self.dry_run or not planned.changed):
                echo_json({"dry_run": self.dry_run, **to_json(planned)})
                return
            click.echo(_summary(planned, "would change"), err=not self.dry_run)
            if self.dry_run or not planned.changed:
                return
            confirm(question, yes=False, warning=warning)
        done = with_engine(lambda engine: work(engine, dry_run=False))
        if state().as_json:
            echo_json({"dry_run": False, **to_json(done)})
        else:
            click.echo(_summary(done, "changed"))


def _summary(result: DecisionResult, verb: str) -> str:
    """Return what a decision does, as a sentence."""
    states = ", ".join(f"{count} {name}" for name, count in sorted(result.becomes.items()))
    kept = f" {plural(result.kept, 'request')} stay as they are." if result.kept else ""
    return f"{plural(result.changed, 'contact')} {verb}{f': {states}' if states else ''}.{kept}"


@click.group(cls=Group)
def dispatches() -> None:
    """List requests with an unknown outcome, and resolve them."""


@dispatches.command("unknown")
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--limit", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="How many.")
def unknown(workspace_id: str, limit: int) -> None:
    """List the unknown requests, oldest first. They are looked up at the provider until their deadline."""
    found = with_engine(lambda engine: collect(engine.dispatches.iter_unknown(workspace_id), limit + 1))
    show_list(
        [documents.dispatch(item) for item in found[:limit]],
        ("id", "created_at", "channel", "to", "provider", "reason", "campaign_id"),
        empty="No request is unknown.",
    )
    if len(found) > limit:
        # For programs too, which would take the list as complete.
        click.echo(f"Only the first {limit} are shown. See more with --limit.", err=True)


@dispatches.command("look-up")
@click.argument("dispatch_id", type=DISPATCH)
def look_up(dispatch_id: str) -> None:
    """Ask the provider now what became of an unknown request. Nothing is sent."""

    async def work(engine: Outreach) -> DispatchLookUp:
        workspace_id = (await engine.dispatches.get_anywhere(dispatch_id)).workspace_id
        return await engine.dispatches.look_up(workspace_id, dispatch_id, actor=actor())

    found = with_engine(work)
    show({**documents.dispatch(found.dispatch), "answer": found.answer})


@dispatches.command("resolve")
@click.argument("dispatch_id", type=DISPATCH, required=False)
@click.option("--assume-sent", is_flag=True, help="Treat it as accepted.")
@click.option("--retry", is_flag=True, help="Send it again: the contact may get it twice.")
@options(*_FILTER)
def resolve(dispatch_id: str | None, assume_sent: bool, retry: bool, **filters: Any) -> None:
    """Resolve an unknown request by either --assume-sent or --retry, or all that the filters name.

    A retry is refused while the first request may still be running. With filters it first shows how many contacts it
    concerns and what becomes of them, and asks.
    """
    if assume_sent == retry:
        raise click.UsageError("Give either --assume-sent or --retry.")
    decision: OperatorDecision = "retry" if retry else "assume_sent"
    chosen = _Chosen.of_options(**filters)
    if dispatch_id is None:
        warning = "Contacts may be reached twice." if retry else "They are not contacted again for this request."
        chosen.run(decision, "Resolve them?", warning)
        return
    if not chosen.is_empty or chosen.dry_run:
        raise click.UsageError("Give either one request or filters.")

    async def work(engine: Outreach) -> Dispatch:
        workspace_id = (await engine.dispatches.get_anywhere(dispatch_id)).workspace_id
        return await engine.dispatches.resolve(workspace_id, dispatch_id, decision, actor=actor())

    show(documents.dispatch(with_engine(work)))


@dispatches.command("undo")
@options(*_FILTER)
def undo(**filters: Any) -> None:
    """Take decisions of `resolve` back where nothing was sent since: the requests are unknown again."""
    _Chosen.of_options(**filters).run(None, "Take the decisions back?", "The requests are unknown again.")
