"""Exports as CSV, in which a spreadsheet finds nothing to run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator
from typing import Final

from outreach.convert.exports.columns import Cell, Table
from outreach.models.campaign_export import ExportedContact

_PART_CHARACTERS: Final = 64 * 1024

_RUN: Final = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r\n\0]")
"""The first characters of cells that a spreadsheet runs as a formula, also full-width or after skipped ones."""

_NUMBER: Final = re.compile(r"[+-]?[0-9][0-9 ().-]*")
"""A phone number, which is not a formula and is kept as it is."""


def escape_formula(text: str) -> str:
    """Return a cell that a spreadsheet shows and does not run, with a leading apostrophe if needed."""
    return f"'{text}" if _RUN.match(text) and not _NUMBER.fullmatch(text) else text


async def delimited_bytes(contacts: AsyncIterator[ExportedContact], table: Table) -> AsyncIterator[bytes]:
    """Yield a CSV file in UTF-8, with the mark by which spreadsheets know that it is."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    out.write("\ufeff")
    writer.writerow([escape_formula(name) for name in table.header])
    async for contact in contacts:
        writer.writerow([_cell(value) for value in table.row(contact)])
        if out.tell() >= _PART_CHARACTERS:
            yield _taken(out)
    yield _taken(out)


def _cell(value: Cell) -> str | int:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int():
            return value
        case _:
            return escape_formula(value)


def _taken(out: io.StringIO) -> bytes:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text.encode("utf-8")
