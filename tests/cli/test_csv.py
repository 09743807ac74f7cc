from __future__ import annotations

import csv
import io
import re

import pytest

from outreach.server_support import escape_formula
from outreach_server.lists.contacts import CHUNK, ContactFile
from outreach_server.lists.csv_lines import MAX_LINE_LENGTH, Source, is_encoding
from outreach_server.lists.csv_records import Record, detect_delimiter, records
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.rejects import Rejects
from outreach_server.lists.tables import open_csv


class Dribble(io.BytesIO):
    """A file that gives few bytes at a time, so that every seam between blocks is tried."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(content)
        self.size = size

    def read(self, size: int | None = -1, /) -> bytes:
        """Return a few bytes, however many were asked for."""
        return super().read(self.size)


def lines(content: bytes, encoding: str | None = None, *, size: int = 65_536) -> list[str]:
    """Return the lines of a file with this content."""
    return list(Source(Dribble(content, size), name="it", encoding=encoding).lines())


@pytest.mark.parametrize("size", [4, 5, 7, 65_536])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_lines_are_the_same_however_the_file_is_cut(encoding: str, size: int) -> None:
    """Byte order marks, all three line ends and letters of several bytes survive each seam."""
    text = "Zoë,Łukasz\r\nb\rc\n\n\u2028d\x0be"
    assert lines(text.encode(encoding), size=size) == ["Zoë,Łukasz\r\n", "b\r", "c\n", "\n", "\u2028d\x0be"]


def test_a_named_encoding_is_used() -> None:
    """Excel in the west writes cp1252."""
    assert lines("Zoë".encode("cp1252"), "cp1252") == ["Zoë"]
    assert lines("\ufeffZoë".encode(), "utf-8") == ["Zoë"]


@pytest.mark.parametrize("size", [3, 65_536])
def test_a_byte_of_another_encoding_is_named_with_its_place(size: int) -> None:
    """The message says where, and what to do; so it is with a letter that is damaged in a file that is UTF-8 else."""
    for broken, byte in ((b"Zo\x81,x", "81"), ("Łukasz, Zoë".encode() + b"\xeb", "eb")):
        with pytest.raises(UnreadableList) as caught:
            lines(b"phone\nok\n" + broken + b"\n", size=size)
        assert re.search(rf"it is not utf-8 at byte \d+ \(line 3\): {byte}", caught.value.message)
        assert "--encoding cp1252" in caught.value.message


@pytest.mark.parametrize("encoding", ["utf-7", "UTF7", "unicode_escape", "raw-unicode-escape"])
def test_an_encoding_that_makes_texts_no_database_stores_is_refused(encoding: str) -> None:
    """They decode halves of surrogate pairs."""
    assert not is_encoding(encoding)
    assert is_encoding("utf-16")


def test_a_file_that_ends_within_a_letter_is_not_in_its_encoding() -> None:
    """A download that broke off is not loaded as if it were whole."""
    with pytest.raises(UnreadableList, match="at byte 2"):
        lines("abé".encode()[:-1])


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("phone,name\n1,Zoë\n".encode("cp1252"), "cp1252"),
        (b"phone,name\n" * 30_000 + "1,Zoë Müller\n".encode("cp1252"), "cp1252"),
        ("phone\tname\n1\tZoë\n".encode("utf-16-le"), "utf-16-le"),
        ("phone\tname\n1\tZoë\n".encode("utf-16-be"), "utf-16-be"),
        ("phone,name\n1,Zoë\n".encode(), "utf-8"),
        (b"phone\n", "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_the_encoding_is_found_in_the_bytes(content: bytes, encoding: str) -> None:
    """UTF-16 without a mark by its zeros, Windows-1252 by what is no UTF-8, however far down."""
    source = Source(io.BytesIO(content), name="it", encoding=None)
    text = "".join(source.lines())
    assert source.encoding == encoding
    assert text == content.decode(encoding)


def test_a_pipe_is_not_read_twice_to_find_its_encoding() -> None:
    """What cannot be rewound is UTF-8, or its encoding is named."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with pytest.raises(UnreadableList, match="--encoding cp1252"):
        list(Source(Pipe("Zoë\n".encode("cp1252")), name="it", encoding=None).lines())


@pytest.mark.parametrize("size", [1000, 65_536])
def test_a_line_without_end_is_cut(size: int) -> None:
    """A file without line ends does not fill the memory, and the next line is whole again."""
    got = lines(b"x" * (3 * MAX_LINE_LENGTH) + b"\nnext\n" + b"y" * (2 * MAX_LINE_LENGTH), size=size)
    assert [len(got[0]) > MAX_LINE_LENGTH, got[1], len(got[2]) > MAX_LINE_LENGTH, len(got)] == [True, "next\n", True, 3]


def rows(text: str, delimiter: str = ",") -> list[Record]:
    """Return the rows of a text."""
    return list(records(io.StringIO(text, newline=""), delimiter))


