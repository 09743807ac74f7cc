"""The rows of a CSV file: one that is broken is named and does not take the next ones with it."""

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


class Record(NamedTuple):
    """One row.

    Attributes:
        row: Its number, as a spreadsheet counts: the header is row 1, empty rows count.
        line: The number of the line of text that it begins on.
        cells: What it holds; of a row with a problem, its first line as it stands.
        problem: Why it is no row; None when it is one.
    """

    row: int
    line: int
    cells: list[str]
    problem: str | None


class Delimiter(click.ParamType[str]):
    """What parts the cells of a row."""

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


def records(lines: Iterable[str], delimiter: str) -> Iterator[Record]:
    """Cut lines into rows.

    Rows are as RFC 4180 has them. Where a quote is opened that never closes, or a closed one is followed by
    more text, the row's first line alone is given up, and the next line begins a row again.
    """
    source = _Lines(lines)
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    row, line = 0, 1
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
    """A row that has taken more characters than a line may have."""


class _Lines:
    """Lines for a reader, which takes several for a row with quotes; they can be put back.

    Attributes:
        taken: The lines that the present row has taken.
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
        """Give lines again."""
        self._ahead.extendleft(reversed(lines))


def _broken(taken: list[str], error: csv.Error | _TooLong) -> tuple[list[str], str]:
    """Return what is shown of a row that is none, and why it is none."""
    first = taken[0]
    if len(first) > MAX_LINE_LENGTH:
        return [first[:80]], f"the row is longer than {MAX_LINE_LENGTH} characters"
    unclosed = isinstance(error, _TooLong) or "unexpected end" in str(error)
    problem = (
        "a quote is opened here that never closes"
        if unclosed
        else "a quoted cell is followed by more text; quotes inside a cell are written twice"
    )
    return [first.rstrip("\r\n")], f"malformed: {problem}"
