"""What is told where no process sends from the database, and the command that begins one."""

from __future__ import annotations

from typing import Final

SERVE: Final = "outreach-server serve"
"""The command that sends what is due."""


def no_dispatcher_text(why: str) -> str:
    """Return that nobody sends, why in a sentence of the library's, and what to type."""
    return f"{why} Send what is due with: {SERVE}"
