"""The rows of a CSV file; a malformed one is reported and does not affect the next ones."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from outreach.server_support import read_number_cell
from outreach_server.lists.csv_lines import MAX_LINE_LENGTH

DELIMITERS: Final = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "\\t": "\t"}
_CANDIDATES: Final = (",", ";", "\t", "|")
_QUOTED: Final = re.compile(r'"[^"]*"')
_NONE: Final[Mapping[int, str]] = MappingProxyType({})
_PHONE: Final = re.compile(
    r"['=\"]*(?:[a-z]{1,9}\s?:\s?)?[+(]*(?:[ ()./\u00a0-]*[0-9]){7,15}[ )\"]*(?:(?:x|ext\.?)\s?[0-9]{1,6})?",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"[a-z]+\s?:\s?", re.IGNORECASE)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_FEW_CELLS: Final = 2
"""A text of two lines with a comma in each is ordinary; a row has more cells, or a number."""

_SEPARATOR_LINE: Final = re.compile(r'"?sep=([^"\r\n])"?[\r\n]*', re.IGNORECASE)


class Record(NamedTuple):
    """One row.

    Attributes:
        row: Its number as in a spreadsheet: the header is row 1, and empty rows count.
        line: The number of its first line.
        cells: Its cells; for a row that cannot be cut into cells, its first line.
        problem: Why it is malformed, if it is.
        dates: What a date is, as `2026-12-08 08:00`, by the index of its cell, where the file knows it.
        numbers: The digits of a whole number, by the index of its cell, where its format shows it otherwise.
    """

    row: int
    line: int
    cells: list[str]
    problem: str | None
    dates: Mapping[int, str] = _NONE
    numbers: Mapping[int, str] = _NONE


def delimiter_of(text: str) -> str | None:
    """Return `auto` or one character of a text, which may be the character's name; None if it is none."""
    character = DELIMITERS.get(text.lower(), text)
    return None if character != "auto" and (len(character) != 1 or character in '"\r\n\0') else character


def detect_delimiter(line: str) -> str:
    """Return the delimiter that a header line uses most, a comma where it uses none."""
    bare = _QUOTED.sub("", line)
    return max(_CANDIDATES, key=bare.count)


def named_delimiter(line: str) -> str | None:
    """Return the delimiter that the line `sep=;` names to spreadsheets, which do not show that line."""
    found = _SEPARATOR_LINE.fullmatch(line)
    return None if found is None else found[1]


def records(lines: Iterable[str], delimiter: str, *, first_line: int = 1) -> Iterator[Record]:
    """Cut lines into rows, by RFC 4180.

    After an unclosed quote, or text after a closing quote, only the row's first line is dropped, and the next line
    begins a new row. A quote that was closed in a later row makes one cell of what lies between: such a row is
    malformed as a whole, because nobody knows which of its lines are rows.

    Args:
        lines: The lines, with their ends.
        delimiter: What separates cells.
        first_line: The number of the first one.
    """
    source = _Lines(lines)
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    row, line, width = 0, first_line, 0
    while True:
        source.taken = []
        row += 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, _TooLong) as error:
            yield Record(row, line, *_broken(source.taken, error))
            line += 1
            source.requeue(source.taken[1:])
            reader = csv.reader(source, delimiter=delimiter, strict=True)
        else:
            # An empty line is a row of one empty cell, as in a spreadsheet.
            taken, width = len(source.taken), max(width, len(cells))
            problem = None
            if taken > 1 and (found := rows_in_a_cell(cells, delimiter, width)) is not None:
                problem = (
                    f"a quote joins the lines {line} to {line + taken - 1} to one row; a cell of it holds what looks "
                    f"like another row ({found[:40]!r}); close the quote in its own line, or take the line ends out"
                )
            yield Record(row, line, cells or [""], problem)
            line += taken


def looks_like_a_phone(text: str) -> bool:
    """Return whether a text looks like a phone number, also behind a label; a date is none: `Stand: 27.11.2026`."""
    stripped = text.strip()
    return _PHONE.fullmatch(stripped) is not None and read_number_cell(_LABEL.sub("", stripped)).problem is None


def rows_in_a_cell(cells: Sequence[str], delimiter: str, width: int) -> str | None:
    """Return a line of a cell that looks like a row of the list: as wide as it, or with a number; None if none does.

    Args:
        cells: The cells of a row.
        delimiter: What separates cells; before a space it is part of a text.
        width: How many cells the list's rows have.
    """
    if not any("\n" in cell or "\r" in cell for cell in cells):
        return None
    split = re.compile(rf"{re.escape(delimiter)}(?![ \u00a0])").split
    starts_with_a_phone = bool(cells) and looks_like_a_phone(cells[0])
    for cell in cells:
        lines = _LINE_END.split(cell)
        if len(lines) == 1:
            continue
        parts = [split(line) for line in lines]
        joined = starts_with_a_phone or any(len(one) > 1 for one in parts)
        for line, one in zip(lines, parts, strict=True):
            wide = len(one) >= width and width > _FEW_CELLS
            # The cell behind the number may be blank, so that a space follows the delimiter.
            first = line.partition(delimiter)[0]
            if wide or (joined and any(map(looks_like_a_phone, (first, *one)))):
                return line
    return None


class _TooLong(Exception):
    """A row is longer than a line may be."""


class _Lines:
    """Lines for a CSV reader, which takes several for a row with quotes; they can be put back.

    Attributes:
        taken: The lines of the current row.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.taken: list[str] = []
        self._source = iter(lines)
        self._ahead: deque[str] = deque()
        self._length = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._ahead.popleft() if self._ahead else next(self._source)
        self._length = len(line) if not self.taken else self._length + len(line)
        self.taken.append(line)
        if self._length > MAX_LINE_LENGTH:
            raise _TooLong
        return line

    def requeue(self, lines: list[str]) -> None:
        """Put lines back."""
        self._ahead.extendleft(reversed(lines))


def _broken(taken: list[str], error: csv.Error | _TooLong) -> tuple[list[str], str]:
    """Return the first line of a malformed row, and the problem."""
    first = taken[0]
    if len(first) > MAX_LINE_LENGTH:
        return [first[:80]], f"the row is longer than {MAX_LINE_LENGTH} characters"
    unclosed = isinstance(error, _TooLong) or "unexpected end" in str(error)
    problem = (
        "a quote is never closed"
        if unclosed
        else "a quoted cell is followed by more text; quotes inside a cell are written twice"
    )
    return [first.rstrip("\r\n")], f"malformed: {problem}"
