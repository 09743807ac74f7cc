"""`campaigns`: loading, looking at and moving campaigns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import click

from outreach import (
    Campaign,
    CampaignStatus,
    CampaignUpdate,
    CannotStart,
    Channel,
    ErrorDetail,
    Outreach,
    RecipientStatus,
    StartCheck,
)
from outreach_server.cli import documents, explained
from outreach_server.cli.base import Command, Group, actor, state, with_engine
from outreach_server.cli.campaign_import import import_
from outreach_server.cli.campaign_watch import watch_
from outreach_server.cli.campaign_why import why_
from outreach_server.cli.hours import hours_text
from outreach_server.cli.obstacles import explain_draft, explain_failing, explain_start, not_ahead
from outreach_server.cli.output import console, echo_json, fields, note, show_list, stream_array, stream_lines
from outreach_server.cli.progress import (
    Look,
    Snapshot,
    groups_table,
    hints,
    message_counts,
    messages_text,
    what_it_waits_for,
)
from outreach_server.cli.values import AGENT, CAMPAIGN, CARRIER, FLOW, WORKSPACE, Text

_COLUMNS = ("id", "name", "channel", "effective_status", "recipients", "pending", "completed")
_WIDTHS = {
    "position": 8,
    "phone_number": 20,
    "phone": 16,
    "status": 11,
    "reason": 16,
    "attempts": 8,
    "due_at": 27,
    "ended_at": 27,
    "error_code": 10,
    "why": 0,
}
_COUNTERS = {
    "total_recipients": "recipients",
    "pending_calls": "pending",
    "completed_calls": "completed",
    "successful_calls": "successful",
    "failed_calls": "failed",
}
"""The interface counts recipients as calls, of whatever channel; people are told of recipients."""
_PAGE = 100
_HEAD = ("id", "workspace_id", "name", "description", "channel", "status", "effective_status")
_ALWAYS = frozenset(
    {
        *("id", "workspace_id", "name", "channel", "status", "effective_status"),
        *("total_recipients", "pending_calls", "completed_calls", "successful_calls", "failed_calls", "created_at"),
    }
)
"""What is shown of every campaign; the rest where it holds something."""
_BRIEF = (
    *_HEAD,
    *("pause_reason", "held_by", "held_until", "sms_message_source", "sms_message_body", "sms_flow_id", "sms_carrier"),
    *("sms_from_number", "sms_rate_per_minute", "agent_id", "batch_concurrency", "sip_trunk_id", "cli_group_config"),
    *("double_dial", "ivr_enabled", "call_screen_enabled", "schedule_type", "scheduled_start_at"),
    *("scheduled_expires_at", "business_hours_config", "holidays_config", "total_recipients", "pending_calls"),
    *("completed_calls", "successful_calls", "failed_calls", "created_at", "started_at", "completed_at"),
)


@click.group(cls=Group)
def campaigns() -> None:
    """Load, look at and move campaigns."""


campaigns.add_command(import_)
campaigns.add_command(watch_)
campaigns.add_command(why_)


@campaigns.command("list")
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--channel", type=click.Choice(["sms", "call"]), help="Of one channel only.")
@click.option(
    "--status", type=click.Choice(list(CampaignStatus), case_sensitive=False), help="In this stored status only."
)
@click.option("--search", metavar="TEXT", help="With this in the name, in whatever case.")
@click.option("--limit", type=click.IntRange(1), help="The newest so many; by default all.")
def list_(
    workspace_id: str,
    channel: Literal["sms", "call"] | None,
    status: CampaignStatus | None,
    search: str | None,
    limit: int | None,
) -> None:
    """List a workspace's campaigns, newest first."""

    async def work(engine: Outreach) -> list[Campaign]:
        await engine.workspaces.get(workspace_id)
        found: list[Campaign] = []
        page = 1
        while True:
            got = await engine.campaigns.list(
                workspace_id, channel=channel, status=status, search=search, page=page, page_size=_PAGE
            )
            found.extend(got.items)
            if len(got.items) < _PAGE or (limit is not None and len(found) >= limit):
                return found[:limit]
            page += 1

    found = [documents.campaign(item) for item in with_engine(work)]
    show_list(
        found if state().as_json else [_in_words(one) for one in found],
        _COLUMNS,
        empty="There are no such campaigns. Load one with: outreach-server campaigns import WORKSPACE_ID FILE.csv …",
    )


