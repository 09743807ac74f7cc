from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.providers.http.json_fields import (
    moment_at,
    name_at,
    object_at,
    text_at,
    value_at,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        (NOON.timestamp(), NOON),
        (int(NOON.timestamp()), NOON),
        (NOON.timestamp() * 1000, NOON),
        (str(int(NOON.timestamp() * 1000)), NOON),
        ("2026-03-01T12:00:00Z", NOON),
        ("2026-03-01T13:00:00+01:00", NOON),
        ("2026-03-01T12:00:00", NOON),
        (True, None),
        (0, None),
        (-1, None),
        (1e300, None),
        (float("nan"), None),
        ("inf", None),
        ("soon", None),
        ("9999-12-31T23:59:59-10:00", None),
        ("0001-01-01T00:00:00Z", None),
        ("1999-12-31T23:59:59Z", None),
        ("2201-01-01T00:00:00", None),
        (None, None),
        ([], None),
    ],
)
def test_a_moment_is_read_however_it_is_written(written: object, moment: datetime | None) -> None:
    """Unix time in seconds and milliseconds, and ISO 8601; what no call can be of is none."""
    assert moment_at({"at": written}, "at") == moment


@pytest.mark.parametrize(
    ("value", "name"),
    [("call-1", "call-1"), ("", None), ("x" * 201, None), ("a\x00b", None), ("\ud800", None), (7, None), (None, None)],
)
def test_an_identifier_is_short_and_can_be_stored(value: object, name: str | None) -> None:
    """What is no identifier is none, rather than a part of one."""
    assert name_at({"id": value}, "id") == name


@pytest.mark.parametrize(
    ("value", "text"),
    [(" a\x00b\ud800 ", "ab"), ("x" * 10, "xxxxx"), ("  ", None), (7, None), (None, None)],
)
def test_a_text_for_people_is_cut_and_can_be_stored(value: object, text: str | None) -> None:
    """NUL and lone surrogates cannot be stored everywhere, and a summary is no book."""
    assert text_at({"summary": value}, "summary", longest=5) == text


def test_a_path_ends_where_there_is_no_object() -> None:
    """Nothing on the way is sure to be there, or to be an object."""
    value = {"a": {"b": {"c": 1}}, "list": [1]}
    assert value_at(value, "a", "b", "c") == 1
    assert object_at(value, "a", "b") == {"c": 1}
    for path in (("a", "x", "c"), ("list", "b"), ("a", "b", "c", "d")):
        assert value_at(value, *path) is None
        assert object_at(value, *path) == {}


@given(st.recursive(st.none() | st.floats() | st.integers() | st.text(), st.lists))
def test_reading_never_raises(value: object) -> None:
    """Whatever stands there is read, or is none."""
    for read in (moment_at, name_at, text_at, object_at):
        read({"key": value}, "key")
