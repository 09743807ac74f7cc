from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest

from outreach import FlowStep, NewFlow, NewTrunk
from tests.server.conftest import Service, Tenant, sms_body
from tests.server.test_errors import check_envelope

FIELDS = {
    "id", "workspace_id", "agent_id", "name", "description", "status", "effective_status", "schedule_type",
    "scheduled_start_at", "scheduled_expires_at", "business_hours_only", "timezone", "total_recipients",
    "pending_calls", "completed_calls", "successful_calls", "failed_calls", "created_at", "updated_at", "started_at",
    "completed_at", "channel", "business_hours_config", "holidays_config", "batch_concurrency", "sip_trunk_id",
    "cli_mode", "cli_group_config", "ivr_enabled", "call_screen_enabled", "double_dial", "csv_column_headers",
    "sms_mode", "sms_message_source", "sms_message_body", "sms_flow_id", "sms_carrier", "sms_from_number",
    "sms_rate_per_minute",
}  # fmt: skip


def call_body(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    """Return the body of a calling campaign."""
    return {"name": "Renewals", "agent_id": tenant.agent.id, "recipients": [{"phone_number": "+14155550102"}]} | fields


def names(answer: Any) -> list[str]:
    """Return the names on a page, in its order."""
    assert answer.status_code == 200, answer.text
    return [campaign["name"] for campaign in answer.json()["data"]]


def test_a_new_campaign_has_every_field(tenant: Tenant) -> None:
    """docs/interface.md#answers: always present, null when they do not apply; the extra one on create only."""
    created = tenant.create()
    assert set(created) == FIELDS | {"sms_opted_out_excluded"}
    assert (created["channel"], created["sms_message_body"], created["sms_from_number"]) == ("sms", "Hi", None)
    assert (created["total_recipients"], created["pending_calls"], created["sms_opted_out_excluded"]) == (1, 1, 0)
    assert created["created_at"].endswith("Z")
    (listed,) = tenant.get("/sms-campaigns").json()["data"]
    assert listed == {name: created[name] for name in FIELDS}


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "draft"),
        ({"sms_carrier": "twilio"}, "draft"),
        ({"sms_from_number": "+14155550199"}, "draft"),
        ({"sms_carrier": "telnyx", "sms_from_number": "+14155550199"}, "ready"),
        ({"sms_carrier": "telnyx", "sms_from_number": ""}, "draft"),
        ({"sms_carrier": "vonage", "sms_from_number": "+14155550199", "message_body": ""}, "draft"),
        ({"sms_carrier": "vonage", "sms_from_number": "+14155550199", "message_body": " \n"}, "draft"),
    ],
)
def test_the_status_follows_from_what_is_composed(memory_tenant: Tenant, fields: dict[str, Any], status: str) -> None:
    """docs/interface.md#3, #message-body and #from-number."""
    created = memory_tenant.create(**fields)
    assert created["status"] == created["effective_status"] == status


def test_a_flow_must_be_the_workspaces_own(service: Service) -> None:
    """docs/interface.md#flow-id: unknown or foreign is a 400 whenever it is given."""
    mine, other = service.tenant(), service.tenant()
    steps = [FlowStep(kind="send", body="Hi")]
    flow = service.run(service.engine.flows.create, mine.workspace.id, NewFlow(name="Welcome", steps=steps))
    ready = {"sms_message_source": "flow", "sms_carrier": "twilio", "sms_from_number": "+14155550199"}
    created = mine.create(**ready, sms_flow_id=flow.id, message_body="stored and not used")
    assert (created["status"], created["sms_flow_id"]) == ("ready", flow.id)
    assert created["sms_message_body"] == "stored and not used"
    for source in ("flow", "custom"):
        answer = other.post("/sms-campaigns", sms_body(sms_message_source=source, sms_flow_id=flow.id))
        assert check_envelope(answer, 400, "invalid_request")["details"][0]["path"] == "sms_flow_id"


