"""Reads contacts from a CSV file in prepared chunks, and reports bad rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

import attrs
import click

from outreach import InvalidRequest, NewRecipient
from outreach.http import prepare_recipient
from outreach.models import PreparedRecipient
from outreach_server.cli.csv_columns import Columns, read_columns
from outreach_server.cli.csv_lines import Source
from outreach_server.cli.csv_records import Record, detect_delimiter, records
from outreach_server.cli.rejects import Rejects

CHUNK: Final = 500
MAX_CELL_LENGTH: Final = 4_000
"""A longer cell is a mistake in the file, not a contact's field."""


@attrs.define(kw_only=True)
class ContactFile:
    """A CSV file of contacts.

    Attributes:
        columns: The meaning of its columns.
        rows: Nonempty rows read so far.
    """

    columns: Columns
    _records: Iterator[Record]
    rows: int = 0

    @classmethod
    def open(cls, source: Source, *, delimiter: str, phone_column: str | None) -> ContactFile:
        """Read the header.

        Raises:
            click.ClickException: The file is empty, not in its encoding, or its header does not name the phone.
        """
        found = open_records(source, delimiter=delimiter)
        header = next((record for record in found if not is_blank(record)), None)
        if header is None:
            raise click.ClickException(f"{source.name} is empty; its first line must name the columns.")
        if header.problem is not None:
            raise click.ClickException(f"The header of {source.name} cannot be read: {header.problem}.")
        return cls(columns=read_columns(header.cells, phone_column=phone_column), records=found)

    def contacts(self, rejects: Rejects) -> Iterator[tuple[Record, NewRecipient]]:
        """Iterate over the contacts, whose numbers may be invalid; report malformed rows."""
        rejects.header(self.columns.headers)
        width = len(self.columns.headers)
        for record in self._records:
            if is_blank(record):
                continue
            self.rows += 1
            problem = record.problem
            if problem is None and any(cell.strip() for cell in record.cells[width:]):
                problem = f"it has {len(record.cells)} cells, the header names {width}; quote a cell that holds commas"
            if problem is not None:
                _reject(rejects, record, None, problem)
                continue
            too_long = next((i for i, cell in enumerate(record.cells) if len(cell) > MAX_CELL_LENGTH), None)
            if too_long is not None:
                message = f"has {len(record.cells[too_long])} characters; at most {MAX_CELL_LENGTH} are loaded"
                _reject(rejects, record, self.columns.headers[too_long], message)
                continue
            contact = self._contact(record)
            if not contact.phone_number:
                _reject(rejects, record, self.columns.headers[self.columns.phone], "there is no phone number")
                continue
            yield record, contact

    def chunks(self, rejects: Rejects, *, default_region: str | None) -> Iterator[list[PreparedRecipient]]:
        """Iterate over the prepared contacts with valid numbers, in chunks; report all other rows."""
        chunk: list[PreparedRecipient] = []
        for record, contact in self.contacts(rejects):
            try:
                prepared = prepare_recipient(contact, default_region, path="")
            except InvalidRequest as error:
                detail = error.details[0]
                _reject(rejects, record, self._column(detail.path.removeprefix(".")), detail.message)
                continue
            if prepared.phone is None:
                shown = contact.phone_number[:40]
                message = f"{shown!r} is not a phone number"
                if default_region is None and not contact.phone_number.startswith("+"):
                    message += "; write it like +14155550102, or give the workspace a --default-region"
                _reject(rejects, record, self.columns.headers[self.columns.phone], message)
                continue
            chunk.append(prepared)
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    def _contact(self, record: Record) -> NewRecipient:
        columns, cells = self.columns, record.cells
        width = len(cells)  # a row may have fewer cells than the header
        fields = {name: text for index, name in columns.fields if index < width and (text := cells[index].strip())}
        variables = {
            name: text for index, name in columns.variables if index < width and (text := cells[index].strip())
        }
        phone = cells[columns.phone].strip() if columns.phone < width else ""
        return NewRecipient(phone_number=phone, **fields, custom_variables=variables)

    def _column(self, path: str) -> str | None:
        names: dict[str, str] = {field: self.columns.headers[index] for index, field in self.columns.fields}
        names["phone_number"] = self.columns.headers[self.columns.phone]
        return names.get(path)


def open_records(source: Source, *, delimiter: str) -> Iterator[Record]:
    """Return a file's rows with the header; `auto` detects the delimiter in the first nonempty line."""
    lines = source.lines()
    first: list[str] = []
    for line in lines:
        first.append(line)
        if line.strip():
            break
    if delimiter == "auto":
        delimiter = detect_delimiter(first[-1]) if first else ","
    return records(chain(first, lines), delimiter)


def is_blank(record: Record) -> bool:
    """Return whether a row is empty."""
    return record.problem is None and not any(cell.strip() for cell in record.cells)


def _reject(rejects: Rejects, record: Record, column: str | None, message: str) -> None:
    rejects.add(row=record.row, line=record.line, column=column, message=message, cells=record.cells)
