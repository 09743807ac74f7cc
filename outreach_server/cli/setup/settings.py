"""`settings`: a workspace's settings for messages, calling campaigns and replies."""

from __future__ import annotations

from typing import Any, Final

import click

from outreach import CallSettingsUpdate, Outreach, ReplySettingsUpdate, SmsSettingsUpdate
from outreach.server_support import Option, fields_of
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.model_options import ClearOption, given_changes, options_of, with_params
from outreach_server.cli.output import show
from outreach_server.cli.setup.prices import prices
from outreach_server.cli.values import WORKSPACE


@click.group(cls=Group)
def settings() -> None:
    """Show and set the settings of a workspace, of its messages and of its calling campaigns."""


settings.add_command(prices)


@settings.command("show")
@click.argument("workspace_id", type=WORKSPACE)
def show_(workspace_id: str) -> None:
    """Show the settings."""
    show(with_engine(lambda engine: _document(engine, workspace_id)))


_MESSAGES: Final = {
    "footer_enabled": Option("Whether campaign messages end with it.", word="footer"),
    "footer_text": Option("The opt-out message."),
    "max_segments": Option("The longest campaign message, in segments."),
    "retry_enabled": Option("Whether failed messages are sent again.", word="retry"),
    "retry_max_attempts": Option("Attempts in all, the first included."),
    "retry_delay_minutes": Option("Minutes between attempts."),
}
_CALLS: Final = {
    "retry_max_attempts": Option("Calls in all to one contact."),
    "retry_delay_minutes": Option("Minutes between calls to one contact."),
}
_REPLIES: Final = {
    "enabled": Option("Whether STOP, START and HELP are answered.", word="replies"),
    "stop_text": Option("The confirmation of an opt-out; empty for the default."),
    "start_text": Option("The confirmation of an opt-in; empty for the default."),
    "help_text": Option("The answer to HELP; empty for the default."),
    "help_when_opted_out": Option("Whether HELP from unsubscribed numbers is answered too."),
}
_PARTS: Final = (
    ("reply_settings", ReplySettingsUpdate, ""),
    ("sms_settings", SmsSettingsUpdate, ""),
    ("call_settings", CallSettingsUpdate, "call_"),
)
"""The services in the order in which they change, with what the names of their options begin with."""


@settings.command("set")
@click.argument("workspace_id", type=WORKSPACE)
@with_params(
    *options_of(SmsSettingsUpdate, _MESSAGES),
    *options_of(CallSettingsUpdate, _CALLS, prefix="call_"),
    click.Option(
        ["--variable", "custom_variables"], multiple=True, metavar="NAME", help="A declared variable; repeat for all."
    ),
    ClearOption("custom_variables", "Declare no variables.", word="variables", value=()),
    *options_of(ReplySettingsUpdate, _REPLIES),
)
def set_(workspace_id: str, **values: Any) -> None:
    """Change the given settings; the others stay."""
    changes = given_changes(values)
    parts = [
        (service, model, {name: changes[prefix + name] for name in fields_of(model) if prefix + name in changes})
        for service, model, prefix in _PARTS
    ]
    updates = [(service, model(**fields)) for service, model, fields in parts if fields]

    async def work(engine: Outreach) -> documents.Document:
        for service, update in updates:
            await getattr(engine, service).update(workspace_id, update, actor=actor())
        return await _document(engine, workspace_id)

    show(with_engine(work))


async def _document(engine: Outreach, workspace_id: str) -> documents.Document:
    return documents.settings(
        await engine.sms_settings.get(workspace_id),
        await engine.call_settings.get(workspace_id),
        await engine.reply_settings.get(workspace_id),
        await engine.reply_settings.effective_texts(workspace_id),
    )