def test_contacts_on_the_register_are_dropped_and_counted(service: Service) -> None:
    """docs/interface.md#4.3, rule 2; docs/interface.md#same-number: an opted-out number supplied twice counts two."""
    tenant = service.tenant(default_region="US")
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550102")
    phones = ["+1 (415) 555-0102", "14155550102", "415-555-0103", "+14155550103", "no number"]
    created = tenant.create(recipients=[{"phone_number": phone} for phone in phones])
    assert (created["sms_opted_out_excluded"], created["total_recipients"], created["pending_calls"]) == (2, 3, 1)


def test_contacts_as_a_spreadsheet_left_them_are_themselves(service: Service) -> None:
    """One with `.0` at its end is the person who opted out, and no other."""
    tenant = service.tenant(default_region="AT")
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+43664123456")
    phones = ["43664123456.0", "+43664123456.0", "4.3664123456E+10", "0664 123457"]
    created = tenant.create(recipients=[{"phone_number": phone} for phone in phones])
    assert (created["sms_opted_out_excluded"], created["total_recipients"], created["pending_calls"]) == (3, 1, 1)


def test_a_campaign_of_which_everybody_opted_out_is_refused(service: Service) -> None:
    """docs/interface.md#4.3, rule 3: and nothing of it stays."""
    tenant = service.tenant()
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550102")
    check_envelope(tenant.post("/sms-campaigns", sms_body()), 400, "invalid_request")
    assert tenant.get("/sms-campaigns").json()["pagination"]["total"] == 0


def test_an_expiry_in_the_past_shows_at_once(tenant: Tenant) -> None:
    """docs/interface.md#schedule and #expiry: accepted, and shown in effective_status only."""
    created = tenant.create(scheduled_expires_at="2020-01-01T00:00:00", scheduled_start_at="2019-01-01T00:00:00Z")
    assert (created["status"], created["effective_status"]) == ("draft", "expired")
    assert created["scheduled_start_at"] is None
    assert created["scheduled_expires_at"] == "2020-01-01T00:00:00.000000Z"
    assert names(tenant.get("/sms-campaigns?status=draft")) == ["Autumn"]
    assert names(tenant.get("/sms-campaigns?status=expired")) == []


def test_a_campaign_expires_when_its_time_has_come(service: Service) -> None:
    """docs/interface.md#3, rule 1."""
    tenant = service.tenant()
    expiry = service.clock.now() + timedelta(hours=1)
    tenant.create(scheduled_expires_at=expiry.isoformat())
    (before,) = tenant.get("/sms-campaigns").json()["data"]
    service.clock.ahead += timedelta(hours=1)
    (after,) = tenant.get("/sms-campaigns").json()["data"]
    assert [(c["status"], c["effective_status"]) for c in (before, after)] == [("draft", "draft"), ("draft", "expired")]


def test_timestamps_come_back_in_utc(memory_tenant: Tenant) -> None:
    """docs/interface.md#timestamps."""
    created = memory_tenant.create(schedule_type="scheduled", scheduled_start_at="2030-12-01T09:00:00-08:00")
    assert created["scheduled_start_at"] == "2030-12-01T17:00:00.000000Z"


