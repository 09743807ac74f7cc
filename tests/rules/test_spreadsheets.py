"""What spreadsheets do to numbers: the table of docs/importing.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.phones import SEVERAL_NUMBERS, normalise
from outreach.rules.spreadsheets import NumberCorrection, is_cell_error, read_cell, read_number_cell

NUMBER = "+14155550102"


@pytest.mark.parametrize(
    ("cell", "corrections"),
    [
        ("+14155550102", []),
        ("14155550102", []),
        ("+1 (415) 555-0102", []),
        ("\u00a0+1\u202f415\u00a0555\u20110102\u200b", []),
        ("\ufeff+14155550102", []),
        ("＋１４１５５５５０１０２", []),
        ('="+14155550102"', ["formula"]),
        ('= "14155550102"', ["formula"]),
        ("=+14155550102", ["formula"]),
        ("=+1-415-555-0102", ["formula"]),
        ("'+14155550102", ["apostrophe"]),
        ("’+14155550102", ["apostrophe"]),
        ("'=\"+14155550102\"", ["apostrophe", "formula"]),
        ("14155550102.0", ["decimals"]),
        ("+14155550102.00", ["decimals"]),
        ("14155550102,0", ["decimals"]),
        ("1.4155550102E+10", ["scientific"]),
        ("1,4155550102E+10", ["scientific"]),
        ("1.4155550102e10", ["scientific"]),
        ("1.41555501020E+10", ["scientific"]),
        ("+1.4155550102E+10", ["scientific"]),
        ("14,155,550,102", ["thousands"]),
        ("14,155,550,102.00", ["thousands"]),
        ("14'155'550'102", ["thousands"]),
        ("14.155.550.102,00", ["thousands"]),
        ("tel:+1-415-555-0102", ["label"]),
        ("p:+14155550102", ["label"]),
        ("Phone: (415) 555-0102", ["label"]),
        ("whatsapp:+14155550102", ["label"]),
        ("WhatsApp: 14155550102.0", ["label", "decimals"]),
        ('"+14155550102"', ["quotes"]),
        ("“+14155550102”", ["quotes"]),
        ("Â\u00a0+14155550102", ["spaces"]),
        ("+1Â 415Â 555Â 0102", ["spaces"]),
    ],
)  # fmt: skip
def test_what_was_done_to_a_number_is_undone(cell: str, corrections: list[str]) -> None:
    """Each gives the number that was meant, and says what was done."""
    read = read_number_cell(cell)
    assert read.problem is None
    assert normalise(read.text, "US") == NUMBER
    assert [str(correction) for correction in read.corrections] == corrections


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("1.4E+10", "has lost digits"),
        ("1.41556E+10", "has lost digits"),
        ("1,42E+10", "has lost digits"),
        ("1E+10", "has lost digits"),
        ("1.4E10", "has lost digits"),
        ("1.41555501025E+10", "has lost digits"),
        ('="1.4E+10"', "has lost digits"),
        ("#N/A", "a spreadsheet's error"),
        ("#NAME?", "a spreadsheet's error"),
        ("########", "a spreadsheet's error"),
        ("=A2&B2", "is a formula"),
        ('=HYPERLINK("tel:+14155550102")', "is a formula"),
        ("2026-05-12", "is a date"),
        ("12/05/2026", "is a date"),
        ("2026-05-12 00:00:00", "is a date"),
        ("+14155550101; +14155550102", SEVERAL_NUMBERS),
        ("4155550101 / 4155550102", SEVERAL_NUMBERS),
        ("+14155550101 ::: +14155550102", SEVERAL_NUMBERS),
        ("415-555-0101 or 415-555-0102", SEVERAL_NUMBERS),
        ("+14155550101\n+14155550102\n+14155550103", SEVERAL_NUMBERS),
    ],
)
def test_what_cannot_be_known_is_named(cell: str, problem: str) -> None:
    """A number is never guessed."""
    read = read_number_cell(cell)
    assert read.problem is not None
    assert problem in read.problem
    assert read.corrections == ()


@pytest.mark.parametrize("cell", ["", "call me", "n/a", "415-555", "555-0102", "+1415555010x", "020/1234567"])
def test_what_a_spreadsheet_did_not_do_is_left_alone(cell: str) -> None:
    """Whether it is a number is decided elsewhere."""
    read = read_number_cell(cell)
    assert (read.text, read.corrections, read.problem) == (cell, (), None)


def test_digits_that_a_program_wrote_out_are_all_there() -> None:
    """Java drops zeros at the end, and writes no plus sign: nothing is lost; where there is one they may be."""
    assert read_number_cell("1.41555501E10").text == "14155550100"
    assert read_number_cell("1.41555501E+10").problem is not None


@given(st.integers(10**9, 10**15 - 1))
def test_a_number_in_scientific_notation_with_all_digits_is_that_number(number: int) -> None:
    """Whatever it is; one digit fewer is lost."""
    digits = str(number)
    written = f"{digits[0]}.{digits[1:]}E+{len(digits) - 1}"
    assert read_number_cell(written).text == digits
    assert read_number_cell(f"{digits[0]}.{digits[1:-1]}E+{len(digits) - 1}").problem is not None
    assert read_number_cell(f"{number}.0").text == digits
    assert read_number_cell(f"{number:,}").text == digits


@given(st.text(max_size=60))
def test_any_text_is_read_and_a_mended_one_needs_no_more(cell: str) -> None:
    """Reading ends, and what it returns stays as it is."""
    read = read_number_cell(cell)
    if read.problem is None:
        again = read_number_cell(read.text)
        assert (again.text, again.corrections) == (read.text, ())


def test_every_mend_is_in_the_table_above() -> None:
    """None is there without a vector."""
    marks = test_what_was_done_to_a_number_is_undone.pytestmark  # type: ignore[attr-defined]
    assert {correction for _, corrections in marks[0].args[1] for correction in corrections} == {
        str(correction) for correction in NumberCorrection
    }


def test_other_cells_lose_only_the_formula_that_kept_them_text() -> None:
    """An apostrophe may be a name's; an error is none's."""
    assert [read_cell(text) for text in ('="007"', "'t Hart", "=A1", "Ann", "")] == ["007", "'t Hart", "=A1", "Ann", ""]
    assert [is_cell_error(text) for text in ("#N/A", "#REF!", "#DIV/0!", "###")] == [True] * 4
    assert [is_cell_error(text) for text in ("#1", "#sale", "N/A", "#", "")] == [False] * 5
