"""A quote that is closed in a later row joins rows; such a row is reported, and none of its lines is loaded."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_server.lists.csv_records import Record, records
from tests.cli.conftest import Cli, Write

CLOSED_LATER = (
    "phone,first_name,city\n"
    "+14155550101,Ann,Rome\n"
    '+14155550102,"Ben,Paris\n'
    "+14155550103,Cy,Oslo\n"
    "+14155550104,Dee,Bern\n"
    '+14155550105,Eve",Lima\n'
    "+14155550106,Fay,Ulm\n"
)


def rows(text: str, delimiter: str = ",") -> list[Record]:
    """Return the rows of a text."""
    return list(records(io.StringIO(text, newline=""), delimiter))


def test_a_quote_that_is_closed_three_rows_later_is_reported_with_its_lines(
    cli: Cli, workspace_id: str, csv_file: Write
) -> None:
    """No text holds the numbers of strangers, and nobody is lost without a word."""
    file = csv_file(CLOSED_LATER)
    made = cli.ask("campaigns", "import", workspace_id, file, "--name", "C", "--message", "Hi {{first_name}}")
    assert [one["phone"] for one in cli.ask("campaigns", "recipients", made["id"])] == ["+14155550101", "+14155550106"]
    (bad,) = made["rejected"]
    assert (bad["row"], bad["line"]) == (3, 3)
    assert "lines 3 to 6" in bad["message"]
    assert "+14155550103,Cy,Oslo" in bad["message"]


def test_numbers_of_an_opt_out_list_do_not_vanish_in_a_cell(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """The row is reported there too."""
    found = cli.ask("unsubscribes", "import", workspace_id, csv_file(CLOSED_LATER))
    assert found["added"] == 2
    assert "lines 3 to 6" in str(found["rejected"])


@pytest.mark.parametrize(
    "text",
    [
        'name,phone\nAnn,+14155550101\n"Ben,+14155550102\nCy",+14155550103\n',
        'name;phone;city\n"Ben;0171 1234567;Bonn\nCy;0171 1234568;Ulm";x;y\n',
        'name\tphone\tcity\n"Ben\t(415) 555-0102\tBonn\nCy\t(415) 555-0103"\tx\ty\n',
        'phone,name\n+14155550102,"Ben\n+14155550103"\n',
        'phone,name\ntel:+1-415-555-0102,"Ben\ntel:+1-415-555-0103,Cy"\n',
        'phone,name\n415-555-0102 x12,"Ben\n415-555-0103 ext. 12,Cy"\n',
        'phone,name,city\nx,"Ben,Paris,\nunknown,Cy,Oslo\n",Lima\n',
    ],
)
def test_a_cell_that_holds_something_like_a_row_is_reported(text: str) -> None:
    """As wide as the list, or with a number of its own, whatever separates the cells."""
    found = rows(text, "\t" if "\t" in text else ";" if ";" in text else ",")
    assert found[-1].problem is not None
    assert "another row" in found[-1].problem


@pytest.mark.parametrize(
    "cell",
    [
        "12 Main St, Suite 5\nBerlin, Germany",
        "Dear Ann,\n\nsee you",
        "a\nb",
        "Call 030 1234567\nor later, 9-5",
        "1,5\n2,5",
    ],
)
def test_a_text_of_several_lines_is_a_cell(cell: str) -> None:
    """An address and a note are no rows."""
    (found,) = rows(f'Ann,"{cell}",x,y\n')
    assert (found.problem, found.cells[1]) == (None, cell)


@pytest.mark.parametrize("cell", ["Termin\n27.11.2026", "See\n2026-11-27 08:15", "Winter\nStand: 27.11.2026"])
def test_a_date_in_a_line_of_a_cell_is_no_number(cell: str) -> None:
    """Beside a phone number, too."""
    (found,) = rows(f'+14155550101,"{cell}",x,y\n')
    assert (found.problem, found.cells[1]) == (None, cell)


def test_the_columns_are_shown_with_rows_that_are_loaded(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """A row that is reported is no example of what is dialled; if none is loaded, cells stand as they are."""
    joined = '4155550112,"Ann\n4155550113,Bo"\n'
    rest = "".join(f"415555010{at},Cy\n" for at in range(1, 5))
    args = ("--name", "C", "--message", "Hi", "--region", "US")
    made = cli.ask("campaigns", "import", workspace_id, csv_file(f"phone,name\n{joined}{rest}"), *args)
    wanted = [f"415555010{at} → +1415555010{at}" for at in range(1, 4)]
    assert made["mapping"][0]["first"] == wanted
    told = cli.tell("campaigns", "import", workspace_id, csv_file(f"phone,name\n{joined}{rest}"), *args)
    assert "4155550112 →" not in told
    none = cli.refuse("campaigns", "import", workspace_id, csv_file(f"phone,name\n{joined}"), *args)
    assert "4155550112 →" not in none


CELL = st.text(st.characters(codec="utf-8", exclude_characters='"\r\n,\0', exclude_categories=["Cs"]), max_size=8)
LIST = st.lists(st.tuples(CELL, CELL), min_size=3, max_size=12)


def test_a_blank_cell_behind_the_number_hides_no_row() -> None:
    """A space follows the delimiter there, as in a sentence."""
    found = rows('phone,name,city\n+14155551000,",\n+14155551001, ",\n')
    assert [record.problem is None for record in found] == [True, False]


@given(people=LIST, opened=st.integers(0, 10), length=st.integers(1, 6), data=st.data())
def test_a_quote_anywhere_never_puts_a_number_into_a_text(
    people: list[tuple[str, str]], opened: int, length: int, data: Any
) -> None:
    """Whichever cells it is opened and closed in: what is no problem has the cells of the list."""
    wanted = [[f"+1415555{1000 + at}", *person] for at, person in enumerate(people)]
    first = opened % len(wanted)
    last = min(first + length, len(wanted) - 1)
    lines = [list(row) for row in wanted]
    lines[first][data.draw(st.integers(1, 2))] = '"' + lines[first][1]
    lines[last][data.draw(st.integers(0, 2))] += '"'
    text = "\n".join(",".join(row) for row in [["phone", "name", "city"], *lines]) + "\n"
    numbers = {row[0] for row in wanted}
    for record in rows(text)[1:]:
        if record.problem is None:
            assert not any(number in cell for number in numbers for cell in record.cells[1:]), record


@given(people=st.lists(st.tuples(CELL, st.text('ab 1\n\r"', max_size=12)), min_size=1, max_size=8))
def test_a_well_formed_file_is_read_as_it_was_written(people: list[tuple[str, str]]) -> None:
    """Cells with line ends and quotes, as the standard library writes them."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows(people)
    assert [(record.problem, tuple(record.cells)) for record in rows(out.getvalue())] == [
        (None, tuple(person)) for person in people
    ]
