"""Opens a list of any kind: text with any delimiter in any encoding, or a sheet of an XLSX file."""

from __future__ import annotations

import codecs
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from typing import IO, Final
from zipfile import BadZipFile, ZipFile

import attrs

from outreach.server_support import is_blank as is_blank_text
from outreach_server.lists.csv_lines import Source
from outreach_server.lists.csv_records import Record, named_delimiter, records
from outreach_server.lists.encodings import BYTE_ORDER_MARKS, WINDOWS
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.header_rows import HEADER_WITHIN, delimiter_of_header
from outreach_server.lists.xlsx_merges import Merged
from outreach_server.lists.xlsx_records import open_sheet

AUTO: Final = "auto"
_HEAD: Final = 12
_IN_MEMORY: Final = 1 << 20
ZIP: Final = b"PK\x03\x04"
"""The first bytes of every XLSX file."""

_NOT_LISTS: Final = (
    (b"\xd0\xcf\x11\xe0", "an old or encrypted Excel file"),
    (b"%PDF", "a PDF file"),
    (b"{\\rtf", "a text document"),
    (b"<!DOCTYPE", "a web page"),
    (b"<html", "a web page"),
    (b"\xff\xd8\xff", "a photo"),
    (b"\x89PNG", "a picture"),
    (b"GIF8", "a picture"),
    (b"II*\0", "a picture"),
    (b"MM\0*", "a picture"),
    (b"\x1f\x8b", "a compressed file"),
    (b"7z\xbc\xaf", "a compressed file"),
    (b"Rar!", "a compressed file"),
    (b"SQLite format", "a database"),
)
_LATER_MARKS: Final = ((b"ftyp", 4, "a photo or a film"), (b"WEBP", 8, "a picture"))
"""Marks that stand behind the first bytes."""

_CONTROL_BYTES: Final = frozenset(range(1, 32)) - frozenset(b"\t\n\v\f\r\x1b")
"""Bytes that begin no text. NUL is not among them: UTF-16 without a mark has it."""

_DELIMITERS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


@attrs.frozen(kw_only=True)
class Table:
    """The rows of a list.

    Attributes:
        name: The file's name in messages.
        records: Its rows, the header first.
        position: Returns how many bytes have been read.
        described: How it is read, in a few words.
        notes: Hints for people on how it is read.
        merged: The merged cells of a sheet.
        unread: Returns hints on what was not read as it is shown, by now.
        wide_row: The advice about a row that is wider than the header.
    """

    name: str
    records: Iterator[Record]
    position: Callable[[], int]
    described: str
    notes: tuple[str, ...] = ()
    merged: Sequence[Merged] = ()
    unread: Callable[[], Iterator[str]] = lambda: iter(())
    wide_row: str = "quote a cell that holds commas"


@contextmanager
def open_table(
    file: IO[bytes], *, name: str, encoding: str | None = None, delimiter: str = AUTO, sheet: str | None = None
) -> Iterator[Table]:
    """Open a list; its content decides its format, not its name.

    Args:
        file: Read in blocks; need not be seekable.
        name: Its name in messages.
        encoding: The encoding of a text file; None to detect it.
        delimiter: The separator of a text file's cells; `auto` finds it in the header.
        sheet: The sheet of an XLSX file; None for the first visible one.

    Raises:
        UnreadableList: It is neither, or cannot be read.
    """
    with ExitStack() as opened:
        head = file.read(_HEAD)
        whole = _from_start(file, head)
        kind = _foreign_kind(head, encoding)
        if kind is not None:
            raise UnreadableList(f"{name} is {kind}, not a list. Save the list as .xlsx or CSV.")
        if head.startswith(ZIP):
            if not whole.seekable():
                whole = opened.enter_context(_copied(whole))
            _require_xlsx(whole, name)
            found = opened.enter_context(open_sheet(whole, name=name, sheet=sheet))
            others = ", ".join(repr(title) for title in found.others)
            note = f"Only the sheet {found.title!r} is read. --sheet NAME reads another: {others}." if others else None
            yield Table(
                name=name,
                records=found.records,
                position=whole.tell,
                described=f"sheet {found.title!r}",
                notes=(note,) if note is not None else (),
                merged=found.merged,
                unread=found.notes,
                wide_row="name the column in the header, or empty its cells",
            )
            return
        if sheet is not None:
            raise UnreadableList(f"{name} is a text file, which has no sheets.")
        yield open_csv(Source(whole, name=name, encoding=encoding), delimiter=delimiter)


