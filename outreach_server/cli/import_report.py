"""What an import made of a file: the meaning of its columns, its first rows, and what was corrected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from outreach.server_support import NumberCorrection, read_cell, read_number_cell
from outreach_server.cli.contacts import ContactFile
from outreach_server.cli.documents import Document
from outreach_server.cli.output import cell

_MAX_SHOWN: Final = 30
_LEFT_OUT: Final = "left out"

_WORDS: Final = {
    NumberCorrection.FORMULA: "formula taken away",
    NumberCorrection.APOSTROPHE: "apostrophe in front taken away",
    NumberCorrection.DECIMALS: "zeros behind the decimal point taken away",
    NumberCorrection.SCIENTIFIC: "written out, as the exponent had kept all digits",
    NumberCorrection.THOUSANDS: "separators of thousands taken away",
    NumberCorrection.LABEL: "word in front taken away",
    NumberCorrection.QUOTES: "quotes taken away",
    NumberCorrection.SPACES: "remains of non-breaking spaces taken away",
}


def mapping_table(contacts: ContactFile) -> Grid:
    """Return what each column is, with its first values, as a table for people."""
    table = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("column", overflow="fold")
    table.add_column("is")
    for record in contacts.first_rows:
        table.add_column(f"row {record.row}", overflow="ellipsis", no_wrap=True, max_width=_MAX_SHOWN)
    for document in mapping(contacts):
        column = document["column"] or f"(column {document['number']})"
        shown = [Text(cell(value)) for value in document["first"]]
        table.add_row(Text(cell(column)), Text(document["is"] or _LEFT_OUT), *shown)
    return table


def mapping(contacts: ContactFile) -> list[Document]:
    """Return the document of each column: its name, what it is, and what is read from the first rows."""
    columns = contacts.columns
    return [
        {
            "number": index + 1,
            "column": header,
            "is": columns.meaning(index),
            "first": [_read(contacts, record.cells, index) for record in contacts.first_rows],
        }
        for index, header in enumerate(columns.headers)
    ]


def _read(contacts: ContactFile, cells: list[str], index: int) -> str:
    text = cells[index].strip() if index < len(cells) else ""
    if index != contacts.columns.phone:
        return read_cell(text)
    number = read_number_cell(text)
    return f"{text} → {number.text}" if number.corrections else text


def corrected(contacts: ContactFile) -> list[Document]:
    """Return what was done to how many numbers, with the first of each kind."""
    return [
        {"what": one.correction.value, "count": one.count, "row": one.row, "before": one.before, "after": one.after}
        for one in contacts.corrected.values()
    ]


def corrected_lines(contacts: ContactFile) -> Iterator[str]:
    """Yield a line for each thing that was done to numbers."""
    for one in contacts.corrected.values():
        many = "1 number was" if one.count == 1 else f"{one.count:,} numbers were"
        first = f"row {one.row}: {cell(one.before[:40])} → {cell(one.after)}"
        yield f"{many} corrected: {_WORDS[one.correction]} ({first})."
