"""Values of spreadsheets as they are shown, merged cells, and headers below titles."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from outreach_server.lists.csv_records import Record
from outreach_server.lists.tables import Table, open_table
from tests.cli.conftest import Cli, Write
from tests.cli.foreign_sheets import Cell, write_sheet

# A cell has no time zone.
SLOT = datetime.fromisoformat("2026-12-08T08:00")


def with_openpyxl(path: Path, rows: Sequence[Sequence[tuple[Any, str]]], merged: Sequence[str] = ()) -> Path:
    """Write values with their formats, with openpyxl."""
    book = Workbook()
    sheet = book.worksheets[0]
    for number, row in enumerate(rows, start=1):
        for column, (value, code) in enumerate(row, start=1):
            cell = sheet.cell(number, column, value)
            if code:
                cell.number_format = code
    for address in merged:
        sheet.merge_cells(address)
    book.save(path)
    return path


def with_xlsxwriter(path: Path, rows: Sequence[Sequence[tuple[Any, str]]], merged: Sequence[str] = ()) -> Path:
    """Write values with their formats, with xlsxwriter."""
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            for column, (value, code) in enumerate(row):
                if value is not None:
                    sheet.write(number, column, value, book.add_format({"num_format": code} if code else {}))
        for address in merged:
            first = rows[int(address[1]) - 1][ord(address[0]) - 65]
            sheet.merge_range(address, first[0])
    return path


WRITERS = pytest.mark.parametrize("write", [with_openpyxl, with_xlsxwriter])


def table(path: Path) -> tuple[list[Record], Table]:
    """Return the rows of a workbook, and the list."""
    with path.open("rb") as file, open_table(file, name="it") as found:
        return list(found.records), found


@WRITERS
def test_an_unknown_format_is_named_with_its_cell(write: Callable[..., Path], tmp_path: Path) -> None:
    """And the stored value is read."""
    path = write(tmp_path / "a.xlsx", [[("x", "")], [(0.5, "# ?/?")], [(0.25, "# ?/?")]])
    found, sheet = table(path)
    assert [record.cells for record in found] == [["x"], ["0.5"], ["0.25"]]
    (note,) = sheet.unread()
    assert "'# ?/?' of A2 and 1 more is not understood" in note


def test_a_date_in_the_way_of_each_computer_is_read_as_iso_and_named(tmp_path: Path) -> None:
    """Format 14 is 12/8/2026 here and 8.12.2026 there."""
    path = with_openpyxl(tmp_path / "a.xlsx", [[("Slot", "")], [(SLOT, "mm-dd-yy")]])
    found, sheet = table(path)
    assert found[1].cells == ["2026-12-08 08:00"]
    (note,) = sheet.unread()
    assert "A2" in note
    assert "{{name|date:d mmm yyyy}}" in note


LETTERS = st.text(st.characters(categories=["L", "N"], codec="utf-8"), min_size=1, max_size=6)
VALUES = st.one_of(
    LETTERS.map(lambda text: (text, "", text)),
    st.integers(0, 99_999).map(lambda number: (number, "00000", f"{number:05d}")),
    st.integers(0, 10**9).map(lambda cents: (cents / 100, "#,##0.00", f"{cents / 100:,.2f}")),
    st.integers(0, 1000).map(lambda percent: (percent / 100, "0%", f"{percent}%")),
    st.integers(0, 40_000).map(
        lambda day: (moment := SLOT + timedelta(days=day), "yyyy-mm-dd hh:mm", f"{moment:%Y-%m-%d %H:%M}")
    ),
)


@given(rows=st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=1, max_size=6), other=st.booleans())
def test_a_generated_sheet_is_read_as_it_is_shown(rows: list[list[tuple[Any, str, str]]], other: bool) -> None:
    """Texts, leading zeros, amounts, shares and dates, by both libraries."""
    write = with_xlsxwriter if other else with_openpyxl
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "a.xlsx", [[(value, code) for value, code, _ in row] for row in rows])
        found, _ = table(path)
    assert [record.cells for record in found] == [[shown for _, _, shown in row] for row in rows]


def contacts_of(cli: Cli, workspace_id: str, path: Path, message: str, *more: str) -> tuple[Any, list[Any]]:
    """Import a file; return the answer and the contacts."""
    made = cli.ask(
        "campaigns", "import", workspace_id, str(path), "--name", "C", "--message", message, "--region", "US", *more
    )
    return made, cli.ask("campaigns", "recipients", made["id"])


FOREIGN: Mapping[str, Mapping[str, Any]] = {
    "Google Sheets": {},
    "LibreOffice": {"places": True},
    "Numbers": {"inline": True},
    "export program": {"inline": True, "places": False},
    "prefixed": {"prefix": "x"},
}
FOREIGN_ROWS: Mapping[int, Sequence[Cell | None]] = {
    1: [("s", "Patients of May", 0)],
    3: [("s", "Phone", 0), ("s", "Vorname", 0), ("s", "Discount", 0), ("s", "Slot", 0)],
    4: [("n", "14155550101", 0), ("s", "Jose\u0301", 0), ("n", "0.15", 1), ("n", "46364.333333333336", 2)],
    5: [("n", "1.4155550102E10", 3), ("s", "Pen\u0303a", 0), ("n", "0.2", 1), ("n", "46365.5", 2)],
}


@pytest.mark.parametrize("program", FOREIGN)
def test_files_of_other_programs_are_read_as_they_are_shown(
    cli: Cli, workspace_id: str, tmp_path: Path, program: str
) -> None:
    """Shared and inline texts, cells without addresses, prefixed names; the title above the header is left out."""
    path = write_sheet(
        tmp_path / "a.xlsx", FOREIGN_ROWS, formats=["0%", "d.m.yyyy h:mm", "0.00E+00"], **FOREIGN[program]
    )
    made, people = contacts_of(cli, workspace_id, path, "Hi {{Vorname}}, {{Discount}} off on {{Slot|date:d mmm, h:mm}}")
    assert "Row 3 looks like the header. Row 1 above it is not read." in made["notes"]
    assert made["unknown_placeholders"] == made["placeholder_problems"] == made["text_warnings"] == []
    assert [(one["phone"], one["first_name"], one["custom_variables"]) for one in people] == [
        ("+14155550101", "José", {"Discount": "15%", "Slot": "8.12.2026 8:00", "Slot|date:": "2026-12-08 08:00"}),
        ("+14155550102", "Peña", {"Discount": "20%", "Slot": "9.12.2026 12:00", "Slot|date:": "2026-12-09 12:00"}),
    ]
    preview = cli.ask("campaigns", "preflight", made["id"])
    assert preview["samples"][0]["messages"][0]["text"].startswith("Hi José, 15% off on 8 Dec, 8:00")


@WRITERS
def test_merged_cells_are_filled_or_reported_by_their_address(
    cli: Cli, workspace_id: str, tmp_path: Path, write: Callable[..., Path]
) -> None:
    """Over rows each row has the value; over columns the address is named."""
    rows = [
        [("phone", ""), ("slot", ""), ("room", "")],
        [("+14155550101", ""), ("Monday", ""), ("A", "")],
        [("+14155550102", ""), (None, ""), ("B", "")],
        [("+14155550103", ""), (None, ""), (None, "")],
        [("+14155550104", ""), ("Tuesday", ""), (None, "")],
    ]
    path = write(tmp_path / "a.xlsx", rows, ["B2:B4", "B5:C5"])
    made, people = contacts_of(cli, workspace_id, path, "{{slot|-}} {{room|-}}")
    assert [one["custom_variables"] for one in people] == [
        {"slot": "Monday", "room": "A"},
        {"slot": "Monday", "room": "B"},
        {"slot": "Monday"},
        {"slot": "Tuesday"},
    ]
    assert any("B2:B4 are read as if each row had their value" in note for note in made["notes"])
    assert any("B5:C5 lie over several columns" in note for note in made["notes"])


@given(
    blocks=st.lists(st.tuples(st.integers(1, 4), LETTERS), min_size=1, max_size=5),
    other=st.booleans(),
)
def test_every_row_of_a_merged_cell_has_its_value(blocks: list[tuple[int, str]], other: bool) -> None:
    """However many rows each covers."""
    rows: list[list[tuple[Any, str]]] = []
    merged, wanted = [], []
    for height, value in blocks:
        first = len(rows) + 1
        rows += [[(f"n{first + at}", ""), (value if at == 0 else None, "")] for at in range(height)]
        wanted += [value] * height
        if height > 1:
            merged.append(f"B{first}:B{first + height - 1}")
    with tempfile.TemporaryDirectory() as folder:
        write = with_openpyxl if other or any(len(one) != len("B1:B2") for one in merged) else with_xlsxwriter
        found, _ = table(write(Path(folder) / "a.xlsx", rows, merged))
    assert [record.cells[1] for record in found] == wanted


def test_a_huge_merged_range_takes_no_memory(tmp_path: Path) -> None:
    """A whole column may be merged."""
    rows: dict[int, Sequence[Cell | None]] = {1: [("s", "a", 0), ("s", "b", 0)], 2: [("s", "c", 0)]}
    path = write_sheet(tmp_path / "a.xlsx", rows, merged=["B1:B1048576"])
    found, _ = table(path)
    assert [record.cells for record in found] == [["a", "b"], ["c", "b"]]


@pytest.mark.parametrize(
    ("content", "mapped", "row"),
    [
        ("Customer list\nPhone,Name\n+14155550101,Ann\n", "", 2),
        ("Kunden, Stand Mai\n\nTelefon;Name\n+14155550101;Ann\n", "", 3),
        ("Telefon\nName;Telefon\nAnn;+14155550101\n", "", 2),
        ("Export,2026-11-01\nby,Ann\nPhone,Name\n+14155550101,Ann\n", "", 3),
        ("Clinic\nName;Nummer\nAnn;+14155550101\n", "phone=Nummer", 2),
        ("Clinic\nName;Nummer\nAnn;+14155550101\n", "phone=2", 2),
        ("Kampagne Winter;;\nStand: 27.11.2026;;\nTelefon;Vorname;note\n+14155550101;Ann;x\n", "", 3),
        ("Stand: 27.11.2026;;\nName;Nummer;x\nAnn;+14155550101;x\n", "phone=Nummer", 2),
        ("List\nPrinted on 2026-11-27 08:15\nPhone,Name\n+14155550101,Ann\n", "", 3),
        ("Winter\nKundennr. 4711-0815\nPhone,Name\n+14155550101,Ann\n", "", 3),
        ("Winter;;\nKundennr: 4711-0815;;\nTelefon;Vorname;x\n+14155550101;Ann;x\n", "", 3),
        ("Winter;;\nKundennr.;4711-0815;\nTelefon;Vorname;x\n+14155550101;Ann;x\n", "", 3),
        ("Praxis Dr. Müller;;\nTel: 030 1234567;;\nTelefon;Vorname;x\n+14155550101;Ann;x\n", "", 3),
        ("Umsatz: 12.345.678,00;;\nTotal: 1234567;;\nTelefon;Vorname;x\n+14155550101;Ann;x\n", "", 3),
        ("List\nSeite 1 von 12\nPage: 1/12\nPhone,Name\n+14155550101,Ann\n", "", 4),
    ],
)
def test_a_header_below_titles_is_found(
    cli: Cli, workspace_id: str, csv_file: Write, content: str, mapped: str, row: int
) -> None:
    """By the name of its phone column, or by the columns that are mapped; its delimiter counts."""
    args = ("campaigns", "import", workspace_id, csv_file(content), "--name", "C", "--message", "Hi")
    made = cli.ask(*args, *(("--map", mapped) if mapped else ()))
    assert [note for note in made["notes"] if note.startswith(f"Row {row} looks like the header.")]
    assert (made["rows"], made["total_recipients"], made["rejected"]) == (1, 1, [])


@WRITERS
@pytest.mark.parametrize("merged", [[], ["A1:C1", "A2:C2"]])
def test_a_title_with_a_date_stands_above_the_header_of_a_sheet(
    cli: Cli, workspace_id: str, tmp_path: Path, write: Callable[..., Path], merged: list[str]
) -> None:
    """Merged or not, as a text or as a date."""
    rows: list[list[tuple[Any, str]]] = [
        [("Kampagne Winter", "")],
        [("Stand: 27.11.2026", "")],
        [("Stand", ""), (SLOT.replace(hour=0), "yyyymmdd")],
        [("Telefon", ""), ("Vorname", ""), ("note", "")],
        [("+14155550101", ""), ("Ann", ""), ("x", "")],
    ]
    made, people = contacts_of(cli, workspace_id, write(tmp_path / "a.xlsx", rows, merged), "Hi {{Vorname}}")
    assert "Row 4 looks like the header. Rows 1, 2, 3 above it are not read." in made["notes"]
    assert [(one["phone"], one["first_name"]) for one in people] == [("+14155550101", "Ann")]


@pytest.mark.parametrize("above", ["+14155550101", "Ann,+14155550101", "Bruno,+14155550101"])
def test_a_contact_above_a_header_is_no_title(
    cli: Cli, workspace_id: str, csv_file: Callable[[str], str], above: str
) -> None:
    """Nobody is left out as one: the list is refused."""
    file = csv_file(f"{above}\nPhone,Name,Note\n+14155550102,Bo,x\n")
    told = cli.refuse("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi")
    assert "No column is the phone number" in told


@pytest.mark.parametrize(
    "content",
    [
        "Phone\n+14155550101\n",
        "Phone,type\n+14155550101,mobile\n+14155550102,phone\n",
        "Phone,Kind\n1.4E+10,Mobile\n+14155550101,x\n",
        "Phone,Kind\ntel:+14155550101,\nPhone,Mobile\n",
        "Phone\ntel:+14155550101\nPhone,Mobile\n",
    ],
)
def test_the_first_row_is_the_header_where_it_names_the_columns(
    cli: Cli, workspace_id: str, csv_file: Write, content: str
) -> None:
    """A row of a contact is none, whatever its cells say."""
    made = cli.ask("campaigns", "import", workspace_id, csv_file(content), "--name", "C", "--message", "Hi")
    assert not any("looks like the header" in note for note in made["notes"])
    assert made["csv_column_headers"][0] == "Phone"


def test_a_date_of_a_sheet_takes_the_format_of_its_placeholder(cli: Cli, workspace_id: str, tmp_path: Path) -> None:
    """Also one that is shown as no one can read it back; other placeholders show it as the sheet does."""
    rows: list[list[tuple[Any, str]]] = [
        [("phone", ""), ("slot", ""), ("day", "")],
        [("+14155550101", ""), (SLOT, "m/d/yy h:mm AM/PM"), (date(2026, 12, 8), "m/d/yyyy")],
    ]
    path = with_openpyxl(tmp_path / "a.xlsx", rows)
    made, _ = contacts_of(cli, workspace_id, path, "{{slot|date:[de]d. mmmm, h:mm}} {{day}}")
    assert made["placeholder_problems"] == []
    preview = cli.ask("campaigns", "preflight", made["id"])
    assert preview["samples"][0]["messages"][0]["text"].startswith("8. Dezember, 8:00 12/8/2026")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("On {{slot}}", "On 8. December 2026"),
        ("On {{slot}} at {{slot|date:h:mm}}", "On 8. December 2026 at 8:00"),
        ("{{slot|date:[de]d. mmmm}}: {{ slot | soon }}", "8. Dezember: 8. December 2026"),
        ("{{Firma}} at {{Firma|date:h:mm}}", "8.12.26 at 8:00"),
    ],
)
def test_a_placeholder_without_a_format_shows_a_date_as_its_cell_does(
    cli: Cli, workspace_id: str, tmp_path: Path, message: str, text: str
) -> None:
    """Whichever formats other placeholders of the same column have; also where the column is a contact's field."""
    rows: list[list[tuple[Any, str]]] = [
        [("phone", ""), ("slot", ""), ("Firma", "")],
        [("+14155550101", ""), (SLOT, "d. mmmm yyyy"), (SLOT, "d.m.yy")],
    ]
    made, _ = contacts_of(cli, workspace_id, with_openpyxl(tmp_path / "a.xlsx", rows), message)
    assert made["unknown_placeholders"] == made["placeholder_problems"] == made["text_warnings"] == []
    preview = cli.ask("campaigns", "preflight", made["id"])
    assert preview["samples"][0]["messages"][0]["text"].splitlines()[0] == text