@campaigns.command()
@click.argument("campaign_id", type=CAMPAIGN)
@click.option("--name", type=Text(1, 100), help="A new name.")
@click.option("--message", "message_body", type=Text(0, 1600), help="The message template.")
@click.option("--from", "sms_from_number", metavar="NUMBER", help="The sending number.")
@click.option("--carrier", "sms_carrier", type=CARRIER, help="The carrier that sends.")
@click.option("--rate", "sms_rate_per_minute", type=click.IntRange(1, 600), help="Messages a minute.")
@click.option("--flow", "sms_flow_id", type=FLOW, help="The automation flow that drives it.")
@click.option("--agent", "agent_id", type=AGENT, help="The agent of a calling campaign.")
def update(campaign_id: str, **options: Any) -> None:
    """Change a campaign that has not started; it becomes ready once it lacks nothing."""
    change = CampaignUpdate(**options)
    if change == CampaignUpdate():
        raise click.UsageError("Name something to change; see --help.")

    async def work(engine: Outreach) -> tuple[Campaign, Sequence[ErrorDetail]]:
        workspace_id = (await engine.campaigns.find(campaign_id)).workspace_id
        updated = await engine.campaigns.update(workspace_id, campaign_id, change, actor=actor())
        return updated, await engine.campaigns.missing(workspace_id, campaign_id)

    updated, missing = with_engine(work)
    _show({**documents.campaign(updated), "missing": documents.plain(missing)})
    if missing:
        note(explain_draft(missing, updated))


@campaigns.command()
@click.argument("campaign_id", type=CAMPAIGN)
@click.option(
    "--allow-unknown-placeholders",
    is_flag=True,
    help="Start it although its text has placeholders that nothing fills: a blank is sent there.",
)
def start(campaign_id: str, allow_unknown_placeholders: bool) -> None:
    """Start a ready campaign; one with a start ahead becomes scheduled."""

    async def work(engine: Outreach) -> tuple[Campaign, StartCheck]:
        campaign = await engine.campaigns.find(campaign_id)
        try:
            # Before, so that it is told of those who wait to be sent to, and not of those who have been.
            checked = await engine.campaigns.check_start(campaign.workspace_id, campaign_id)
            started = await engine.campaigns.start(
                campaign.workspace_id,
                campaign_id,
                allow_unknown_placeholders=allow_unknown_placeholders,
                actor=actor(),
            )
        except CannotStart as error:
            raise click.ClickException(explain_start(error, campaign)) from None
        return started, checked

    started, checked = with_engine(work)
    check = {"looked_at": checked.looked_at, "will_fail": dict(checked.will_fail)}
    _tell_moved(started, _follow, check)
    if checked.failing:
        note(explain_failing(checked, started))
    if not_ahead(started):
        note(f"Its start, {documents.plain(started.scheduled_start_at)}, has passed: it starts at once.")


def _move(name: str, description: str, hint: Callable[[Campaign], str | None]) -> click.Command:
    """Return the command that moves a campaign."""

    @click.argument("campaign_id", type=CAMPAIGN)
    def command(campaign_id: str) -> None:
        async def work(engine: Outreach) -> Campaign:
            campaign = await engine.campaigns.find(campaign_id)
            try:
                moved: Campaign = await getattr(engine.campaigns, name)(
                    campaign.workspace_id, campaign_id, actor=actor()
                )
            except CannotStart as error:
                raise click.ClickException(explain_start(error, campaign)) from None
            return moved

        _tell_moved(with_engine(work), hint)

    return click.command(name, cls=Command, help=description)(command)


def _tell_moved(
    moved: Campaign, hint: Callable[[Campaign], str | None], more: Mapping[str, object] = MappingProxyType({})
) -> None:
    if state().as_json:
        echo_json({**documents.campaign(moved), **more})
        return
    click.echo(f"Campaign {moved.name!r} is {moved.status}.")
    text = hint(moved)
    if text is not None:
        note(text)


