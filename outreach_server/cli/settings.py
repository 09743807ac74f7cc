"""`settings`: what a workspace's messages and calling campaigns keep to."""

from __future__ import annotations

from typing import Any

import click

from outreach import CallSettings, CallSettingsChange, Outreach, SmsSettings, SmsSettingsChange
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.output import show
from outreach_server.cli.values import WORKSPACE, Text


@click.group(cls=Group)
def settings() -> None:
    """Show and set the settings of a workspace, of its messages and of its calling campaigns."""


@settings.command("show")
@click.argument("workspace_id", type=WORKSPACE)
def show_(workspace_id: str) -> None:
    """Show the settings."""

    async def work(engine: Outreach) -> tuple[SmsSettings, CallSettings]:
        return await engine.settings.get(workspace_id), await engine.call_settings.get(workspace_id)

    show(documents.settings(*with_engine(work)))


@settings.command("set")
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--footer/--no-footer", "footer_enabled", default=None, help="Whether campaign messages end with it.")
@click.option("--footer-text", type=Text(0, 120), help="The opt-out message.")
@click.option("--max-segments", type=click.IntRange(1, 5), help="The longest campaign message, in segments.")
@click.option("--retry/--no-retry", "retry_enabled", default=None, help="Whether failed messages are sent again.")
@click.option("--retry-max-attempts", type=click.IntRange(1, 3), help="Attempts in all, the first included.")
@click.option("--retry-delay-minutes", type=click.IntRange(5, 120), help="Minutes between attempts.")
@click.option("--call-retry-max-attempts", type=click.IntRange(1, 10), help="Calls in all to one contact.")
@click.option("--call-retry-delay-minutes", type=click.IntRange(1, 1440), help="Minutes between calls to one contact.")
@click.option("--variable", "variables", multiple=True, metavar="NAME", help="A declared variable; repeat for all.")
@click.option("--no-variables", is_flag=True, help="Declare no variables.")
def set_(
    workspace_id: str,
    variables: tuple[str, ...],
    no_variables: bool,
    call_retry_max_attempts: int | None,
    call_retry_delay_minutes: int | None,
    **options: Any,
) -> None:
    """Change the settings that are named; the others stay."""
    if variables and no_variables:
        raise click.UsageError("--variable and --no-variables exclude each other.")
    declared = variables if variables or no_variables else None
    messages = SmsSettingsChange(custom_variables=declared, **options)
    calls = CallSettingsChange(retry_max_attempts=call_retry_max_attempts, retry_delay_minutes=call_retry_delay_minutes)
    if messages == SmsSettingsChange() and calls == CallSettingsChange():
        raise click.UsageError("Name something to change; see --help.")

    async def work(engine: Outreach) -> tuple[SmsSettings, CallSettings]:
        if messages != SmsSettingsChange():
            await engine.settings.update(workspace_id, messages, actor=actor())
        if calls != CallSettingsChange():
            await engine.call_settings.update(workspace_id, calls, actor=actor())
        return await engine.settings.get(workspace_id), await engine.call_settings.get(workspace_id)

    show(documents.settings(*with_engine(work)))
