"""Finds the header of a list, also below titles."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import attrs
import click

from outreach.server_support import Field, is_blank, name_spellings, read_number_cell
from outreach_server.cli.contact_columns import find_phone_columns
from outreach_server.cli.csv_records import LOOKS_LIKE_A_PHONE, Record, detect_delimiter

HEADER_WITHIN: Final = 10
"""The header is one of so many first rows that are not empty."""

_SEVERAL: Final = 2


@attrs.frozen(kw_only=True)
class Header:
    """The header of a list.

    Attributes:
        record: Its row.
        rest: The rows below it.
        notes: Hints for people, if rows stand above it.
    """

    record: Record
    rest: Iterator[Record]
    notes: tuple[str, ...]


def find_header(records: Iterator[Record], *, name: str, mapped: Mapping[Field, str]) -> Header:
    """Return the header of a list: its first row, unless a row below looks more like it.

    Such a row names the phone number, or the columns that are mapped, and stands above all rows with a number; titles
    stand above it.

    Args:
        records: The rows.
        name: The list's name in messages.
        mapped: The columns of fields, by name or number.

    Raises:
        click.ClickException: The list is empty, or its header is malformed.
    """
    first: list[Record] = []
    places: list[int] = []
    for record in records:
        first.append(record)
        if record.problem is None and all(map(is_blank, record.cells)):
            continue
        places.append(len(first) - 1)
        if len(places) == HEADER_WITHIN or record.problem is not None or _holds_a_number(record):
            break
    if not places:
        raise click.ClickException(f"{name} is empty; its first line must name the columns.")
    place = _choose(first, places, mapped)
    header = first[place]
    if header.problem is not None:
        raise click.ClickException(f"The header of {name} cannot be read: {header.problem}.")
    above = [str(first[at].row) for at in places if at < place]
    rows = f"Row {above[0]} above it is" if len(above) == 1 else f"Rows {', '.join(above)} above it are"
    notes = (f"Row {header.row} looks like the header. {rows} not read.",) if above else ()
    return Header(record=header, rest=chain(first[place + 1 :], records), notes=notes)


def _choose(first: Sequence[Record], places: Sequence[int], mapped: Mapping[Field, str]) -> int:
    """Return the index of the header: a lone cell is a title where a row below names several columns."""
    candidates = [at for at in places if first[at].problem is None and not _holds_a_number(first[at])]
    wide = [at for at in candidates if _filled(first[at]) >= _SEVERAL]
    named = [at for at in candidates if _names_the_phone(first[at].cells, mapped)]
    for found in ([at for at in named if at in wide], named, wide if places[0] in candidates else []):
        if found:
            return found[0]
    return places[0]


def _names_the_phone(cells: Sequence[str], mapped: Mapping[Field, str]) -> bool:
    names = {spelling.casefold() for cell in cells for spelling in name_spellings(cell)}
    columns = {field: column for field, column in mapped.items() if column and not column.isdecimal()}
    if not all(any(one.casefold() in names for one in name_spellings(column)) for column in columns.values()):
        return False
    return "phone_number" in columns or bool(find_phone_columns(cells))


def _filled(record: Record) -> int:
    return sum(not is_blank(cell) for cell in record.cells)


def _holds_a_number(record: Record) -> bool:
    return any(
        LOOKS_LIKE_A_PHONE.fullmatch(cell.strip()) and read_number_cell(cell.strip()).problem is None
        for cell in record.cells
    )


def delimiter_of_header(lines: Sequence[str]) -> str:
    """Return the delimiter of the first line that names the phone column with it, else that of the first with one.

    Args:
        lines: The first lines that are not empty.
    """
    found = [(line, detect_delimiter(line)) for line in lines[:HEADER_WITHIN]]
    named = [one for one in found if find_phone_columns(next(csv.reader([one[0]], delimiter=one[1]), []))]
    if named:
        # A lone cell may be a title.
        return next((delimiter for line, delimiter in named if delimiter in line), named[0][1])
    for index, (line, delimiter) in enumerate(found):
        # The rows of a list have it as often as its header, which a title has not.
        below = found[index + 1][0] if index + 1 < len(found) else ""
        if delimiter in line and (index == 0 or line.count(delimiter) == below.count(delimiter)):
            return delimiter
    return ","
