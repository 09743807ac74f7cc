"""Phone numbers that spreadsheets have changed: repaired where no digit is lost, else with the problem."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

import attrs

from outreach.rules.phones import SEVERAL_NUMBERS, number_of_channel
from outreach.rules.whole_numbers import LOST_DIGITS, is_scientific, without_decimals, without_exponent


class NumberCorrection(StrEnum):
    """A repair that was made to a cell with a number."""

    FORMULA = "formula"
    APOSTROPHE = "apostrophe"
    DECIMALS = "decimals"
    SCIENTIFIC = "scientific"
    THOUSANDS = "thousands"
    LABEL = "label"
    QUOTES = "quotes"
    SPACES = "spaces"


@attrs.frozen
class NumberCell:
    """A cell that should hold a phone number.

    Attributes:
        text: The number as it was meant; the cell's text if nothing was done to it.
        corrections: The repairs, in order.
        problem: Why the number cannot be known, in words; None if the text may be one.
    """

    text: str
    corrections: tuple[NumberCorrection, ...] = ()
    problem: str | None = None


_MAX_LENGTH: Final = 200
"""A longer text is neither one number nor a few."""

_ORDINARY: Final = re.compile(r"\+?[0-9]{7,15}")
_DATE: Final = re.compile(
    r"(?:19|20)[0-9]{2}[-/.][0-9]{1,2}[-/.][0-9]{1,2}(?:[ T][0-9:.]+)?"
    r"|[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:19|20)[0-9]{2}(?: [0-9:.]+)?"
)
_ERROR: Final = re.compile(
    r"#(?:N/A|REF!|NAME\?|VALUE!|DIV/0!|NULL!|NUM!|SPILL!|CALC!|FIELD!|GETTING_DATA)|#{2,}", re.I
)
_SEVERAL: Final = re.compile(r"\s*(?:[;,|\n/]|:::|\bor\b|\band\b|&)\s*")
_DIGIT: Final = re.compile(r"[0-9]")
_LEAST_DIGITS: Final = 7

_FORMULA_TEXT: Final = re.compile(r'=\s*"([^"]*)"')
_FORMULA_NUMBER: Final = re.compile(r"=\s*(\+?[0-9][0-9\s().-]*)")
_APOSTROPHE: Final = re.compile(r"['\u2018\u2019`\u00b4]+(?=[+(0-9=])")
_QUOTED: Final = re.compile(
    "[\"'\u201c\u201d\u201e\u00ab]+([^\"'\u201c\u201d\u201e\u00ab\u00bb]+)[\"'\u201c\u201d\u00bb]+"
)
_LABEL: Final = re.compile(r"(?:tel|telephone|phone|mobile|cell|callto|sms|mms|p)\s*:\s*(?=[+(0-9])", re.IGNORECASE)
_THOUSANDS: Final = re.compile(
    r"(\+?[0-9]{1,3}(?:,[0-9]{3}){2,4})(?:\.0+)?"
    r"|(\+?[0-9]{1,3}(?:['\u2019][0-9]{3}){2,4})(?:[.,]0+)?"
    r"|(\+?[0-9]{1,3}(?:\.[0-9]{3}){2,4}),0+"
)
_WRONG_SPACES: Final = re.compile("\u00c2\u00a0|\u00c2(?=[ +(0-9])|\u00e2\u20ac\u00af|\u00ef\u00bb\u00bf")
"""A non-breaking space or a byte order mark in UTF-8 that was read as Windows-1252."""


def read_number_cell(cell: str) -> NumberCell:
    """Return the phone number that a cell was meant to hold.

    The additions of a spreadsheet or an export are removed. A cell whose digits are lost, or that holds something else,
    has a problem instead. Spaces, dashes, full-width digits and the like are left to `normalise`.
    """
    if _ORDINARY.fullmatch(cell) or len(cell) > _MAX_LENGTH:
        return NumberCell(cell)
    text, corrections = cell.strip(), []
    changed = True
    while changed:
        changed = False
        for correction, rule in _RULES:
            after = rule(text)
            if after is not None and after != text:
                text, changed = after, True
                corrections.append(correction)
    problem = None if _ORDINARY.fullmatch(text) else _problem(text)
    return NumberCell(text, () if problem else tuple(dict.fromkeys(corrections)), problem)


def read_cell(cell: str) -> str:
    """Return the text of a cell with anything but a number: `="007"` is how text is kept from a spreadsheet."""
    found = _FORMULA_TEXT.fullmatch(cell) if cell.startswith("=") else None
    return found[1] if found is not None else cell


def is_cell_error(cell: str) -> bool:
    """Return whether a cell holds a spreadsheet's error, such as `#N/A`, which must not reach a text."""
    return cell.startswith("#") and _ERROR.fullmatch(cell) is not None


def _problem(text: str) -> str | None:
    if is_cell_error(text):
        return "is a spreadsheet's error, not a number"
    if is_scientific(text):
        return LOST_DIGITS
    if text.startswith("="):
        return "is a formula; save the file with its values"
    if _DATE.fullmatch(text):
        return "is a date, not a number"
    parts = [part for part in _SEVERAL.split(text) if len(_DIGIT.findall(part)) >= _LEAST_DIGITS]
    if len(parts) > 1:
        return SEVERAL_NUMBERS
    return None


def _without_formula(text: str) -> str | None:
    found = _FORMULA_TEXT.fullmatch(text) or _FORMULA_NUMBER.fullmatch(text)
    return found[1].strip() if found is not None else None


def _without_apostrophe(text: str) -> str | None:
    found = _APOSTROPHE.match(text)
    return text[found.end() :] if found is not None else None


def _without_quotes(text: str) -> str | None:
    found = _QUOTED.fullmatch(text)
    return found[1].strip() if found is not None else None


def _without_label(text: str) -> str | None:
    found = _LABEL.match(text)
    return text[found.end() :] if found is not None else number_of_channel(text)


def _without_thousands(text: str) -> str | None:
    found = _THOUSANDS.fullmatch(text)
    if found is None:
        return None
    grouped = next(group for group in found.groups() if group is not None)
    return re.sub(r"[^+0-9]", "", grouped)


def _with_right_spaces(text: str) -> str | None:
    return _WRONG_SPACES.sub(" ", text).strip()


_RULES: Final = (
    (NumberCorrection.SPACES, _with_right_spaces),
    (NumberCorrection.APOSTROPHE, _without_apostrophe),
    (NumberCorrection.FORMULA, _without_formula),
    (NumberCorrection.QUOTES, _without_quotes),
    (NumberCorrection.LABEL, _without_label),
    (NumberCorrection.DECIMALS, without_decimals),
    (NumberCorrection.THOUSANDS, _without_thousands),
    (NumberCorrection.SCIENTIFIC, without_exponent),
)
