"""A list of people who opted out: which column has their numbers, and the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from itertools import chain, islice
from typing import Final

import attrs
import click

from outreach.server_support import SEVERAL_NUMBERS, Field, person_key, read_number_cell
from outreach_server.cli.contact_columns import Columns, find_phone_columns, read_columns, without_foreign_country
from outreach_server.cli.csv_records import Record
from outreach_server.cli.header_rows import find_header
from outreach_server.cli.read_numbers import ReadNumbers
from outreach_server.cli.rejects import Rejects
from outreach_server.cli.tables import Table, is_blank
from outreach_server.cli.xlsx_merges import merged_notes

_NUMBER: Final = re.compile(r"[+\uff0b]?[\d\s().\-/]{7,}")
_LETTER: Final = re.compile(r"[^\W\d_]")
_FIRST_ROWS: Final = 3


@attrs.define(kw_only=True)
class OptOutFile:
    """A list of people who opted out.

    Attributes:
        table: The list.
        column: The column of the numbers, in words.
        notes: Hints for people on how the columns were read.
        numbers: The numbers that were taken so far; its region has to be set before.
        own: The workspace's own numbers, as `person_key` writes them, which are refused.
        rows: Nonempty rows read so far.
        refused: How many of them hold one of the workspace's own numbers.
    """

    table: Table
    column: str
    notes: tuple[str, ...]
    _columns: Columns
    _records: Iterator[Record]
    numbers: ReadNumbers = attrs.field(factory=ReadNumbers)
    own: Set[str] = frozenset()
    rows: int = 0
    refused: int = 0

    @classmethod
    def open(cls, table: Table, *, mapped: Mapping[Field, str]) -> OptOutFile:
        """Find the column of the numbers.

        Raises:
            click.ClickException: The file is empty, or nothing says which column has the numbers.
        """
        found = table.records
        first = next((record for record in found if not is_blank(record)), None)
        if first is None:
            raise click.ClickException(f"{table.name} is empty.")
        found = chain([first], found)
        columns = _without_header(table, first, mapped.get("phone_number"))
        has_header, header_row, notes = columns is None, first.row - 1, table.notes
        if columns is None:
            header = find_header(found, name=table.name, mapped=mapped)
            columns = read_columns(header.record.cells, mapped=mapped)
            found, header_row, notes = header.rest, header.record.row, (*notes, *header.notes)
        rows = list(islice((record for record in found if not is_blank(record)), _FIRST_ROWS))
        if not rows:
            raise click.ClickException(f"{table.name} has a header and no rows.")
        # What `read_columns` notes is about contacts and their texts.
        columns = attrs.evolve(columns, notes=tuple(_other_columns(columns, mapped)))
        columns = without_foreign_country(columns, [record.cells for record in rows], mapped=mapped)
        name = f"column {columns.phone + 1}"
        return cls(
            table=table,
            column=f"{columns.headers[columns.phone]!r} ({name})" if has_header else name,
            notes=(*notes, *columns.notes, *merged_notes(table.merged, header_row, len(columns.headers))),
            columns=columns,
            records=chain(rows, found),
        )

    def read(self, rejects: Rejects) -> Iterator[tuple[int, str]]:
        """Iterate over the numbers with their rows; report invalid rows."""
        for record in self._records:
            if is_blank(record):
                continue
            self.rows += 1
            number = self._columns.number(record.cells, self.numbers)
            problem = record.problem or number.problem
            if number.phone is not None and person_key(number.phone) in self.own:
                self.refused += 1
                problem = f"{number.phone} is a number of this workspace itself"
            if problem is not None:
                rejects.add(row=record.row, line=record.line, column=None, message=problem)
            else:
                self.numbers.count(record.row, number)
                yield record.row, number.phone or ""

    def warnings(self) -> list[str]:
        """Return what should be looked at before anything else."""
        found = self.numbers.warnings(sms=False)
        if self.refused:
            rows = "1 row holds" if self.refused == 1 else f"{self.refused:,} rows hold"
            found.append(f"{rows} a number of this workspace itself: {self.column} may be the wrong column.")
        return found


def _without_header(table: Table, first: Record, mapped: str | None) -> Columns | None:
    """Return the columns of a list that begins with a number; None if its first row is a header.

    Raises:
        click.ClickException: There is no header, and several columns may hold the numbers.
    """
    cells = [cell.strip() for cell in first.cells]
    if mapped is not None and mapped.isdecimal() and mapped not in cells and 1 <= int(mapped) <= len(cells):
        at = int(mapped) - 1
        is_data = _is_number(cells[at]) or not _LETTER.search(cells[at])
    elif mapped is not None or find_phone_columns(cells):
        return None
    else:
        found = [index for index, cell in enumerate(cells) if _is_number(cell)]
        if not found and len(cells) == 1 and not _LETTER.search(cells[0]):
            # A number that has lost digits, which is reported as a row.
            found = [0]
        if len(found) > 1:
            places = " and ".join(str(index + 1) for index in found)
            raise click.ClickException(
                f"The first row of {table.name} names no columns, and columns {places} look like phone numbers. "
                f"Say which one it is: --map phone={found[0] + 1}"
            )
        is_data, at = bool(found), found[0] if found else 0
    if not is_data:
        return None
    return Columns(headers=tuple(cells), phone=at, fields=(), variables=(), country=None, notes=())


def _is_number(cell: str) -> bool:
    found = read_number_cell(cell)
    return bool(_NUMBER.fullmatch(found.text)) or found.problem == SEVERAL_NUMBERS


def _other_columns(columns: Columns, mapped: Mapping[Field, str]) -> Iterator[str]:
    """Yield which further columns may hold numbers."""
    if "phone_number" in mapped:
        return
    others = [index for index in find_phone_columns(columns.headers) if index != columns.phone]
    if others:
        named = " and ".join(repr(columns.headers[index]) for index in others)
        yield (
            f"Only {columns.headers[columns.phone]!r} is read; {named} may hold numbers too: import these on their "
            "own, with --map phone=COLUMN."
        )
