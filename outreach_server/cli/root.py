"""The command line as a whole."""

from __future__ import annotations

import click

from outreach import __version__
from outreach_server.cli.accounts import accounts
from outreach_server.cli.agents import agents
from outreach_server.cli.base import Root
from outreach_server.cli.calls import calls
from outreach_server.cli.campaigns import campaigns
from outreach_server.cli.demo import demo
from outreach_server.cli.dispatches import dispatches
from outreach_server.cli.flows import flows
from outreach_server.cli.keys import keys
from outreach_server.cli.messages import messages
from outreach_server.cli.numbers import numbers
from outreach_server.cli.operating import audit, stop
from outreach_server.cli.sandbox import sandbox
from outreach_server.cli.serve import serve
from outreach_server.cli.settings import settings
from outreach_server.cli.test_send import test_send
from outreach_server.cli.trunks import trunks
from outreach_server.cli.unsubscribes import unsubscribes
from outreach_server.cli.workspaces import workspaces


@click.group(cls=Root, root=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="outreach", prog_name="outreach-server")
def main() -> None:
    """Run and operate outreach: SMS campaigns and AI-voice calls for many workspaces.

    Try `outreach-server demo` first. Changes take effect in a running server within a second.
    """


for command in (
    demo,
    serve,
    sandbox,
    workspaces,
    keys,
    accounts,
    agents,
    trunks,
    numbers,
    flows,
    settings,
    unsubscribes,
    campaigns,
    messages,
    calls,
    dispatches,
    test_send,
    stop,
    audit,
):
    main.add_command(command)
