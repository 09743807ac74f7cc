"""Generated lists of people: each number is read as itself or refused by name, and never a column of ids."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

import attrs
import orjson
import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from outreach_server.lists.contacts import ContactFile
from outreach_server.lists.errors import UnreadableList
from outreach_server.lists.opt_outs import OptOutFile
from outreach_server.lists.rejects import Rejects
from outreach_server.lists.tables import open_table
from tests.cli.spreadsheets import WRITERS, Cell, Rows

_KINDS: Final = (PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE)
_EXAMPLES: Final = [
    (region, number)
    for region in sorted(phonenumbers.SUPPORTED_REGIONS)
    for kind in _KINDS
    if (number := phonenumbers.example_number_for_type(region, kind)) is not None
]
_PHONES: Final = ("Phone", "Mobile", "Telefonnummer", "Téléphone portable", "customer_phone", "Celular", "電話")
_UNKNOWN: Final = ("Opt-out number", "To", "Value", "A", "customer number", "Ziel")
_WAYS: Final = ("nationally", "E.164", "without plus", "00", "spaced", "number")


def _e164(number: phonenumbers.PhoneNumber) -> str:
    return str(phonenumbers.format_number(number, PhoneNumberFormat.E164))


def _written(number: phonenumbers.PhoneNumber, way: str) -> Cell:
    e164 = _e164(number)
    match way:
        case "nationally":
            return str(phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL))
        case "spaced":
            return str(phonenumbers.format_number(number, PhoneNumberFormat.INTERNATIONAL))
        case "00":
            return f"00{e164[1:]}"
        case "without plus":
            return e164[1:]
        case "number":
            # A cell that holds a number, not a text.
            return int(e164[1:])
        case _:
            return e164


@attrs.frozen
class People:
    """A list.

    Attributes:
        rows: With the header, if it has one.
        phones: The true number of each row.
        phone_column: Its name; None without a header.
    """

    rows: Rows
    phones: Sequence[str]
    phone_column: str | None
    column: int


@st.composite
def people(draw: st.DrawFn, *, names: Sequence[str] = _PHONES) -> People:
    """Draw a list: ids, names, numbers of any regions and their countries, in any order of columns."""
    chosen = draw(st.lists(st.sampled_from(_EXAMPLES), min_size=1, max_size=8))
    ways = [draw(st.sampled_from(_WAYS)) for _ in chosen]
    columns: dict[str, list[Cell]] = {
        # As long as a phone number, and possible in many regions.
        draw(st.sampled_from(["customer_id", "Account", "Kundennummer", "From"])): [
            draw(st.integers(2_000_000_000, 9_999_999_999)) for _ in chosen
        ],
        draw(st.sampled_from(["Name", "Full name", "Error"])): [
            draw(st.sampled_from(["Ann", "Zoë", ""])) for _ in chosen
        ],
        draw(st.sampled_from(names)): [_written(number, way) for (_, number), way in zip(chosen, ways, strict=True)],
        draw(st.sampled_from(["Country", "Land", "país"])): [region for region, _ in chosen],
    }
    phone = list(columns)[2]
    order = draw(st.permutations(list(columns)))
    rows: list[Sequence[Cell]] = [list(order)]
    rows += [[columns[name][at] for name in order] for at in range(len(chosen))]
    truth = [_e164(number) for _, number in chosen]
    return People(rows, truth, phone, order.index(phone))


def read_opt_outs(content: bytes, **mapped: str) -> tuple[dict[int, str], set[int]]:
    """Return the numbers of a list of opt-outs by their rows, and the rows that were refused."""
    with open_table(io.BytesIO(content), name="list") as table, Rejects() as rejects:
        found = OptOutFile.open(table, mapped=mapped)  # type: ignore[arg-type]
        numbers = dict(found.read(rejects))
        assert found.numbers.total == len(numbers)
        return numbers, _rows_of(rejects)


def read_contacts(content: bytes) -> tuple[list[str | None], set[int]]:
    """Return the numbers of a list of contacts, and the rows that were refused."""
    with open_table(io.BytesIO(content), name="list") as table, Rejects() as rejects:
        found = ContactFile.open(table)
        numbers = [contact.phone for chunk in found.chunks(rejects) for contact in chunk]
        assert found.numbers.total == len(numbers)
        return numbers, _rows_of(rejects)


def _rows_of(rejects: Rejects) -> set[int]:
    found = [orjson.loads(item) for item in rejects.items()]
    assert all(one["message"] for one in found)
    return {one["row"] for one in found}


@pytest.mark.parametrize("program", WRITERS)
@settings(max_examples=15)
@given(people=people())
def test_each_person_of_a_list_is_taken_or_refused_by_row(program: str, people: People) -> None:
    """In both imports, whatever program wrote it: nobody else is taken, and nobody is lost in silence."""
    content = WRITERS[program](people.rows)
    numbers, refused = read_opt_outs(content)
    assert set(numbers) | refused == set(range(2, len(people.phones) + 2))
    assert all(people.phones[row - 2] == phone for row, phone in numbers.items())
    contacts, refused_too = read_contacts(content)
    assert refused_too == refused
    assert contacts == list(numbers.values())


@pytest.mark.parametrize("program", WRITERS)
@settings(max_examples=15)
@given(people=people(names=_UNKNOWN))
def test_a_list_with_a_phone_column_of_an_unknown_name_is_refused(program: str, people: People) -> None:
    """And read where --map names it, by name or by number."""
    content = WRITERS[program](people.rows)
    with pytest.raises(UnreadableList, match="No column is the phone number"):
        read_opt_outs(content)
    by_name = read_opt_outs(content, phone_number=people.phone_column or "")
    assert read_opt_outs(content, phone_number=str(people.column + 1)) == by_name
    assert all(people.phones[row - 2] == phone for row, phone in by_name[0].items())


@pytest.mark.parametrize("program", WRITERS)
@settings(max_examples=15)
@given(people=people(), numbered=st.booleans())
def test_a_list_without_a_header_is_read_where_one_column_has_numbers(
    program: str, people: People, numbered: bool
) -> None:
    """With a second one it is refused, and --map says which; the first row is a person too."""
    rows: Rows = [[*([4155550123] if numbered else []), "Ann", phone] for phone in people.phones]
    content = WRITERS[program](rows)
    everybody = dict(enumerate(people.phones, 1)), set[int]()
    if numbered:
        with pytest.raises(UnreadableList, match="columns 1 and 3 look like phone numbers"):
            read_opt_outs(content)
        assert read_opt_outs(content, phone_number="3") == everybody
    else:
        assert read_opt_outs(content) == everybody


@pytest.mark.parametrize("program", WRITERS)
def test_the_examples_of_all_regions_are_taken_from_a_list(program: str) -> None:
    """In five spellings, by the country of their rows: at most 2 % are refused, and none is another number."""
    people = [(region, number, way) for region, number in _EXAMPLES for way in _WAYS if way != "number"]
    rows: list[Sequence[Cell]] = [["Country", "Phone"]]
    rows += [[region, _written(number, way)] for region, number, way in people]
    numbers, refused = read_opt_outs(WRITERS[program](rows))
    assert all(_e164(people[row - 2][1]) == phone for row, phone in numbers.items())
    assert len(numbers) + len(refused) == len(people) > 2000
    assert len(refused) <= len(people) * 0.02
