"""A list of people who opted out: which columns have their numbers, and the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from typing import Any, Final

import attrs

from outreach.server_support import OWN_NUMBER, SEVERAL_NUMBERS, Field, person_key, read_number_cell
from outreach_server.lists.contact_columns import Columns, find_phone_columns, read_columns, without_foreign_country
from outreach_server.lists.csv_records import Record
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.header_rows import find_header
from outreach_server.lists.read_numbers import CellNumber, ReadNumbers
from outreach_server.lists.rejects import Rejects
from outreach_server.lists.report import corrected, numbers_document
from outreach_server.lists.tables import Table, is_blank
from outreach_server.lists.xlsx_merges import header_notes, merged_header, merged_notes
from outreach_server.words import plural

_NUMBER: Final = re.compile(r"[+\uff0b]?[\d\s().\-/]{7,}")
_SHORT_DATE: Final = re.compile(r"\d{1,2}([-/.])\d{1,2}\1\d{2}")
_LETTER: Final = re.compile(r"[^\W\d_]")
_FIRST_ROWS: Final = 3


@attrs.define(kw_only=True)
class OptOutFile:
    """A list of people who opted out.

    Attributes:
        table: The list.
        column: The columns of the numbers, in words.
        notes: Hints for people on how the columns were read.
        numbers: The numbers that were taken so far; its region has to be set before.
        own: The workspace's own numbers, as `person_key` writes them, which are refused.
        rows: Nonempty rows read so far.
        refused: How many of them hold one of the workspace's own numbers.
    """

    table: Table
    column: str
    notes: tuple[str, ...]
    _columns: Sequence[Columns]
    _records: Iterator[Record]
    numbers: ReadNumbers = attrs.field(factory=ReadNumbers)
    own: Set[str] = frozenset()
    rows: int = 0
    refused: int = 0

    @classmethod
    def open(cls, table: Table, *, mapped: Mapping[Field, str]) -> OptOutFile:
        """Find the columns of the numbers: all with the name of one, or the one that is mapped.

        Raises:
            UnreadableList: The file is empty, or nothing says which column has the numbers.
        """
        found = table.records
        first = next((record for record in found if not is_blank(record)), None)
        if first is None:
            raise UnreadableList(f"{table.name} is empty.")
        found = chain([first], found)
        columns = _without_header(table, first, mapped.get("phone_number"))
        has_header, header_row, notes = columns is None, first.row - 1, table.notes
        if columns is None:
            header = find_header(found, name=table.name, mapped=mapped)
            columns = read_columns(header.record.cells, mapped=mapped, several_phones=True)
            found, header_row = header.rest, header.record.row
            merged = merged_header(table.merged, header_row, len(columns.headers))
            notes = (*notes, *header.notes, *header_notes(merged))
        rows = list(islice((record for record in found if not is_blank(record)), _FIRST_ROWS))
        if not rows:
            raise UnreadableList(f"{table.name} has a header and no rows.")
        phones = [columns.phone]
        if has_header and "phone_number" not in mapped:
            phones = sorted(at for at in find_phone_columns(columns.headers) if at != columns.country)
        # What `read_columns` notes is about contacts and their texts.
        notes_of_columns = tuple(_all_are_read([columns.headers[at] for at in phones]))
        columns = attrs.evolve(columns, notes=notes_of_columns, other_phones=())
        columns = without_foreign_country(columns, [record.cells for record in rows], mapped=mapped)
        named = (f"{columns.headers[at]!r} (column {at + 1})" if has_header else f"column {at + 1}" for at in phones)
        return cls(
            table=table,
            column=" and ".join(named),
            notes=(*notes, *columns.notes, *merged_notes(table.merged, header_row, len(columns.headers))),
            columns=[attrs.evolve(columns, phone=at) for at in phones],
            records=chain(rows, found),
        )

    @property
    def has_several_columns(self) -> bool:
        """Whether a row may hold several numbers."""
        return len(self._columns) > 1

    def read(self, rejects: Rejects) -> Iterator[tuple[int, str]]:
        """Iterate over the numbers with their rows; report invalid rows and cells."""
        for record in self._records:
            if is_blank(record):
                continue
            self.rows += 1
            if record.problem is not None:
                rejects.add(row=record.row, line=record.line, column=None, message=record.problem)
                continue
            people: set[str] = set()
            has_own = False
            for column, number in self._numbers(record):
                problem, person = number.problem, person_key(number.phone) if number.phone is not None else ""
                if person in self.own:
                    has_own = True
                    problem = f"{number.phone} {OWN_NUMBER}"
                if problem is not None:
                    rejects.add(row=record.row, line=record.line, column=column, message=problem)
                elif person not in people:
                    people.add(person)
                    self.numbers.count(record.row, number)
                    yield record.row, number.phone or ""
            self.refused += has_own

    def _numbers(self, record: Record) -> Sequence[tuple[str | None, CellNumber]]:
        """Return the numbers of a row with the names of their columns; blank cells only if all of them are."""
        if not self.has_several_columns:
            return [(None, self._columns[0].number(record, self.numbers))]
        found = [(one.headers[one.phone], one.number(record, self.numbers)) for one in self._columns]
        return [one for one in found if one[1].text] or [(None, found[0][1])]

    def document(self) -> Mapping[str, Any]:
        """Return how it was read, and what was made of its numbers; all of it was read before."""
        return {
            "rows": self.rows,
            "read_as": self.table.described,
            "notes": [*self.notes, *self.table.unread()],
            "column": self.column,
            "numbers": numbers_document(self.numbers),
            "corrected": corrected(self.numbers),
        }

    def warnings(self) -> list[str]:
        """Return what should be looked at before anything else."""
        found = self.numbers.warnings(sms=False)
        if self.refused:
            rows = plural(self.refused, "row holds", "rows hold")
            found.append(f"{rows} a number of this workspace itself: {self.column} may be the wrong column.")
        return found


def _without_header(table: Table, first: Record, mapped: str | None) -> Columns | None:
    """Return the columns of a list that begins with a number; None if its first row is a header.

    Raises:
        UnreadableList: There is no header, and several columns may hold the numbers.
    """
    cells = [cell.strip() for cell in first.cells]
    if mapped is not None and mapped.isdecimal() and mapped not in cells and 1 <= int(mapped) <= len(cells):
        at = int(mapped) - 1
        is_data = at in first.numbers or _is_number(cells[at]) or not _LETTER.search(cells[at])
    elif mapped is not None or find_phone_columns(cells):
        return None
    else:
        found = [index for index, cell in enumerate(cells) if _is_number(cell)]
        if not found and len(cells) == 1 and not _LETTER.search(cells[0]):
            # A number that has lost digits, which is reported as a row.
            found = [0]
        if len(found) > 1:
            places = " and ".join(str(index + 1) for index in found)
            raise UnreadableList(
                f"The first row of {table.name} names no columns, and columns {places} look like phone numbers. "
                f"Say which one it is: --map phone={found[0] + 1}"
            )
        is_data, at = bool(found), found[0] if found else 0
    if not is_data:
        return None
    return Columns(headers=tuple(cells), phone=at, fields=(), variables=(), country=None, notes=())


def _is_number(cell: str) -> bool:
    found = read_number_cell(cell)
    if found.problem is not None:
        # A cell with several numbers is reported as a row. Dates and errors are no numbers.
        return found.problem == SEVERAL_NUMBERS
    return bool(_NUMBER.fullmatch(found.text)) and not _SHORT_DATE.fullmatch(found.text)


def _all_are_read(headers: Sequence[str]) -> Iterator[str]:
    """Yield that several columns are read, if there are several."""
    if len(headers) > 1:
        named = " and ".join(map(repr, headers))
        yield f"Every phone column is read, {named}: --map phone=COLUMN reads one alone."