def merged_header(path: Path, headers: Sequence[str | None], merged: str) -> Path:
    """Write a list with a title, a header with a merged cell in row 3, and three rows of four cells."""
    rows: dict[int, Sequence[Cell | None]] = {
        1: [("s", "Customers of May", 0)],
        3: [None if text is None else ("s", text, 0) for text in headers],
    }
    for at in range(4, 7):
        rows[at] = [("s", text, 0) for text in (f"+1415555010{at}", "Ann", "Lee", "Rome")]
    return write_sheet(path, rows, merged=[merged])


@pytest.mark.parametrize(
    ("merged", "headers", "values"),
    [
        ("B3:D3", ["phone", "name"], {"name": "Ann"}),
        ("B3:D3", ["phone", "name", None, None], {"name": "Ann"}),
        ("B3:C3", ["phone", "name", None, "city"], {"name": "Ann", "city": "Rome"}),
        ("B3:XFD3", ["phone", "name"], {"name": "Ann"}),
    ],
)
def test_a_merged_header_names_its_first_column(
    cli: Cli, workspace_id: str, tmp_path: Path, merged: str, headers: list[str | None], values: Mapping[str, str]
) -> None:
    """Its address is named, and the rows are loaded without its other columns."""
    path = merged_header(tmp_path / "a.xlsx", headers, merged)
    made, people = contacts_of(cli, workspace_id, path, "Hi {{name}}")
    assert made["rejected"] == []
    assert [one["custom_variables"] for one in people] == [values] * 3
    (note,) = (note for note in made["notes"] if merged in note)
    assert "names only the first of its columns" in note
    added = cli.ask("unsubscribes", "import", workspace_id, str(path))
    assert note in added["notes"]


