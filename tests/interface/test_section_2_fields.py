"""docs/interface.md#2: resources and their fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from outreach import FlowStep, NewFlow, NewTrunk
from tests.interface.sentences import CAMPAIGN_FIELDS, RECIPIENT_FIELDS, SETTINGS_FIELDS
from tests.server.conftest import Service, Tenant, sms_body

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
HOURS = {
    "timezone": "Europe/Lisbon",
    "schedule": {"monday": [{"start": "09:00", "end": "17:00"}]},
    "batchConcurrency": 7,
}
HOLIDAYS = {"country": "PT", "holidays": [{"date": "2026-12-25", "name": "Natal", "enabled": True}]}

Check = Callable[[Any], Any]


def is_uuid(value: Any) -> bool:
    """Tell whether a value is an identifier."""
    return UUID.fullmatch(value) is not None


def is_moment(value: Any) -> bool:
    """Tell whether a value is a timestamp in UTC."""
    return MOMENT.fullmatch(value) is not None


# What each field of section 2.2 is in an SMS campaign with everything, and in a calling campaign with everything.
SMS: dict[str, Any] = {
    "id": is_uuid, "workspace_id": is_uuid, "agent_id": None, "name": "All", "description": "notes",
    "status": "ready", "effective_status": "ready", "schedule_type": "scheduled",
    "scheduled_start_at": "2099-01-01T09:00:00.000000Z", "scheduled_expires_at": "2099-02-01T00:00:00.000000Z",
    "business_hours_only": True, "timezone": "Europe/Lisbon", "total_recipients": 2, "pending_calls": 2,
    "completed_calls": 0, "successful_calls": 0, "failed_calls": 0, "created_at": is_moment, "updated_at": is_moment,
    "started_at": None, "completed_at": None, "channel": "sms",
    "business_hours_config": lambda value: set(value) == {"enabled", "timezone", "schedule", "batchConcurrency"},
    "holidays_config": HOLIDAYS, "batch_concurrency": 7, "sip_trunk_id": None, "cli_mode": None,
    "cli_group_config": None, "ivr_enabled": None, "call_screen_enabled": None, "double_dial": None,
    "csv_column_headers": ["phone", "plan"], "sms_mode": "conversational", "sms_message_source": "flow",
    "sms_message_body": "kept", "sms_flow_id": is_uuid, "sms_carrier": "vonage", "sms_from_number": "+14155550199",
    "sms_rate_per_minute": 600, "agent": ...,
}  # fmt: skip
CALL: dict[str, Any] = SMS | {
    "agent_id": is_uuid, "channel": "call", "batch_concurrency": 40, "sip_trunk_id": is_uuid, "cli_mode": "group",
    "cli_group_config": [{"phoneNumberId": "n", "phoneE164": "+14155550199", "count": 3}], "ivr_enabled": True,
    "call_screen_enabled": True, "double_dial": True, "sms_mode": None, "sms_message_source": None,
    "sms_message_body": None, "sms_flow_id": None, "sms_carrier": None, "sms_from_number": None,
    "sms_rate_per_minute": None,
    "agent": lambda value: list(value) == ["id", "name", "provider", "is_active"] and value["is_active"] is True,
}  # fmt: skip


@pytest.fixture
def campaigns(service: Service) -> list[dict[str, Any]]:
    """Create one campaign of each channel with everything, and return them as the list shows them."""
    tenant = service.tenant()
    workspace_id = tenant.workspace.id
    flow = service.run(
        service.engine.flows.create, workspace_id, NewFlow(name="F", steps=[FlowStep(kind="send", body="x")])
    )
    trunk = service.run(service.engine.trunks.create, workspace_id, NewTrunk(name="T", address="sip.example.com"))
    shared = {
        "name": "All", "description": "notes", "schedule_type": "scheduled", "csv_column_headers": ["phone", "plan"],
        "scheduled_start_at": "2099-01-01T09:00:00Z", "scheduled_expires_at": "2099-02-01T00:00:00Z",
        "business_hours_config": HOURS, "holidays_config": HOLIDAYS,
        "recipients": [{"phone_number": "+14155550102"}, {"phone_number": "+14155550103"}],
    }  # fmt: skip
    sms = {
        "sms_mode": "conversational", "sms_message_source": "flow", "message_body": "kept", "sms_flow_id": flow.id,
        "sms_carrier": "vonage", "sms_from_number": "+14155550199", "sms_rate_per_minute": 600,
    }  # fmt: skip
    call = {
        "agent_id": tenant.agent.id, "batch_concurrency": 40, "sip_trunk_id": trunk.id, "cli_mode": "group",
        "cli_group_config": CALL["cli_group_config"], "ivr_enabled": True, "call_screen_enabled": True,
        "double_dial": True,
    }  # fmt: skip
    assert tenant.post("/sms-campaigns", shared | sms).status_code == 201
    assert tenant.post("/campaigns", shared | call).status_code == 201
    found: list[dict[str, Any]] = tenant.get("/campaigns").json()["data"]
    assert found[1]["workspace_id"] == workspace_id
    return found[::-1]


@pytest.mark.sentence(*(f"2.2 {field}" for field in CAMPAIGN_FIELDS))
def test_every_field_of_a_campaign(campaigns: list[dict[str, Any]]) -> None:
    """Section 2.2: each field means what its row says, in both channels; `agent` is absent without an agent."""
    for campaign, expected in zip(campaigns, (SMS, CALL), strict=True):
        assert set(expected) == set(CAMPAIGN_FIELDS)
        for field, value in expected.items():
            found = campaign.get(field, ...)
            assert value(found) if callable(value) else found == value, (campaign["channel"], field, found)


@pytest.mark.sentence(
    "2.2 sms_opted_out_excluded", "2.2 message_body appears as sms_message_body", "row fields of an answer"
)
def test_what_the_create_response_adds(service: Service) -> None:
    """Section 2.2: the create response alone counts who was dropped; message_body appears as sms_message_body."""
    tenant = service.tenant()
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550103")
    people = [{"phone_number": "+14155550102"}, {"phone_number": "+14155550103"}]
    created = tenant.create(recipients=people, message_body="Hello")
    assert (created["sms_opted_out_excluded"], created["total_recipients"]) == (1, 1)
    assert (created["sms_message_body"], "message_body" in created) == ("Hello", False)
    (listed,) = tenant.get("/sms-campaigns").json()["data"]
    assert set(listed) == set(CAMPAIGN_FIELDS) - {"agent"}
    assert listed == {name: value for name, value in created.items() if name != "sms_opted_out_excluded"}


@pytest.mark.sentence(*(f"2.3 {field}" for field in RECIPIENT_FIELDS))
def test_every_field_of_a_recipient(service: Service) -> None:
    """Section 2.3: phone_number of at least 1 character, four nullable texts, custom_variables {} by default."""
    tenant = service.tenant()
    full = {
        "phone_number": "+14155550102", "first_name": "Ana", "last_name": None, "email": "a@example.com",
        "company": None, "custom_variables": {"plan": "Basic"},
    }  # fmt: skip
    created = tenant.create(recipients=[full, {"phone_number": "1"}])

    async def read() -> list[Any]:
        return [person async for person in service.engine.campaigns.iter_recipients(tenant.workspace.id, created["id"])]

    first, second = service.run(read)
    assert {field: getattr(first, field) for field in RECIPIENT_FIELDS} == full
    assert (second.phone_number, second.first_name, second.custom_variables) == ("1", None, {})
    for wrong in ({}, {"phone_number": ""}, {"phone_number": None}, {"phone_number": "1", "custom_variables": None}):
        assert tenant.post("/sms-campaigns", sms_body(recipients=[wrong])).status_code == 400


@pytest.mark.sentence(*(f"2.4 {field}" for field in SETTINGS_FIELDS))
def test_every_field_of_the_settings(tenant: Tenant) -> None:
    """Section 2.4: each setting can be changed, and keeps what was sent."""
    change = {
        "footer_enabled": False, "footer_text": "Bye", "max_segments": 2, "retry_enabled": True,
        "retry_max_attempts": 1, "retry_delay_minutes": 60, "custom_variables": ["plan", "A_9"],
    }  # fmt: skip
    assert tuple(change) == SETTINGS_FIELDS
    for field, value in change.items():
        assert tenant.patch("/sms/settings", {field: value}).json()[field] == value
    assert tenant.patch("/sms/settings", {}).json() == change
