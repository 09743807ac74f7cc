"""Output: one JSON document for programs, tables and text for people."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO, cast

import click
import orjson
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from outreach_server import words
from outreach_server.cli.base import state
from outreach_server.cli.durations import UTC_NAME, time_text

_WIDE: Final = 400
"""Width without a terminal: a pipe's reader needs whole lines."""

_PADDING: Final = re.compile(r" +(?=\n)")

_PLAIN: Final[Mapping[str, Any]] = {"markup": False, "highlight": False, "emoji": False}
"""Names come from spreadsheets and requests, so they must not be markup."""

_MISSING: Final = "-"
_TIMESTAMP: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z")
_LONGEST_WORD: Final = 40
"""A longer word may be broken: it is an address or a path."""

_SHOWN_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}(:\d{2})?")
_EDGES: Final = 2
_GAP: Final = 3
"""The columns that a table needs beside and between its own."""
_PROGRAM: Final = "outreach-server"
_MODULE: Final = "outreach_server"

Document = Mapping[str, Any]

plural: Final = words.plural


def console(*, stderr: bool = False) -> Console:
    """Return a console for people on the current stdout or stderr."""
    stream = sys.stderr if stderr else sys.stdout
    out = Console(file=stream, **_PLAIN)
    return out if out.is_terminal else _wide(stream)


def rendered(show: Callable[[Console], None]) -> str:
    """Return what a function prints on a console, as it goes into a file."""
    written = io.StringIO()
    show(_wide(written))
    return written.getvalue()


def _wide(stream: TextIO) -> Console:
    return Console(file=cast("TextIO", _Unpadded(stream)), width=_WIDE, force_terminal=False, **_PLAIN)


class _Unpadded:
    """A stream that gets no spaces at the ends of lines: they pad tables, and a file or another program keeps them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        """Write whole lines."""
        return self._stream.write(_PADDING.sub("", text))

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()


def cell(value: object, zone: str = UTC_NAME) -> str:
    """Return a table cell, with control characters made visible, and times of documents by the clocks of a zone."""
    match value:
        case dict() if value:
            # First, because an empty mapping pattern matches any mapping.
            return cell(orjson.dumps(value).decode())
        case None | "" | [] | {}:
            return _MISSING
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(cell(item, zone) for item in value)
        case _:
            # Alone, or in a sentence.
            text = _TIMESTAMP.sub(lambda found: time_text(datetime.fromisoformat(found[0]), zone), str(value))
            return words.visible(text)


def note(text: str) -> None:
    """Print a hint for people on stderr."""
    if not state().as_json:
        click.echo(text, err=True)


def echo_json(document: object) -> None:
    """Print the one JSON document, in UTF-8 whatever the terminal's encoding."""
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def program() -> str:
    """Return the shell command of this program: its name if it is in the PATH, else its place."""
    if shutil.which(_PROGRAM):
        return _PROGRAM
    called_as = sys.argv[0]
    return shlex.quote(called_as) if Path(called_as).name == _PROGRAM else f"{shlex.quote(sys.executable)} -m {_MODULE}"


def show(document: Document) -> None:
    """Print one thing: a document, or its fields line by line."""
    if state().as_json:
        echo_json(document)
    else:
        console().print(fields(document))


def show_or_say(document: object, sentence: str) -> None:
    """Print a document for programs, and a sentence for people."""
    if state().as_json:
        echo_json(document)
    else:
        click.echo(sentence)


def fields(document: Document, zone: str = UTC_NAME) -> Table:
    """Return a table of the fields, their texts with the lines that they have, and times by the clocks of a zone."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in document.items():
        is_text = isinstance(value, str) and "\n" in value
        table.add_row(name, "\n".join(map(words.visible, value.split("\n"))) if is_text else cell(value, zone))
    return table


def show_list(documents: Sequence[Document], columns: Sequence[str], *, empty: str) -> None:
    """Print a list: an array of documents, or a table of some of their fields.

    Args:
        documents: The list.
        columns: The fields of the table.
        empty: The hint for people if there are none.
    """
    if state().as_json:
        echo_json(list(documents))
    elif documents:
        console().print(listing(documents, columns))
    else:
        note(empty)


class Listing:
    """Documents as a table, or one below the other where a table would break words or times.

    Args:
        documents: The documents.
        columns: Their fields that are shown.
        zone: The zone of the times, which is named.
    """

    def __init__(self, documents: Iterable[Document], columns: Sequence[str], zone: str) -> None:
        self._columns, self._zone = columns, zone
        self._rows = [[cell(document.get(name), zone) for name in columns] for document in documents]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what fits into the width."""
        named = f" {self._zone}"
        columns = [_Column(name, [row[index] for row in self._rows], named) for index, name in enumerate(self._columns)]
        widths = _widths(columns, options.max_width - _EDGES - _GAP * (len(columns) - 1))
        if widths is None:
            for row in self._rows:
                yield Text(entry(dict(zip(self._columns, row, strict=True)), options.max_width))
                yield Text()
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column.title, no_wrap=column.is_whole, overflow="fold", width=width)
        for cells in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*(Text(text) for text in cells))
        yield table


