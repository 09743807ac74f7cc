"""Dates of texts, written in the format codes of spreadsheets."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.core.meant.date_formats import DATE_NAMES, date_format, read_date

# A date of a spreadsheet has no zone.
EIGHTH = datetime.fromisoformat("2026-12-08T08:05:09")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("d. mmmm yyyy, h:mm", "8. December 2026, 8:05"),
        ("dd.mm.yy hh:mm:ss", "08.12.26 08:05:09"),
        ("[de]dddd, d. mmmm", "Dienstag, 8. Dezember"),
        ("[$-407]mmm", "Dez"),
        ("[$-fr-FR]d mmmm", "8 décembre"),
        ("m/d/yyyy h:mm AM/PM", "12/8/2026 8:05 AM"),
        ('h:mm "Uhr"', "8:05 Uhr"),
        ("d mmm at h:mm", "8 Dec at 8:05"),
        ("yyyymmdd", "20261208"),
        ("yyyy-mm-ddThh:mm:ss", "2026-12-08T08:05:09"),
        ("mm:ss", "05:09"),
        ("[h]:mm", "8:05"),
        (r"[$-F800]dddd\,\ mmmm", "Tuesday, December"),
    ],
)
def test_a_date_is_written_in_its_format(code: str, expected: str) -> None:
    """`m` is a minute after an hour or before a second, else a month; what is no part stands for itself."""
    wanted = date_format(code)
    assert wanted is not None
    assert wanted.write(EIGHTH) == expected


@pytest.mark.parametrize("code", ["", "Uhr", "ggge", "[xx]d", "[$-411]mmmm"])
def test_a_format_that_is_not_understood_is_none(code: str) -> None:
    """Eras, languages without names here, and what has no part of a date."""
    assert date_format(code) is None


def test_elapsed_hours_go_beyond_a_day() -> None:
    """As durations of spreadsheets do."""
    wanted = date_format("[h]:mm")
    assert wanted is not None
    assert wanted.write(EIGHTH, timedelta(hours=30, minutes=5)) == "30:05"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-08", "2026-12-08T00:00"),
        ("2026-12-08 08:00:00", "2026-12-08T08:00"),
        ("2026-12-08T08:00:00Z", "2026-12-08T08:00"),
        ("8.12.2026, 14:30", "2026-12-08T14:30"),
        ("12/18/2026", "2026-12-18T00:00"),
        ("18/12/2026 2:30 PM", "2026-12-18T14:30"),
        ("8. Dezember 2026", "2026-12-08T00:00"),
        ("Tue, Dec 8, 2026", "2026-12-08T00:00"),
        ("8 de diciembre de 2026", "2026-12-08T00:00"),
    ],
)
def test_a_date_is_read_from_a_text(text: str, expected: str) -> None:
    """Its zone is not converted, because a date of a list is meant as it is written."""
    assert read_date(text) == datetime.fromisoformat(expected)


@pytest.mark.parametrize("text", ["12/8/2026", "08-12-2026", "2026", "soon", "31.02.2026", "", "2026-12-08 25:00"])
def test_a_text_that_is_no_date_or_may_be_two_is_none(text: str) -> None:
    """The eighth of December is not guessed from what may be the twelfth of August."""
    assert read_date(text) is None


@given(
    moment=st.datetimes(min_value=datetime.fromisoformat("1000-01-01"), max_value=datetime.fromisoformat("9999-12-30")),
    language=st.sampled_from(sorted(DATE_NAMES)),
    code=st.sampled_from(
        ["yyyy-mm-dd hh:mm:ss", "d.m.yyyy h:mm:ss", "d mmmm yyyy h:mm:ss", "mmm d, yyyy hh:mm:ss AM/PM"]
    ),
)
def test_a_written_date_reads_back(moment: datetime, language: str, code: str) -> None:
    """In every language that has names."""
    whole = moment.replace(microsecond=0)
    wanted = date_format(f"[{language}]{code}")
    assert wanted is not None
    assert read_date(wanted.write(whole)) == whole


@given(code=st.text(max_size=40), text=st.text(max_size=60))
def test_any_code_and_any_text_are_read_without_an_error(code: str, text: str) -> None:
    """Both come from people."""
    wanted = date_format(code)
    assert wanted is None or isinstance(wanted.write(EIGHTH), str)
    read_date(text)
