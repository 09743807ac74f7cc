"""The names of the custom variables that come with a campaign's contacts, gathered while they are loaded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import orjson

from outreach.models.recipient import PreparedRecipient

MOST_NAMES: Final = 1000
"""Contacts that have more names between them are no list with columns: then their names are not known."""


class VariableNames:
    """Gathers names, chunk by chunk; the texts of a chunk are read at once, which takes under a microsecond each."""

    def __init__(self) -> None:
        self._names: set[str] | None = set()

    def see(self, chunk: Iterable[PreparedRecipient]) -> None:
        """Take in the names of some contacts."""
        if self._names is None:
            return
        # Many have the same.
        texts = {contact.custom_variables for contact in chunk if contact.custom_variables is not None}
        self._names.update(*orjson.loads(f"[{','.join(texts)}]"))
        if len(self._names) > MOST_NAMES:
            self._names = None

    def names(self) -> tuple[str, ...] | None:
        """Return the names, sorted and without the spaces around them; None where there are too many."""
        return None if self._names is None else tuple(sorted({name.strip() for name in self._names}))
