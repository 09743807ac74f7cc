"""Lists in XLSX files."""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from outreach_server.lists.csv_records import Record
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.header_rows import find_header
from outreach_server.lists.tables import open_table
from tests.cli.conftest import Cli

# A cell has no time zone.
MIDNIGHT = datetime.fromisoformat("2026-01-31T00:00")
HALF_PAST_NINE = datetime.fromisoformat("2026-01-31T09:30")

ROWS: Sequence[Sequence[Any]] = (
    ("電話", "名", "Since", "Paid"),
    (14155550101, "Zoë", MIDNIGHT, True),
    (14155550102.0, "Ben", None, 1.5),
    ("1.4E+10", "Eve", None, None),
    (None, None, None, None),
    ("+1 415 555 0104", "#N/A", None, None),
    ("'+14155550105", "Fay", None, False),
)


@pytest.fixture
def xlsx(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes sheets to an XLSX file and returns its path."""

    def write(**sheets: Sequence[Sequence[Any]]) -> Path:
        book = Workbook()
        book.remove(book.worksheets[0])
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(list(row))
        book.worksheets[0].sheet_state = "hidden" if next(iter(sheets)) == "Hidden" else "visible"
        path = tmp_path / "contacts.xlsx"
        book.save(path)
        return path

    return write


def rows(path: Path, sheet: str | None = None) -> list[Record]:
    """Return the rows of a sheet."""
    with path.open("rb") as file, open_table(file, name="it", sheet=sheet) as table:
        return list(table.records)


def edit(path: Path, change: Callable[[str], str], part: str = "xl/worksheets/sheet1.xml") -> None:
    """Change the XML of a part of a workbook, its first sheet where no other is named."""
    with zipfile.ZipFile(path) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist()}
    before = content[part].decode()
    content[part] = change(before).encode()
    assert content[part] != before.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def test_cells_are_read_as_a_person_reads_them(xlsx: Callable[..., Path]) -> None:
    """Numbers and dates by their formats; rows are numbered as in the sheet, empty ones too."""
    shown = [
        14155550101, 14155550102.0, 1.5, 0.1 + 0.2, "007", True, False, None, date(2026, 1, 31),
        HALF_PAST_NINE, time(9, 30), timedelta(minutes=90), -5,
    ]  # fmt: skip
    found = rows(xlsx(People=[["phone"], [], shown]))
    assert [(record.row, record.line) for record in found] == [(1, 1), (2, 2), (3, 3)]
    assert found[1].cells in ([""], [""] * len(shown))
    assert found[2].cells == [
        "14155550101", "14155550102", "1.5", "0.3", "007", "TRUE", "FALSE", "", "2026-01-31",
        "2026-01-31 9:30:00", "9:30:00", "01:30:00", "-5",
    ]  # fmt: skip


def test_the_escapes_of_a_workbook_are_not_part_of_a_text(xlsx: Callable[..., Path]) -> None:
    """Excel writes `_x000D_` for a carriage return, and `_x005F_` for an underscore that would begin an escape."""
    found = rows(xlsx(People=[["phone"], ["+14155550101_x000D_", "Ana_x000D_\nLopez", "a_x005F_x000D_", "a_xyz"]]))
    assert found[1].cells == ["+14155550101\r", "Ana\r\nLopez", "a_x000D_", "a_xyz"]


def test_a_formula_that_is_a_text_is_read_without_a_stored_value(xlsx: Callable[..., Path]) -> None:
    """Programs write such files; a row of formulas alone is a row, too."""
    found = rows(xlsx(People=[["phone", "name"], ['="+14155550101"', '="He said ""Hi"""'], [], ['="+14155550102"']]))
    assert [record.cells[0] for record in found] == ["phone", "+14155550101", "", "+14155550102"]
    assert found[1].cells[1] == 'He said "Hi"'


def test_a_formula_that_nobody_has_computed_is_named(cli: Cli, workspace_id: str, xlsx: Callable[..., Path]) -> None:
    """Nothing is loaded: what the cell would be cannot be known."""
    path = xlsx(People=[["phone", "name"], ["+14155550101", "Ann"], ["+14155550102", "=UPPER(B2)"]])
    told = cli.refuse("campaigns", "import", workspace_id, str(path), "--name", "C", "--message", "Hi {{name}}")
    assert "does not hold the value of the formula in B3" in told
    assert not cli.ask("campaigns", "list", workspace_id)


@pytest.mark.parametrize(("stored", "read"), [("<v></v>", ""), ("<v/>", ""), ("<v>Ann</v>", "Ann")])
def test_a_stored_value_of_a_formula_counts(xlsx: Callable[..., Path], stored: str, read: str) -> None:
    """An empty one is a blank, as the spreadsheet computed it."""
    path = xlsx(People=[["phone", "name"], ["+14155550101", "=B1"]])
    pattern = r'<c r="B2"[^>]*><f>B1</f><v ?/?>(</v>)?</c>'
    edit(path, lambda sheet: re.sub(pattern, f'<c r="B2" t="str"><f>B1</f>{stored}</c>', sheet))
    cells = rows(path)[1].cells
    assert (cells[1] if len(cells) > 1 else "") == read


def test_a_workbook_becomes_a_campaign(cli: Cli, workspace_id: str, xlsx: Callable[..., Path]) -> None:
    """Numbers that are numbers there are whole, what is lost is named, and rows are those of the sheet."""
    path = xlsx(People=ROWS)
    args = ("campaigns", "import", workspace_id, str(path), "--name", "C", "--message", "Hi", "--region", "US")
    made = cli.ask(*args)
    assert made["read_as"] == "sheet 'People'"
    people = cli.ask("campaigns", "recipients", made["id"])
    assert [(one["phone"], one["first_name"], one["custom_variables"]) for one in people] == [
        ("+14155550101", "Zoë", {"Since": "2026-01-31 0:00:00", "Paid": "TRUE"}),
        ("+14155550102", "Ben", {"Paid": "1.5"}),
        ("+14155550105", "Fay", {"Paid": "FALSE"}),
    ]
    assert [(bad["row"], bad["column"]) for bad in made["rejected"]] == [(4, "電話"), (6, "名")]
    assert [(one["what"], one["row"]) for one in made["corrected"]] == [("apostrophe", 7)]


def test_a_workbook_comes_through_a_pipe(cli: Cli, workspace_id: str, xlsx: Callable[..., Path]) -> None:
    """What it is shows from its content."""
    content = xlsx(People=ROWS).read_bytes()
    args = ("campaigns", "import", workspace_id, "-", "--name", "C", "--message", "Hi", "--region", "US")
    made = cli.ask(*args, stdin=content)
    assert made["total_recipients"] == 3


def test_the_first_visible_sheet_is_read_unless_another_is_named(
    cli: Cli, workspace_id: str, xlsx: Callable[..., Path]
) -> None:
    """The others are named."""
    path = xlsx(Hidden=[["x"]], People=[["phone"], ["+14155550101"]], More=[["phone"], ["+14155550102"]])
    assert rows(path)[1].cells == ["+14155550101"]
    assert rows(path, "More")[1].cells == ["+14155550102"]
    assert rows(path, "Hidden")[0].cells == ["x"]
    args = ("campaigns", "import", workspace_id, str(path), "--name", "C", "--message", "Hi")
    assert "Only the sheet 'People' is read. --sheet NAME reads another: 'Hidden', 'More'." in cli.tell(*args)
    assert "no sheet 'Else'. Its sheets are: 'Hidden', 'People', 'More'" in cli.refuse(*args, "--sheet", "Else")


def test_a_workbook_without_a_visible_sheet_is_refused(xlsx: Callable[..., Path]) -> None:
    """Its sheets are named, and one that is named is read."""
    path = xlsx(One=[["phone"]], Two=[["name"]])
    edit(path, lambda book: book.replace('state="visible"', 'state="hidden"'), "xl/workbook.xml")
    with pytest.raises(
        UnreadableList, match=r"it has no visible sheet\. Unhide one, or name it with --sheet: 'One', 'Two'"
    ):
        rows(path)
    assert rows(path, "Two")[0].cells == ["name"]


def test_a_workbook_without_a_sheet_that_can_be_read_is_refused(xlsx: Callable[..., Path]) -> None:
    """Such as one of the kind "Strict Open XML"."""
    path = xlsx(People=ROWS)
    edit(path, lambda book: re.sub("<sheets>.*</sheets>", "<sheets/>", book), "xl/workbook.xml")
    for sheet in (None, "People"):
        with pytest.raises(UnreadableList, match="it holds no sheet that can be read"):
            rows(path, sheet)


def test_numbers_to_unsubscribe_come_from_a_sheet(cli: Cli, workspace_id: str, xlsx: Callable[..., Path]) -> None:
    """With and without a header."""
    path = xlsx(People=ROWS)
    assert cli.ask("unsubscribes", "import", workspace_id, str(path), "--region", "US")["added"] == 4
    bare = xlsx(One=[[14155550111]], Two=[[14155550112]])
    args = ("unsubscribes", "import", workspace_id, str(bare), "--region", "US", "--sheet", "Two")
    assert cli.ask(*args)["added"] == 1


def archive(**files: bytes) -> bytes:
    """Return a ZIP file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (archive(mimetype=b"application/vnd.oasis.opendocument.spreadsheet"), "is an OpenDocument file"),
        (archive(**{"a.txt": b""}), "is a ZIP file"),
        (archive(**{"xl/workbook.xml": b"", "[Content_Types].xml": b"<x"}), "cannot be read as an XLSX file"),
        (archive(**{"xl/a.xml": b"", "[Content_Types].xml": b"<x/>"}), "cannot be read as an XLSX file"),
        (b"PK\x03\x04", "is damaged"),
        (b"<html><table>", "is a web page"),
    ],
)
def test_what_is_no_workbook_is_named(content: bytes, problem: str) -> None:
    """With what to do."""
    with pytest.raises(UnreadableList) as caught, open_table(io.BytesIO(content), name="it") as table:
        list(table.records)
    assert f"it {problem}" in caught.value.message
    assert "CSV" in caught.value.message or problem == "is damaged"


@pytest.mark.parametrize(
    ("at", "problem"),
    [
        ({"PK\x01\x02": 6, "PK\x03\x04": 4}, "is damaged"),  # the version that is needed
        ({"PK\x01\x02": 8, "PK\x03\x04": 6}, "cannot be read as an XLSX file"),  # whether it is encrypted
        ({"PK\x01\x02": 10}, "cannot be read as an XLSX file"),  # how it is compressed
        ({"\x13\0\0\0[Content_Types].xml": 23}, "cannot be read as an XLSX file"),  # the compressed bytes
    ],
)
def test_a_workbook_that_is_damaged_is_named(xlsx: Callable[..., Path], at: dict[str, int], problem: str) -> None:
    """Wherever a byte is another one."""
    content = bytearray(xlsx(People=ROWS).read_bytes())
    for mark, offset in at.items():
        found = -1
        while (found := content.find(mark.encode("latin-1"), found + 1)) >= 0:
            if found + offset < len(content):
                content[found + offset] = 0xFF
    with pytest.raises(UnreadableList) as caught, open_table(io.BytesIO(content), name="it") as table:
        list(table.records)
    assert f"it {problem}" in caught.value.message


def test_a_cell_with_a_style_that_the_workbook_lacks_is_refused(xlsx: Callable[..., Path]) -> None:
    """As any other damage is."""
    path = xlsx(People=[["phone"], ["+14155550101"]])
    edit(path, lambda sheet: sheet.replace('r="A2"', 'r="A2" s="999"'))
    with pytest.raises(UnreadableList, match="it cannot be read as an XLSX file"):
        rows(path)


def test_a_row_below_the_last_one_of_a_sheet_is_refused(
    xlsx: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number that a file leaves out is an empty row, so that a large one would be read for minutes."""
    monkeypatch.setattr("outreach_server.lists.xlsx_records._MAX_ROWS", 10)
    path = xlsx(People=[["phone"], ["+14155550101"]])
    edit(path, lambda sheet: sheet.replace('<row r="2"', '<row r="10"').replace('r="A2"', 'r="A10"'))
    assert [record.cells for record in rows(path)] == [["phone"], *[[""]] * 8, ["+14155550101"]]
    edit(path, lambda sheet: sheet.replace('<row r="10"', '<row r="11"'))
    with pytest.raises(UnreadableList, match="it has a row below row 10"):
        rows(path)


def test_empty_rows_above_the_first_contact_are_not_kept() -> None:
    """A sheet may have a million of them."""
    contact = Record(6, 6, ["+14155550101"], None)
    above = [Record(1, 1, ["phone"], None), *[Record(row, row, [""], None) for row in range(2, 6)]]
    header = find_header(iter([*above, contact]), name="it", mapped={})
    assert header.record.cells == ["phone"]
    assert list(header.rest) == [contact]


def test_a_text_file_has_no_sheets() -> None:
    """The option is refused, not ignored."""
    with pytest.raises(UnreadableList, match="no sheets"), open_table(io.BytesIO(b"phone"), name="it", sheet="A"):
        pass


def test_a_workbook_that_unpacks_to_more_than_memory_is_refused(
    xlsx: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is unpacked."""
    monkeypatch.setattr("outreach_server.lists.xlsx_records._MAX_UNPACKED", 1000)
    with pytest.raises(UnreadableList, match="too large"):
        rows(xlsx(People=ROWS))


def test_the_library_that_is_missing_is_named_with_its_command(
    xlsx: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And another way is named."""
    path = xlsx(People=ROWS)
    for name in [name for name in sys.modules if name.partition(".")[0] == "openpyxl"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(UnreadableList, match=r"pip install 'outreach\[server\]'; or save the sheet as CSV"):
        rows(path)
