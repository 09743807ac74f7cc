"""The rows of a CSV file; a malformed one is reported and does not affect the next ones."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import click

from outreach_server.cli.csv_lines import MAX_LINE_LENGTH

DELIMITERS: Final = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "\\t": "\t"}
_CANDIDATES: Final = (",", ";", "\t", "|")
_QUOTED: Final = re.compile(r'"[^"]*"')
_SEPARATOR_LINE: Final = re.compile(r'"?sep=([^"\r\n])"?[\r\n]*', re.IGNORECASE)


class Record(NamedTuple):
    """One row.

    Attributes:
        row: Its number as in a spreadsheet: the header is row 1, and empty rows count.
        line: The number of its first line.
        cells: Its cells; for a malformed row, its first line.
        problem: Why it is malformed, if it is.
    """

    row: int
    line: int
    cells: list[str]
    problem: str | None


class Delimiter(click.ParamType[str]):
    """The separator of a row's cells."""

    name = "delimiter"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return `auto` or one character."""
        character = DELIMITERS.get(value.lower(), value)
        if character != "auto" and (len(character) != 1 or character in '"\r\n\0'):
            self.fail(f"{value!r} is neither auto, one character, nor one of {', '.join(DELIMITERS)}.", param, ctx)
        return character


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
    begins a new row.

    Args:
        lines: The lines, with their ends.
        delimiter: What separates cells.
        first_line: The number of the first one.
    """
    source = _Lines(lines)
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    row, line = 0, first_line
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
            yield Record(row, line, cells or [""], None)
            line += len(source.taken)


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
