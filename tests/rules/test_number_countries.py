from __future__ import annotations

import random

import pytest

from outreach.rules.number_zones import country_of_phone, look_up_country


@pytest.mark.parametrize(
    ("phone", "country"),
    [
        ("+14155550100", "US"),
        ("+14165550100", "CA"),
        ("+12465551234", "BB"),
        ("+442079460018", "GB"),
        ("+4915112345678", "DE"),
        ("+919876543210", "IN"),
        ("+80012345678", None),
        ("+999123456", None),
        ("+15555550100", None),
        # It stands for an erased number.
        ("#66c0ffee", None),
    ],
)
def test_a_number_has_a_country_or_none(phone: str, country: str | None) -> None:
    """Also where countries share a calling code, and none where it is of the whole world."""
    assert country_of_phone(phone) == country


def test_the_last_three_digits_decide_nothing_in_north_america() -> None:
    """So that the country of a thousand numbers is looked up once."""
    drawn = random.Random(11)
    for _ in range(300):
        phone = f"+1{drawn.randint(200, 999)}{drawn.randint(200, 999)}{drawn.randint(0, 9999):04d}"
        assert country_of_phone(phone) == look_up_country(phone)
