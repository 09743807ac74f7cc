"""Merged cells of an XLSX file: each row that one covers has its value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO, Final, NamedTuple
from zipfile import ZipFile

from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.xlsx_formulas import occurrences

_PLACE: Final = rb"[A-Z]{1,3}[0-9]{1,7}"
_MERGED: Final = re.compile(rb"<(?:\w+:)?mergeCell\b[^>]*?\bref\s*=\s*[\"'](" + _PLACE + rb"):(" + _PLACE + rb")[\"']")
_MOST: Final = 50_000
_SHOWN: Final = 5


class Merged(NamedTuple):
    """Cells that were merged into one; its value stands in the first.

    Attributes:
        address: Such as `A2:A5`.
        first_row: From 1, as the other places.
    """

    address: str
    first_row: int
    last_row: int
    first_column: int
    last_column: int


def merged_cells(file: IO[bytes], path: str) -> Sequence[Merged]:
    """Return the merged cells of a sheet, from above to below.

    Args:
        file: The workbook.
        path: The sheet's file in it.

    Raises:
        UnreadableList: They are too many.
    """
    found: set[Merged] = set()
    with ZipFile(file) as archive, archive.open(path) as sheet:
        for one in occurrences(_MERGED, sheet):
            found.add(_merged(one[1].decode(), one[2].decode()))
            if len(found) > _MOST:
                message = f"The sheet has more than {_MOST:,} merged cells. Unmerge them, or save it as CSV."
                raise UnreadableList(message)
    return sorted(found, key=lambda one: (one.first_row, one.first_column))


def _merged(first: str, last: str) -> Merged:
    from openpyxl.utils.cell import column_index_from_string, coordinate_from_string

    left, top = coordinate_from_string(first)
    right, bottom = coordinate_from_string(last)
    return Merged(f"{first}:{last}", top, bottom, column_index_from_string(left), column_index_from_string(right))


class MergedCells:
    """Fills the rows of a sheet with the values of its merged cells."""

    def __init__(self, merged: Sequence[Merged]) -> None:
        self._coming = [one for one in reversed(merged) if one.last_row > one.first_row]
        self._open: list[tuple[Merged, str, tuple[str | None, ...]]] = []

    def fill(self, row: int, cells: list[str], *known: dict[int, str]) -> None:
        """Fill a row in place; rows come one after the other.

        Args:
            row: Its number from 1.
            cells: Its cells.
            known: What is known of its values, such as which are dates, by the index of the cell.
        """
        self._open = [one for one in self._open if one[0].last_row >= row]
        for one, value, facts in self._open:
            index = one.first_column - 1
            cells.extend([""] * (index + 1 - len(cells)))
            cells[index] = value
            for of_row, fact in zip(known, facts, strict=True):
                if fact is not None:
                    of_row[index] = fact
        while self._coming and self._coming[-1].first_row <= row:
            one = self._coming.pop()
            index = one.first_column - 1
            value = cells[index] if index < len(cells) else ""
            if value:
                self._open.append((one, value, tuple(of_row.get(index) for of_row in known)))


def merged_notes(merged: Sequence[Merged], header_row: int, width: int) -> Iterator[str]:
    """Yield what is done with the merged cells below a header.

    Args:
        merged: The merged cells of the sheet.
        header_row: The header's row.
        width: How many columns are read.
    """
    below = [one for one in merged if one.last_row > header_row and one.first_column <= width]
    filled = [one.address for one in below if one.last_row > one.first_row]
    wide = [one.address for one in below if one.last_column > one.first_column]
    if filled:
        yield f"The merged cells {_listed(filled)} are read as if each row had their value."
    if wide:
        yield (
            f"The merged cells {_listed(wide)} lie over several columns: their value counts for the first one, and the "
            "others are empty there."
        )


def merged_header(merged: Sequence[Merged], header_row: int, width: int) -> Sequence[Merged]:
    """Return the merged cells of a header that lie over several columns.

    Args:
        merged: The merged cells of the sheet.
        header_row: The header's row.
        width: How many cells the header has.
    """
    return [
        one
        for one in merged
        if one.first_row <= header_row <= one.last_row and one.first_column <= width
        if one.last_column > one.first_column
    ]


def header_notes(merged: Sequence[Merged]) -> Iterator[str]:
    """Yield what is done with the merged cells of a header."""
    if merged:
        cells, name, their = ("cell", "names", "its") if len(merged) == 1 else ("cells", "name", "their")
        yield (
            f"The merged {cells} {_listed([one.address for one in merged])} of the header {name} only the first of "
            f"{their} columns: the others are left out. Unmerge the header and name each column to load them."
        )


def _listed(addresses: Sequence[str]) -> str:
    more = f" and {len(addresses) - _SHOWN:,} more" if len(addresses) > _SHOWN else ""
    return ", ".join(addresses[:_SHOWN]) + more
