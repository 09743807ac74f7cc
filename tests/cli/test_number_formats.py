"""Values of spreadsheet cells, as their number formats show them."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_server.lists.number_formats import Value, shown_by

# A cell has no time zone.
EIGHT = datetime.fromisoformat("2026-12-08T08:00")


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        ("0%", 0.15, "15%"),
        ("0.00%", 0.155, "15.50%"),
        ("00000", 2134, "02134"),
        ("$#,##0.00", 1234.5, "$1,234.50"),
        ('"$"#,##0.00', 1234.5, "$1,234.50"),
        ("#,##0.00\\ [$\u20ac-407]", 1234.5, "1.234,50 \u20ac"),
        ("[$R$-416] #,##0.00", 1234.5, "R$ 1.234,50"),
        ("[$$-409]#,##0.00;[RED]-[$$-409]#,##0.00", -1234.5, "-$1,234.50"),
        ("[$\u20ac-x-euro2] 0.00", 1.5, "\u20ac 1.50"),
        ("[$CHF-807] #,##0.00", 1234.5, "CHF 1\u2019234.50"),
        ("#,##0.00 [$kr-414]", 1234.5, "1\u00a0234,50 kr"),
        ("[$\u20ac-2] #,##0.00", 1234.5, "\u20ac 1,234.50"),
        ("000-00-0000", 123456789, "123-45-6789"),
        ("(###) ###-####", 4155550102, "(415) 555-0102"),
        ("[<=9999999]###-####;(###) ###-####", 4155550102, "(415) 555-0102"),
        ("[<=9999999]###-####;(###) ###-####", 5550102, "555-0102"),
        ("00 00 00 00 00", 612345678, "06 12 34 56 78"),
        ("+0", 14155550101, "+14155550101"),
        ("0.00E+00", 0.00012, "1.20E-04"),
        ("0.00E+00", 1500000000000, "1.50E+12"),
        ("0.00E+00", 14155550101, "1.42E+10"),
        ("#,##0", 14155550101, "14,155,550,101"),
        ("0.00", 2.005, "2.01"),
        ("0.0#", 1.5, "1.5"),
        ("#.##", 0.5, ".5"),
        ('_(* #,##0.00_);_(* \\(#,##0.00\\);_(* "-"??_);_(@_)', -5.5, "(5.50)"),
        ('_(* #,##0.00_);_(* \\(#,##0.00\\);_(* "-"??_);_(@_)', 0, "-"),
        ('_("$"* #,##0.00_)_("$"* \\(#,##0.00\\)_("$"* "-"??_)_(@_)', 1234.5, "$1,234.50"),
        ("#,##0;[Red]-#,##0", -1234, "-1,234"),
        ('General" kg"', 5, "5 kg"),
        ("0,", 1234567, "1235"),
        ('0.0,,"M"', 1234567, "1.2M"),
        ("0", -0.4, "0"),
        (";;;", 5, ""),
        ('"Mr "@', "Bean", "Mr Bean"),
        ("0.00", "abc", "abc"),
        ("0.00", True, "TRUE"),
        ("General", 0.1 + 0.2, "0.3"),
        ("@", 7, "7"),
        ("d.m.yyyy", EIGHT, "8.12.2026"),
        ("[$-407]d. mmmm yyyy;@", EIGHT, "8. Dezember 2026"),
        ("m/d/yyyy h:mm AM/PM", EIGHT, "12/8/2026 8:00 AM"),
        ("h:mm", time(9, 5), "9:05"),
        ("[h]:mm", timedelta(hours=30, minutes=5), "30:05"),
        ("dddd", date(2026, 12, 8), "Tuesday"),
    ],
)
def test_a_value_is_shown_by_its_format(code: str, value: Value, expected: str) -> None:
    """As a spreadsheet shows it."""
    shown = shown_by(code)
    assert shown is not None
    assert shown(value) == expected


@pytest.mark.parametrize("code", ["# ?/?", "##0.0E+0", "0 foo", "ggge", "0;0;0;@;0"])
def test_a_format_that_is_not_understood_is_none(code: str) -> None:
    """Fractions, engineering notation, and what is no format."""
    assert shown_by(code) is None


@given(value=st.integers(-(10**12), 10**12), places=st.integers(0, 4), grouped=st.booleans())
def test_a_number_is_rounded_and_grouped_as_decimals_are(value: int, places: int, grouped: bool) -> None:
    """Half away from zero, by the decimal digits of the number."""
    number = value / 1000
    shown = shown_by(("#,##0" if grouped else "0") + ("." + "0" * places if places else ""))
    rounded = Decimal(repr(number)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    assert shown is not None
    assert shown(number) == (f"{rounded:,f}" if grouped else f"{rounded:f}").replace("-0", "-0" if rounded else "0")


@given(
    code=st.text(alphabet='0#?.,%E+-/@;"\\_*[]$dmyhs ax<>=', max_size=20),
    value=st.one_of(st.integers(-(10**300), 10**300), st.floats(allow_nan=False, allow_infinity=False), st.text()),
)
def test_any_format_shows_any_value_without_an_error(code: str, value: float | str) -> None:
    """Formats come from files of all programs."""
    shown = shown_by(code)
    assert shown is None or isinstance(shown(value), str)


@pytest.mark.parametrize("code", ["0.00", "0%", "#,##0.0000", "0.00E+00", "0,,", "[>1.5]0.0;0"])
@pytest.mark.parametrize("value", [1e300, -1e300, 10**18, 5e-324, 999999999999999])
def test_numbers_at_the_ends_are_shown(code: str, value: float) -> None:
    """None is too large or too small for its format."""
    shown = shown_by(code)
    assert shown is not None
    assert shown(value)
