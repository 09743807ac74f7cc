"""`settings`: a workspace's settings for messages, calling campaigns and replies."""

from __future__ import annotations

from typing import Any

import click

from outreach import CallSettingsUpdate, Outreach, ReplySettingsUpdate, SmsSettingsUpdate
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.output import show
from outreach_server.cli.setup.prices import prices
from outreach_server.cli.values import WORKSPACE, changed, integer_of, text_of


@click.group(cls=Group)
def settings() -> None:
    """Show and set the settings of a workspace, of its messages and of its calling campaigns."""


settings.add_command(prices)


@settings.command("show")
@click.argument("workspace_id", type=WORKSPACE)
def show_(workspace_id: str) -> None:
    """Show the settings."""
    show(with_engine(lambda engine: _document(engine, workspace_id)))


@settings.command("set")
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--footer/--no-footer", "footer_enabled", default=None, help="Whether campaign messages end with it.")
@click.option("--footer-text", type=text_of(SmsSettingsUpdate, "footer_text"), help="The opt-out message.")
@click.option(
    "--max-segments",
    type=integer_of(SmsSettingsUpdate, "max_segments"),
    help="The longest campaign message, in segments.",
)
@click.option("--retry/--no-retry", "retry_enabled", default=None, help="Whether failed messages are sent again.")
@click.option(
    "--retry-max-attempts",
    type=integer_of(SmsSettingsUpdate, "retry_max_attempts"),
    help="Attempts in all, the first included.",
)
@click.option(
    "--retry-delay-minutes", type=integer_of(SmsSettingsUpdate, "retry_delay_minutes"), help="Minutes between attempts."
)
@click.option(
    "--call-retry-max-attempts",
    type=integer_of(CallSettingsUpdate, "retry_max_attempts"),
    help="Calls in all to one contact.",
)
@click.option(
    "--call-retry-delay-minutes",
    type=integer_of(CallSettingsUpdate, "retry_delay_minutes"),
    help="Minutes between calls to one contact.",
)
@click.option("--variable", "variables", multiple=True, metavar="NAME", help="A declared variable; repeat for all.")
@click.option("--no-variables", is_flag=True, help="Declare no variables.")
@click.option("--replies/--no-replies", "enabled", default=None, help="Whether STOP, START and HELP are answered.")
@click.option(
    "--stop-text",
    type=text_of(ReplySettingsUpdate, "stop_text"),
    help="The confirmation of an opt-out; empty for the default.",
)
@click.option(
    "--start-text",
    type=text_of(ReplySettingsUpdate, "start_text"),
    help="The confirmation of an opt-in; empty for the default.",
)
@click.option(
    "--help-text", type=text_of(ReplySettingsUpdate, "help_text"), help="The answer to HELP; empty for the default."
)
@click.option(
    "--help-when-opted-out/--no-help-when-opted-out",
    "help_when_opted_out",
    default=None,
    help="Whether HELP from unsubscribed numbers is answered too.",
)
def set_(
    workspace_id: str,
    variables: tuple[str, ...],
    no_variables: bool,
    call_retry_max_attempts: int | None,
    call_retry_delay_minutes: int | None,
    enabled: bool | None,
    stop_text: str | None,
    start_text: str | None,
    help_text: str | None,
    help_when_opted_out: bool | None,
    **options: Any,
) -> None:
    """Change the given settings; the others stay."""
    if variables and no_variables:
        raise click.UsageError("--variable and --no-variables exclude each other.")
    declared = variables if variables or no_variables else None
    messages = SmsSettingsUpdate(**changed(custom_variables=declared, **options))
    calls = CallSettingsUpdate(
        **changed(retry_max_attempts=call_retry_max_attempts, retry_delay_minutes=call_retry_delay_minutes)
    )
    replies = ReplySettingsUpdate(
        **changed(
            enabled=enabled,
            stop_text=stop_text,
            start_text=start_text,
            help_text=help_text,
            help_when_opted_out=help_when_opted_out,
        )
    )
    if (messages, calls, replies) == (SmsSettingsUpdate(), CallSettingsUpdate(), ReplySettingsUpdate()):
        raise click.UsageError("Name something to change; see --help.")

    async def work(engine: Outreach) -> documents.Document:
        if replies != ReplySettingsUpdate():
            await engine.reply_settings.update(workspace_id, replies, actor=actor())
        if messages != SmsSettingsUpdate():
            await engine.sms_settings.update(workspace_id, messages, actor=actor())
        if calls != CallSettingsUpdate():
            await engine.call_settings.update(workspace_id, calls, actor=actor())
        return await _document(engine, workspace_id)

    show(with_engine(work))


async def _document(engine: Outreach, workspace_id: str) -> documents.Document:
    return documents.settings(
        await engine.sms_settings.get(workspace_id),
        await engine.call_settings.get(workspace_id),
        await engine.reply_settings.get(workspace_id),
        await engine.reply_settings.effective_texts(workspace_id),
    )