def test_a_cell_of_a_sheet_beside_the_named_columns_is_rejected_with_advice(
    cli: Cli, workspace_id: str, tmp_path: Path
) -> None:
    """A sheet has no commas to quote."""
    path = merged_header(tmp_path / "a.xlsx", ["phone", "name"], "B3:C3")
    told = cli.refuse("campaigns", "import", workspace_id, str(path), "--name", "C", "--message", "Hi")
    assert "it has 4 cells, the header names 3; name the column in the header, or empty its cells" in told


NUMBER = 14155550102


@WRITERS
def test_a_date_has_a_time_of_day_if_its_cell_shows_one(
    cli: Cli, workspace_id: str, tmp_path: Path, write: Callable[..., Path]
) -> None:
    """A midnight that is shown is meant; one that is not shown is no time."""
    day = SLOT.replace(hour=0)
    rows: list[list[tuple[Any, str]]] = [
        [("phone", ""), ("slot", "")],
        [("+14155550101", ""), (day, "d.m.yyyy h:mm")],
        [("+14155550102", ""), (day, "d.m.yyyy")],
    ]
    made, _ = contacts_of(cli, workspace_id, write(tmp_path / "a.xlsx", rows), "At {{slot|date:h:mm}}")
    assert [(one["problem"], one["count"]) for one in made["placeholder_problems"]] == [("no_time", 1)]
    preview = cli.ask("campaigns", "preflight", made["id"])
    texts = [one["messages"][0]["text"].splitlines()[0] for one in preview["samples"]]
    assert texts == ["At 0:00", "At 2026-12-08"]