@pytest.mark.parametrize(
    "hours",
    [
        {"timezone": "America/New_York", "days": ["mon", "TUESDAY"], "start": "09:00", "end": "24:00"},
        {
            "timezone": "America/New_York",
            "days": {
                "Mon": {"enabled": True, "start": "09:00", "end": "24:00"},
                "tuesday": {"start": "09:00", "end": "24:00"},
                "friday": {"enabled": False},
            },
        },
        {
            "enabled": True,
            "timezone": "America/New_York",
            "schedule": {
                "monday": [{"start": "09:00", "end": "24:00"}],
                "tuesday": [{"start": "09:00", "end": "24:00"}],
            },
            "batchConcurrency": 10,
        },
    ],
)
def test_business_hours_are_stored_in_one_form(tenant: Tenant, hours: dict[str, Any]) -> None:
    """docs/interface.md#business-hours and #days-shaped."""
    created = tenant.create(business_hours_config=hours)
    open_all_day = [{"start": "09:00", "end": "24:00"}]
    closed: dict[str, Any] = {day: [] for day in ("wednesday", "thursday", "friday", "saturday", "sunday")}
    assert created["business_hours_config"] == {
        "enabled": True,
        "timezone": "America/New_York",
        "schedule": {"monday": open_all_day, "tuesday": open_all_day} | closed,
        "batchConcurrency": 10,
    }
    assert (created["business_hours_only"], created["timezone"]) == (True, "America/New_York")


def test_an_unknown_zone_is_refused(memory_tenant: Tenant) -> None:
    """docs/interface.md#business-hours: the zone must exist (400)."""
    hours = {"timezone": "Mars/Olympus", "days": ["mon"], "start": "09:00", "end": "17:00"}
    answer = memory_tenant.post("/sms-campaigns", sms_body(business_hours_config=hours))
    assert check_envelope(answer, 400, "invalid_request")["details"][0]["path"] == "business_hours_config.timezone"


def test_holidays_are_kept_or_filled(tenant: Tenant) -> None:
    """docs/interface.md#holidays: a list is taken as it is, a country alone is filled."""
    calendar = {"country": "US", "holidays": [{"date": "2026-12-25", "name": "Christmas Day", "enabled": True}]}
    assert tenant.create(holidays_config=calendar)["holidays_config"] == calendar
    filled = tenant.create(holidays_config={"country": "US"})["holidays_config"]
    assert len({entry["date"][:4] for entry in filled["holidays"]}) == 3
    assert list(filled) == ["country", "holidays"]


def test_holidays_of_a_part_of_a_country_are_filled(tenant: Tenant) -> None:
    """England has more than the kingdom, is shown as what it is, and another country's part is refused."""
    kingdom = tenant.create(holidays_config={"country": "GB"})["holidays_config"]
    england = tenant.create(holidays_config={"country": "GB", "subdivision": "eng"})["holidays_config"]
    assert england["subdivision"] == "ENG"
    assert {day["name"] for day in england["holidays"]} - {day["name"] for day in kingdom["holidays"]} == {
        "Easter Monday",
        "Late Summer Bank Holiday",
    }
    assert tenant.get("/campaigns").json()["data"][0]["holidays_config"] == england
    for wrong in ("BY", "", None, 1):
        body = sms_body(holidays_config={"country": "GB", "subdivision": wrong})
        refusal = check_envelope(tenant.post("/sms-campaigns", body), 400, "invalid_request")
        assert refusal["details"][0]["path"] == "holidays_config.subdivision"


def test_newest_first(tenant: Tenant) -> None:
    """docs/interface.md#4.2, #order."""
    for name in ("first", "second", "third"):
        tenant.create(name=name)
    assert names(tenant.get("/sms-campaigns")) == ["third", "second", "first"]
    assert names(tenant.get("/sms-campaigns?page=2&page_size=2")) == ["first"]


@pytest.mark.parametrize(
    ("query", "pagination"),
    [
        ("", {"page": 1, "page_size": 20, "total": 1}),
        ("?page=1&page_size=1", {"page": 1, "page_size": 1, "total": 1}),
        ("?page_size=100", {"page": 1, "page_size": 100, "total": 1}),
        ("?page_size=101", {"page": 1, "page_size": 100, "total": 1}),
        ("?page_size=" + "9" * 40, {"page": 1, "page_size": 100, "total": 1}),
        ("?page=0002", {"page": 2, "page_size": 20, "total": 1}),
        ("?page=9223372036854775808", {"page": 9223372036854775808, "page_size": 20, "total": 1}),
        ("?page=" + "9" * 60, {"page": int("9" * 60), "page_size": 20, "total": 1}),
        ("?search=&other=1&other=2", {"page": 1, "page_size": 20, "total": 1}),
    ],
)
def test_pages(tenant: Tenant, query: str, pagination: dict[str, int]) -> None:
    """Past the end is an empty page, however large; a page_size over 100 is served and echoed as 100.

    docs/interface.md#query.
    """
    tenant.create()
    answer = tenant.get("/sms-campaigns" + query)
    assert answer.status_code == 200
    assert answer.json()["pagination"] == pagination
    assert len(answer.json()["data"]) == (1 if pagination["page"] == 1 else 0)


