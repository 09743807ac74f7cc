"""Variables: any JSON value as text."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.segments import JSON, as_text

_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)), max_leaves=15
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""),
        ("plain {{text}}", "plain {{text}}"),
        ('"quoted"', '"quoted"'),
        (None, ""),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-5, "-5"),
        (2**80, "1208925819614629174706176"),
        (1.5, "1.5"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (Decimal("1.10"), "1.10"),
        (Decimal("0.1000000000000000055511151231257827"), "0.1000000000000000055511151231257827"),
        ([], "[]"),
        ({}, "{}"),
        ([1, "é", None, True, 2.5, Decimal("3.10")], '[1,"é",null,true,2.5,3.10]'),
        ({"a": {"b": ['"', "\n"]}, "ключ": "знач"}, '{"a":{"b":["\\"","\\n"]},"ключ":"знач"}'),
    ],
)
def test_a_value_is_written_as_people_expect(value: JSON, expected: str) -> None:
    """Strings are themselves, numbers stay as written, the rest is compact JSON."""
    assert as_text(value) == expected


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), [float("-inf")], Decimal("NaN"), {"a": Decimal("Infinity")}]
)
def test_a_number_that_json_cannot_write_is_refused(value: JSON) -> None:
    """NaN must not end up in somebody's message."""
    with pytest.raises(ValueError, match=r"JSON"):
        as_text(value)


@given(value=_VALUES)
def test_anything_but_text_and_null_reads_back(value: JSON) -> None:
    """The text of a value is the value, as compact as `json` writes it."""
    if not isinstance(value, str) and value is not None:
        assert as_text(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
