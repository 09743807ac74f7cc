"""`config`: which settings are in effect, and where each comes from."""

from __future__ import annotations

import click

from outreach.database import shown_url
from outreach_server.cli.base import Command, state
from outreach_server.cli.output import show_list
from outreach_server.cli.setting_flags import shown


def _shown(name: str, value: object) -> object:
    return shown_url(str(value)) if name == "database_url" else shown(value)


@click.command(cls=Command)
def config() -> None:
    """Show every setting, its value, and the flag, variable or key that it comes from."""
    sources = state().sources()
    rows = [
        {
            "setting": one.key,
            "value": _shown(one.name, getattr(values, one.name)),
            "source": sources.get(one.key, "default"),
        }
        for values in state().configuration()
        for one in values.settings()
    ]
    show_list(rows, ("setting", "value", "source"), empty="There are no settings.")
