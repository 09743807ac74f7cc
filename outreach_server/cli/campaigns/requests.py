"""`messages` and `calls`: single requests."""

from __future__ import annotations

from typing import Any, get_args

import click

from outreach import Call, CallStatus, Outreach
from outreach.http import to_json, write_call_details, write_managed_call
from outreach.models import CallOutcomeFilter, CallVerdict, ProviderFailure
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.campaigns import explained
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import AGENT, BY_EXTERNAL_ID, BY_METADATA, CALL, CAMPAIGN, LIMIT, WORKSPACE, OneOf


@click.group(cls=Group)
def messages() -> None:
    """List single messages and inbound ones."""


@messages.command("list")
@click.argument("workspace_id", type=WORKSPACE)
@BY_EXTERNAL_ID
@BY_METADATA
@LIMIT
def list_messages(workspace_id: str, limit: int, **wanted: str | None) -> None:
    """List a workspace's single messages, newest first; those of campaigns are not among them."""
    found = with_engine(lambda engine: collect(engine.messages.iter_all(workspace_id, **wanted), limit))
    show_list(
        [documents.message(item) for item in found],
        ("id", "to", "from_number", "carrier", "status", "reason", "purpose", "external_id", "created_at"),
        empty="There are no messages.",
    )


@messages.command("inbound")
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--unclear", is_flag=True, help="Only those that may be an unrecognised opt-out.")
@click.option("--unanswered", is_flag=True, help="Only those of the last 30 days that nobody has answered.")
@LIMIT
def list_inbound(workspace_id: str, unclear: bool, unanswered: bool, limit: int) -> None:
    """List the messages to a workspace's numbers, newest first."""
    chosen = {"unclear": unclear, "unanswered": unanswered}
    found = with_engine(lambda engine: collect(engine.messages.iter_inbound(workspace_id, **chosen), limit))
    show_list(
        [to_json(item) for item in found],
        ("id", "provider", "from_number", "to", "keyword", "unclear", "body", "media", "received_at"),
        empty="There are no messages.",
    )


@click.group(cls=Group)
def calls() -> None:
    """List and show calls, and judge them."""


@calls.command("list")
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--campaign", "campaign_id", type=CAMPAIGN, help="Only those of this campaign.")
@click.option("--agent", "agent_id", type=AGENT, help="Only those of this agent.")
@click.option("--status", type=OneOf([one.value for one in CallStatus]), help="Only those with this status.")
@click.option(
    "--outcome",
    type=OneOf(get_args(CallOutcomeFilter)),
    help="Only those with this outcome; unknown: without one.",
)
@BY_EXTERNAL_ID
@BY_METADATA
@LIMIT
def list_calls(workspace_id: str, status: str | None, limit: int, **wanted: Any) -> None:
    """List a workspace's calls, newest first, those of campaigns too; several filters hold together."""
    of_status = None if status is None else CallStatus(status)
    found = with_engine(lambda engine: collect(engine.calls.iter_all(workspace_id, status=of_status, **wanted), limit))
    show_list(
        [write_managed_call(item) for item in found],
        ("id", "to", "status", "outcome", "duration_seconds", "cost", "cost_currency", "campaign_id", "created_at"),
        empty="There are no such calls.",
    )


@calls.command("show")
@click.argument("call_id", type=CALL)
def show_call(call_id: str) -> None:
    """Show a call; for a failed one, what the provider said, what it means and what to do."""

    async def work(engine: Outreach) -> tuple[Call, str | None, ProviderFailure | None]:
        call = await engine.calls.get_anywhere(call_id)
        said = await engine.calls.transcript(call.workspace_id, call.id)
        return call, said, await engine.calls.failure(call)

    call, said, failed = with_engine(work)
    explained.show_with(write_call_details(call, said), failed)


@calls.command("set-outcome")
@click.argument("call_id", type=CALL)
@click.argument("outcome", type=click.Choice(get_args(CallVerdict)))
@click.option("--summary", help="Replaces the call's summary.")
def set_outcome(call_id: str, outcome: CallVerdict, summary: str | None) -> None:
    """Give an answered call that has ended its outcome. It is final; the campaign's figures follow."""

    async def work(engine: Outreach) -> Call:
        workspace_id = (await engine.calls.get_anywhere(call_id)).workspace_id
        return await engine.calls.set_outcome(workspace_id, call_id, outcome, summary=summary, actor=actor())

    show(write_managed_call(with_engine(work)))
