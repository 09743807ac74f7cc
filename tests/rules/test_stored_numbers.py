"""What earlier versions stored is found for the person that it was stored for."""

from __future__ import annotations

import csv
from pathlib import Path

import phonenumbers
import pytest

from outreach.rules.phones import stored_forms
from tests.rules.test_spellings import PAIRS

FORMER_READINGS = Path(__file__).parent / "former_readings.csv"
"""What 529b10ce read in each region, where it was not the number that was written: examples of `phonenumbers`, written
without a plus sign or with `00`. Made once by that version; only a sample of numbers of other regions."""


def test_what_earlier_versions_read_is_a_form_of_the_number_that_was_written() -> None:
    """Over all regions, and over the spellings of a line."""
    with FORMER_READINGS.open(encoding="ascii", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["region"] for row in rows}) > 200
    for row in rows:
        assert row["read_as"] in stored_forms(row["person"], row["region"]), row
        assert row["read_as"] in stored_forms(row["person"], row["region"].lower()), row


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("region", [None, "US", "MX", "ZZ", ""])
def test_spellings_are_forms_of_each_other(pair: tuple[str, str], region: str | None) -> None:
    """Wherever the workspace is at home."""
    assert set(pair) <= set(stored_forms(pair[0], region)) & set(stored_forms(pair[1], region))
    assert stored_forms(pair[1], region)[0] == pair[1]


@pytest.mark.parametrize("region", sorted(phonenumbers.SUPPORTED_REGIONS))
def test_a_number_has_few_forms(region: str) -> None:
    """Each costs a look-up."""
    number = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    if number is None:
        return
    phone = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    assert len(stored_forms(phone, region)) <= 4


@pytest.mark.parametrize("name", ["#0123abc", "", "+", "+1", "Acme"])
@pytest.mark.parametrize("region", ["US", "DE", "BR"])
def test_what_is_no_number_has_one_form(name: str, region: str) -> None:
    """Names of erased people, senders, and texts that providers sent."""
    assert stored_forms(name, region)[0] == name
