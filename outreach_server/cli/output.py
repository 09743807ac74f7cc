"""Output: one JSON document for programs, tables and text for people."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO, cast

import click
import orjson
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from outreach_server.cli.base import state

_WIDE: Final = 400
"""Width without a terminal: a pipe's reader needs whole lines."""

_PADDING: Final = re.compile(r" +(?=\n)")

_PLAIN: Final[Mapping[str, Any]] = {"markup": False, "highlight": False, "emoji": False}
"""Names come from spreadsheets and requests, so they must not be markup."""

_MISSING: Final = "-"
_PROGRAM: Final = "outreach-server"
_MODULE: Final = "outreach_server"

Document = Mapping[str, Any]


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


def cell(value: object) -> str:
    """Return a table cell, with control characters made visible."""
    match value:
        case dict() if value:
            # First, because an empty mapping pattern matches any mapping.
            return cell(orjson.dumps(value).decode())
        case None | "" | [] | {}:
            return _MISSING
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(cell(item) for item in value)
        case _:
            text = str(value)
            return (
                text if text.isprintable() else "".join(c if c.isprintable() else "\N{SYMBOL FOR ESCAPE}" for c in text)
            )


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


def fields(document: Document) -> Table:
    """Return a table with a line for each field."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in document.items():
        table.add_row(name, cell(value))
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


def listing(documents: Iterable[Document], columns: Sequence[str]) -> Table:
    """Return a table of documents."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        # An id that is cut or wrapped cannot be copied.
        whole = name == "id" or name.endswith("_id")
        table.add_column(name, no_wrap=whole, overflow="fold", min_width=36 if whole else None)
    for document in documents:
        table.add_row(*(Text(cell(document.get(name))) for name in columns))
    return table


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


async def stream_lines(documents: AsyncIterator[Document], columns: Mapping[str, int]) -> int:
    """Stream documents as lines of fixed columns; return their number."""
    count = 0
    async for document in documents:
        if count == 0:
            click.secho("  ".join(name.ljust(width) for name, width in columns.items()).rstrip(), bold=True)
        count += 1
        click.echo("  ".join(cell(document.get(name)).ljust(width) for name, width in columns.items()).rstrip())
    return count


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