def test_quoted_cells_hold_delimiters_quotes_and_line_ends() -> None:
    """Rows are counted as a spreadsheet does, lines as an editor does."""
    assert rows('a,"b, ""c""",d\r\n"x\ny",z\n\nlast') == [
        Record(1, 1, ["a", 'b, "c"', "d"], None),
        Record(2, 2, ["x\ny", "z"], None),
        Record(3, 4, [""], None),
        Record(4, 5, ["last"], None),
    ]


def test_a_quote_inside_a_bare_cell_is_a_character() -> None:
    """Inches do not swallow the rows below."""
    assert [record.cells for record in rows('5" pipe,a\nb,c\n7" pipe,d\n')] == [
        ['5" pipe', "a"],
        ["b", "c"],
        ['7" pipe', "d"],
    ]


def test_a_quote_inside_a_bare_cell_is_none_that_opens_another() -> None:
    """The quoted cell after it holds its line end all the same."""
    assert rows('5" pipe,"a\nb"\nc,d\n') == [Record(1, 1, ['5" pipe', "a\nb"], None), Record(2, 3, ["c", "d"], None)]


def test_a_quote_that_never_closes_costs_one_row() -> None:
    """The rows below are read as rows."""
    got = rows('a,"open\nb,c\nd,e\n')
    assert [(record.row, record.line, record.problem is None) for record in got] == [
        (1, 1, False),
        (2, 2, True),
        (3, 3, True),
    ]
    assert "is never closed" in (got[0].problem or "")
    assert [record.cells for record in got[1:]] == [["b", "c"], ["d", "e"]]


def test_a_quote_that_never_closes_in_a_long_file_costs_one_row() -> None:
    """The search for its end is bounded."""
    more = "b,c\n" * MAX_LINE_LENGTH
    got = rows('a,"open\n' + more)
    assert len(got) == MAX_LINE_LENGTH + 1
    assert [record.problem is None for record in got[:3]] == [False, True, True]


def test_text_after_a_closed_quote_is_malformed() -> None:
    """It is named, for what was meant cannot be known."""
    assert "followed by more text" in (rows('"a"b,c\n')[0].problem or "")


def test_a_row_that_is_too_long_is_named() -> None:
    """And cut, so that naming it takes no room."""
    got = rows("x" * (MAX_LINE_LENGTH + 1) + "\nok\n")
    assert "longer than" in (got[0].problem or "")
    assert len(got[0].cells[0]) < 100
    assert got[1] == Record(2, 2, ["ok"], None)


@pytest.mark.parametrize(
    ("line", "delimiter"),
    [("a,b;c,d", ","), ("a;b;c,d", ";"), ("a\tb", "\t"), ("a|b|c", "|"), ("phone", ","), ('"a,b,c";d', ";")],
)
def test_the_delimiter_is_found_in_the_header(line: str, delimiter: str) -> None:
    """Quoted text does not count."""
    assert detect_delimiter(line) == delimiter


def test_a_line_for_spreadsheets_names_the_delimiter_and_is_no_row() -> None:
    """Excel writes and reads `sep=;`; rows are counted as it shows them, lines as they are in the file."""
    table = open_csv(Source(io.BytesIO(b"sep=;\r\nphone;name\r\n1;a,b\r\n"), name="it", encoding=None))
    assert list(table.records) == [Record(1, 2, ["phone", "name"], None), Record(2, 3, ["1", "a,b"], None)]
    assert list(open_csv(Source(io.BytesIO(b"sep=;"), name="it", encoding=None)).records) == []


def test_a_file_is_read_no_further_than_needed() -> None:
    """A million rows are never in memory: the first chunk is there when little more than it is read."""
    content = b"phone,name\n" + b"".join(b"+1415555%04d,Ann\n" % n for n in range(10_000)) * 4
    source = Source(io.BytesIO(content), name="it", encoding=None)
    contacts = ContactFile.open(open_csv(source))
    with Rejects() as rejects:
        chunk = next(contacts.chunks(rejects))
    assert len(chunk) == CHUNK
    assert source.position < len(content) / 2


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=HYPERLINK(\"https://a.example\")", "'=HYPERLINK(\"https://a.example\")"),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("+1 (415) 555-0102", "+1 (415) 555-0102"),
    ],
)  # fmt: skip
def test_a_rejected_cell_is_not_run_by_a_spreadsheet(cell: str, written: str) -> None:
    """The file is there to be opened: names and values in it are somebody else's; numbers stay what they are."""
    file = io.StringIO(newline="")
    with Rejects(file) as rejects:
        rejects.header(["phone", cell])
        rejects.add(row=2, line=2, column=cell, message=f"{cell} is no possible number", cells=["12", cell])
    head, row = csv.reader(io.StringIO(file.getvalue(), newline=""))
    assert head == ["row", "column", "message", "phone", written]
    assert [row[1], *row[3:]] == [written, "12", written]
    assert row[2] == escape_formula(f"{cell} is no possible number")
