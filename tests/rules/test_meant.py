from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.core.meant import (
    currency_like,
    dates_like,
    day_like,
    did_you_mean,
    hours_like,
    moment_like,
    nearest,
    number_like,
    regions_like,
    time_like,
    zones_like,
)
from outreach.errors import InvalidRequest
from outreach.models.fields import OneOf, Refused, check_value
from outreach.serialization.business_hours import parse_holidays, read_business_hours
from outreach.serialization.field_rules import timestamp


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("9am", "09:00"), ("12:30am", "00:30"), ("5 p.m.", "17:00"), ("9", "09:00"), ("9.30", "09:30")),
        *(("0900", "09:00"), ("17 Uhr", "17:00"), ("noon", "12:00"), ("24:00", "24:00"), ("25:00", None)),
        *(("13pm", None), ("9:75", None), ("soon", None), ("", None)),
    ],
)
def test_a_time_of_day_is_understood_as_people_write_it(written: str, meant: str | None) -> None:
    """With half a day, with a point, or without minutes."""
    assert time_like(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("24.12.2026", ["2026-12-24"]), ("24/12/2026", ["2026-12-24"]), ("12/24/2026", ["2026-12-24"])),
        *(("5/6/2026", ["2026-06-05", "2026-05-06"]), ("5.6.2026", ["2026-06-05"]), ("6/6/2026", ["2026-06-06"])),
        *(("2026/12/24", ["2026-12-24"]), ("20261224", ["2026-12-24"]), ("2026-2-3", ["2026-02-03"])),
        *(("24.12.26", ["2026-12-24"]), ("24. Dezember 2026", ["2026-12-24"]), ("Dec 24th, 2026", ["2026-12-24"])),
        *(
            ("24 d\u00e9cembre 2026", ["2026-12-24"]),
            ("2026-02-30", []),
            ("31.2.2026", []),
            ("24 Foo 2026", []),
            ("", []),
        ),
    ],
)
def test_a_date_is_understood_as_people_write_it(written: str, meant: Sequence[str]) -> None:
    """Where day and month cannot be told apart, it may be two."""
    assert list(dates_like(written)) == meant


def test_a_moment_is_a_date_and_a_time() -> None:
    """In this order; midnight at the end of a day is none."""
    assert moment_like("24.12.2026 9am") == ["2026-12-24T09:00"]
    assert moment_like("12/24/2026 at 5pm") == ["2026-12-24T17:00"]
    assert moment_like("2026-12-24T24:00") == moment_like("9am") == moment_like("tomorrow 9am") == ()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("mo", "monday"), ("Thurs", "thursday"), ("wedensday", "wednesday"), ("Dienstag", "tuesday")),
        *(("sat.", "saturday"), ("s", None), ("xx", None), ("lundi", "monday"), ("so", None)),
    ],
)
def test_a_day_of_the_week_is_understood_in_other_languages(written: str, meant: str | None) -> None:
    """But not where two days are written so: `so` is Sunday in German and Saturday in Czech."""
    assert day_like(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("9:00-17:00 mon-fri", "mon-fri 09:00-17:00"),
        ("9-17 Mo-Fr", "mon-fri 09:00-17:00"),
        ("0900 - 1700, mon, wed", "mon,wed 09:00-17:00"),
        ("9am to 5pm on Tuesday to thursday", "tue-thu 09:00-17:00"),
        ("8h30-12h lundi", "mon 08:30-12:00"),
        ("18:00-02:00 daily", "daily 18:00-02:00"),
        *(("mon-fri 9:00-17:00", None), ("9:00-17:00", None), ("9:00-17:00 x", None), ("25:00-26:00 mon", None)),
    ],
)
def test_hours_whose_times_stand_first_are_understood(written: str, meant: str | None) -> None:
    """Other mistakes are named by their part."""
    assert hours_like(written) == meant


