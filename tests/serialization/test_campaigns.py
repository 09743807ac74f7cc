from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from outreach import InvalidRequest
from outreach.http import parse_json, read_call_campaign, read_sms_campaign
from outreach.models.fields import MAX_DETAILS
from outreach.models.metadata import MAX_DEPTH

UUID = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"
NUL = "a\x00b"
SURROGATE = "a\ud800b"


def sms(**fields: Any) -> dict[str, Any]:
    """Return the smallest body of an SMS campaign, with some fields."""
    return {"name": "n", "message_body": "hi", "recipients": [{"phone_number": "+14155550102"}]} | fields


def call(**fields: Any) -> dict[str, Any]:
    """Return the smallest body of a calling campaign, with some fields."""
    return {"name": "n", "agent_id": UUID, "recipients": [{"phone_number": "+14155550102"}]} | fields


def details(body: Any, *, channel: str = "sms") -> dict[str, str]:
    """Return what a body is refused for, by place."""
    reader = read_sms_campaign if channel == "sms" else read_call_campaign
    with pytest.raises(InvalidRequest) as caught:
        reader(body, this_year=2026)
    return {detail.path: detail.message for detail in caught.value.details}


def read(**fields: Any) -> Any:
    """Return the SMS campaign that a body with some fields asks for."""
    return read_sms_campaign(sms(**fields), this_year=2026)[0]


def test_the_smallest_body_has_the_interfaces_defaults() -> None:
    """docs/interface.md#4.3: the defaults of the table."""
    campaign, recipients = read_sms_campaign(sms(), this_year=2026)
    assert (campaign.message_mode, campaign.message_source, campaign.rate_per_minute) == ("one_way", "custom", 60)
    assert (campaign.schedule_type, tuple(campaign.csv_column_headers)) == ("immediate", ())
    assert campaign.description is campaign.flow_id is campaign.carrier is campaign.from_number is None
    assert [recipient.custom_variables for recipient in recipients] == [{}]


@pytest.mark.parametrize("body", [None, [], "x", 1, True, [{}]])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    """docs/interface.md#7: malformed is a 400."""
    assert details(body) == {"": "The body must be a JSON object."}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 101),
        ("name", 7),
        ("name", None),
        ("name", NUL),
        ("name", SURROGATE),
        ("name", ["n"]),
        ("description", "x" * 501),
        ("description", None),
        ("sms_mode", "two_way"),
        ("sms_mode", None),
        ("sms_message_source", "other"),
        ("sms_message_source", ["custom"]),
        ("message_body", "x" * 1601),
        ("message_body", None),
        ("message_body", 5),
        ("sms_flow_id", "x"),
        ("sms_flow_id", UUID + "\n"),
        ("sms_flow_id", UUID.replace("-", "")),
        ("sms_carrier", "carrier_1"),
        ("sms_carrier", ""),
        ("sms_from_number", 14155550102),
        ("sms_from_number", NUL),
        ("sms_rate_per_minute", 0),
        ("sms_rate_per_minute", 601),
        ("sms_rate_per_minute", "60"),
        ("sms_rate_per_minute", 60.5),
        ("sms_rate_per_minute", True),
        ("sms_rate_per_minute", None),
        ("sms_rate_per_minute", 2**63),
        ("recipients", []),
        ("recipients", None),
        ("recipients", "abc"),
        ("recipients", {"0": {"phone_number": "1"}}),
        ("csv_column_headers", "abc"),
        ("csv_column_headers", None),
        ("schedule_type", "later"),
        ("schedule_type", None),
        ("scheduled_start_at", "tomorrow"),
        ("scheduled_start_at", 1764579600),
        ("scheduled_expires_at", "9999-12-31T23:59:59-01:00"),
    ],
)
def test_a_value_of_the_wrong_type_or_out_of_bounds_is_refused(field: str, value: Any) -> None:
    """docs/interface.md#types, #null, #text and #lengths; docs/interface.md#8."""
    assert set(details(sms(**{field: value}))) == {field}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "😀" * 100),
        ("description", ""),
        ("message_body", "é" * 1600),
        ("sms_flow_id", None),
        ("sms_carrier", None),
        ("sms_from_number", None),
        ("sms_rate_per_minute", 600),
        ("scheduled_start_at", None),
        ("scheduled_expires_at", None),
        ("business_hours_config", None),
        ("holidays_config", None),
        ("channel", {"ignored": "whatever it holds"}),
        ("unknown_field", SURROGATE),
    ],
)
def test_a_value_at_its_bound_is_taken(field: str, value: Any) -> None:
    """docs/interface.md#lengths (code points), "null", "channel" and "unknown fields"."""
    read_sms_campaign(sms(**{field: value}), this_year=2026)


