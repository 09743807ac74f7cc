"""The rows of a file that could not be loaded; all are kept, few in memory."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Final, Self, TextIO

import orjson

from outreach.server_support import escape_formula

_IN_MEMORY: Final = 1_000_000


class Rejects:
    """Collects rejected rows.

    Args:
        file: A CSV file for each rejected row with its own cells, formulas escaped; None for no file.
        words: Puts the messages into other words.

    Attributes:
        count: The number of rejected rows.
        source: The name of the list whose rows are added, if there are several; the rows tell it then.
    """

    def __init__(self, file: TextIO | None = None, *, words: Callable[[str], str] = str) -> None:
        self.count = 0
        self._words = words
        self.source: str | None = None
        self._has_header = False
        self._spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._writer = csv.writer(file) if file is not None else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._spool.close()

    def header(self, cells: Sequence[str]) -> None:
        """Begin the CSV file, if any; the lists after the first one have the same columns."""
        if self._writer is not None and not self._has_header:
            self._has_header = True
            self._writer.writerow([*self._of("file"), "row", "column", "message", *map(escape_formula, cells)])

    def add(self, *, row: int, line: int, column: str | None, message: str, cells: Sequence[str] = ()) -> None:
        """Add one rejected row.

        Args:
            row: Its number in the file; the header is row 1.
            line: The number of its first line.
            column: The column with the problem; None for the row as a whole.
            message: What is wrong.
            cells: The row's cells.
        """
        self.count += 1
        message = self._words(message)
        source = {} if self.source is None else {"file": self.source}
        item = {**source, "row": row, "line": line, "column": column, "message": message}
        self._spool.write(orjson.dumps(item) + b"\n")
        if self._writer is not None:
            place = [*self._of(escape_formula(self.source or "")), row, escape_formula(column or "")]
            self._writer.writerow([*place, escape_formula(message), *map(escape_formula, cells)])

    def _of(self, text: str) -> Sequence[str]:
        return () if self.source is None else (text,)

    def items(self) -> Iterator[bytes]:
        """Iterate over the rejected rows, as JSON, in the order of the file."""
        self._spool.seek(0)
        for line in self._spool:
            yield line.rstrip(b"\n")