def test_words_zones_countries_and_currencies_are_understood() -> None:
    """By another case, a slip, a city, a name or a sign."""
    states = ("active", "cancelled", "in_flight")
    assert [nearest(text, states) for text in ("actve", "CANCELED", "in-flight", "x", None)] == [
        *("active", "cancelled", "in_flight"),
        *(None, None),
    ]
    assert zones_like("Berlin") == zones_like("europe/berlin") == zones_like("CEST") == ["Europe/Berlin"]
    assert zones_like("est") == ["America/New_York"]
    assert regions_like("Swiss") == ["CH (Switzerland)"]
    assert regions_like("Deutschland") == ["DE"]
    assert regions_like("Atlantis") == []
    assert [currency_like(text) for text in ("Euro", "usd", "$", "Dollrs", "shells")] == [
        "EUR",
        "USD",
        "USD",
        "USD",
        None,
    ]
    assert did_you_mean([]) == did_you_mean(None) == ""
    assert did_you_mean(["A", "B"]) == "; did you mean A or B?"


@pytest.mark.parametrize(
    ("written", "unit", "meant"),
    [
        *(("2h", "minutes", "120"), ("15 min", "minutes", "15"), ("2 weeks", "days", "14"), ("90s", "minutes", None)),
        *(("1,000", "", "1000"), ("7", "", "7"), ("2h", "", None), ("30", "days", "30"), ("many", "", None)),
    ],
)
def test_a_duration_is_converted_to_the_unit_of_its_option(written: str, unit: str, meant: str | None) -> None:
    """Where it is a whole number of it."""
    assert number_like(written, unit) == meant


@given(st.one_of(st.text(max_size=80), st.none(), st.integers()))
def test_any_value_may_be_asked_for(written: object) -> None:
    """Values of JSON have every kind."""
    assert all(len(one) == len("2026-12-24") for one in dates_like(written))
    assert time_like(written) is None or len(str(time_like(written))) == len("09:00")
    assert len(moment_like(written)) <= 2
    assert hours_like(written) is None or "-" in str(hours_like(written))
    assert day_like(written) is None or str(day_like(written)).endswith("day")
    assert len(regions_like(written)) <= 2
    assert len(zones_like(written)) <= 3
    assert currency_like(written) is None or len(str(currency_like(written))) == 3
    assert nearest(written, ("a",)) in {None, "a"}


def _message(read: Callable[[object], object], value: object) -> str:
    with pytest.raises(InvalidRequest) as caught:
        read(value)
    [detail] = caught.value.details
    return detail.message


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        ({"timezone": "Berlin", "schedule": {}}, "did you mean Europe/Berlin?"),
        ({"timezone": "UTC", "schedule": {"mondy": []}}, "did you mean monday?"),
        ({"timezone": "UTC", "days": ["Dienstag"], "start": "09:00", "end": "17:00"}, "did you mean tuesday?"),
        ({"timezone": "UTC", "days": ["mon"], "start": "9am", "end": "17:00"}, "did you mean 09:00?"),
    ],
)
def test_business_hours_in_json_say_what_was_meant(hours: object, said: str) -> None:
    """At the field that is wrong."""
    assert _message(lambda value: check_value("", value, read_business_hours), hours).endswith(said)


@pytest.mark.parametrize(
    ("calendar", "said"),
    [
        ({"country": "Germny"}, "did you mean DE (Germany)?"),
        ({"country": "DE", "subdivision": "Bayrn"}, "'Bayrn' is BY"),
        ({"country": "US", "holidays": [{"date": "24.12.2026"}]}, "did you mean 2026-12-24?"),
    ],
)
def test_holidays_in_json_say_what_was_meant(calendar: object, said: str) -> None:
    """At the field that is wrong."""
    assert _message(lambda value: parse_holidays(value, this_year=2026), calendar).endswith(said)


@pytest.mark.parametrize(
    ("rule", "value", "said"),
    [
        (timestamp, "24.12.2026 9am", "did you mean 2026-12-24T09:00:00Z?"),
        (timestamp, "soon", "years 0002 to 9998"),
        (OneOf(("immediate", "scheduled")), "schedule", "did you mean scheduled?"),
        (OneOf(("immediate", "scheduled")), 7, "must be one of immediate, scheduled"),
    ],
)
def test_fields_in_json_say_what_was_meant(rule: Callable[[object], object], value: object, said: str) -> None:
    """Where something near it is allowed."""
    with pytest.raises(Refused) as caught:
        rule(value)
    assert caught.value.details[0].message.endswith(said)
