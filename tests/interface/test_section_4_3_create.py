"""docs/interface.md#4.3: POST /sms-campaigns."""

from __future__ import annotations

from typing import Any

import pytest

from outreach import FlowStep, NewFlow
from tests.interface.conftest import Sending
from tests.interface.sentences import CREATE_FIELDS, LIMITS
from tests.server.conftest import Service, Tenant, sms_body
from tests.server.test_errors import check_envelope

HOURS = {"timezone": "UTC", "days": ["mon"], "start": "09:00", "end": "17:00"}
MOMENT = "2099-01-01T00:00:00Z"

# Values of each field that are taken; and that are refused, where the field alone is to blame.
VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    "channel": (["sms", "call", None, 7, ...], []),
    "name": (["x", "é" * 100], ["", "x" * 101, None, 1, ...]),
    "description": (["", "😀" * 500, ...], ["x" * 501, None, 1]),
    "sms_mode": (["one_way", "conversational", ...], ["both", "", None]),
    "sms_message_source": (["custom", ...], ["text", "", None]),
    "message_body": (["", "😀" * 1600], ["x" * 1601, None, 1, ...]),
    "sms_flow_id": ([None, ...], ["x", "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01", 1]),
    "sms_carrier": (["twilio", "telnyx", "vonage", None, ...], ["other", "", 1]),
    "sms_from_number": (["+14155550199", "", None, ...], [14155550199, []]),
    "sms_rate_per_minute": ([1, 600, ...], [0, 601, "60", 60.5, True, None]),
    "recipients": ([[{"phone_number": "1"}]], [[], None, {}, [None], ...]),
    "csv_column_headers": ([[], ["a"], ...], [None, "a", [1]]),
    "schedule_type": (["immediate", ...], ["scheduled", "later", None]),
    "scheduled_start_at": ([MOMENT, None, ...], ["tomorrow", "", 1]),
    "scheduled_expires_at": ([MOMENT, None, ...], ["tomorrow", "", 1]),
    "business_hours_config": ([HOURS, None, ...], [{}, [], "9 to 5"]),
    "holidays_config": ([{"country": "US"}, None, ...], [{}, [], {"country": "XX"}, {"holidays": []}]),
}
DEFAULTS = {
    "sms_mode": "one_way", "sms_message_source": "custom", "sms_rate_per_minute": 60, "csv_column_headers": [],
    "schedule_type": "immediate", "description": None, "sms_flow_id": None, "sms_carrier": None,
    "sms_from_number": None, "scheduled_start_at": None, "scheduled_expires_at": None, "business_hours_config": None,
    "holidays_config": None,
}  # fmt: skip
ECHOED = {
    "name", "description", "sms_mode", "sms_message_source", "sms_carrier", "sms_rate_per_minute", "csv_column_headers"
}  # fmt: skip


@pytest.mark.parametrize(
    "field",
    [
        pytest.param(field, marks=pytest.mark.sentence(f"4.3 {field}", *([f"8 {field}"] if field in LIMITS else [])))
        for field in CREATE_FIELDS
    ],
)
def test_a_field_of_the_body(memory_tenant: Tenant, field: str) -> None:
    """Section 4.3: type, bounds, nullability and default of each field; `...` leaves it out."""
    right, wrong = VALUES[field]
    for value in right:
        created = memory_tenant.create(**{field: value})
        if value is ... and field in DEFAULTS:
            assert created[field] == DEFAULTS[field]
        elif field in ECHOED:
            assert created[field] == value
    for value in wrong:
        error = check_envelope(memory_tenant.post("/sms-campaigns", sms_body(**{field: value})), 400, "invalid_request")
        place = "scheduled_start_at" if value == "scheduled" else field
        assert all(detail["path"].startswith(place) for detail in error["details"]), value