class _Column:
    """A column of a table; one of times names their zone in its title.

    Attributes:
        is_whole: Whether its cells are not to be wrapped: an id that is cut or wrapped cannot be copied.
        natural: The width without wrapping.
        least: The width that breaks no word.
    """

    def __init__(self, name: str, cells: Sequence[str], named_zone: str) -> None:
        known = [text for text in cells if text != _MISSING]
        is_time = bool(known) and all(_SHOWN_TIME.fullmatch(text.removesuffix(named_zone)) for text in known)
        self.title = f"{name}\n{named_zone.strip()}" if is_time else name
        self.cells = [text.removesuffix(named_zone) for text in cells] if is_time else cells
        self.is_whole = is_time or name == "id" or name.endswith("_id")
        words = [word for text in ((self.title,) if self.is_whole else (self.title, *cells)) for word in text.split()]
        longest = min(_LONGEST_WORD, max(map(cell_len, words), default=1))
        whole = max(map(cell_len, self.cells), default=1)
        self.natural = max([whole, *map(cell_len, self.title.splitlines())])
        self.least = max(whole, longest) if self.is_whole else longest


def _widths(columns: Sequence[_Column], room: int) -> Sequence[int] | None:
    """Return the widths of columns that break no word; None if there is no room for that."""
    spare = room - sum(column.least for column in columns)
    if spare < 0:
        return None
    wanted = [max(0, column.natural - column.least) for column in columns]
    # The widest come last: those that are wrapped in any case leave the room to the others.
    given = dict.fromkeys(range(len(columns)), 0)
    for place, index in enumerate(sorted(given, key=lambda index: wanted[index])):
        given[index] = min(wanted[index], spare // (len(columns) - place))
        spare -= given[index]
    return [column.least + given[index] for index, column in enumerate(columns)]


def entry(cells: Mapping[str, str], width: int) -> str:
    """Return cells below one another: the first one, and the names and values of the others that have one."""
    (name, text), *others = cells.items()
    # A number says nothing without its name.
    lines = [f"{name} {text}" if text.isdecimal() else text]
    line = ""
    for name, text in others:
        if text == _MISSING:
            continue
        pair = f"{name}: {text}"
        joined = f"{line}   {pair}" if line else f"  {pair}"
        if cell_len(joined) <= width:
            line = joined
            continue
        lines += [line] if line else []
        *before, line = textwrap.wrap(
            pair, max(20, width), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
        lines += before
    return "\n".join([*lines, line] if line else lines)


def listing(documents: Iterable[Document], columns: Sequence[str], zone: str = UTC_NAME) -> Listing:
    """Return a table of documents."""
    return Listing(documents, columns, zone)


async def stream_array(documents: AsyncIterator[Document]) -> None:
    """Stream an array of documents, which may be larger than memory."""
    out = sys.stdout.buffer
    out.write(b"[")
    separator = b"\n"
    async for document in documents:
        out.write(separator + orjson.dumps(document))
        separator = b",\n"
    out.write(b"\n]\n")
    out.flush()


async def stream_lines(documents: AsyncIterator[Document], columns: Mapping[str, int], zone: str = UTC_NAME) -> int:
    """Stream documents as lines of fixed columns, or as entries where these are too wide; return their number.

    Times are by the clocks of a zone, which is named. A column of width 0 is the last one: a text that is too long for
    the terminal is wrapped below its line.
    """
    out = console()
    narrow = out.width if out.width < sum(columns.values()) + 2 * (len(columns) - 1) else None
    count = 0
    async for document in documents:
        if count == 0 and narrow is None:
            click.secho(f"Times: {zone}")
            click.secho("  ".join(name.ljust(width) for name, width in columns.items()).rstrip(), bold=True)
        count += 1
        cells = {name: cell(document.get(name), zone) for name in columns}
        if narrow is not None:
            click.echo(entry(cells, narrow))
            continue
        texts = [text.removesuffix(f" {zone}").ljust(columns[name]) for name, text in cells.items()]
        click.echo(_line(texts, out.width if out.is_terminal else None))
    return count


def _line(texts: Sequence[str], width: int | None) -> str:
    """Return cells as a line, with the last one below it if it is wider than a terminal."""
    line = "  ".join(texts).rstrip()
    if width is None or cell_len(line) <= width:
        return line
    *first, last = texts
    below = textwrap.wrap(last, width, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(["  ".join(first).rstrip(), *below])


def echo_json_with(head: Document, name: str, items: Iterable[bytes]) -> None:
    """Print one document whose last field is an array of encoded items."""
    out = sys.stdout.buffer
    out.write(orjson.dumps(head, option=orjson.OPT_INDENT_2).removesuffix(b"\n}"))
    out.write(b",\n  " + orjson.dumps(name) + b": [")
    separator = b"\n    "
    for item in items:
        out.write(separator + item)
        separator = b",\n    "
    out.write(b"\n  ]\n}\n")
    out.flush()
