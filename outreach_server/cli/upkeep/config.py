"""`config`: which settings are in effect, and where each comes from."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterator
from typing import Final

import click

from outreach.database import shown_url
from outreach_server.cli.base import Command, state
from outreach_server.cli.output import note, show_list
from outreach_server.cli.setup.setting_flags import shown

_FURTHER: Final = (
    "OUTREACH_ANALYSER",
    "OUTREACH_CONFIG",
    "OUTREACH_HOST_ID",
    "OUTREACH_SECRET_KEY",
    "OUTREACH_SECRET_KEY_FILE",
    "OUTREACH_STATE_DIR",
)
"""Variables that are read and are no settings."""


def _shown(name: str, value: object) -> object:
    return shown_url(str(value)) if name == "database_url" else shown(value)


@click.command(cls=Command)
def config() -> None:
    """Show every setting, its value, and the flag, variable or key that it comes from."""
    sources = state().sources()
    configured = state().configuration()
    rows = [
        {
            "setting": one.key,
            "value": _shown(one.name, getattr(values, one.name)),
            "source": sources.get(one.key, "default"),
        }
        for values in configured
        for one in values.settings()
    ]
    show_list(rows, ("setting", "value", "source"), empty="There are no settings.")
    known = [*_FURTHER, *(one.variable for values in configured for one in values.settings())]
    for sentence in _misspelt(known):
        note(sentence)


def _misspelt(known: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each variable that resembles one that is read; Kubernetes sets some that do not."""
    for name in sorted(os.environ):
        if name.startswith("OUTREACH_") and name not in known:
            for near in difflib.get_close_matches(name, known, n=1, cutoff=0.7):
                yield f"{name} is set, and is not read; did you mean {near}?"
