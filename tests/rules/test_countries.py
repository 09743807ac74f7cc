from __future__ import annotations

import phonenumbers
import pytest

from outreach.core.meant.countries import region_of_country


@pytest.mark.parametrize(
    ("written", "region"),
    [
        ("DE", "DE"),
        (" de ", "DE"),
        ("DEU", "DE"),
        ("Germany", "DE"),
        ("ALLEMAGNE", "DE"),
        ("+49", "DE"),
        ("0049", "DE"),
        ("1", "US"),
        ("U.S.A.", "US"),
        ("UK", "GB"),
        ("Österreich", "AT"),
        ("Osterreich", "AT"),
        ("Côte d’Ivoire", "CI"),
        ("Trinidad and Tobago", "TT"),
        ("Saint Lucia", "LC"),
        ("日本", "JP"),
        ("भारत", "IN"),
        ("Россия", "RU"),
        ("Bayern", None),
        ("", None),
        ("-", None),
        ("999", None),
        ("800", None),
    ],
)
def test_a_country_is_known_by_its_codes_and_names(written: str, region: str | None) -> None:
    """Case, accents and punctuation do not matter; a service that is no country has no region."""
    assert region_of_country(written) == region


@pytest.mark.parametrize("region", sorted(phonenumbers.SUPPORTED_REGIONS))
def test_every_region_of_the_library_is_known(region: str) -> None:
    """By its code, and its calling code leads to a region of that code."""
    assert region_of_country(region) == region
    code = phonenumbers.country_code_for_region(region)
    main = region_of_country(f"+{code}")
    assert main is not None
    assert phonenumbers.country_code_for_region(main) == code
