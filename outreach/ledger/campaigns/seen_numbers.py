"""The numbers that a load may have written before, so that it looks up few of them in the database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from outreach.rules.spellings import person_key

_PLACES: Final = 1 << 22
_LAST: Final = _PLACES - 1


class SeenNumbers:
    """The numbers of one load's earlier chunks, by the hashes of their persons' keys in 4 MiB.

    Every added number is a candidate. Some others are too, so the caller looks candidates up: of 100,000 contacts one
    in eighty, of a million one in nine, of many millions most.
    """

    def __init__(self) -> None:
        self._places = bytearray(_PLACES)

    def add(self, phones: Iterable[str | None]) -> None:
        """Add numbers; None is skipped."""
        places = self._places
        for phone in phones:
            if phone is not None:
                places[hash(person_key(phone)) & _LAST] = 1

    def candidates(self, phones: Iterable[str]) -> set[str]:
        """Return those of the numbers that may have been added."""
        places = self._places
        return {phone for phone in phones if places[hash(person_key(phone)) & _LAST]}
