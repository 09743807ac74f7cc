"""The hint if no process dispatches from the database."""

from __future__ import annotations

from typing import Final

SERVE: Final = "outreach-server serve"
"""The command that dispatches."""


def no_dispatcher_text(why: str) -> str:
    """Return the library's sentence that no process dispatches, and the command to run."""
    return f"{why} Send what is due with: {SERVE}"