@pytest.mark.sentence("4.3 contacts in one request", "4.3 201", "4.3 rule 4")
def test_a_campaign_and_its_contacts_in_one_request(tenant: Tenant) -> None:
    """Section 4.3: 201 with the campaign, its contacts loaded, its status by section 3."""
    people = [{"phone_number": f"+141555501{number:02d}"} for number in range(30)]
    answer = tenant.post("/sms-campaigns", sms_body(recipients=people))
    created = answer.json()
    assert (answer.status_code, created["total_recipients"], created["status"]) == (201, 30, "draft")
    assert created["sms_opted_out_excluded"] == 0


@pytest.mark.sentence("4.3 rule 1")
def test_sms_campaigns_must_be_enabled(service: Service) -> None:
    """Section 4.3, rule 1: otherwise 403, whatever the body holds."""
    tenant = service.tenant(sms_campaigns_enabled=False)
    check_envelope(tenant.post("/sms-campaigns", sms_body()), 403, "sms_campaigns_disabled")
    check_envelope(tenant.post("/sms-campaigns", {}), 403, "sms_campaigns_disabled")


@pytest.mark.sentence("4.3 rule 2", "4.3 rule 3")
def test_contacts_on_the_register(service: Service) -> None:
    """Section 4.3, rules 2 and 3: dropped before any row is written, and counted; all of them is a 400."""
    tenant = service.tenant()
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550102")
    out, other = {"phone_number": "+14155550102"}, {"phone_number": "+14155550103"}
    created = tenant.create(recipients=[out, other])
    assert (created["sms_opted_out_excluded"], created["total_recipients"]) == (1, 1)

    async def phones() -> list[str]:
        people = service.engine.campaigns.iter_recipients(tenant.workspace.id, created["id"])
        return [person.phone_number async for person in people]

    assert service.run(phones) == ["+14155550103"]
    check_envelope(tenant.post("/sms-campaigns", sms_body(recipients=[out, out])), 400, "invalid_request")
    assert tenant.get("/sms-campaigns").json()["pagination"]["total"] == 1


@pytest.mark.sentence("4.3 placeholders")
def test_placeholders_are_filled(sending: Sending) -> None:
    """Section 4.3: the contact's fields and any key of its custom_variables; one that is unknown is nothing."""
    tenant = sending.service.tenant()
    # One that nobody declared would be taken for a slip when the campaign is started.
    tenant.patch("/sms/settings", {"footer_enabled": False, "custom_variables": ["none"]})
    text = "{{first_name}}|{{last_name}}|{{email}}|{{company}}|{{phone_number}}|{{plan}}|{{none}}"
    person = {
        "phone_number": "+14155550102", "first_name": "Ana", "last_name": "Sousa", "email": "a@example.com",
        "company": "Acme", "custom_variables": {"plan": 7},
    }  # fmt: skip
    numbers: dict[str, Any] = {"sms_carrier": "twilio", "sms_from_number": "+14155550199", "sms_rate_per_minute": 600}
    sending.completed(tenant, tenant.create(message_body=text, recipients=[person], **numbers))
    assert [entry["body"] for entry in sending.accepted()] == ["Ana|Sousa|a@example.com|Acme|+14155550102|7|"]


@pytest.mark.sentence("4.3 sms_message_source", "4.3 sms_flow_id")
def test_a_flow_is_named(service: Service) -> None:
    """Section 4.3: `flow` names the automation flow by sms_flow_id, required then; it must be the workspace's own."""
    tenant, other = service.tenant(), service.tenant()
    steps = [FlowStep(kind="send", body="From the flow")]
    flow = service.run(service.engine.flows.create, tenant.workspace.id, NewFlow(name="F", steps=steps))
    body = sms_body(sms_message_source="flow", message_body=...)
    created = tenant.post("/sms-campaigns", body | {"sms_flow_id": flow.id}).json()
    assert (created["sms_message_source"], created["sms_flow_id"]) == ("flow", flow.id)
    assert other.post("/sms-campaigns", body | {"sms_flow_id": flow.id}).status_code == 400
    assert tenant.post("/sms-campaigns", body).status_code == 400
    assert tenant.post("/sms-campaigns", body | {"sms_flow_id": None}).status_code == 400
