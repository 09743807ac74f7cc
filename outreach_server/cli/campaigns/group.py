"""`campaigns`: creating, showing and controlling campaigns. Each command is imported when it is used."""

from __future__ import annotations

from typing import Final

import click

from outreach_server.cli.base import CommandModule, Group, LazyCommands

_MODULES: Final = {
    "listing": ("list",),
    "moves": ("start", "cancel", "pause", "resume", "unschedule", "close", "archive", "unarchive"),
    "importing": ("import",),
    "adding": ("add",),
    "watch": ("watch",),
    "update": ("update",),
    "why": ("why",),
    "preflight": ("preflight",),
    "forecast": ("forecast", "forecasts"),
    "clock": ("clock",),
    "approvals": ("approval", "approve"),
    "live": ("now", "progress"),
    "show": ("show", "recipients"),
    "skip": ("skip",),
    "report": ("report", "export"),
    "copies": ("clone", "follow-up"),
}
"""The commands of each module of this package; a command `follow-up` is its `follow_up_`."""

_COMMANDS: Final = LazyCommands(
    {
        **{
            command: CommandModule(f"campaigns.{module}", attribute=f"{command.replace('-', '_')}_")
            for module, commands in _MODULES.items()
            for command in commands
        },
        "delete": CommandModule("upkeep.erasing", attribute="delete_"),
        "test-send": CommandModule("campaigns.test_send", attribute="campaign_test_send"),
    }
)


@click.group(cls=Group, commands=_COMMANDS)
def campaigns() -> None:
    """Create, show and control campaigns."""
