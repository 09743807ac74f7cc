from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from outreach import InvalidRequest, SmsSettingsUpdate
from outreach.http import parse_json, read_new_call, read_new_message, read_sms_settings_update
from outreach.models.fields import Text
from outreach.serialization.field_rules import make_request_converter

UUID = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"


def paths(read: Callable[[Any], Any], body: Any) -> set[str]:
    """Return the places that a body is refused for."""
    with pytest.raises(InvalidRequest) as caught:
        read(body)
    return {detail.path for detail in caught.value.details}


@pytest.mark.parametrize(
    "to",
    [
        "",
        "+",
        "123456",
        "+0123456",
        "1234567890123456",
        "+1415555O102",
        "+14155550102\n",
        "+١٤١٥٥٥٥٠١٠٢",
        " 14155550102",
    ],
)
def test_what_is_no_number_in_e164_is_refused(to: str) -> None:
    """docs/interface.md#to: ASCII digits only, the whole string."""
    assert paths(read_new_call, {"agent_id": UUID, "to": to}) == {"to"}


@pytest.mark.parametrize("to", ["1234567", "+1234567", "123456789012345"])
def test_seven_to_fifteen_digits_are_a_number(to: str) -> None:
    """docs/interface.md#8."""
    assert read_new_call({"agent_id": UUID, "to": to, "other": 1}).to == to


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, {"agent_id", "to"}),
        ({"agent_id": 1, "to": 14155550102}, {"agent_id", "to"}),
        ({"agent_id": UUID, "to": "14155550102", "variables": None}, {"variables"}),
        ({"agent_id": UUID, "to": "14155550102", "variables": ["a"]}, {"variables"}),
        ({"agent_id": UUID, "to": "14155550102", "variables": {"a.b": "\x00"}}, {"variables.a.b"}),
        ([], {""}),
    ],
)
def test_a_wrong_call_is_refused(body: Any, wrong: set[str]) -> None:
    """docs/interface.md#4.1, #types and #null."""
    assert paths(read_new_call, body) == wrong


def test_call_variables_keep_every_digit() -> None:
    """docs/interface.md#variables: numbers as written."""
    body = parse_json(f'{{"agent_id": "{UUID}", "to": "14155550102", "variables": {{"a": 1.0, "b": 1e400}}}}'.encode())
    assert read_new_call(body).variables == {"a": "1.0", "b": "1e400"}


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, {"to", "body"}),
        ({"to": "(415) 555-0102", "body": ""}, {"to", "body"}),
        ({"to": "14155550102", "body": "x" * 1601}, {"body"}),
        ({"to": "14155550102", "body": "x", "carrier": "other"}, {"carrier"}),
        ({"to": "14155550102", "body": "x", "from_number": 1}, {"from_number"}),
    ],
)
def test_a_wrong_message_is_refused(body: Any, wrong: set[str]) -> None:
    """docs/interface.md#post-sms."""
    assert paths(read_new_message, body) == wrong


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"unknown": 1}, {"unknown"}),
        ({"Max_segments": 1, "max_segments": 1}, {"Max_segments"}),
        ({"revision": 3}, {"revision"}),
        ({"footer_text": "x" * 121, "max_segments": 6, "other": 1}, {"footer_text", "max_segments", "other"}),
        ({"max_segments": 0}, {"max_segments"}),
        ({"max_segments": None}, {"max_segments"}),
        ({"retry_max_attempts": 4}, {"retry_max_attempts"}),
        ({"retry_max_attempts": True}, {"retry_max_attempts"}),
        ({"retry_delay_minutes": 4}, {"retry_delay_minutes"}),
        ({"retry_delay_minutes": 121}, {"retry_delay_minutes"}),
        ({"footer_enabled": 1}, {"footer_enabled"}),
        ({"retry_enabled": "true"}, {"retry_enabled"}),
        (
            {"custom_variables": ["ok", "", "a b", "é", "x" * 41, "a\n"]},
            {f"custom_variables[{i}]" for i in range(1, 6)},
        ),
        ({"custom_variables": "abc"}, {"custom_variables"}),
    ],
)
def test_unknown_or_out_of_range_settings_are_refused(body: Any, wrong: set[str]) -> None:
    """docs/interface.md#4.4: unknown fields and out-of-range values are rejected with 400."""
    assert paths(read_sms_settings_update, body) == wrong


def test_settings_at_their_bounds_are_taken() -> None:
    """docs/interface.md#2.4."""
    change = read_sms_settings_update(
        {"footer_text": "😀" * 120, "max_segments": 5, "retry_max_attempts": 1, "retry_delay_minutes": 120}
    )
    assert (change.max_segments, change.retry_max_attempts, change.retry_delay_minutes) == (5, 1, 120)
    assert read_sms_settings_update({}) == SmsSettingsUpdate()


def test_a_model_whose_fields_lack_rules_gets_no_converter() -> None:
    """No value of a request goes unchecked."""

    @attrs.frozen(kw_only=True)
    class Model:
        field: int

    with pytest.raises(TypeError, match="but rules for"):
        make_request_converter(SmsSettingsUpdate, {"footer": Text()})
    with pytest.raises(TypeError, match="field needs a rule"):
        make_request_converter(Model)


def test_a_rule_with_a_fault_does_not_pass_for_a_wrong_request() -> None:
    """What goes wrong in our code is a 500, and no 400."""

    @attrs.frozen(kw_only=True)
    class Model:
        field: str

    def faulty(_: Any) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_request_converter(Model, {"field": faulty})({"field": "x"})
