"""The zones of a number by the table of this package; `.ci/check-wheel` compares it with that of `phonenumbers`."""

from __future__ import annotations

import random
import re
from importlib import resources

import phonenumbers
import pytest

from outreach.core.clock import is_zone
from outreach.rules.number_zones import look_up_zones, number_zones


@pytest.mark.parametrize(
    ("phone", "zones"),
    [
        ("+442079460018", {"Europe/London"}),
        ("+12125550100", {"America/New_York"}),
        ("+74951234567", {"Europe/Moscow"}),
        ("+15555550100", set()),
        ("+80012345678", set()),
        ("+9999999999", set()),
        ("12125550100", set()),
    ],
)
def test_a_number_has_the_zones_of_its_longest_prefix(phone: str, zones: set[str]) -> None:
    """An impossible number, one of no country, and one without a plus have none."""
    assert set(number_zones(phone)) == zones


@pytest.mark.parametrize(
    ("phone", "zone"), [("+5215512345678", "America/Mexico_City"), ("+551187654321", "America/Sao_Paulo")]
)
def test_a_line_has_its_zone_in_every_spelling(phone: str, zone: str) -> None:
    """The table has one spelling; without a zone the contact would be left out."""
    assert number_zones(phone) == (zone,)


def test_a_number_of_no_place_may_be_anywhere_in_its_country() -> None:
    """Toll-free numbers of North America have all its zones."""
    zones = number_zones("+18002345678")
    assert {"America/New_York", "America/Los_Angeles", "Pacific/Honolulu"} <= set(zones)


def test_every_line_of_the_table_has_zones_and_prefixes() -> None:
    """Each zone is one that the time zone database knows, and no prefix stands there twice."""
    text = resources.files("outreach.rules").joinpath("number_zones.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    seen: list[str] = []
    for line in lines:
        zones, *prefixes = line.split(" ")
        assert all(is_zone(zone) for zone in zones.split("&")), line
        assert prefixes
        assert all(re.fullmatch(r"[1-9][0-9]{0,8}", prefix) for prefix in prefixes), line
        seen += prefixes
    assert len(seen) == len({*seen}) > 3000


def test_the_last_three_digits_decide_nothing_in_north_america() -> None:
    """So that the zones of a thousand numbers are looked up once."""
    for region in phonenumbers.COUNTRY_CODE_TO_REGION_CODE[1]:
        metadata = phonenumbers.PhoneMetadata.metadata_for_region(region)
        kinds = ("general_desc", "fixed_line", "mobile", "toll_free", "premium_rate", "shared_cost", "voip", "uan")
        for kind in (*kinds, "personal_number", "pager", "voicemail"):
            described = getattr(metadata, kind)
            if described is not None and described.national_number_pattern:
                pattern = described.national_number_pattern
                assert re.fullmatch(r".*\\d\{[3-9]\}\)?", pattern), (region, kind)
    drawn = random.Random(7)
    for _ in range(300):
        phone = f"+1{drawn.randint(200, 999)}{drawn.randint(200, 999)}{drawn.randint(0, 9999):04d}"
        assert number_zones(phone) == look_up_zones(phone)