def test_a_page_of_thousands_of_digits_is_an_empty_page(memory_tenant: Tenant) -> None:
    """docs/interface.md#query: "however large" has no exception."""
    answer = memory_tenant.get("/sms-campaigns?page=" + "9" * 10_000)
    assert answer.status_code == 200
    assert '"data":[]' in answer.text
    assert '"page":' + "9" * 10_000 in answer.text


@pytest.mark.parametrize("path", ["/sms-campaigns", "/campaigns"])
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("page=0", "page"),
        ("page=-1", "page"),
        ("page=%2B1", "page"),
        ("page=1.0", "page"),
        ("page=", "page"),
        ("page=%201", "page"),
        ("page=1_0", "page"),
        ("page=%D9%A1", "page"),
        ("page=1&page=1", "page"),
        ("page_size=0", "page_size"),
        ("page_size=ten", "page_size"),
        ("page_size=1&page_size=2", "page_size"),
        ("status=", "status"),
        ("status=Draft", "status"),
        ("status=draft&status=ready", "status"),
        ("search=a&search=b", "search"),
        ("search=%00", "search"),
        ("search=%FF", ""),
        ("&".join(f"p{i}=1" for i in range(200)), ""),
    ],
)
def test_a_strange_query_is_refused(memory_tenant: Tenant, path: str, query: str, name: str) -> None:
    """docs/interface.md#query: [0-9]+ only; below 1, repeated, or an empty status is a 400."""
    error = check_envelope(memory_tenant.get(f"{path}?{query}"), 400, "invalid_request")
    assert [detail["path"] for detail in error["details"]] == [name]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("éTÉ", ["Été 100%"]),
        ("été", ["Été 100%"]),
        ("0%", ["Été 100%"]),
        ("%", ["Été 100%"]),
        ("_", ["a_b\\c"]),
        ("\\", ["a_b\\c"]),
        ("STRASSE", ["Straße"]),
        ("ж", ["ЖУК"]),
        ("nothing", []),
    ],
)
def test_search(tenant: Tenant, search: str, found: list[str]) -> None:
    """docs/interface.md#search: case-insensitive for every script; %, _ and the backslash are plain characters."""
    for name in ("Été 100%", "a_b\\c", "Straße", "ЖУК"):
        tenant.create(name=name)
    answer = tenant.get("/sms-campaigns", params={"search": search})
    assert names(answer) == found
    assert answer.json()["pagination"]["total"] == len(found)


def test_both_channels_together(tenant: Tenant) -> None:
    """docs/interface.md#1: calling campaigns never appear among SMS campaigns; /campaigns lists both."""
    tenant.create(name="sms", path="/sms-campaigns")
    tenant.create(name="sms too", path="/campaigns", channel="sms")
    created = tenant.post("/campaigns", call_body(tenant, name="call")).json()
    assert names(tenant.get("/sms-campaigns")) == ["sms too", "sms"]
    assert names(tenant.get("/campaigns")) == ["call", "sms too", "sms"]
    assert set(created) == FIELDS | {"sms_opted_out_excluded", "agent"}
    assert (created["channel"], created["status"], created["sms_mode"]) == ("call", "ready", None)
    assert created["agent"] == {
        "id": tenant.agent.id,
        "name": "Renewals",
        "provider": "simulator",
        "is_active": True,
    }


