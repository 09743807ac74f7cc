"""`campaigns start`, `pause`, `resume` and the other commands that move a campaign."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import click

from outreach import Campaign, CampaignStatus, Outreach
from outreach.errors import CannotStart, Problem
from outreach.http import to_json
from outreach.models import StartCheck
from outreach.protocols import SystemClock
from outreach.reasons import SAFE_RESUME_OPTIONS
from outreach_server.cli import documents
from outreach_server.cli.asking import YES, confirm
from outreach_server.cli.base import Command, actor, state, with_campaign, with_engine
from outreach_server.cli.campaigns.picture import waiting_text
from outreach_server.cli.campaigns.taking_over import take_over_contacts
from outreach_server.cli.durations import time_text
from outreach_server.cli.output import echo_json, note, plural
from outreach_server.cli.problems import contacts_checked, explain_failing, explain_start, explain_values, problem_text
from outreach_server.cli.values import CAMPAIGN
from outreach_server.words import CONTACTED_TWICE


@click.command("start", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option(
    "--allow-unknown-placeholders",
    is_flag=True,
    help="Start although the text has placeholders without a value: a blank is sent for them.",
)
def start_(campaign_id: str, allow_unknown_placeholders: bool) -> None:
    """Start a ready campaign; one with a future start becomes scheduled."""

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Campaign, StartCheck, str | None]:
        try:
            # Checked before the start, so that it counts recipients that still wait.
            checked = await engine.campaigns.check_start(campaign.workspace_id, campaign_id)
            started = await engine.campaigns.start(
                campaign.workspace_id,
                campaign_id,
                allow_unknown_placeholders=allow_unknown_placeholders,
                actor=actor(),
            )
        except CannotStart as error:
            raise click.ClickException(explain_start(error.details, campaign)) from None
        return started, checked, await _hint(engine, started, _follow)

    started, checked, hint = with_campaign(campaign_id, work)
    check = {
        "looked_at": checked.checked,
        "will_fail": dict(checked.failures_by_reason),
        "placeholder_problems": to_json(checked.placeholder_problems),
        "text_warnings": to_json(checked.text_warnings),
        "warnings": [one.message for one in checked.warnings],
    }
    _show_moved(started, hint, check)
    _warn(checked.warnings)
    if checked.failing:
        note(explain_failing(checked, started))
    for line in explain_values(checked.placeholder_problems, contacts_checked(checked)):
        note(line)
    for suspicious in checked.text_warnings:
        note(suspicious.message)
    if started.schedule_type == "scheduled" and started.status == "active":
        note(f"Its start, {_start_text(started)}, has passed: it starts at once.")


def _warn(warnings: Sequence[Problem]) -> None:
    for warning in warnings:
        note(f"Warning: {warning.message}")


def _start_text(campaign: Campaign) -> str:
    return time_text(campaign.scheduled_start_at, campaign.timezone) if campaign.scheduled_start_at else ""


Hint = Callable[[Outreach, Campaign], Awaitable[str]]
"""A hint for people after a campaign was moved."""

_MOVED: Final = "Campaign {name!r} is {status}."


def _move(name: str, description: str, hint: Hint | None = None, *, sentence: str = _MOVED) -> click.Command:
    """Return the command that moves a campaign by the service's method of the same name.

    Args:
        name: The command's name.
        description: Its help.
        hint: What people do next, if anything.
        sentence: What has happened, with `{name}` and `{status}`.
    """

    @click.argument("campaign_id", type=CAMPAIGN)
    def command(campaign_id: str) -> None:
        async def work(engine: Outreach, campaign: Campaign) -> tuple[Campaign, str | None]:
            moved: Campaign = await getattr(engine.campaigns, name)(campaign.workspace_id, campaign_id, actor=actor())
            return moved, await _hint(engine, moved, hint)

        moved, next_step = with_campaign(campaign_id, work)
        _show_moved(moved, next_step, sentence=sentence)

    return click.command(name, cls=Command, help=description)(command)


@click.command("resume", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option(
    "--skip-contacted-in",
    "replaced",
    metavar="FILE|URL|provider",
    help="After a restore or a move: do not repeat what was sent from the database that was replaced, or what the "
    "provider lists. Shows how much, and asks.",
)
@click.option("--without-provider", is_flag=True, help="Go by the replaced database alone.")
@YES
def resume_(campaign_id: str, replaced: str | None, without_provider: bool, yes: bool) -> None:
    """Resume a paused campaign; one of a restored or moved database asks before."""
    if replaced is None and without_provider:
        raise click.UsageError("--without-provider goes with --skip-contacted-in.")
    more = {}
    if replaced is not None:
        found = take_over_contacts(campaign_id, replaced, ask_provider=not without_provider, yes=yes)
        more = {"taken_over": to_json(found.replaced), "listed": to_json(found.listed)}
    elif not yes:
        before = with_engine(lambda engine: engine.campaigns.get_anywhere(campaign_id))
        if (option := SAFE_RESUME_OPTIONS.get(before.pause_reason or "")) is not None:
            confirm(
                f"Resume campaign {before.name!r} of a restored or moved database without --skip-contacted-in?",
                yes,
                warning=f"{CONTACTED_TWICE} Add {option}, which contacts nobody twice, or take the risk.",
            )

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Campaign, str | None, Sequence[Problem]]:
        warnings = await engine.campaigns.start_warnings(campaign.workspace_id, campaign_id)
        try:
            moved = await engine.campaigns.resume(campaign.workspace_id, campaign_id, actor=actor())
        except CannotStart as error:
            raise click.ClickException(explain_start(error.details, campaign)) from None
        return moved, await _hint(engine, moved, _follow), warnings

    moved, next_step, warnings = with_campaign(campaign_id, work)
    _show_moved(moved, next_step, {"warnings": [one.message for one in warnings], **more})
    _warn(warnings)


async def _hint(engine: Outreach, moved: Campaign, hint: Hint | None) -> str | None:
    # For people only: programs should not wait for the look-up.
    return None if hint is None or state().as_json else await hint(engine, moved)


def _show_moved(
    moved: Campaign, hint: str | None, more: Mapping[str, object] = MappingProxyType({}), *, sentence: str = _MOVED
) -> None:
    if state().as_json:
        echo_json({**documents.campaign(moved), **more})
        return
    click.echo(sentence.format(name=moved.name, status=moved.status))
    if hint is not None:
        note(hint)


_NOT_DISPATCHED: Final = frozenset({"no_dispatcher", "database_copied"})


async def _follow(engine: Outreach, campaign: Campaign) -> str:
    if campaign.status is CampaignStatus.SCHEDULED:
        sentence = waiting_text(campaign, SystemClock().now()) or ""
    else:
        sentence = f"Follow it with: outreach-server campaigns watch {campaign.id}"
    blockers = await engine.campaigns.blockers(campaign.workspace_id, campaign.id)
    problems = [problem_text(one, engine.now()) for one in blockers if one.code in _NOT_DISPATCHED]
    return "\n".join([sentence, *problems])


async def _resumable(_: Outreach, campaign: Campaign) -> str:
    return f"Resume it with: outreach-server campaigns resume {campaign.id}"


_RUNNING = frozenset({CampaignStatus.SCHEDULED, CampaignStatus.ACTIVE, CampaignStatus.PAUSED})


@click.command("cancel", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@YES
def cancel_(campaign_id: str, yes: bool) -> None:
    """Cancel a campaign for good; one that was started asks before.

    Its other contacts can be contacted by another campaign: see follow-up.
    """
    if not yes:
        before = with_engine(lambda engine: engine.campaigns.get_anywhere(campaign_id))
        if before.status in _RUNNING:
            left, total = before.counters.open, plural(before.counters.total, "contact")
            are = "is" if left == 1 else "are"
            confirm(
                f"Cancel campaign {before.name!r}, which is {before.status}? {left:,} of its {total} {are} "
                f"open, and {are} not contacted any more.",
                yes,
            )
    moved = with_campaign(
        campaign_id, lambda engine, one: engine.campaigns.cancel(one.workspace_id, one.id, actor=actor())
    )
    rescue = f"outreach-server campaigns follow-up {moved.id} --results canceled"
    hint = f"Once a server has closed its open contacts, contact them by another campaign with: {rescue}"
    _show_moved(moved, hint if moved.counters.open else None)


pause_ = _move("pause", "Pause a campaign; no new message of it is sent.", _resumable)
unschedule_ = _move("unschedule", "Take a scheduled campaign back to ready.")
close_ = _move(
    "close",
    "Let a campaign that stays open complete once nothing is open.",
    sentence="{name!r} is closed, and is {status}.",
)
archive_ = _move(
    "archive",
    "Hide a campaign from lists; it is not changed otherwise.",
    sentence="Campaign {name!r} is archived.",
)
unarchive_ = _move(
    "unarchive",
    "Bring an archived campaign back into the lists.",
    sentence="Campaign {name!r} is in the lists again.",
)
