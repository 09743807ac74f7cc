"""Reads contacts from a list in prepared chunks, corrects numbers, and reports bad rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from types import MappingProxyType
from typing import Final

import attrs

from outreach import InvalidRequest, NewRecipient
from outreach.models import PreparedRecipient
from outreach.server_support import (
    Field,
    PlaceholderTally,
    is_cell_error,
    moment_name,
    name_spellings,
    placeholders_of,
    prepare_recipient,
    read_cell,
    values_of,
    with_field_names,
)
from outreach.server_support import is_blank as is_blank_text
from outreach_server.lists.contact_columns import (
    Columns,
    read_columns,
    with_named,
    without_foreign_country,
    without_foreign_zone,
)
from outreach_server.lists.csv_records import Record
from outreach_server.lists.damaged_cells import DamagedCells
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.header_rows import find_header
from outreach_server.lists.read_numbers import CellNumber, ReadNumbers
from outreach_server.lists.rejects import Rejects
from outreach_server.lists.tables import Table, is_blank
from outreach_server.lists.xlsx_merges import header_notes, merged_header, merged_notes

CHUNK: Final = 500
MAX_CELL_LENGTH: Final = 4_000
"""A longer cell is a mistake in the file, not a contact's field."""

SHOWN_ROWS: Final = 3
_NOT_MAPPED: Final[Mapping[Field, str]] = MappingProxyType({})


