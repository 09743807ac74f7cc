"""Business hours in and out of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.errors import InvalidRequest
from outreach.models.fields import check_value
from outreach.models.settings import DAYS, BusinessHours, TimeWindow
from outreach.serialization.business_hours import read_business_hours, write_business_hours
from outreach.serialization.documents import from_json, to_json

_NINE_TO_FIVE = TimeWindow(start_minute=540, end_minute=1020)

_WINDOWS = (
    st.tuples(st.integers(0, 1439), st.integers(0, 1440))
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: TimeWindow(start_minute=pair[0], end_minute=pair[1]))
)
_HOURS = st.builds(
    BusinessHours,
    enabled=st.booleans(),
    timezone=st.sampled_from(["UTC", "America/New_York", "Asia/Kathmandu", "Etc/GMT+5"]),
    schedule=st.fixed_dictionaries({day: st.lists(_WINDOWS, max_size=3).map(tuple) for day in DAYS}),
    batch_concurrency=st.integers(1, 40),
)


def _parse(value: object) -> BusinessHours:
    hours: BusinessHours = check_value("business_hours_config", value, read_business_hours)
    return hours


def _stored(**changes: object) -> dict[str, object]:
    """Return a right stored form with some keys changed."""
    window = {"start": "09:00", "end": "17:00"}
    return {"enabled": True, "timezone": "UTC", "schedule": {"monday": [window]}, "batchConcurrency": 5} | changes


def _monday(*windows: object) -> dict[str, object]:
    return _stored(schedule={"monday": list(windows)})


def _paths(value: object) -> list[str]:
    """Return the places that a refusal names."""
    with pytest.raises(InvalidRequest) as caught:
        _parse(value)
    json.dumps([[detail.path, detail.message] for detail in caught.value.details]).encode()
    return [detail.path.removeprefix("business_hours_config") for detail in caught.value.details]


def test_the_stored_form_is_read() -> None:
    """A missing day is closed."""
    hours = _parse(_stored())
    assert hours.enabled
    assert hours.timezone == "UTC"
    assert hours.batch_concurrency == 5
    assert hours.schedule == {day: (_NINE_TO_FIVE,) if day == "monday" else () for day in DAYS}


@given(hours=_HOURS)
def test_what_is_written_reads_back(hours: BusinessHours) -> None:
    """By who sends hours, and from a stored column."""
    assert _parse(json.loads(json.dumps(write_business_hours(hours)))) == hours
    assert from_json(BusinessHours, json.loads(json.dumps(to_json(hours)))) == hours


def test_a_column_has_the_days_that_the_hours_have() -> None:
    """As a program gave them."""
    hours = BusinessHours(timezone="UTC", schedule={"friday": (_NINE_TO_FIVE,)})
    assert to_json(hours)["schedule"] == {"friday": [{"start": "09:00", "end": "17:00"}]}


def test_the_written_form_has_exactly_its_keys() -> None:
    """All seven days are there, closed ones with an empty array."""
    written = write_business_hours(_parse(_stored(extra=1)))
    assert written == {
        "enabled": True,
        "timezone": "UTC",
        "schedule": {day: [{"start": "09:00", "end": "17:00"}] if day == "monday" else [] for day in DAYS},
        "batchConcurrency": 5,
    }


def test_hours_are_enabled_ten_at_a_time_unless_they_say_otherwise() -> None:
    """The defaults."""
    hours = _parse({"timezone": "UTC", "schedule": {}})
    assert hours.enabled
    assert hours.batch_concurrency == 10


def test_hours_may_be_switched_off() -> None:
    """The switch is kept."""
    assert not _parse(_stored(enabled=False)).enabled


def test_a_day_object_form_is_normalised() -> None:
    """Hours for each day; a day that is off is closed, whatever its times say."""
    hours = _parse({
        "timezone": "Europe/Berlin",
        "days": {
            "Monday": {"enabled": True, "start": "09:00", "end": "17:00"},
            "TUE": {"start": "22:00", "end": "06:00"},
            "wednesday": {"enabled": False, "start": "", "end": None},
            "thu": {"enabled": False},
        },
    })  # fmt: skip
    expected = dict.fromkeys(DAYS, ()) | {
        "monday": (_NINE_TO_FIVE,),
        "tuesday": (TimeWindow(start_minute=1320, end_minute=360),),
    }
    assert hours.schedule == expected


def test_a_day_list_form_is_normalised() -> None:
    """The same hours for all days of the list; a repeated day is one."""
    hours = _parse({
        "timezone": "UTC", "days": ["mon", "Tuesday", "SUN", "monday"], "start": "09:00", "end": "17:00",
    })  # fmt: skip
    open_days = [day for day, windows in hours.schedule.items() if windows == (_NINE_TO_FIVE,)]
    assert open_days == ["monday", "tuesday", "sunday"]
    assert sum(map(len, hours.schedule.values())) == 3


@pytest.mark.parametrize("name", [form for day in DAYS for form in (day, day[:3], day.upper(), day[:3].title())])
def test_days_have_full_and_short_names_in_any_case(name: str) -> None:
    """In the keys of a schedule too."""
    hours = _parse(_stored(schedule={name: [{"start": "09:00", "end": "17:00"}]}))
    assert [day for day, windows in hours.schedule.items() if windows] == [
        next(day for day in DAYS if day.startswith(name.lower()))
    ]


def test_a_day_named_twice_has_the_windows_of_both() -> None:
    """`mon` and `Monday` are one day."""
    early, late = {"start": "08:00", "end": "12:00"}, {"start": "13:00", "end": "17:00"}
    hours = _parse(_stored(schedule={"mon": [early], "Monday": [late]}))
    assert [window.start_minute for window in hours.schedule["monday"]] == [480, 780]


@pytest.mark.parametrize(
    ("start", "end", "minutes"),
    [
        ("00:00", "24:00", (0, 1440)),
        ("22:00", "06:00", (1320, 360)),
        ("22:00", "00:00", (1320, 0)),
        ("23:59", "24:00", (1439, 1440)),
        ("00:00", "00:01", (0, 1)),
    ],
)
def test_a_window_may_reach_midnight_or_the_next_day(start: str, end: str, minutes: tuple[int, int]) -> None:
    """24:00 is an end; an end before its start lies on the next day."""
    hours = _parse(_monday({"start": start, "end": end}))
    (window,) = hours.schedule["monday"]
    assert (window.start_minute, window.end_minute) == minutes
    assert window.is_overnight is (end < start)


@pytest.mark.parametrize(
    "time", ["9:00", "09:60", "25:00", "24:01", "0900", "09:00:00", "", " 09:00", "09:00\n",
    "٠٩:٠٠", 540, None, True, ["09:00"]]
)  # fmt: skip
@pytest.mark.parametrize("name", ["start", "end"])
def test_a_time_is_two_digits_colon_two_digits(name: str, time: object) -> None:
    """Anything else is refused where it stands."""
    window: dict[str, object] = {"start": "08:00", "end": "17:00"} | {name: time}
    assert _paths(_monday({"start": "01:00", "end": "02:00"}, window)) == [f".schedule.monday[1].{name}"]


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        (None, [""]),
        ([], [""]),
        ({}, [".timezone", ""]),
        (_stored(enabled=1), [".enabled"]),
        (_stored(enabled="true"), [".enabled"]),
        (_stored(enabled=None), [".enabled"]),
        (_stored(batchConcurrency=0), [".batchConcurrency"]),
        (_stored(batchConcurrency=41), [".batchConcurrency"]),
        (_stored(batchConcurrency=True), [".batchConcurrency"]),
        (_stored(batchConcurrency="10"), [".batchConcurrency"]),
        (_stored(batchConcurrency=10.0), [".batchConcurrency"]),
        (_stored(batchConcurrency=None), [".batchConcurrency"]),
        (_stored(batchConcurrency=10**400), [".batchConcurrency"]),
        (_stored(schedule=[]), [".schedule"]),
        (_stored(schedule=None), [".schedule"]),
        (_stored(schedule={"mondy": []}), [".schedule"]),
        (_stored(schedule={"\ud800\x00": []}), [".schedule"]),
        (_stored(schedule={"monday": None}), [".schedule.monday"]),
        (_stored(schedule={"Mon": {"start": "09:00", "end": "17:00"}}), [".schedule.Mon"]),
        (_monday("09:00-17:00"), [".schedule.monday[0]"]),
        (_monday({}), [".schedule.monday[0].start", ".schedule.monday[0].end"]),
        (_monday({"start": "24:00", "end": "05:00"}), [".schedule.monday[0].start"]),
        (_monday({"start": "24:00", "end": "24:00"}), [".schedule.monday[0].start"]),
        (_monday({"start": "09:00", "end": "09:00"}), [".schedule.monday[0].end"]),
        (_stored(days=["monday"], start="09:00", end="17:00"), [""]),
        ({"timezone": "UTC", "days": "monday", "start": "09:00", "end": "17:00"}, [".days"]),
        ({"timezone": "UTC", "days": None}, [".days"]),
        ({"timezone": "UTC", "days": ["monday"]}, [".start", ".end"]),
        ({"timezone": "UTC", "days": ["mon", 1, "x"], "start": "09:00", "end": "17:00"}, [".days[1]", ".days[2]"]),
        ({"timezone": "UTC", "days": ["mon"] * 101, "start": "09:00", "end": "17:00"}, [".days"]),
        ({"timezone": "UTC", "days": {"monday": True}}, [".days.monday"]),
        ({"timezone": "UTC", "days": {"x": {}}}, [".days"]),
        ({"timezone": "UTC", "days": {"monday": {}}}, [".days.monday.start", ".days.monday.end"]),
        (
            {"timezone": "UTC", "days": {"monday": {"enabled": "no", "start": "09:00", "end": "17:00"}}},
            [".days.monday.enabled"],
        ),
    ],
)
def test_each_wrong_place_is_named(value: Any, paths: list[str]) -> None:
    """The types are strict: no text for a number, no number for a boolean, no null."""
    assert _paths(value) == paths


@pytest.mark.parametrize(
    "zone",
    [
        "", "Nowhere/City", "america/new_york", "AMERICA/NEW_YORK", "utc", "America", "America/", "/America/New_York",
        "../UTC", "America/../UTC", "./UTC", "UTC\x00", "UTC ", "\ud800", "localtime", "posixrules", "Factory",
        "posix/UTC", "zone.tab", "+02:00", "x" * 10_000, None, 1, ["UTC"],
    ],
)  # fmt: skip
def test_the_zone_must_exist(zone: object) -> None:
    """Spelled exactly as in the database, and never a way into the file system."""
    assert _paths(_stored(timezone=zone)) == [".timezone"]


@pytest.mark.parametrize(
    "zone", ["UTC", "America/New_York", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "Asia/Calcutta"]
)
def test_every_zone_of_the_database_is_known(zone: str) -> None:
    """Old names are zones too."""
    assert _parse(_stored(timezone=zone)).timezone == zone


def test_a_day_has_at_most_48_windows() -> None:
    """Under one name or several."""
    window = {"start": "09:00", "end": "17:00"}
    assert len(_parse(_monday(*[window] * 48)).schedule["monday"]) == 48
    assert _paths(_monday(*[window] * 49)) == [".schedule.monday"]
    assert _paths(_stored(schedule={"mon": [window] * 40, "Mon": [window] * 40})) == [""]


def test_a_hostile_document_has_a_short_answer() -> None:
    """The number of places that are named is bounded, and so is each."""
    with pytest.raises(InvalidRequest) as caught:
        _parse(_stored(schedule={f"{index}" * 1000: [] for index in range(1000)}))
    assert len(caught.value.details) == 50
    assert all(len(detail.message) < 200 for detail in caught.value.details)


@pytest.mark.parametrize("value", [[], "x", {"days": ["moon"]}, _monday({"start": "24:00", "end": "9"}), {"x": 1}])
def test_a_problem_reads_on_from_its_place(value: Any) -> None:
    """The places of a request are told in one sentence: `name: must …; business_hours_config: must …`."""
    with pytest.raises(InvalidRequest) as caught:
        _parse(value)
    assert all(detail.message[0].islower() and detail.message[-1] != "." for detail in caught.value.details)


_JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from(["09:00", "24:00", "mon"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(), st.sampled_from(["start", "end", "enabled", "mon"])), inner, max_size=4),
    ),
    max_leaves=12,
)


@given(
    value=st.one_of(
        _JSON,
        st.fixed_dictionaries(
            {"timezone": st.one_of(st.just("UTC"), _JSON)},
            optional=dict.fromkeys(("schedule", "days", "start", "end", "enabled", "batchConcurrency"), _JSON),
        ),
    )
)
def test_any_json_is_read_or_refused(value: object) -> None:
    """Nothing but `InvalidRequest` comes out, and what is accepted can be stored."""
    try:
        hours = _parse(value)
    except InvalidRequest as error:
        refused = error
        assert refused.details
    else:
        assert _parse(write_business_hours(hours)) == hours


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (1440, 5), (5, 1441), (5, -1), (5, 5), (0, 0)])
def test_a_window_without_a_meaning_cannot_be_made(start: int, end: int) -> None:
    """The model refuses what the reader would."""
    with pytest.raises(ValueError, match=r"must be 0 to 1439|must not end"):
        TimeWindow(start_minute=start, end_minute=end)
