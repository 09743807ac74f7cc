"""Formulas of an XLSX file whose values it does not hold: a program wrote it, and no spreadsheet has computed them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from outreach_server.lists.errors import UnreadableList

_LITERAL: Final = re.compile(r'"((?:[^"]|"")*)"')
_CHUNK: Final = 1 << 20
_LONGEST: Final = 200
"""The longest piece of a sheet that is looked for, in bytes."""

_ANY: Final = re.compile(rb"<(?:\w+:)?f[\s>/]")

Formulas = Mapping[int, Mapping[int, str]]
"""Formulas without their sign, by the numbers of row and column, from 1."""


def formulas_without_values(file: IO[bytes], path: str) -> Formulas:
    """Return the formulas of a sheet that have no stored value; a stored empty text is one.

    Args:
        file: The workbook.
        path: The sheet's file in it.
    """
    with ZipFile(file) as archive:
        with archive.open(path) as sheet:
            if next(occurrences(_ANY, sheet), None) is None:
                return {}
        with archive.open(path) as sheet:
            return _found(sheet)


def fill_in(cells: Sequence[str], formulas: Mapping[int, str], *, name: str, row: int) -> list[str]:
    """Return the cells of a row with what its formulas without values say by themselves, such as `="+14155550101"`.

    Raises:
        UnreadableList: One has to be computed.
    """
    filled = [*cells, *[""] * (max(formulas, default=0) - len(cells))]
    for column, formula in formulas.items():
        literal = _LITERAL.fullmatch(formula.strip())
        if literal is None:
            from openpyxl.utils import get_column_letter

            raise UnreadableList(
                f"{name} does not hold the value of the formula in {get_column_letter(column)}{row}. Open it in a "
                "spreadsheet and save it again, or save the sheet as CSV."
            )
        filled[column - 1] = literal[1].replace('""', '"')
    return filled


def occurrences(pattern: re.Pattern[bytes], sheet: IO[bytes]) -> Iterator[re.Match[bytes]]:
    """Yield where a pattern occurs in a sheet, which is read in chunks; one at the edge of a chunk comes twice."""
    tail = b""
    while part := sheet.read(_CHUNK):
        text = tail + part
        yield from pattern.finditer(text)
        tail = text[-_LONGEST:]


def _found(sheet: IO[bytes]) -> Formulas:
    from openpyxl.utils.cell import column_index_from_string, coordinate_from_string
    from openpyxl.xml.functions import iterparse

    found: dict[int, dict[int, str]] = {}
    row, column = 0, 0
    element: Element[str]
    for event, element in iterparse(sheet, ("start", "end")):
        match event, _local(element):
            case "start", "row":
                row, column = int(element.get("r") or row + 1), 0
            case "start", "c":
                place: Any = element.get("r")
                column = column_index_from_string(coordinate_from_string(place)[0]) if place else column + 1
            case "end", "c":
                parts = {_local(part): part for part in element}
                valued = "v" in parts and parts["v"].text
                # A spreadsheet that has computed an empty text says that it is a text.
                if "f" in parts and not valued and element.get("t") != "str":
                    found.setdefault(row, {})[column] = parts["f"].text or ""
            case "end", "row":
                element.clear()
    return found


def _local(element: Element[str]) -> str:
    return element.tag.rpartition("}")[2]
