"""The zones of a number by the table of this package; `.ci/check-wheel` compares it with that of `phonenumbers`."""

from __future__ import annotations

import functools
import random
import re
from datetime import datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

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


@pytest.mark.parametrize(
    ("phone", "zones"),
    [
        ("+18762101234", {"America/Jamaica"}),
        ("+12462301234", {"America/Barbados"}),
        ("+77011234567", {"Asia/Almaty", "Asia/Aqtobe"}),
    ],
)
def test_a_mobile_number_of_a_shared_calling_code_has_the_zones_of_its_country(phone: str, zones: set[str]) -> None:
    """The calling code alone has so many zones that no hour is common to them."""
    assert set(number_zones(phone)) == zones


def test_a_mobile_number_of_russia_may_be_anywhere_there() -> None:
    """Its first digits tell no region."""
    assert {"Europe/Kaliningrad", "Asia/Kamchatka"} <= set(number_zones("+79161234567"))


def table_rows() -> list[tuple[str, set[str]]]:
    """Return each prefix of the table with its zones."""
    text = resources.files("outreach.rules").joinpath("number_zones.txt").read_text("utf-8")
    lines = [line.split(" ") for line in text.splitlines() if not line.startswith("#")]
    assert all(len(line) > 1 for line in lines)
    return [(prefix, {*zones.split("&")}) for zones, *prefixes in lines for prefix in prefixes]


def test_every_line_of_the_table_has_zones_and_prefixes() -> None:
    """Each zone is one that the time zone database knows, and no prefix stands there twice."""
    rows = table_rows()
    for prefix, zones in rows:
        assert all(is_zone(zone) for zone in zones), prefix
        assert re.fullmatch(r"[1-9][0-9]{0,8}", prefix), prefix
    assert len(rows) == len(dict(rows)) > 3000


@pytest.mark.parametrize(
    ("phone", "zones"),
    [
        ("+14235550100", {"America/Chicago", "America/New_York"}),
        ("+14485550100", {"America/Chicago", "America/New_York"}),
        ("+12365550100", {"America/Edmonton", "America/Vancouver"}),
        ("+559125550100", {"America/Manaus", "America/Sao_Paulo"}),
    ],
)
def test_a_number_of_no_listed_exchange_has_all_zones_of_its_area_code(phone: str, zones: set[str]) -> None:
    """An area code that was added for the same places has its zones too."""
    assert set(number_zones(phone)) == zones


def test_a_prefix_has_the_zones_of_all_longer_ones() -> None:
    """A number that no longer prefix covers may lie in each of them, and still has common hours on every day."""
    table = dict(table_rows())
    for prefix, zones in table.items():
        for length in range(1, len(prefix)):
            assert zones <= table.get(prefix[:length], zones), (prefix, prefix[:length])
        if prefix not in {"1", "7"}:
            for month in (1, 7):
                offsets = [offsets_of(zone)[month] for zone in zones]
                # The hours from 8 to 21 have 13.
                assert max(offsets) - min(offsets) <= timedelta(hours=5), prefix


@functools.cache
def offsets_of(zone: str) -> dict[int, timedelta]:
    """Return a zone's offsets from UTC in the middle of January and of July 2026."""
    moments = {month: datetime(2026, month, 15, tzinfo=ZoneInfo(zone)) for month in (1, 7)}
    return {month: moment.utcoffset() or timedelta() for month, moment in moments.items()}


@pytest.mark.parametrize(
    ("phone", "zones"),
    [
        ("+211977123456", {"Africa/Juba"}),
        ("+628123456789", {"Asia/Jakarta", "Asia/Jayapura", "Asia/Makassar"}),
        ("+56961234567", {"America/Punta_Arenas", "America/Santiago", "Pacific/Easter"}),
        ("+67570123456", {"Pacific/Bougainville", "Pacific/Port_Moresby"}),
        ("+74012123456", {"Europe/Kaliningrad"}),
        ("+78121234567", {"Europe/Moscow"}),
    ],
)
def test_a_number_has_the_zones_of_its_own_country(phone: str, zones: set[str]) -> None:
    """And all of them, where its digits do not tell one."""
    assert set(number_zones(phone)) == zones


def test_no_country_has_the_clocks_of_a_neighbour_alone() -> None:
    """Each zone of a calling code has the offsets of a zone that the time zone database has for its countries."""
    lines = resources.files("tzdata").joinpath("zoneinfo", "zone.tab").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    for code, regions in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items():
        expected = [offsets_of(zone) for region, _, zone, *_ in rows if region in regions]
        # The database has none for Kosovo and Ascension.
        for prefix, zones in table_rows() if expected else ():
            if prefix.startswith(str(code)):
                assert all(offsets_of(zone) in expected for zone in zones), (prefix, zones)


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
