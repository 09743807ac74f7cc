"""A set of people by their numbers, small enough for a list of millions."""

from __future__ import annotations

from array import array
from typing import Final

from outreach.rules.spellings import person_key

_FIRST_PLACES: Final = 1 << 10


class PersonSet:
    """The people at numbers in E.164, in at most 32 bytes each; all spellings of a number are one person.

    A hash table with open addressing, at most half full; a number has at most 15 digits, and none is 0.
    """

    def __init__(self) -> None:
        self._places = array("Q", bytes(8 * _FIRST_PLACES))
        self._count = 0

    def __len__(self) -> int:
        """Return how many people there are."""
        return self._count

    def add(self, phone: str) -> bool:
        """Add the person at a number; return whether the person is new."""
        if not self._put(int(person_key(phone)[1:])):
            return False
        self._count += 1
        if 2 * self._count > len(self._places):
            stored = self._places
            self._places = array("Q", bytes(16 * len(stored)))
            for number in stored:
                if number:
                    self._put(number)
        return True

    def _put(self, number: int) -> bool:
        places = self._places
        last = len(places) - 1
        # Mixed, because numbers of one list are often consecutive.
        place = (number * 0x9E3779B97F4A7C15 >> 20) & last
        while places[place]:
            if places[place] == number:
                return False
            place = (place + 1) & last
        places[place] = number
        return True