def _foreign_kind(head: bytes, encoding: str | None) -> str | None:
    """Return what a file is that is neither text nor an XLSX file; None if it may be one."""
    for mark, kind in _NOT_LISTS:
        if head.lower().startswith(mark.lower()[:_HEAD]):
            return kind
    for mark, at, kind in _LATER_MARKS:
        if head[at:].startswith(mark):
            return kind
    is_text = encoding is not None or head.startswith((ZIP, *BYTE_ORDER_MARKS))
    return None if is_text or _CONTROL_BYTES.isdisjoint(head) else "a binary file"


def open_csv(source: Source, *, delimiter: str = AUTO) -> Table:
    """Return the rows of a text file; `auto` detects the delimiter in its header."""
    lines = source.lines()
    first: list[str] = []
    for line in lines:
        first.append(line)
        if line.strip():
            break
    skipped = 0
    named = named_delimiter(first[-1]) if first else None
    if named is not None:
        # Spreadsheets do not show this line, nor count it.
        skipped = len(first)
        first = list(islice(lines, 1))
    if delimiter == AUTO:
        if named is None:
            # Titles may stand above the header.
            first += islice(lines, HEADER_WITHIN)
        delimiter = named or delimiter_of_header([line for line in first if line.strip()])
    used = source.encoding or "utf-8"
    note = (
        f"{source.name} is not UTF-8 and is read as Windows-1252, as western spreadsheets write it. If names look "
        "wrong, name its encoding, such as --encoding cp1250."
    )
    separated = f"separated by {_DELIMITERS.get(delimiter, repr(delimiter))}"
    return Table(
        name=source.name,
        records=records(chain(first, lines), delimiter, first_line=skipped + 1),
        position=lambda: source.position,
        described=f"{separated}, {codecs.lookup(used).name}",
        notes=(note,) if used == WINDOWS and not source.encoding_given else (),
    )


def is_blank(record: Record) -> bool:
    """Return whether a row is empty."""
    return record.problem is None and all(map(is_blank_text, record.cells))


class _Replayed:
    """A file that cannot be rewound, with its first bytes again before the rest."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        head, self._head = self._head, b""
        return head or self._rest.read(size)

    def seekable(self) -> bool:
        """Return False."""
        return False


def _from_start(file: IO[bytes], head: bytes) -> IO[bytes]:
    """Return a file as it was before its head was read."""
    try:
        file.seek(-len(head), 1)
    except (OSError, ValueError):
        return _Replayed(head, file)  # type: ignore[return-value]
    return file


@contextmanager
def _copied(file: IO[bytes]) -> Iterator[IO[bytes]]:
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield copy


def _require_xlsx(file: IO[bytes], name: str) -> None:
    try:
        names = set(ZipFile(file).namelist())
    except BadZipFile:
        raise UnreadableList(f"{name} is damaged: a ZIP file that breaks off.") from None
    except NotImplementedError:
        # By `zipfile`, of a version or a compression that it does not know.
        raise UnreadableList(f"{name} is damaged, or a ZIP file of an unknown kind.") from None
    finally:
        file.seek(0)
    if not any(each.startswith("xl/") for each in names):
        kind = "an OpenDocument file" if "mimetype" in names else "a ZIP file"
        raise UnreadableList(f"{name} is {kind}, not a list. Save the list as .xlsx or CSV.")