@pytest.mark.parametrize(
    "written",
    [
        "60.5",
        "6e-1",
        "60.0000000001",
        "1e999999999",
        "1e30",
        "1e9999999999999999999",
        "1e-9999999999999999999",
        "-0",
        "0.0",
        '"60"',
        "true",
    ],
)
def test_what_is_no_integer_as_the_parser_delivers_it(written: str) -> None:
    """docs/interface.md#types: fractions and what is out of bounds, however it is written."""
    body = parse_json(json.dumps(sms()).replace("{", f'{{"sms_rate_per_minute": {written}, ', 1).encode())
    assert set(details(body)) == {"sms_rate_per_minute"}


@pytest.mark.parametrize("written", ["60", "60.0", "6e1", "0.6E+2", "600e-1"])
def test_an_integer_may_be_written_with_a_point(written: str) -> None:
    """JSON Schema: a number without a fraction is an integer, however it is written."""
    hours = {"timezone": "UTC", "days": [], "start": "09:00", "end": "17:00"}
    raw = json.dumps(sms(business_hours_config=hours)).replace("{", f'{{"sms_rate_per_minute": {written}, ', 1)
    raw = raw.replace('"timezone"', '"batchConcurrency": 7.0, "timezone"')
    campaign, _ = read_sms_campaign(parse_json(raw.encode()), this_year=2026)
    assert campaign.rate_per_minute == 60
    assert campaign.business_hours is not None
    assert campaign.business_hours.batch_concurrency == 7


def test_an_identifier_is_read_in_any_case() -> None:
    """UUIDs are compared in lower case."""
    assert read(sms_flow_id=UUID.upper()).flow_id == UUID


def test_a_custom_message_needs_its_text() -> None:
    """docs/interface.md#message-body: absent with source custom is a 400; blank is taken."""
    body = sms()
    del body["message_body"]
    assert details(body) == {"message_body": "is required when sms_message_source is custom"}
    assert read(message_body="").body == ""


def test_a_flow_needs_its_identifier() -> None:
    """docs/interface.md#4.3: sms_flow_id is required when the source is flow; the text is stored all the same."""
    assert set(details(sms(sms_message_source="flow"))) == {"sms_flow_id"}
    assert set(details(sms(sms_message_source="flow", sms_flow_id=None))) == {"sms_flow_id"}
    assert read(sms_message_source="flow", sms_flow_id=UUID).body == "hi"


def test_a_scheduled_campaign_needs_its_start() -> None:
    """docs/interface.md#schedule."""
    assert set(details(sms(schedule_type="scheduled"))) == {"scheduled_start_at"}


@pytest.mark.parametrize("expiry", ["2026-12-01T09:00:00Z", "2026-12-01T08:59:59Z", "2026-12-01T10:00:00+01:00"])
def test_an_expiry_that_is_not_after_the_start_is_refused(expiry: str) -> None:
    """docs/interface.md#schedule."""
    body = sms(schedule_type="scheduled", scheduled_start_at="2026-12-01T09:00:00Z", scheduled_expires_at=expiry)
    assert set(details(body)) == {"scheduled_expires_at"}


def test_the_start_of_an_immediate_campaign_means_nothing() -> None:
    """An immediate campaign stores null; an expiry before its start is no contradiction then.

    docs/interface.md#schedule.
    """
    campaign = read(scheduled_start_at="2026-12-01T09:00:00Z", scheduled_expires_at="2020-01-01T00:00:00Z")
    assert campaign.scheduled_expires_at == datetime(2020, 1, 1, tzinfo=UTC)


def test_every_wrong_place_is_named_at_once() -> None:
    """Details carry dotted paths with indexes in brackets."""
    body = sms(
        name=7,
        recipients=[
            {},
            7,
            {"phone_number": "", "email": 4},
            {"phone_number": "1", "custom_variables": {"a": SURROGATE}},
            {"phone_number": "1", "custom_variables": []},
            {"phone_number": None},
        ],
        csv_column_headers=["a", 1],
        business_hours_config={"timezone": "Nowhere/At_All", "schedule": {"monday": [{"start": "9", "end": "17:00"}]}},
        holidays_config={"country": "US", "holidays": [{"date": "2026-02-30"}]},
    )
    assert set(details(body)) == {
        "name",
        "recipients[0].phone_number",
        "recipients[1]",
        "recipients[2].phone_number",
        "recipients[2].email",
        "recipients[3].custom_variables.a",
        "recipients[4].custom_variables",
        "recipients[5].phone_number",
        "csv_column_headers[1]",
        "business_hours_config.timezone",
        "business_hours_config.schedule.monday[0].start",
        "holidays_config.holidays[0].date",
    }


def test_the_number_of_places_is_bounded() -> None:
    """A hostile body makes no huge answer."""
    assert len(details(sms(recipients=[{}] * 10_000))) == MAX_DETAILS


