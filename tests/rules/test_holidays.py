"""Holiday calendars in and out of JSON, and filled for a country."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.errors import InvalidRequest
from outreach.models.settings import Holiday, HolidayCalendar
from outreach.rules.holidays import closed_dates, extend_calendar
from outreach.serialization.business_hours import parse_holidays, write_holidays

_CHRISTMAS = date(2026, 12, 25)


def _parse(value: object) -> HolidayCalendar:
    return parse_holidays(value, this_year=2026)


def _paths(value: object) -> list[str]:
    """Return the places that a refusal names."""
    with pytest.raises(InvalidRequest) as caught:
        _parse(value)
    return [detail.path.removeprefix("holidays_config") for detail in caught.value.details]


def _with_entry(**entry: object) -> dict[str, object]:
    return {"holidays": [{"date": "2026-12-25", "name": "Christmas Day", "enabled": True} | entry]}


def test_a_calendar_is_read() -> None:
    """The form of the interface; other keys are ignored."""
    calendar = _parse({"country": "us", "x": 1, **_with_entry(y=2)})
    assert calendar == HolidayCalendar(
        country="US", holidays=(Holiday(date=_CHRISTMAS, name="Christmas Day", enabled=True),)
    )


def test_a_holiday_is_enabled_and_nameless_unless_it_says_otherwise() -> None:
    """A date is enough."""
    calendar = _parse({"holidays": [{"date": "2026-12-25"}]})
    assert calendar.holidays == (Holiday(date=_CHRISTMAS, name="", enabled=True),)
    assert calendar.country is None


@pytest.mark.parametrize("value", [{}, {"country": None}, {"country": None, "holidays": None}, {"holidays": []}])
def test_a_calendar_may_be_empty(value: object) -> None:
    """No country, no holidays."""
    assert _parse(value) == HolidayCalendar(country=None, holidays=())


@pytest.mark.parametrize("value", [{"country": "US"}, {"country": "us", "holidays": None}])
def test_a_country_alone_is_filled_for_three_years(value: object) -> None:
    """This year to the second next, all switched on, in order."""
    calendar = _parse(value)
    days = [holiday.date for holiday in calendar.holidays]
    assert calendar.country == "US"
    assert {day.year for day in days} == {2026, 2027, 2028}
    assert days == sorted(set(days))
    assert {date(2026, 7, 3), date(2026, 7, 4), _CHRISTMAS, date(2028, 1, 1)} <= set(days)
    assert all(holiday.enabled and holiday.name for holiday in calendar.holidays)


_EASTER_MONDAY, _LATE_SUMMER = date(2026, 4, 6), date(2026, 8, 31)


def test_a_country_alone_lacks_the_days_of_its_parts() -> None:
    """Easter Monday is a bank holiday in England and none in Scotland."""
    assert not {_EASTER_MONDAY, _LATE_SUMMER} & closed_dates(_parse({"country": "GB"}))


@pytest.mark.parametrize("name", ["ENG", "eng", "Eng"])
def test_a_subdivision_brings_its_own_days(name: str) -> None:
    """England's bank holidays are filled in, beside those of all the kingdom, and it is told which part it is."""
    calendar = _parse({"country": "gb", "subdivision": name})
    assert (calendar.country, calendar.subdivision) == ("GB", "ENG")
    assert {_EASTER_MONDAY, _LATE_SUMMER, _CHRISTMAS} <= closed_dates(calendar)
    assert closed_dates(_parse({"country": "GB"})) < closed_dates(calendar)
    written = write_holidays(calendar)
    assert written["subdivision"] == "ENG"
    assert _parse(json.loads(json.dumps(written))) == calendar


def test_a_subdivision_is_kept_beside_a_list_of_ones_own() -> None:
    """The list is taken as it is."""
    calendar = _parse({"country": "GB", "subdivision": "SCT", "holidays": []})
    assert (calendar.subdivision, calendar.holidays) == ("SCT", ())


def test_the_error_for_a_wrong_subdivision_lists_the_valid_ones() -> None:
    """Names are not guessed: the refusal lists the codes of the country."""
    with pytest.raises(InvalidRequest, match="must be one of ENG, NIR, SCT, WLS for GB"):
        _parse({"country": "GB", "subdivision": "England"})
    with pytest.raises(InvalidRequest, match="none is known for VA"):
        _parse({"country": "VA", "subdivision": "X"})


def test_a_calendar_of_a_subdivision_is_filled_further_with_its_days() -> None:
    """The year that is added has England's bank holidays too."""
    calendar = _parse({"country": "GB", "subdivision": "ENG"})
    later = extend_calendar(calendar, 2027)
    assert later.subdivision == "ENG"
    assert date(2029, 8, 27) in closed_dates(later) - closed_dates(calendar)


