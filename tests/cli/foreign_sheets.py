"""XLSX files written by hand, as Google Sheets, LibreOffice, Numbers and export programs write them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_TYPES: Final = (
    f'<?xml version="1.0" encoding="UTF-8"?><Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
    '<Override PartName="/xl/styles.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>'
    '<Override PartName="/xl/sharedStrings.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>'
)
_ROOT: Final = (
    f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
    f'Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
)
_BOOK: Final = (
    f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><workbookPr/><sheets>'
    '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>'
)
_PARTS: Final = (
    f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{_RELATIONS}/styles" Target="styles.xml"/>'
    f'<Relationship Id="rId3" Type="{_RELATIONS}/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
)

Cell = tuple[str, str, int]
"""The kind of a value (`s` for a text, `n` for a number), the value, and the index of its format."""


def write_sheet(
    path: Path,
    rows: Mapping[int, Sequence[Cell | None]],
    *,
    formats: Sequence[str] = (),
    merged: Sequence[str] = (),
    inline: bool = False,
    prefix: str = "",
    places: bool = True,
) -> Path:
    """Write a workbook of one sheet.

    Args:
        path: The file.
        rows: The cells by the number of their row.
        formats: Format codes; a cell's index counts from 1, and 0 is no format.
        merged: The addresses of merged cells.
        inline: Whether texts stand in their cells, as export programs write them.
        prefix: The prefix of all names in the sheet, as some libraries write it.
        places: Whether cells have their addresses; a program may leave them out.
    """
    texts = list(dict.fromkeys(cell[1] for row in rows.values() for cell in row if cell is not None and cell[0] == "s"))
    colon = f"{prefix}:" if prefix else ""
    lines = []
    for number, cells in rows.items():
        shown = "".join(
            _cell(colon, cell, f"{chr(65 + at)}{number}" if places else "", texts, inline)
            for at, cell in enumerate(cells)
            if cell is not None
        )
        lines.append(f'<{colon}row r="{number}">{shown}</{colon}row>')
    ranges = "".join(f'<{colon}mergeCell ref="{one}"/>' for one in merged)
    merges = f'<{colon}mergeCells count="{len(merged)}">{ranges}</{colon}mergeCells>' if merged else ""
    namespace = f'xmlns:{prefix}="{_MAIN}"' if prefix else f'xmlns="{_MAIN}"'
    sheet = (
        f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<{colon}worksheet {namespace}>'
        f"<{colon}sheetData>{''.join(lines)}</{colon}sheetData>{merges}</{colon}worksheet>"
    )
    codes = "".join(f'<numFmt numFmtId="{164 + at}" formatCode="{_quoted(one)}"/>' for at, one in enumerate(formats))
    styles = "".join(f'<xf numFmtId="{164 + at}" applyNumberFormat="1"/>' for at in range(len(formats)))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _ROOT)
        archive.writestr("xl/workbook.xml", _BOOK)
        archive.writestr("xl/_rels/workbook.xml.rels", _PARTS)
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
        archive.writestr(
            "xl/styles.xml",
            f'<styleSheet xmlns="{_MAIN}"><numFmts count="{len(formats)}">{codes}</numFmts>'
            '<fonts count="1"><font/></fonts><fills count="1"><fill><patternFill/></fill></fills>'
            '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
            f'<cellXfs count="{len(formats) + 1}"><xf numFmtId="0"/>{styles}</cellXfs></styleSheet>',
        )
        shared = "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in texts)
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{_MAIN}">{shared}</sst>')
    return path


def _quoted(code: str) -> str:
    return escape(code, {'"': "&quot;"})


def _cell(colon: str, cell: Cell, place: str, texts: Sequence[str], inline: bool) -> str:
    kind, value, style = cell
    attributes = (f' r="{place}"' if place else "") + (f' s="{style}"' if style else "")
    if kind == "n":
        return f"<{colon}c{attributes}><{colon}v>{value}</{colon}v></{colon}c>"
    if inline:
        text = f'<{colon}is><{colon}t xml:space="preserve">{escape(value)}</{colon}t></{colon}is>'
        return f'<{colon}c{attributes} t="inlineStr">{text}</{colon}c>'
    return f'<{colon}c{attributes} t="s"><{colon}v>{texts.index(value)}</{colon}v></{colon}c>'
