"""The rows of a file that could not be loaded: all of them are kept, few of them in memory."""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self, TextIO

import click
import orjson

from outreach_server.cli.output import cell

SHOWN: Final = 20
"""How many are named on a terminal; a file or the JSON document has them all."""

_IN_MEMORY: Final = 1_000_000


_RUN: Final = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r\n\0]")
"""How cells begin that a spreadsheet runs: as a formula, in its full-width form too, or after what it skips."""

_NUMBER: Final = re.compile(r"[+-]?[0-9][0-9 ().-]*")
"""A phone number, which has nothing in it to be run, and is there to be corrected and loaded again."""


def escape_formula(text: str) -> str:
    """Return a cell that a spreadsheet shows and does not run: with an apostrophe before what it would."""
    return f"'{text}" if _RUN.match(text) and not _NUMBER.fullmatch(text) else text


class Rejects:
    """Collects rejected rows.

    Args:
        file: A CSV file that gets every one as it comes, with the row's own cells, made escape_formula; None for none.

    Attributes:
        count: How many there are.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self.count = 0
        self._spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._writer = csv.writer(file) if file is not None else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._spool.close()

    def header(self, cells: Sequence[str]) -> None:
        """Begin the CSV file, where there is one."""
        if self._writer is not None:
            self._writer.writerow(["row", "column", "message", *map(escape_formula, cells)])

    def add(self, *, row: int, line: int, column: str | None, message: str, cells: Sequence[str] = ()) -> None:
        """Keep one rejected row.

        Args:
            row: Its number in the file; the header is row 1.
            line: The line of text that it begins on.
            column: The column at fault; None for the row as a whole.
            message: What is wrong.
            cells: What the row holds.
        """
        self.count += 1
        item = {"row": row, "line": line, "column": column, "message": message}
        self._spool.write(orjson.dumps(item) + b"\n")
        if self._writer is not None:
            self._writer.writerow(
                [row, escape_formula(column or ""), escape_formula(message), *map(escape_formula, cells)]
            )

    def items(self) -> Iterator[bytes]:
        """Go through them, each as JSON, in the order of the file."""
        self._spool.seek(0)
        for line in self._spool:
            yield line.rstrip(b"\n")

    def tell(self, *, hint: str) -> None:
        """Name the first ones on stderr for people; `hint` says where all of them are."""
        for index, item in enumerate(self.items()):
            if index == SHOWN:
                click.echo(f"  … and {self.count - SHOWN} more; {hint}", err=True)
                return
            rejected: dict[str, Any] = orjson.loads(item)
            place = f", column {cell(rejected['column'])}" if rejected["column"] else ""
            click.echo(f"  row {rejected['row']}{place}: {cell(rejected['message'])}", err=True)