def test_a_nullable_field_says_so() -> None:
    """Messages are for people."""
    assert details(sms(sms_from_number=1)) == {"sms_from_number": "must be a string or null"}
    assert details(sms(name=1)) == {"name": "must be a string"}
    assert details(sms(name="")) == {"name": "must have 1 to 100 characters, has 0"}


def test_contact_variables_keep_every_digit() -> None:
    """Numbers that a 64-bit reader would round become the text that stands for them; the rest stays as it is."""
    raw = b'{"a": 1.10, "b": [1e5, 1], "c": 7, "d": true, "e": null, "f": [1, "x"], "g": 12345678901234567890}'
    body = sms(recipients=[{"phone_number": "1", "custom_variables": parse_json(raw)}])
    _, recipients = read_sms_campaign(body, this_year=2026)
    expected = {"a": "1.10", "b": "[1e5,1]", "c": 7, "d": True, "e": None, "f": [1, "x"], "g": "12345678901234567890"}
    assert recipients[0].custom_variables == expected


@pytest.mark.parametrize("value", [NUL, [NUL], {"a": {NUL: 1}}, {"a": [[SURROGATE]]}])
def test_text_that_cannot_be_stored_is_refused_at_every_depth(value: Any) -> None:
    """docs/interface.md#text."""
    body = sms(recipients=[{"phone_number": "1", "custom_variables": {"v": value}}])
    assert set(details(body)) == {"recipients[0].custom_variables.v"}


def test_a_key_that_cannot_be_stored_is_refused_and_shown_safely() -> None:
    """docs/interface.md#text."""
    body = sms(recipients=[{"phone_number": "1", "custom_variables": {SURROGATE: 1}}])
    assert set(details(body)) == {"recipients[0].custom_variables.a\\ud800b"}


def test_the_depth_of_a_variable_is_bounded() -> None:
    """Bodies, their depth and counts are bounded."""
    deep: Any = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    taken = sms(recipients=[{"phone_number": "1", "custom_variables": {"v": deep}}])
    read_sms_campaign(taken, this_year=2026)
    refused = sms(recipients=[{"phone_number": "1", "custom_variables": {"v": [deep]}}])
    assert "levels deep" in details(refused)["recipients[0].custom_variables.v"]


def test_a_country_alone_is_filled_from_this_year_to_the_second_next() -> None:
    """docs/interface.md#holidays."""
    calendar = read(holidays_config={"country": "US"}).holidays
    assert {holiday.date.year for holiday in calendar.holidays} == {2026, 2027, 2028}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("agent_id", None),
        ("agent_id", "x"),
        ("batch_concurrency", 0),
        ("batch_concurrency", 41),
        ("batch_concurrency", None),
        ("sip_trunk_id", "x"),
        ("cli_mode", "round_robin"),
        ("cli_group_config", {}),
        ("ivr_enabled", 1),
        ("call_screen_enabled", "true"),
        ("double_dial", None),
    ],
)
def test_a_wrong_field_of_a_calling_campaign_is_refused(field: str, value: Any) -> None:
    """docs/interface.md#campaigns, #types and #null."""
    assert set(details(call(**{field: value}), channel="call")) == {field}


def test_a_group_of_caller_ids_needs_its_numbers() -> None:
    """docs/interface.md#2.2: cli_group_config is used when cli_mode is group."""
    assert set(details(call(cli_mode="group"), channel="call")) == {"cli_group_config"}
    assert set(details(call(cli_mode="group", cli_group_config=[]), channel="call")) == {"cli_group_config"}
    entries = [{"phoneNumberId": "a", "phoneE164": "14155550102", "count": 0}, {"phoneNumberId": "a"}]
    assert set(details(call(cli_mode="group", cli_group_config=entries), channel="call")) == {
        "cli_group_config[0].phoneE164",
        "cli_group_config[0].count",
        "cli_group_config[1].phoneE164",
        "cli_group_config[1].count",
    }


def test_a_whole_calling_campaign_is_read() -> None:
    """docs/interface.md#campaigns: every field arrives."""
    entry = {"phoneNumberId": "a", "phoneE164": "+14155550102", "count": 3}
    body = call(
        batch_concurrency=5, sip_trunk_id=UUID, cli_mode="group", cli_group_config=[entry], ivr_enabled=True,
        call_screen_enabled=True, double_dial=True, csv_column_headers=["a"], description="d",
    )  # fmt: skip
    campaign, _ = read_call_campaign(body, this_year=2026)
    assert (campaign.batch_concurrency, campaign.trunk_id, campaign.cli_mode) == (5, UUID, "group")
    assert campaign.cli_group is not None
    assert [(e.number_id, e.phone, e.count) for e in campaign.cli_group] == [("a", "+14155550102", 3)]
    assert (campaign.ivr_enabled, campaign.call_screen_enabled, campaign.double_dial) == (True, True, True)
    assert (campaign.description, tuple(campaign.csv_column_headers)) == ("d", ("a",))
