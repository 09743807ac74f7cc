"""A whole number as programs write one that they hold as a decimal number: `14155550102.0`, `1.4155550102E+10`."""

from __future__ import annotations

import re
from typing import Final

_DECIMALS: Final = re.compile(r"(\+?[0-9]{4,15}+)[.,]0{1,2}")
_SCIENTIFIC: Final = re.compile(r"\+?([0-9])(?:[.,]([0-9]+))?E(\+?)0?([0-9]{1,2})", re.IGNORECASE)
_EXACT_DIGITS: Final = 7
"""Programs that write no plus sign before the exponent write every digit; so few may be somebody's abbreviation."""

_LEAST_DIGITS: Final = 7

LOST_DIGITS: Final = "has lost digits in a spreadsheet; format the column as text and fill it in again from its source"
"""The problem of a number in scientific notation that does not show all its digits."""


def without_decimals(text: str) -> str | None:
    """Return a number without the zeros behind its decimal point; None for any other text."""
    found = _DECIMALS.fullmatch(text)
    return found[1] if found is not None else None


def without_exponent(text: str) -> str | None:
    """Return all digits of a number in scientific notation; None if some are lost, and for any other text."""
    found = _SCIENTIFIC.fullmatch(text)
    if found is None:
        return None
    first, fraction, plus, exponent = found[1], found[2] or "", found[3], int(found[4])
    digits = first + fraction
    if not plus and len(fraction) >= _EXACT_DIGITS:
        digits = digits.ljust(exponent + 1, "0")
    whole, rest = digits[: exponent + 1], digits[exponent + 1 :]
    if len(whole) <= exponent or rest.strip("0") or exponent < _LEAST_DIGITS - 1:
        return None
    return ("+" if text.startswith("+") else "") + whole


def is_scientific(text: str) -> bool:
    """Return whether a text is a number in scientific notation."""
    return _SCIENTIFIC.fullmatch(text) is not None


def written_out(text: str) -> str:
    """Return the digits of a whole number that was written as a decimal one; any other text as it is."""
    return without_decimals(text) or without_exponent(text) or text