def test_an_empty_list_given_stays_empty() -> None:
    """A country whose holidays are all worked through."""
    assert _parse({"country": "US", "holidays": []}).holidays == ()


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        (None, [""]),
        ([], [""]),
        ("US", [""]),
        ({"country": "XX"}, [".country"]),
        ({"country": "USA"}, [".country"]),
        ({"country": ""}, [".country"]),
        ({"country": "U\x00"}, [".country"]),
        ({"country": "ſs"}, [".country"]),
        ({"country": 1}, [".country"]),
        ({"country": "XX", "holidays": []}, [".country"]),
        ({"country": "GB", "subdivision": "XX"}, [".subdivision"]),
        ({"country": "GB", "subdivision": ""}, [".subdivision"]),
        ({"country": "GB", "subdivision": 1}, [".subdivision"]),
        ({"subdivision": "ENG"}, [".subdivision"]),
        ({"holidays": {}}, [".holidays"]),
        ({"holidays": "2026-12-25"}, [".holidays"]),
        ({"holidays": ["2026-12-25"]}, [".holidays[0]"]),
        ({"holidays": [{"date": "2026-01-01"}] * 1001}, [".holidays"]),
        ({"holidays": [{}]}, [".holidays[0].date"]),
        (_with_entry(name=None), [".holidays[0].name"]),
        (_with_entry(name=1), [".holidays[0].name"]),
        (_with_entry(name="x" * 256), [".holidays[0].name"]),
        (_with_entry(name="a\x00"), [".holidays[0].name"]),
        (_with_entry(name="\ud800"), [".holidays[0].name"]),
        (_with_entry(enabled=1), [".holidays[0].enabled"]),
        (_with_entry(enabled=None), [".holidays[0].enabled"]),
        (_with_entry(date="x", name=1, enabled=1), [".holidays[0].date", ".holidays[0].name", ".holidays[0].enabled"]),
    ],
)
def test_each_wrong_place_is_named(value: Any, paths: list[str]) -> None:
    """The types are strict."""
    assert _paths(value) == paths


@pytest.mark.parametrize(
    "text",
    [
        "20261225", "2026-W52-5", "2026-12-25T00:00:00Z", "2026-1-1", "2026-02-30", "0000-01-01", " 2026-12-25",
        "2026-12-25\n", "25.12.2026", "٢٠٢٦-١٢-٢٥", "", 20261225, None, True,
    ],
)  # fmt: skip
def test_a_date_is_iso_and_exists(text: object) -> None:
    """Year, month and day, with dashes."""
    assert _paths(_with_entry(date=text)) == [".holidays[0].date"]


@given(
    holidays=st.lists(
        st.builds(
            Holiday,
            date=st.dates(),
            name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
            enabled=st.booleans(),
        ),
        max_size=5,
    ).map(tuple),
    country=st.sampled_from([None, "US", "DE"]),
)
def test_what_is_written_reads_back(holidays: tuple[Holiday, ...], country: str | None) -> None:
    """The stored form is JSON, with a list even when it is empty."""
    calendar = HolidayCalendar(country=country, holidays=holidays)
    written = write_holidays(calendar)
    assert list(written) == ["country", "holidays"]
    assert _parse(json.loads(json.dumps(written))) == calendar


def test_an_error_names_the_value_as_the_caller_does() -> None:
    """The path is the caller's."""
    with pytest.raises(InvalidRequest) as caught:
        parse_holidays(1, this_year=2026, path="x")
    assert [detail.path for detail in caught.value.details] == ["x"]


def test_only_enabled_dates_are_holidays() -> None:
    """A date that is switched off is worked; one entry that is on is enough."""
    calendar = _parse({"holidays": [
        {"date": "2026-12-25"},
        {"date": "2026-12-26", "enabled": False},
        {"date": "2026-12-31", "enabled": False},
        {"date": "2026-12-31", "enabled": True},
    ]})  # fmt: skip
    assert closed_dates(calendar) == {date(2026, 12, 25), date(2026, 12, 31)}


def test_a_filled_calendar_is_filled_further() -> None:
    """A year later the third year is added, and what somebody changed stays."""
    calendar = _parse({"country": "US"})
    off = tuple(
        attrs.evolve(holiday, enabled=False) if holiday.date == _CHRISTMAS else holiday for holiday in calendar.holidays
    )
    later = extend_calendar(attrs.evolve(calendar, holidays=off), 2027)
    assert later.holidays[: len(off)] == off
    assert {holiday.date.year for holiday in later.holidays[len(off) :]} == {2029}
    assert date(2029, 12, 25) in closed_dates(later)
    assert _CHRISTMAS not in closed_dates(later)


def test_a_filled_calendar_that_lacks_nothing_stays_as_it_is() -> None:
    """Filling again in the same year changes nothing."""
    calendar = _parse({"country": "DE"})
    assert extend_calendar(calendar, 2026) == calendar
    assert extend_calendar(extend_calendar(calendar, 2028), 2028) == extend_calendar(calendar, 2028)


def test_what_was_taken_out_stays_out() -> None:
    """A year that holds some of its holidays is not touched."""
    calendar = _parse({"country": "US"})
    fewer = attrs.evolve(calendar, holidays=tuple(day for day in calendar.holidays if day.date != _CHRISTMAS))
    assert extend_calendar(fewer, 2026) == fewer
    assert _CHRISTMAS not in closed_dates(extend_calendar(fewer, 2027))


@pytest.mark.parametrize(
    "value",
    [
        {"country": "US", "holidays": [{"date": "2026-12-25"}]},
        {"country": "US", "holidays": []},
        {"country": "US", "holidays": [{"date": f"{year}-03-03"} for year in range(1000, 1900)]},
        {"holidays": [{"date": "2026-12-25"}]},
        {},
    ],
)
def test_a_list_of_ones_own_is_not_filled(value: object) -> None:
    """The dates were chosen on purpose, and no others are added."""
    calendar = _parse(value)
    assert extend_calendar(calendar, 2027) == calendar


def test_a_country_that_is_no_longer_known_is_left_alone() -> None:
    """A stored calendar outlives the library's tables."""
    calendar = HolidayCalendar(country="XX", holidays=(Holiday(date=_CHRISTMAS, name="", enabled=True),))
    assert extend_calendar(calendar, 2027) == calendar
    assert extend_calendar(attrs.evolve(calendar, country="GB", subdivision="XXX"), 2027).holidays == calendar.holidays


def test_the_library_is_loaded_only_when_it_is_needed() -> None:
    """A process without countries does not pay for them."""
    program = (
        "import sys; from outreach.serialization.business_hours import parse_holidays; "
        "parse_holidays({'holidays': [{'date': '2026-12-25'}]}, this_year=2026); print('holidays' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
