"""Lists as programs write them: two libraries, other programs' workbooks by hand, and the texts of spreadsheets."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

import xlsxwriter
from openpyxl import Workbook

Cell = str | int | None
Rows = Sequence[Sequence[Cell]]

_WIDE: Final = 11
"""The digits that a spreadsheet shows of a number in a cell without a format; longer ones it shows with an exponent."""

_TYPES: Final = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/xl/workbook.xml"'
    ' ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml"'
    ' ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>'
)
_RELATIONS: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006/relationships"


def with_openpyxl(rows: Rows) -> bytes:
    """Return a workbook of openpyxl: texts and numbers as they are."""
    book = Workbook()
    sheet = book.worksheets[0]
    for row in rows:
        sheet.append(list(row))
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def with_xlsxwriter(rows: Rows) -> bytes:
    """Return a workbook of xlsxwriter: shared texts, floating numbers, and a format for the whole column."""
    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    sheet = book.add_worksheet("Contacts")
    sheet.set_column(0, 5, 20, book.add_format({"num_format": "0"}))
    for at, row in enumerate(rows):
        for column, cell in enumerate(row):
            if isinstance(cell, int):
                sheet.write_number(at, column, float(cell))
            elif cell is not None:
                sheet.write_string(at, column, cell)
    book.close()
    return out.getvalue()


def by_hand(rows: Rows) -> bytes:
    """Return a workbook as small exporters write it: inline texts, no styles, no references, numbers with exponents."""

    def cell(value: Cell) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, int):
            digits = str(value)
            return f"<c><v>{digits[0]}.{digits[1:] or '0'}E{len(digits) - 1}</v></c>"
        return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'

    data = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("[Content_Types].xml", _TYPES)
        made.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="r1" Type="{_RELATIONS}/officeDocument"'
            ' Target="xl/workbook.xml"/></Relationships>',
        )
        made.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets>'
            "</workbook>",
        )
        made.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="r1" Type="{_RELATIONS}/worksheet"'
            ' Target="worksheets/sheet1.xml"/></Relationships>',
        )
        made.writestr(
            "xl/worksheets/sheet1.xml", f'<worksheet xmlns="{_MAIN}"><sheetData>{data}</sheetData></worksheet>'
        )
    return out.getvalue()


def _text(rows: Rows, show: Callable[[Cell], str], **dialect: object) -> str:
    out = io.StringIO()
    writer = csv.writer(out, **dialect)  # type: ignore[arg-type]
    writer.writerows([show(cell) for cell in row] for row in rows)
    return out.getvalue()


def _shown(cell: Cell) -> str:
    """Return a cell as a spreadsheet shows it, and so as it saves it: a long number loses its digits."""
    if isinstance(cell, int) and len(str(cell)) > _WIDE:
        return f"{cell:.5E}"
    return "" if cell is None else str(cell)


def _protected(cell: Cell) -> str:
    """Return a cell as exports write it that know what spreadsheets do to numbers."""
    text = "" if cell is None else str(cell)
    return f'="{text}"' if text.strip("+0123456789 ") == "" and text else text


def _plain(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def _decimal(cell: Cell) -> str:
    return f"{cell}.0" if isinstance(cell, int) else _plain(cell)


WRITERS: Final[Mapping[str, Callable[[Rows], bytes]]] = {
    "openpyxl": with_openpyxl,
    "xlsxwriter": with_xlsxwriter,
    "by hand": by_hand,
    "Excel's CSV": lambda rows: _text(rows, _shown, delimiter=";").encode("utf-8-sig"),
    "Excel's Unicode text": lambda rows: _text(rows, _shown, delimiter="\t").encode("utf-16"),
    "LibreOffice's CSV": lambda rows: _text(rows, _plain, quoting=csv.QUOTE_ALL).encode(),
    "Google's CSV": lambda rows: _text(rows, _plain, lineterminator="\r\n").encode(),
    "pandas' CSV": lambda rows: _text(rows, _decimal, lineterminator="\n").encode(),
    "protected CSV": lambda rows: _text(rows, _protected).encode(),
}
"""What writes a list, by the program."""