def _follow(campaign: Campaign) -> str | None:
    if campaign.status is CampaignStatus.SCHEDULED:
        return what_it_waits_for(campaign)
    return f"A running server sends it. Follow it with: outreach-server campaigns watch {campaign.id}"


def _nothing(_: Campaign) -> str | None:
    return None


def _resumable(campaign: Campaign) -> str | None:
    return f"Go on with: outreach-server campaigns resume {campaign.id}"


for name, description, hint in (
    ("pause", "Pause a campaign; what is not on its way stays unsent.", _resumable),
    ("resume", "Let a paused campaign go on.", _follow),
    ("cancel", "Cancel a campaign for good.", _nothing),
    ("unschedule", "Take a scheduled campaign back to ready.", _nothing),
):
    campaigns.add_command(_move(name, description, hint))


@campaigns.command("show")
@click.argument("campaign_id", type=CAMPAIGN)
def show_(campaign_id: str) -> None:
    """Show a campaign, and how many of its recipients are in which state and why."""

    async def work(engine: Outreach) -> tuple[Snapshot, list[documents.Document]]:
        campaign = await engine.campaigns.find(campaign_id)
        picture = await Look(engine, campaign.workspace_id, campaign_id).now()
        return picture, explained.counted(await engine.failures.of_campaign(campaign.workspace_id, campaign_id))

    picture, failures = with_engine(work)
    document = {**documents.campaign(picture.campaign), **documents.holds(picture.holds)}
    if state().as_json:
        counts = {"groups": picture.documents, "messages": message_counts(picture.campaign, picture.sent)}
        echo_json({**document, "missing": documents.plain(picture.missing), **counts, "failures": failures})
        return
    _show(document)
    out = console()
    for text in hints(picture):
        out.print(text)
    out.print(groups_table(picture.documents))
    messages = messages_text(picture.campaign, picture.sent)
    if messages:
        out.print(messages)
    if failures:
        out.print("What went wrong at the provider, by how many requests:")
        out.print(explained.counted_table(failures))


@campaigns.command()
@click.argument("campaign_id", type=CAMPAIGN)
@click.option("--status", type=click.Choice(list(RecipientStatus), case_sensitive=False), help="In this state only.")
@click.option("--limit", type=click.IntRange(1), help="The first so many; by default all.")
def recipients(campaign_id: str, status: RecipientStatus | None, limit: int | None) -> None:
    """List a campaign's recipients: what became of each, and why."""
    as_json = state().as_json

    async def found(engine: Outreach, workspace_id: str, channel: Channel) -> AsyncIterator[documents.Document]:
        count = 0
        async for one in engine.failures.outcomes(workspace_id, campaign_id, status=status):
            shown = {
                **documents.recipient(one.recipient, channel, one.report),
                **explained.failure(one.failure),
            }
            # A line has room for one sentence: what the provider says tells more.
            yield shown if as_json else {**shown, "why": shown["meaning"] or shown["why"]}
            count += 1
            if count == limit:
                return

    async def work(engine: Outreach) -> None:
        campaign = await engine.campaigns.find(campaign_id)
        rows = found(engine, campaign.workspace_id, campaign.channel)
        if as_json:
            await stream_array(rows)
        elif await stream_lines(rows, _WIDTHS) == 0:
            note("There are no such recipients.")

    with_engine(work)


def _show(document: documents.Document) -> None:
    if state().as_json:
        echo_json(document)
        return
    shown = {name: document[name] for name in _BRIEF if name in _ALWAYS or document.get(name)}
    if document["channel"] == "sms":
        shown.pop("batch_concurrency", None)
    hours, holidays = document["business_hours_config"], document["holidays_config"]
    if hours:
        shown["business_hours_config"] = hours_text(hours)
    if holidays:
        days = [day for day in holidays["holidays"] if day["enabled"]]
        shown["holidays_config"] = f"{holidays['country'] or 'own dates'}: {len(days)} dates"
    console().print(fields(_in_words(shown)))


def _in_words(document: documents.Document) -> documents.Document:
    return {_COUNTERS.get(name, name): value for name, value in document.items()}
