"""The rates of the sending numbers, which nobody changes once they are given."""

from __future__ import annotations


class NumberRates:
    """What sending numbers may send a minute, in whatever notation a message names them."""

    def __init__(self) -> None:
        self._rates: dict[str, int] = {}

    def put(self, phone: str, rate: int | None) -> None:
        """Take in the rate of a number; None for none."""
        if rate is not None:
            self._rates[_line(phone)] = rate

    def rate(self, number: str | None) -> int | None:
        """Return the rate of a number; None if it has none."""
        return self._rates.get(_line(number or ""))

    def key(self, number: str | None) -> str:
        """Return what all notations of a number are called by."""
        return f"the sending number {_line(number or '')}"


def _line(number: str) -> str:
    return "".join(letter for letter in number if letter.isdigit())[-10:]
