"""Counts numbers that occur more than once in a list, in little memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

_PARTS: Final = 256


class Repeats:
    """Counts rows whose number an earlier row has: 8 bytes for each number, and a set of a small part of them."""

    def __init__(self) -> None:
        self._parts = [array("Q") for _ in range(_PARTS)]

    def see(self, phones: Iterable[str]) -> None:
        """Take more numbers, in E.164."""
        for phone in phones:
            number = int(phone)
            self._parts[number % _PARTS].append(number)

    def count(self) -> int:
        """Return how many of the numbers were repetitions."""
        return sum(len(part) - len(set(part)) for part in self._parts)