PHONE_FORMATS = ('"Tel. "0', "0000000000000", "$#,##0.00", "0%", "#'##0", "#,##0,", "0.00E+00", "+0", "# ?/?", "0.0")


@pytest.mark.parametrize("code", PHONE_FORMATS)
def test_a_phone_cell_that_is_a_whole_number_is_read_whatever_its_format(
    cli: Cli, workspace_id: str, tmp_path: Path, code: str
) -> None:
    """What is shown may be an amount, a share or thousands; merged rows too, and lists of opt-outs."""
    rows: list[list[tuple[Any, str]]] = [
        [("phone", ""), ("zip", ""), ("price", "")],
        [(NUMBER, code), (2134, "00000"), (5, '"$"0.00')],
        [(None, ""), (2135, "00000"), (6, '"$"0.00')],
    ]
    path = with_openpyxl(tmp_path / "a.xlsx", rows, ["A2:A3"])
    made, people = contacts_of(cli, workspace_id, path, "Hi")
    assert (made["rejected"], made["duplicates"]) == ([], 1)
    assert [(one["phone"], one["custom_variables"]) for one in people] == [
        (f"+{NUMBER}", {"zip": "02134", "price": "$5.00"}),
        (f"+{NUMBER}", {"zip": "02135", "price": "$6.00"}),
    ]
    added = cli.ask("unsubscribes", "import", workspace_id, str(path), "--region", "US")
    assert added["rejected"] == []
    bare = with_openpyxl(tmp_path / "b.xlsx", [[(NUMBER, code), ("asked", "")], [(NUMBER + 1, code), ("asked", "")]])
    headless = cli.ask("unsubscribes", "import", workspace_id, str(bare), "--region", "US", "--map", "phone=1")
    assert (headless["rows"], headless["rejected"]) == (2, [])


