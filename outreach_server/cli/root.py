"""The command line as a whole."""

from __future__ import annotations

import sys
from typing import Final

import click

from outreach_server.cli.base import OF_RESOURCE, CommandModule, LazyCommands, Root

COMMANDS: Final = LazyCommands(
    {
        "demo": CommandModule(
            "serving.demo",
            "Show a campaign and a call from beginning to end, simulated: no message leaves this machine.",
        ),
        "serve": CommandModule(
            "serving.serve", "Serve the HTTP interface, and send what is due, until Ctrl-C or SIGTERM."
        ),
        "worker": CommandModule(
            "serving.worker", "Send what is due, without answering requests, until Ctrl-C or SIGTERM."
        ),
        "healthcheck": CommandModule(
            "serving.healthcheck",
            "Ask the server of this configuration whether it lives; exit status 1 where it does not.",
        ),
        "sandbox": CommandModule(
            "serving.sandbox",
            "Serve a temporary database with a workspace, a key and an agent, until Ctrl-C or SIGTERM.",
        ),
        "stand-in": CommandModule(
            "serving.stand_in",
            "Play PROVIDER on this machine, until Ctrl-C or SIGTERM, so that going live can be rehearsed.",
        ),
        "workspaces": CommandModule(
            "setup.workspaces", "Create, change and list workspaces: the tenants that everything else belongs to."
        ),
        "keys": CommandModule("setup.keys", "Create, list and revoke API keys."),
        "users": CommandModule("setup.users", "Manage the people who use the console: roles, invitations and logins."),
        "accounts": CommandModule("setup.accounts", "Connect workspaces to carriers and voice providers."),
        "agents": CommandModule("setup.agents", "Create, change, remove and list voice agents."),
        "trunks": CommandModule(OF_RESOURCE, "Create, change, remove and list SIP trunks."),
        "numbers": CommandModule(
            OF_RESOURCE, "Create, change, remove and list the numbers that a workspace sends and calls from."
        ),
        "flows": CommandModule("setup.flows", "Create, change, remove and list automation flows."),
        "schedules": CommandModule(
            "setup.schedules", "Create, change and control schedules, by which campaigns recur."
        ),
        "webhooks": CommandModule(
            "setup.webhooks", "Add, change and control webhooks: endpoints that events are delivered to."
        ),
        "settings": CommandModule(
            "setup.settings", "Show and set the settings of a workspace, of its messages and of its calling campaigns."
        ),
        "contacts": CommandModule("lists.people", "Show everything with one number."),
        "unsubscribes": CommandModule(
            "lists.unsubscribes", "Manage the register of numbers that must not be contacted."
        ),
        "unreachable": CommandModule(
            "lists.unreachable", "List numbers that providers have reported as unreachable, and take some off."
        ),
        "campaigns": CommandModule("campaigns.group", "Create, show and control campaigns."),
        "messages": CommandModule("campaigns.requests", "List single messages and inbound ones."),
        "calls": CommandModule("campaigns.requests", "List and show calls, and judge them."),
        "dispatches": CommandModule("campaigns.decisions", "List requests with an unknown outcome, and resolve them."),
        "events": CommandModule("setup.events", "List and remove named subscriptions to events."),
        "simulate": CommandModule(
            "campaigns.simulate", "Simulate replies, receipts and the ends of calls in a sandbox workspace."
        ),
        "test-send": CommandModule(
            "campaigns.test_send",
            "Send one message, or place one call, and report its outcome.",
        ),
        "status": CommandModule(
            "upkeep.status", "Show who dispatches, what runs, and what needs a person, in one workspace or in all."
        ),
        "doctor": CommandModule(
            "upkeep.doctor", "Look for faults of this server and its data, and show the command that fixes each."
        ),
        "stop": CommandModule(
            "upkeep.operating", "Pause all active and scheduled campaigns at once, in one workspace or in all."
        ),
        "purge": CommandModule(
            "upkeep.erasing",
            "Erase one person from a workspace: number, names, texts, replies, calls.",
        ),
        "retention": CommandModule("upkeep.erasing", "Erase what workspaces keep no longer."),
        "audit": CommandModule("upkeep.operating", "Show who did what, newest first, in one workspace or in all."),
        "config": CommandModule(
            "upkeep.config", "Show every setting, its value, and the flag, variable or key that it comes from."
        ),
        "db": CommandModule("upkeep.db", "Back up, restore, check, compact, archive, copy and migrate the database."),
    }
)
"""Every command with the first sentence of its help; imported when it is run."""


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from outreach import __version__
        from outreach_server.cli.upkeep.build import version_lines

        click.echo("\n".join(version_lines(__version__)))
        ctx.exit()


def _show_licences(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from outreach_server.cli.upkeep.build import licences

        click.echo(licences())
        ctx.exit()


def _executable_options(command: click.Group) -> click.Group:
    """Add what only an executable has: package managers list the parts of an installed package."""
    if getattr(sys, "frozen", False):
        command.params.append(
            click.Option(
                ["--licences"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_licences,
                help="Show the licences of everything in this file and exit.",
            )
        )
    return command


@_executable_options
@click.group(cls=Root, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Run and operate outreach: SMS campaigns and AI-voice calls for many workspaces.

    Try `outreach-server demo` first. Changes take effect in a running server within a second.
    """