@attrs.define(kw_only=True)
class ContactFile:
    """A list of contacts.

    Attributes:
        table: The list.
        columns: The meaning of its columns.
        notes: Hints for people on how it is read.
        first_rows: Its first rows.
        first_loaded: The first ones that were taken so far.
        tally: Counts contacts without a value for a placeholder, once the texts are known (`use_texts`).
        dated: The columns whose dates are written in the format of a placeholder. A contact has such a date twice: as
            it is shown, and as ISO 8601 (`moment_name`).
        rows: Nonempty rows read so far.
        numbers: The numbers that were taken so far; its region has to be set before.
        from_other_columns: How many of them are not from the phone column, by column, each with the first row.
        damaged: What is damaged in the rows that were taken so far.
        corrections: Phone numbers in the place of those of the list, by the number of the row.
    """

    table: Table
    columns: Columns
    notes: tuple[str, ...]
    first_rows: tuple[Record, ...]
    _records: Iterator[Record]
    _width: int
    tally: PlaceholderTally = attrs.field(factory=lambda: PlaceholderTally(()))
    dated: frozenset[int] = frozenset()
    rows: int = 0
    loaded: int = 0
    first_loaded: list[Record] = attrs.field(factory=list)
    numbers: ReadNumbers = attrs.field(factory=ReadNumbers)
    from_other_columns: dict[int, tuple[int, int]] = attrs.field(factory=dict)
    damaged: DamagedCells = attrs.field(factory=DamagedCells)
    corrections: Mapping[int, str] = attrs.field(factory=dict)

    @classmethod
    def open(cls, table: Table, *, mapped: Mapping[Field, str] = _NOT_MAPPED) -> ContactFile:
        """Read the header and the first rows.

        Raises:
            UnreadableList: The file is empty, not in its encoding, or its header does not name the phone.
        """
        header = find_header(table.records, name=table.name, mapped=mapped)
        columns = read_columns(header.record.cells, mapped=mapped)
        first = tuple(islice((record for record in header.rest if not is_blank(record)), SHOWN_ROWS))
        if not first:
            raise UnreadableList(f"{table.name} has a header and no rows.")
        cells = [record.cells for record in first]
        columns = without_foreign_zone(without_foreign_country(columns, cells, mapped=mapped), cells, mapped=mapped)
        width = len(columns.headers)
        merged = merged_header(table.merged, header.record.row, width)
        damaged = DamagedCells()
        damaged.count(header.record.row, [("header", name) for name in columns.headers])
        return cls(
            damaged=damaged,
            table=table,
            columns=columns,
            notes=(
                *table.notes,
                *header.notes,
                *columns.notes,
                *header_notes(merged),
                *merged_notes(table.merged, header.record.row, width),
            ),
            width=max([width, *(one.last_column for one in merged)]),
            first_rows=first,
            records=chain(first, header.rest),
        )

    def use_texts(self, templates: Sequence[str], expected: Sequence[str]) -> None:
        """Read the rows for these texts: count missing values, and keep dates that get a format.

        Args:
            templates: The texts.
            expected: The names that a voice agent expects.
        """
        found = [one for template in templates for one in placeholders_of(template)]
        used = {spelling for one in found for spelling in (*one.whole, *one.name)}
        self.columns = with_named(self.columns, used.union(*map(name_spellings, expected)))
        names = tuple(name for _, name in self.columns.variables)
        texts = [with_field_names(template, self.columns.headers, names) for template in templates]
        self.tally = PlaceholderTally(texts, expected)
        dated = {
            one for text in texts for found in placeholders_of(text) if found.date is not None for one in found.name
        }
        columns = chain(self.columns.variables, self.columns.fields)
        self.dated = frozenset(index for index, name in columns if not dated.isdisjoint(name_spellings(name)))

    def contacts(self, rejects: Rejects) -> Iterator[tuple[Record, NewRecipient]]:
        """Iterate over the contacts, whose numbers may be invalid; report malformed rows."""
        for record in self._rows(rejects):
            text = self.number(record).text
            if text:
                yield record, self._contact(record, text)

    def chunks(self, rejects: Rejects) -> Iterator[list[PreparedRecipient]]:
        """Iterate over the prepared contacts with valid numbers, in chunks; report all other rows."""
        chunk: list[PreparedRecipient] = []
        for record in self._rows(rejects):
            number, phone = self.number(record), self.columns.phone_of(record)
            if number.problem is not None:
                _reject(rejects, record, self.columns.headers[phone], number.problem)
                continue
            try:
                # By the number as it was read, which is not read again.
                contact = self._contact(record, number.phone or "")
                prepared = prepare_recipient(contact, None, path="")
            except InvalidRequest as error:
                detail = error.details[0]
                _reject(rejects, record, self._column(detail.path.removeprefix("."), phone), detail.message)
                continue
            self.numbers.count(record.row, number)
            if phone != self.columns.phone:
                count, first = self.from_other_columns.get(phone, (0, record.row))
                self.from_other_columns[phone] = count + 1, first
            self.damaged.count(record.row, self._loaded_cells(record))
            self._count(record, contact)
            chunk.append(prepared._replace(phone_number=number.text))
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    def warnings(self, *, sms: bool) -> list[str]:
        """Return what should be looked at before these contacts are reached.

        Args:
            sms: Whether they are to get texts.
        """
        return [*self.numbers.warnings(sms=sms), *self.damaged.warnings()]

    def number(self, record: Record) -> CellNumber:
        """Return the number of a row."""
        return self.columns.number(record, self.numbers)

    def _rows(self, rejects: Rejects) -> Iterator[Record]:
        """Iterate over the rows that are no malformed ones; report the others."""
        rejects.header(self.columns.headers)
        for record in self._records:
            if is_blank(record):
                continue
            self.rows += 1
            problem = self._problem(record)
            if problem is None:
                correction = self.corrections.get(record.row)
                yield record if correction is None else self.columns.with_number(record, correction)
            else:
                _reject(rejects, record, *problem)

    def _count(self, record: Record, contact: NewRecipient) -> None:
        self.tally.see(values_of(contact), self.loaded, contact.phone_number, f"row {record.row}")
        self.loaded += 1
        if len(self.first_loaded) < SHOWN_ROWS:
            self.first_loaded.append(record)

    def _loaded_cells(self, record: Record) -> Iterator[tuple[str, str]]:
        for index, _ in chain(self.columns.fields, self.columns.variables):
            if index < len(record.cells):
                yield self.columns.headers[index], record.cells[index]

    def _problem(self, record: Record) -> tuple[str | None, str] | None:
        """Return what is wrong with a row besides its number, after the column, if it is one's."""
        width = self._width
        if record.problem is not None:
            return None, record.problem
        if len(record.cells) > width and any(cell.strip() for cell in record.cells[width:]):
            return None, f"it has {len(record.cells)} cells, the header names {width}; {self.table.wide_row}"
        for header, cell in zip(self.columns.headers, record.cells, strict=False):
            if len(cell) > MAX_CELL_LENGTH:
                return header, f"has {len(cell)} characters; at most {MAX_CELL_LENGTH} are loaded"
        for index, _ in chain(self.columns.fields, self.columns.variables):
            if index < len(record.cells) and is_cell_error(cell := record.cells[index].strip()):
                return self.columns.headers[index], f"holds a spreadsheet's error, {cell}"
        return None

    def _contact(self, record: Record, phone_number: str) -> NewRecipient:
        columns, cells = self.columns, record.cells
        width = len(cells)
        fields = {name: text for index, name in columns.fields if index < width and (text := _text(cells[index]))}
        variables = {name: text for index, name in columns.variables if index < width and (text := _text(cells[index]))}
        if not self.dated.isdisjoint(record.dates):
            for index, name in chain(columns.fields, columns.variables):
                if index in self.dated and (moment := record.dates.get(index)) not in {None, cells[index]}:
                    variables[moment_name(name)] = moment
        return NewRecipient(phone_number=phone_number, **fields, custom_variables=variables)

    def _column(self, path: str, phone: int) -> str | None:
        names: dict[str, str] = {field: self.columns.headers[index] for index, field in self.columns.fields}
        names["phone_number"] = self.columns.headers[phone]
        return names.get(path)


def _text(cell: str) -> str:
    """Return the text of a cell; nothing if it shows nothing."""
    text = read_cell(cell.strip())
    return "" if is_blank_text(text) else text


def _reject(rejects: Rejects, record: Record, column: str | None, message: str) -> None:
    rejects.add(row=record.row, line=record.line, column=column, message=message, cells=record.cells)
