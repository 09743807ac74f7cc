"""Links into the console, which commands show."""

from __future__ import annotations

from typing import Final

from outreach.models import CreatedInvitation

CONSOLE: Final = "/console"
"""Where `serve` has the console."""


def link_of(made: CreatedInvitation, server: str) -> str:
    """Return the link of an invitation or set-up.

    Args:
        made: The invitation.
        server: The URL of the server.
    """
    base = f"{server}{CONSOLE}"
    # What follows `#` is in no log of a proxy.
    return f"{base}/setup#{made.token}" if made.invitation.kind == "setup" else f"{base}/invitation/{made.token}"
