"""Exports as XLSX, by openpyxl in its streaming mode: rows go to a file, none stays in memory.

Texts become cells of the type "inline string". A spreadsheet runs formula cells alone, so that nothing has to stand
before a text that looks like one, and `+14155550102` stays as it is.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from typing import IO, Any, Final

from anyio import to_thread

from outreach.core.extras import needed_for
from outreach.models.campaign_report import ExportedContact
from outreach.serialization.exports.columns import Cell, Table

_PURPOSE: Final = "An export as XLSX"
_BATCH: Final = 200
_PART_BYTES: Final = 64 * 1024
_MAX_ROWS: Final = 1_048_576
"""Rows of a sheet, its header included."""

_EXACT: Final = 10**15
"""Spreadsheets keep fifteen digits of a number."""

_MAX_TEXT: Final = 32_767
"""Characters of a cell."""

_IMPOSSIBLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML cannot hold."""

_MIGHT_BE_ELSE: Final = frozenset("=#")
"""First characters of texts that openpyxl would take for a formula or an error."""


def require_library() -> None:
    """Check that openpyxl is installed.

    Raises:
        ConfigError: It is not.
    """
    with needed_for(_PURPOSE):
        import openpyxl  # noqa: F401


async def workbook_bytes(contacts: AsyncIterator[ExportedContact], table: Table) -> AsyncGenerator[bytes]:
    """Yield an XLSX file; it is complete on disk, in a file without a name, before its first part."""
    with tempfile.TemporaryFile() as file:
        book = _Book(table)
        try:
            rows: list[list[Cell]] = []
            async for contact in contacts:
                rows.append(table.row(contact))
                if len(rows) == _BATCH:
                    await to_thread.run_sync(book.append, rows)
                    rows = []
            await to_thread.run_sync(book.append, rows)
            await to_thread.run_sync(book.save, file)
        except BaseException:
            book.discard()
            raise
        file.seek(0)
        while part := await to_thread.run_sync(file.read, _PART_BYTES):
            yield part


class _Book:
    """A workbook whose sheets are filled one after the other."""

    def __init__(self, table: Table) -> None:
        from openpyxl import Workbook

        self._book = Workbook(write_only=True)
        self._table = table
        self._sheet: Any = None
        self._rows = _MAX_ROWS

    def append(self, rows: list[list[Cell]]) -> None:
        """Write some rows; a full sheet is followed by another one."""
        for row in rows:
            self._require_room()
            self._sheet.append([self._cell(value) for value in row])
            self._rows += 1

    def save(self, file: IO[bytes]) -> None:
        """Write the workbook; it has a sheet even without rows."""
        self._require_room()
        self._book.save(file)

    def discard(self) -> None:
        """Remove the files of the sheets, which nobody saves any more."""
        for sheet in self._book.worksheets:
            writer = getattr(sheet, "_writer", None)
            if writer is not None:
                sheet.close()
                writer.cleanup()

    def _require_room(self) -> None:
        if self._rows < _MAX_ROWS:
            return
        count = len(self._book.worksheets) + 1
        self._sheet = self._book.create_sheet("Contacts" if count == 1 else f"Contacts {count}")
        self._sheet.freeze_panes = "A2"
        self._sheet.append([self._cell(name) for name in self._table.header])
        self._rows = 1

    def _cell(self, value: Cell) -> object:
        if isinstance(value, int) and abs(value) >= _EXACT:
            value = str(value)
        if not isinstance(value, str):
            return value
        text = _IMPOSSIBLE.sub("\ufffd", value)[:_MAX_TEXT]
        if text[:1] not in _MIGHT_BE_ELSE:
            return text
        from openpyxl.cell import WriteOnlyCell

        cell = WriteOnlyCell(self._sheet, value="")
        cell.value = text
        cell.data_type = "s"
        return cell
