"""The rows of an XLSX file, one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import IO, TYPE_CHECKING, Any, Final
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile, ZipFile

import attrs
import click

from outreach_server.cli.csv_records import Record
from outreach_server.cli.xlsx_formulas import Formulas, fill_in, formulas_without_values
from outreach_server.needs import server_extra

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

_MAX_UNPACKED: Final = 4 * 1024**3
_MAX_SHARED: Final = 512 * 1024**2
"""Texts that several cells may share are kept in memory while the file is read."""

_SHARED: Final = "xl/sharedStrings.xml"
_EXACT: Final = 10**15
_MIDNIGHT: Final = time()


@attrs.frozen(kw_only=True)
class Sheet:
    """A sheet of a workbook.

    Attributes:
        title: Its name.
        others: The names of the other sheets.
        records: Its rows.
    """

    title: str
    others: Sequence[str]
    records: Iterator[Record]


@contextmanager
def open_sheet(file: IO[bytes], *, name: str, sheet: str | None) -> Iterator[Sheet]:
    """Open a sheet of an XLSX file.

    Args:
        file: The file, which can be rewound.
        name: Its name in messages.
        sheet: The sheet's name; None for the first visible one.

    Raises:
        click.ClickException: It is no such file or too large, there is no such sheet, or openpyxl is not installed.
    """
    try:
        with server_extra("Reading an XLSX file"):
            from openpyxl import load_workbook
    except ImportError as error:
        raise click.ClickException(f"{error}; or save the sheet as CSV.") from error
    with _readable(name), warnings.catch_warnings():
        # About styles and extensions, which are not read.
        warnings.simplefilter("ignore")
        _check_size(file, name)
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    try:
        chosen = _chosen(book.worksheets, name, sheet)
        with _readable(name):
            formulas = formulas_without_values(file, chosen._worksheet_path)  # type: ignore[attr-defined]
        titles = [each.title for each in book.worksheets]
        yield Sheet(
            title=chosen.title,
            others=[title for title in titles if title != chosen.title],
            records=_records(chosen, name, formulas),
        )
    finally:
        book.close()


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (BadZipFile, ParseError, KeyError, ValueError, TypeError, AttributeError, IndexError, EOFError) as error:
        raise click.ClickException(
            f"{name} cannot be read as an XLSX file ({type(error).__name__}). Open it in a spreadsheet and save it "
            "again, or save the sheet as CSV."
        ) from error


def _check_size(file: IO[bytes], name: str) -> None:
    sizes = {info.filename: info.file_size for info in ZipFile(file).infolist()}
    file.seek(0)
    if sum(sizes.values()) > _MAX_UNPACKED or sizes.get(_SHARED, 0) > _MAX_SHARED:
        raise click.ClickException(f"{name} is too large for an XLSX file; save the sheet as CSV.")


def _chosen(sheets: Sequence[Any], name: str, wanted: str | None) -> Worksheet:
    for sheet in sheets:
        if sheet.title == wanted or (wanted is None and sheet.sheet_state == "visible"):
            return sheet  # type: ignore[no-any-return]
    named = ", ".join(repr(sheet.title) for sheet in sheets)
    raise click.ClickException(f"{name} has no sheet {wanted!r}. Its sheets are: {named}.")


def _records(sheet: Worksheet, name: str, formulas: Formulas) -> Iterator[Record]:
    # What a file says of its own size may be wrong.
    sheet.reset_dimensions()  # type: ignore[attr-defined]
    rows = sheet.iter_rows(values_only=True)
    number = 0
    while True:
        with _readable(name), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cells = next(rows, None)
        if cells is None:
            return
        number += 1
        texts = [_text(value) for value in cells]
        if number in formulas:
            texts = fill_in(texts, formulas[number], name=name, row=number)
        yield Record(number, number, texts or [""], None)


def _text(value: object) -> str:
    """Return a cell's value as a person reads it; a whole number has no decimals, whatever the file says."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "TRUE" if value else "FALSE"
        case float() if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        case float():
            return f"{value:.15g}"
        case datetime() if value.time() == _MIDNIGHT:
            return value.date().isoformat()
        case datetime():
            return value.isoformat(" ", "seconds")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return str(value)