@pytest.mark.parametrize("channel", [None, "", "email", 1, ["sms"]])
def test_an_unknown_channel_is_refused(memory_tenant: Tenant, channel: Any) -> None:
    """docs/interface.md#campaigns: channel selects the body."""
    answer = memory_tenant.post("/campaigns", sms_body(channel=channel))
    assert check_envelope(answer, 400, "invalid_request")["details"][0]["path"] == "channel"


def test_the_channel_is_ignored_where_the_path_selects_it(memory_tenant: Tenant) -> None:
    """docs/interface.md#channel."""
    assert memory_tenant.create(channel="call")["channel"] == "sms"
    assert memory_tenant.create(channel=[1])["channel"] == "sms"


def test_what_a_calling_campaign_names_must_be_the_workspaces_own(service: Service) -> None:
    """docs/interface.md#agents: of another workspace 404; the same for a trunk."""
    mine, other = service.tenant(), service.tenant()
    trunk = service.run(
        service.engine.trunks.create, other.workspace.id, NewTrunk(name="Trunk", address="sip.example.com")
    )
    check_envelope(mine.post("/campaigns", call_body(other)), 404, "not_found")
    check_envelope(mine.post("/campaigns", call_body(mine, sip_trunk_id=trunk.id)), 404, "not_found")
    assert other.post("/campaigns", call_body(other, sip_trunk_id=trunk.id)).json()["sip_trunk_id"] == trunk.id


def test_concurrency_of_a_calling_campaign(memory_tenant: Tenant) -> None:
    """docs/interface.md#business-hours: an explicit batch_concurrency wins; the default is 10."""
    hours = {"timezone": "UTC", "days": ["mon"], "start": "09:00", "end": "17:00", "batchConcurrency": 7}
    bodies: list[dict[str, Any]] = [
        {}, {"business_hours_config": hours}, {"business_hours_config": hours, "batch_concurrency": 3},
    ]  # fmt: skip
    created = [memory_tenant.post("/campaigns", call_body(memory_tenant, **body)).json() for body in bodies]
    assert [campaign["batch_concurrency"] for campaign in created] == [10, 7, 3]


def test_a_workspace_sees_only_its_own(service: Service) -> None:
    """Every query carries its workspace."""
    mine, other = service.tenant(), service.tenant()
    mine.create(name="mine")
    other.create(name="other")
    for path in ("/sms-campaigns", "/campaigns", "/campaigns?search=mine", "/sms-campaigns?status=draft"):
        assert names(mine.get(path)) == ["mine"]
    assert mine.patch("/sms/settings", {"max_segments": 1}).json()["max_segments"] == 1
    assert other.patch("/sms/settings", {}).json()["max_segments"] == 5
    service.run(service.engine.unsubscribes.add, mine.workspace.id, "+14155550102")
    assert other.create()["sms_opted_out_excluded"] == 0
    assert other.post("/sms", {"to": "14155550102", "body": "x"}).status_code == 201


def test_placeholders_that_nothing_fills_are_logged(memory_tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    """The answer is fixed and has no place for them; the log has their names alone, and no text."""
    with caplog.at_level(logging.WARNING, "outreach_server"):
        memory_tenant.create(message_body="Secret {{first_name}} {{first_nam}} {{a\nb}}")
    (record,) = caplog.records
    assert "'first_nam', 'a\\nb'" in record.getMessage()
    assert "Secret" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "outreach_server"):
        memory_tenant.create(message_body="Hi {{first_name}} {{nick|there}}")
    assert caplog.records == []
    caplog.clear()
    with caplog.at_level(logging.WARNING, "outreach_server"):
        for _ in range(2):
            body = sms_body(message_body="{{first_nam}}")
            memory_tenant.post("/sms-campaigns", body, headers={"Idempotency-Key": "once"})
    assert len(caplog.records) == 1
