"""The errors of lists, and their words where a program reads them."""

from __future__ import annotations

import re
from typing import Final

from outreach import InvalidRequest

_OPTION: Final = re.compile(r"(?:settings set )?--([a-z][a-z-]*)")


class UnreadableList(InvalidRequest):
    """A file is no list of contacts, or nothing says which of its columns is the phone number."""


class NothingToLoad(UnreadableList):
    """No row of a list can be loaded.

    Args:
        rows: How many there are.
    """

    def __init__(self, rows: int) -> None:
        none = "The only row cannot" if rows == 1 else f"None of the {rows:,} rows can"
        super().__init__(f"{none} be loaded.")


class UnsendableText(InvalidRequest):
    """No contact of a list can be sent the text of its campaign."""


def in_body_names(text: str) -> str:
    """Return a message with the fields of a body in the place of the command's options."""
    return _OPTION.sub(lambda found: f"`{found[1].replace('-', '_')}`", text)
