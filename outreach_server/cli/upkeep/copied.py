"""The option of a database that `db copy` has copied elsewhere, which is not dispatched from without it."""

from __future__ import annotations

from typing import Final

import click

from outreach.database import reclaim_database
from outreach_server.cli.output import note

dispatch_copied_option: Final = click.option(
    "--dispatch-copied",
    is_flag=True,
    help="Dispatch again from a database that `db copy` has copied; its running campaigns are paused first.",
)


def reclaim(url: str) -> None:
    """Let a database that was copied elsewhere be dispatched from again, and say what follows."""
    target = reclaim_database(url)
    if target is not None:
        note(
            f"The database was copied to {target}. It is dispatched from here again, with its running campaigns "
            "paused: make sure that nothing sends from the copy before you resume them."
        )
