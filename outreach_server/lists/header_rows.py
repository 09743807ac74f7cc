"""Finds the header of a list, also below titles."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import attrs

from outreach.server_support import Field, is_blank, name_spellings
from outreach_server.lists.contact_columns import find_phone_columns
from outreach_server.lists.csv_records import Record, detect_delimiter, looks_like_a_phone
from outreach_server.lists.errors import UnreadableList

HEADER_WITHIN: Final = 10
"""The header is one of the first rows that are not empty: this many are looked at."""

_SEVERAL: Final = 2
_LETTER: Final = re.compile(r"[^\W\d_]")
_NAMES_A_NUMBER: Final = re.compile(r".*(?:[:#]|nr\.?|nummer|\b(?:no\.?|number|id))", re.IGNORECASE)
"""A cell before a number that shows a title, such as `Kundennr.`."""


@attrs.frozen(kw_only=True)
class Header:
    """The header of a list.

    Attributes:
        record: Its row.
        rest: The rows below it, without the empty ones among the first.
        notes: Hints for people, if rows stand above it.
    """

    record: Record
    rest: Iterator[Record]
    notes: tuple[str, ...]


def find_header(records: Iterator[Record], *, name: str, mapped: Mapping[Field, str]) -> Header:
    """Return the header of a list: its first row, unless a row below looks more like it.

    Such a row names the phone number, or the columns that are mapped, and stands above all rows with a number; titles
    stand above it, also those with a number behind a word (`Kundennr: 4711-0815`).

    Args:
        records: The rows.
        name: The list's name in messages.
        mapped: The columns of fields, by name or number.

    Raises:
        UnreadableList: The list is empty, or its header is malformed.
    """
    first: list[Record] = []
    for record in records:
        if record.problem is None and all(map(is_blank, record.cells)):
            continue
        first.append(record)
        if len(first) == HEADER_WITHIN or record.problem is not None or _is_a_contact(record):
            break
    if not first:
        raise UnreadableList(f"{name} is empty; its first line must name the columns.")
    place = _choose(first, mapped)
    header = first[place]
    if header.problem is not None:
        raise UnreadableList(f"The header of {name} cannot be read: {header.problem}.")
    above = [str(record.row) for record in first[:place]]
    rows = f"Row {above[0]} above it is" if len(above) == 1 else f"Rows {', '.join(above)} above it are"
    notes = (f"Row {header.row} looks like the header. {rows} not read.",) if above else ()
    return Header(record=header, rest=chain(first[place + 1 :], records), notes=notes)


def _choose(first: Sequence[Record], mapped: Mapping[Field, str]) -> int:
    """Return the index of the header: a lone cell is a title where a row below names several columns."""
    candidates = [at for at, one in enumerate(first) if one.problem is None and not _numbers(one)]
    numbered = next((at for at, one in enumerate(first) if _numbers(one)), len(first))
    above = {at for at in candidates if at < numbered}
    wide = {at for at in candidates if len(_filled(first[at])) >= _SEVERAL}
    named = {at for at in candidates if _names_the_phone(first[at].cells, mapped)}
    # A row with a number may be a title only where several columns are named below it.
    for group in (named & wide & above, named & above, named & wide, wide & above if 0 in above else set()):
        if group:
            return min(group)
    return 0


def _names_the_phone(cells: Sequence[str], mapped: Mapping[Field, str]) -> bool:
    names = {spelling.casefold() for cell in cells for spelling in name_spellings(cell)}
    columns = {field: column for field, column in mapped.items() if column and not column.isdecimal()}
    if not all(any(one.casefold() in names for one in name_spellings(column)) for column in columns.values()):
        return False
    return "phone_number" in columns or bool(find_phone_columns(cells))


def _filled(record: Record) -> Sequence[str]:
    return [cell.strip() for cell in record.cells if not is_blank(cell)]


def _numbers(record: Record) -> Sequence[str]:
    """Return the cells of a row that look like phone numbers."""
    return [cell for at, cell in enumerate(record.cells) if at not in record.dates and looks_like_a_phone(cell)]


def _is_a_contact(record: Record) -> bool:
    """Return whether a row has a number that is not a title's, behind a word in its cell or in the cell before."""
    match _filled(record):
        case [cell]:
            is_title = _LETTER.match(cell) is not None
        case [label, _]:
            is_title = _NAMES_A_NUMBER.fullmatch(label) is not None
        case _:
            is_title = False
    return not is_title and bool(_numbers(record))


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