@pytest.mark.parametrize(
    ("value", "code", "region", "phone"),
    [
        (15123456701, "000000000000", "DE", "+4915123456701"),
        (15123456701, '"+49 "0', "US", "+4915123456701"),
        (4155550102, "(###) ###-####", "US", "+14155550102"),
        (14155550102, '"00"0', "DE", "+14155550102"),
    ],
)
def test_a_format_that_completes_a_number_counts(
    cli: Cli, workspace_id: str, tmp_path: Path, value: int, code: str, region: str, phone: str
) -> None:
    """Leading zeros and a country code in front; the cell is named as it is shown."""
    path = with_openpyxl(tmp_path / "a.xlsx", [[("phone", "")], [(value, code)]])
    made, people = contacts_of(cli, workspace_id, path, "Hi", "--region", region)
    assert [one["phone"] for one in people] == [phone]
    assert made["numbers"]["first"][0]["cell"] == table(path)[0][1].cells[0]


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    """Merged cells and formats are looked for in a copy."""
    path = with_openpyxl(tmp_path / "a.xlsx", [[("a", ""), (0.15, "0%")], [("b", ""), (None, "")]], ["B1:B2"])

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise OSError

    with open_table(Pipe(path.read_bytes()), name="it") as found:
        assert [record.cells for record in found.records] == [["a", "15%"], ["b", "15%"]]
