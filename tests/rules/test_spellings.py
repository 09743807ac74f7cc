"""One telephone line may have two spellings in E.164: both are one person."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.numbering import person_key, spellings
from outreach.rules.phones import normalise

PAIRS = [
    ("+525512345678", "+5215512345678"),
    ("+523312345678", "+5213312345678"),
    ("+541123456789", "+5491123456789"),
    ("+543511234567", "+5493511234567"),
    ("+5511987654321", "+551187654321"),
    ("+5521998765432", "+552198765432"),
    ("+5585961234567", "+558561234567"),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_both_spellings_have_one_key(pair: tuple[str, str]) -> None:
    """The key is a spelling itself."""
    assert person_key(pair[0]) == person_key(pair[1])
    assert person_key(pair[0]) in pair


@pytest.mark.parametrize(
    "others",
    [
        # A landline in São Paulo, and a mobile number that begins with a 9 before the same digits.
        ("+551132345678", "+5511932345678"),
        ("+5511987654321", "+5521987654321"),
        ("+525512345678", "+525512345679"),
        # Ten digits that begin with a 1 are no mobile number in its former spelling.
        ("+521551234567", "+52551234567"),
        ("+14155550102", "+524155550102"),
    ],
)
def test_other_lines_are_other_people(others: tuple[str, str]) -> None:
    """A key that joins two people would keep one of them from what they asked for."""
    assert person_key(others[0]) != person_key(others[1])


@given(st.from_regex(r"\A\+(52|54|55|1|49)[1-9][0-9]{6,11}\Z"))
def test_spellings_of_a_spelling_are_the_same(phone: str) -> None:
    """Each line is one set of spellings, with itself first and one key."""
    found = spellings(phone)
    assert found[0] == phone
    for each in found:
        assert set(spellings(each)) == set(found)
        assert person_key(each) == person_key(phone)


@pytest.mark.parametrize("raw", ["+52 1 55 1234 5678", "0052 1 55 1234 5678", "+5215512345678"])
def test_the_former_spelling_of_mexico_is_accepted_and_kept(raw: str) -> None:
    """Messaging channels still write it; what is dialled stays as it was written."""
    assert normalise(raw, None) == "+5215512345678"
