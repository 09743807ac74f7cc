"""The rows of an XLSX file, one after the other."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile, ZipFile

import attrs

from outreach_server.lists.csv_records import Record, rows_in_a_cell
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.number_formats import moment_text, plain_text, shown_by
from outreach_server.lists.xlsx_formulas import Formulas, fill_in, formulas_without_values
from outreach_server.lists.xlsx_merges import Merged, MergedCells, merged_cells
from outreach_server.words import server_extra

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

_MAX_UNPACKED: Final = 4 * 1024**3
_MAX_SHARED: Final = 512 * 1024**2
"""Texts that several cells may share are kept in memory while the file is read."""

_MAX_ROWS: Final = 1_048_576
"""The last row of a sheet in Excel. openpyxl makes an empty row for each number that a file leaves out."""

_ROWS_AT_ONCE: Final = 100

_NOT_READABLE: Final = (
    *(BadZipFile, zlib.error, ParseError, KeyError, ValueError, TypeError, AttributeError, IndexError, EOFError),
    RuntimeError,  # an encrypted part, or one of an unknown compression
)

_SHARED: Final = "xl/sharedStrings.xml"
_LOCAL_DATES: Final = frozenset({14, 22, *range(27, 37), *range(50, 59)})
"""Formats that each computer shows in its own way."""


@attrs.frozen(kw_only=True)
class Sheet:
    """A sheet of a workbook.

    Attributes:
        title: Its name.
        others: The names of the other sheets.
        records: Its rows.
        merged: Its merged cells.
        notes: Returns what was not read as it is shown, by now.
    """

    title: str
    others: Sequence[str]
    records: Iterator[Record]
    merged: Sequence[Merged]
    notes: Callable[[], Iterator[str]]


@contextmanager
def open_sheet(file: IO[bytes], *, name: str, sheet: str | None) -> Iterator[Sheet]:
    """Open a sheet of an XLSX file.

    Args:
        file: The file, which can be rewound.
        name: Its name in messages.
        sheet: The sheet's name; None for the first visible one.

    Raises:
        UnreadableList: It is no such file or too large, there is no such sheet, or openpyxl is not installed.
    """
    try:
        with server_extra("Reading an XLSX file"):
            from openpyxl import load_workbook
    except ImportError as error:
        raise UnreadableList(f"{error}; or save the sheet as CSV.") from error
    with _readable(name), warnings.catch_warnings():
        # About styles and extensions, which are not read.
        warnings.simplefilter("ignore")
        _check_size(file, name)
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    try:
        chosen = _chosen(book.worksheets, name, sheet)
        with _readable(name):
            formulas = formulas_without_values(file, chosen._worksheet_path)  # type: ignore[attr-defined]
            merged = merged_cells(file, chosen._worksheet_path)  # type: ignore[attr-defined]
        titles = [each.title for each in book.worksheets]
        reader = _Reader(chosen, name, formulas, merged)
        yield Sheet(
            title=chosen.title,
            others=[title for title in titles if title != chosen.title],
            records=reader.records(),
            merged=merged,
            notes=reader.notes,
        )
    finally:
        book.close()


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, *_NOT_READABLE) as error:
        if isinstance(error, OSError) and error.errno is not None:
            # Of the disk, not of what the file says.
            raise
        raise UnreadableList(
            f"{name} cannot be read as an XLSX file ({type(error).__name__}). Open it in a spreadsheet and save it "
            "again, or save the sheet as CSV."
        ) from error


def _check_size(file: IO[bytes], name: str) -> None:
    sizes = {info.filename: info.file_size for info in ZipFile(file).infolist()}
    file.seek(0)
    if sum(sizes.values()) > _MAX_UNPACKED or sizes.get(_SHARED, 0) > _MAX_SHARED:
        raise UnreadableList(f"{name} is too large for an XLSX file; save the sheet as CSV.")


def _chosen(sheets: Sequence[Any], name: str, wanted: str | None) -> Worksheet:
    for sheet in sheets:
        if sheet.title == wanted or (wanted is None and sheet.sheet_state == "visible"):
            return sheet  # type: ignore[no-any-return]
    if not sheets:
        raise UnreadableList(f"{name} holds no sheet that can be read. Save it as an Excel workbook (.xlsx) or as CSV.")
    named = ", ".join(repr(sheet.title) for sheet in sheets)
    if wanted is None:
        raise UnreadableList(f"{name} has no visible sheet. Unhide one, or name it with --sheet: {named}.")
    raise UnreadableList(f"{name} has no sheet {wanted!r}. Its sheets are: {named}.")


class _Reader:
    """Reads the rows of a sheet, and remembers what it could not read as it is shown."""

    def __init__(self, sheet: Worksheet, name: str, formulas: Formulas, merged: Sequence[Merged]) -> None:
        # What a file says of its own size may be wrong.
        sheet.reset_dimensions()  # type: ignore[attr-defined]
        self._sheet = sheet
        self._name = name
        self._formulas = formulas
        self._merged = merged
        self._formats: dict[int, CellFormat] = {}

    def records(self) -> Iterator[Record]:
        """Iterate over the rows; a merged cell has its value in each row that it covers."""
        merged = MergedCells(self._merged)
        width = 0
        with _readable(self._name):
            for number, cells in enumerate(self._rows(), start=1):
                if number > _MAX_ROWS:
                    raise UnreadableList(
                        f"{self._name} has a row below row {_MAX_ROWS:,}, the last one of a sheet. Open it in a "
                        "spreadsheet and save it again, or save the sheet as CSV."
                    )
                dates: dict[int, str] = {}
                numbers: dict[int, str] = {}
                texts = [self._text(cell, dates, numbers) for cell in cells]
                if number in self._formulas:
                    texts = fill_in(texts, self._formulas[number], name=self._name, row=number)
                merged.fill(number, texts, dates, numbers)
                width = max(width, len(texts))
                problem = _joined_rows(texts, width) if texts else None
                yield Record(number, number, texts or [""], problem, dates, numbers)

    def _rows(self) -> Iterator[Sequence[Any]]:
        """Iterate over the cells of the rows, also of those that the file leaves out."""
        rows = self._sheet.iter_rows()
        while True:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                some = list(islice(rows, _ROWS_AT_ONCE))
            if not some:
                return
            yield from some

    def notes(self) -> Iterator[str]:
        """Yield what was not read as it is shown, by now."""
        for one in self._formats.values():
            if (said := one.note()) is not None:
                yield said

    def _text(self, cell: Any, dates: dict[int, str], numbers: dict[int, str]) -> str:
        value = cell.value
        if value is None:
            return ""
        if type(value) is str and "_x" in value:
            from openpyxl.utils.escape import unescape

            value = unescape(value)
        style = cell._style_id
        known = self._formats.get(style)
        if known is None:
            number = self._sheet.parent._cell_styles[style].numFmtId  # type: ignore[union-attr]
            known = self._formats[style] = CellFormat(cell.number_format, number)
        if type(value) is str and known.is_plain:
            return value
        if isinstance(value, date | time):
            dates[cell.column - 1] = moment_text(value, cell.number_format)
        text = known.text(value, cell)
        if type(value) in {int, float} and value >= 0 and text != (digits := plain_text(value)) and digits.isdecimal():
            numbers[cell.column - 1] = digits
        return text


def _joined_rows(texts: Sequence[str], width: int) -> str | None:
    """Return that a cell holds other rows, which a spreadsheet made of a text file with a quote that was not closed."""
    found = next((line for sign in ",;\t" if (line := rows_in_a_cell(texts, sign, width)) is not None), None)
    return (
        None if found is None else f"a cell holds what looks like another row ({found[:40]!r}); take it out of the cell"
    )


class CellFormat:
    """How cells of a style are shown, and which of them are read otherwise.

    Args:
        code: The format's code.
        number: Its number in the file.
    """

    def __init__(self, code: str | None, number: int) -> None:
        self._code = code
        self._is_local = number in _LOCAL_DATES
        shown = plain_text if self._is_local else shown_by(code)
        self._shown = shown or plain_text
        self._is_unknown = shown is None
        self._first: tuple[str, str] | None = None
        self._count = 0
        self.is_plain = shown is plain_text

    def text(self, value: Any, cell: Any) -> str:
        """Return a cell's value as it is shown, as far as that is understood."""
        text = self._shown(value)
        if (self._is_unknown and type(value) is not str) or (self._is_local and isinstance(value, date)):
            self._count += 1
            self._first = self._first or (cell.coordinate, text)
        return text

    def note(self) -> str | None:
        """Return what was not read as it is shown; None if everything was."""
        if self._first is None:
            return None
        place, text = self._first
        more = f" and {self._count - 1:,} more" if self._count > 1 else ""
        if self._is_local:
            return (
                f"The date in {place}{more} is shown in the way of the computer that opens the file, and is read as "
                f"{text}. A placeholder such as {{{{name|date:d mmm yyyy}}}} writes it otherwise."
            )
        return (
            f"The format {self._code!r} of {place}{more} is not understood: the stored value is read, such as {text}."
        )
