"""The rows of docs/interface.md#10: what a value of a request may be, and what becomes of it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from outreach import AgentUpdate
from tests.server.conftest import Service, Tenant, sms_body
from tests.server.test_errors import check_envelope

JSON = {"Content-Type": "application/json"}
UNKNOWN = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"


def refused(tenant: Tenant, **fields: Any) -> bool:
    """Tell whether an SMS campaign is refused with a 400."""
    # Written with escapes: half of a surrogate pair has no other way into a body.
    answer = tenant.post("/sms-campaigns", content=json.dumps(sms_body(**fields)).encode(), headers=JSON)
    assert answer.status_code in {201, 400}
    return bool(answer.status_code == 400)


@pytest.mark.sentence("row variables", "4.1 variables")
def test_variables(service: Service) -> None:
    """Row "variables": any JSON value as text; an agent that declares its placeholders takes no other key."""
    tenant = service.tenant()
    raw = '{"s":"x","n":1.10,"t":true,"z":null,"o":{"a":[1, 2]}}'
    body = f'{{"agent_id":"{tenant.agent.id}","to":"+14155550102","variables":{raw}}}'
    record = tenant.get(tenant.post("/calls", content=body.encode(), headers=JSON).headers["Location"]).json()
    assert record["variables"] == {"s": "x", "n": "1.10", "t": "true", "z": "", "o": '{"a":[1,2]}'}
    change = AgentUpdate(placeholders=["name"])
    service.run(service.engine.agents.update, tenant.workspace.id, tenant.agent.id, change)
    call = {"agent_id": tenant.agent.id, "to": "+14155550103"}
    wrongs: list[Any] = [None, [], "x", {"other": 1}]
    for wrong in wrongs:
        answer = tenant.post("/calls", call | {"variables": wrong})
        error = check_envelope(answer, 400, "invalid_request")
        assert all(detail["path"].startswith("variables") for detail in error["details"])
    assert tenant.post("/calls", call | {"variables": {"name": 1}}).status_code == 201


@pytest.mark.sentence("row unknown fields", "row channel on POST /sms-campaigns")
def test_unknown_fields(tenant: Tenant) -> None:
    """Rows "unknown fields" and "channel": refused by the settings, ignored elsewhere; channel ignored, whatever."""
    assert tenant.patch("/sms/settings", {"unknown": 1}).status_code == 400
    assert tenant.create(unknown=1, channel={"x": []})["channel"] == "sms"
    call = {"agent_id": tenant.agent.id, "to": "+14155550102", "unknown": 1}
    assert tenant.post("/calls", call).status_code == 201
    assert tenant.post("/sms", {"to": "+14155550102", "body": "x", "unknown": 1}).status_code == 201


@pytest.mark.sentence("row message_body", "row sms_from_number", "row sms_flow_id")
def test_what_composes_a_message(tenant: Tenant) -> None:
    """Rows "message_body", "sms_from_number", "sms_flow_id": blank composes nothing; an unknown flow is a 400."""
    ready = {"sms_carrier": "twilio", "sms_from_number": "+14155550199"}
    assert tenant.create(**ready)["status"] == "ready"
    for blank in ("", "  \n"):
        assert tenant.create(**ready, message_body=blank)["status"] == "draft"
        assert tenant.create(**(ready | {"sms_from_number": blank}))["status"] == "draft"
    assert refused(tenant, message_body=...)
    assert refused(tenant, sms_flow_id=UNKNOWN)
    assert refused(tenant, sms_flow_id=UNKNOWN, sms_message_source="flow")


@pytest.mark.sentence("row null")
def test_null(memory_tenant: Tenant) -> None:
    """Row "null": only where the table says nullable."""
    nullable = {
        "sms_flow_id", "sms_carrier", "sms_from_number", "scheduled_start_at", "scheduled_expires_at",
        "business_hours_config", "holidays_config",
    }  # fmt: skip
    others = {
        "name", "description", "sms_mode", "sms_message_source", "message_body", "sms_rate_per_minute", "recipients",
        "csv_column_headers", "schedule_type",
    }  # fmt: skip
    assert not [field for field in nullable if refused(memory_tenant, **{field: None})]
    assert not [field for field in others if not refused(memory_tenant, **{field: None})]


@pytest.mark.sentence("row types")
def test_types(memory_tenant: Tenant) -> None:
    """Row "types": strict; integers outside 64 bit are refused, not rounded."""
    for value in ("60", 60.5, True, 2**63, 2**64, -(2**63) - 1, 10**400):
        assert refused(memory_tenant, sms_rate_per_minute=value)
    assert refused(memory_tenant, csv_column_headers="abc")
    assert memory_tenant.patch("/sms/settings", {"footer_enabled": 1}).status_code == 400
    for number in ("1e9999999999999999999", "NaN", "Infinity", "-Infinity"):
        raw = f'{{"max_segments": {number}}}'.encode()
        assert memory_tenant.request("PATCH", "/sms/settings", content=raw, headers=JSON).status_code == 400


@pytest.mark.sentence("row lengths", "row text")
def test_text(memory_tenant: Tenant) -> None:
    """Rows "lengths" and "text": code points are counted; NUL and lone surrogates are refused."""
    assert not refused(memory_tenant, name="😀" * 100)
    assert refused(memory_tenant, name="😀" * 101)
    for text in ("a\x00", "\ud800"):
        assert refused(memory_tenant, name=text)
        assert refused(memory_tenant, recipients=[{"phone_number": "1", "custom_variables": {"a": [text]}}])


@pytest.mark.sentence("row query")
def test_the_query(memory_tenant: Tenant) -> None:
    """Row "query": digits only; a page past the end is empty; over 100 is 100; a repeated parameter is a 400."""
    memory_tenant.create()
    for wrong in ("page=%2B1", "page=1.0", "page=١", "page=1&page=1", "status=", "page_size=0", "search=a&search=b"):
        check_envelope(memory_tenant.get(f"/sms-campaigns?{wrong}"), 400, "invalid_request")
    far = "9" * 30
    answer = memory_tenant.get(f"/sms-campaigns?page={far}&page_size={far}&search=&unknown=1").json()
    assert (answer["data"], answer["pagination"]) == ([], {"page": int(far), "page_size": 100, "total": 1})


@pytest.mark.sentence("row search", "4.2 search")
def test_search(tenant: Tenant) -> None:
    r"""Row "search": case-insensitive for every script; %, _ and \ are plain characters."""
    for name in ("Été", "100%", "a_b", "a\\b", "ab"):
        tenant.create(name=name)
    for search, found in (("éTÉ", ["Été"]), ("%", ["100%"]), ("_", ["a_b"]), ("\\", ["a\\b"])):
        answer = tenant.request("GET", "/sms-campaigns", params={"search": search}).json()
        assert [campaign["name"] for campaign in answer["data"]] == found


@pytest.mark.sentence("row timestamps", "row schedule")
def test_timestamps_and_schedules(tenant: Tenant) -> None:
    """Rows "timestamps" and "schedule": RFC 3339, UTC without an offset; expiry after start; immediate stores null."""
    scheduled = {"schedule_type": "scheduled", "scheduled_start_at": "2099-01-01T10:00:00+02:00"}
    created = tenant.create(**scheduled, scheduled_expires_at="2099-01-01T09:00:00")
    assert created["scheduled_start_at"].startswith("2099-01-01T08:00:00")
    assert created["scheduled_expires_at"].endswith("Z")
    assert refused(tenant, **scheduled, scheduled_expires_at="2099-01-01T08:00:00Z")
    assert refused(tenant, schedule_type="scheduled")
    assert refused(tenant, schedule_type="scheduled", scheduled_start_at=None)
    assert tenant.create(scheduled_start_at="2099-01-01T10:00:00Z")["scheduled_start_at"] is None
    for wrong in ("2099-01-01", "1.1.2099", "2099-13-01T00:00:00Z", "2099-01-01T25:00:00Z", "", 0):
        assert refused(tenant, scheduled_expires_at=wrong)


@pytest.mark.sentence("row schedule", "row raw status and expiry")
def test_an_expiry_in_the_past(service: Service) -> None:
    """Rows "schedule" and "raw status and expiry": accepted, shown at once; the raw status does not change by time."""
    tenant = service.tenant()
    created = tenant.create(scheduled_expires_at="2020-01-01T00:00:00Z")
    assert (created["status"], created["effective_status"]) == ("draft", "expired")
    service.clock.ahead += timedelta(days=1)
    assert tenant.get("/sms-campaigns").json()["data"][0]["status"] == "draft"


@pytest.mark.sentence(
    "row business hours, stored", "row business hours, days-shaped request", "2.2 days-shaped is normalised"
)
def test_business_hours(tenant: Tenant) -> None:
    """Rows "business hours": one stored form; 24:00 is an end; the zone must exist; three fields come from it."""
    window = {"start": "22:00", "end": "24:00"}
    forms: list[dict[str, Any]] = [
        {"schedule": {"monday": [window], "tuesday": [window]}},
        {"days": {"mon": {"enabled": True, **window}, "Tuesday": window, "sun": {"enabled": False}}},
        {"days": ["MON", "tuesday"], **window},
    ]
    for form in forms:
        created = tenant.create(business_hours_config={"timezone": "Asia/Tokyo", "batchConcurrency": 3} | form)
        stored = created["business_hours_config"]
        assert set(stored) == {"enabled", "timezone", "schedule", "batchConcurrency"}
        closed: dict[str, Any] = {day: [] for day in ("wednesday", "thursday", "friday", "saturday", "sunday")}
        assert stored["schedule"] == {"monday": [window], "tuesday": [window]} | closed
        derived = [created[field] for field in ("business_hours_only", "timezone", "batch_concurrency")]
        assert derived == [True, "Asia/Tokyo", 3]
    assert tenant.create()["batch_concurrency"] == 10
    call = {"agent_id": tenant.agent.id, "name": "n", "recipients": [{"phone_number": "1"}]}
    explicit = {"batch_concurrency": 3, "business_hours_config": forms[0] | {"timezone": "UTC"}}
    made = tenant.post("/campaigns", call | explicit).json()
    assert (made["batch_concurrency"], made["business_hours_config"]["batchConcurrency"]) == (3, 3)
    for wrong in ({"timezone": "Mars/Base"}, {"batchConcurrency": 41}, {"start": "24:00"}, {"end": "22:00"}):
        assert refused(tenant, business_hours_config={"timezone": "UTC"} | forms[2] | wrong)


@pytest.mark.sentence("row holidays")
def test_holidays(service: Service) -> None:
    """Row "holidays": a list is taken as it is; a country alone is filled, this year to the second next."""
    tenant = service.tenant()
    given = {"country": "US", "holidays": [{"date": "2026-12-25", "name": "Christmas Day", "enabled": False}]}
    assert tenant.create(holidays_config=given)["holidays_config"] == given
    filled = tenant.create(holidays_config={"country": "US"})["holidays_config"]["holidays"]
    year = service.clock.now().year
    assert {int(day["date"][:4]) for day in filled} == {year, year + 1, year + 2}
    for wrong in ({}, {"country": "XX"}, {"country": None}, {"country": "US", "holidays": [{"date": "2026-02-30"}]}):
        assert refused(tenant, holidays_config=wrong)
