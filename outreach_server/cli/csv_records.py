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
    source = iter(lines)
    ahead: deque[str] = deque()
    row, line = 0, 1
    while (text := _next(ahead, source)) is not None:
        row += 1
        if len(text) > MAX_LINE_LENGTH:
            yield Record(row, line, [text[:80]], f"the row is longer than {MAX_LINE_LENGTH} characters")
            line += 1
        elif '"' not in text:
            yield Record(row, line, text.rstrip("\r\n").split(delimiter), None)
            line += 1
        else:
            gathered = _gather(text, ahead, source)
            cells, problem, used = _parse(gathered, delimiter)
            ahead.extendleft(reversed(gathered[used:]))
            yield Record(row, line, cells, problem)
            line += used


def _next(ahead: deque[str], source: Iterator[str]) -> str | None:
    return ahead.popleft() if ahead else next(source, None)


def _gather(text: str, ahead: deque[str], source: Iterator[str]) -> list[str]:
    """Return lines until the quotes are even: a quoted cell may hold line ends."""
    gathered, quotes, length = [text], text.count('"'), len(text)
    while quotes % 2 and length <= MAX_LINE_LENGTH:
        more = _next(ahead, source)
        if more is None:
            break
        gathered.append(more)
        quotes += more.count('"')
        length += len(more)
    return gathered


def _parse(gathered: list[str], delimiter: str) -> tuple[list[str], str | None, int]:
    reader = csv.reader(gathered, delimiter=delimiter, strict=True)
    try:
        return next(reader), None, reader.line_num
    except csv.Error as error:
        unclosed = "unexpected end" in str(error) or "field limit" in str(error)
        problem = (
            "a quote is opened here that never closes"
            if unclosed
            else "a quoted cell is followed by more text; quotes inside a cell are written twice"
        )
        return [gathered[0].rstrip("\r\n")], f"malformed: {problem}", 1
