"""docs/interface.md#3: states and transitions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from outreach import CampaignStatus, FlowStep, NewFlow
from tests.interface.conftest import Sending
from tests.server.conftest import Service, Tenant

NUMBERS = {"sms_from_number": "+14155550199", "sms_carrier": "telnyx"}


@pytest.mark.sentence("3 values")
def test_the_status_values(tenant: Tenant) -> None:
    """Section 3: the eight values, each of which the list can be filtered by."""
    values = ["draft", "ready", "scheduled", "active", "paused", "completed", "cancelled", "expired"]
    assert [status.value for status in CampaignStatus] == values
    assert {tenant.get(f"/sms-campaigns?status={value}").status_code for value in values} == {200}


@pytest.mark.sentence("3 ready", "3 draft")
def test_a_new_campaign_is_ready_or_draft(service: Service) -> None:
    """Section 3: ready when a message is composed and number and carrier are set; else a draft."""
    tenant = service.tenant()
    steps = [FlowStep(kind="send", body="Hi")]
    flow = service.run(service.engine.flows.create, tenant.workspace.id, NewFlow(name="F", steps=steps))
    by_flow = {"sms_message_source": "flow", "sms_flow_id": flow.id, "message_body": ...}
    cases: list[tuple[dict[str, Any], str]] = [
        (NUMBERS, "ready"),
        (NUMBERS | by_flow, "ready"),
        ({}, "draft"),
        ({"sms_carrier": "telnyx"}, "draft"),
        ({"sms_from_number": "+14155550199"}, "draft"),
        (by_flow, "draft"),
        (NUMBERS | {"message_body": ""}, "draft"),
    ]
    assert [tenant.create(**fields)["status"] for fields, _ in cases] == [status for _, status in cases]


@pytest.mark.sentence("3 nothing is sent", "3 rule 4", "4.3 rule 5")
def test_nothing_is_sent_until_the_application_starts_it(sending: Sending) -> None:
    """Section 3 and its rule 4: creating sends nothing; the application starts sending."""
    tenant = sending.service.tenant()
    created = tenant.create(**NUMBERS)
    tenant.post("/sms", {"to": "+14155550188", "body": "after the campaign"})
    while not sending.accepted():
        tenant.get("/sms-campaigns")
    assert [entry["to"] for entry in sending.accepted()] == ["+14155550188"]
    sending.completed(tenant, created)
    assert [entry["to"] for entry in sending.accepted()] == ["+14155550188", "+14155550102"]


@pytest.mark.sentence("3 rule 1", "3 rule 2")
def test_the_effective_status_tells_of_the_expiry(service: Service) -> None:
    """Section 3, rules 1 and 2: expired when the time has passed and not terminal; the filter sees the raw status."""
    tenant = service.tenant()
    expiry = (service.clock.now() + timedelta(hours=1)).isoformat()
    created = tenant.create(scheduled_expires_at=expiry)
    other = tenant.create(scheduled_expires_at=expiry)
    assert created["effective_status"] == created["status"] == "draft"
    service.run(service.engine.campaigns.cancel, tenant.workspace.id, other["id"])
    service.clock.ahead += timedelta(hours=2)
    found = {c["id"]: (c["status"], c["effective_status"]) for c in tenant.get("/sms-campaigns").json()["data"]}
    assert found == {created["id"]: ("draft", "expired"), other["id"]: ("cancelled", "cancelled")}
    assert tenant.get("/sms-campaigns?status=expired").json()["data"] == []
    assert tenant.get("/sms-campaigns?status=draft").json()["pagination"]["total"] == 1


@pytest.mark.sentence("3 rule 3")
def test_when_it_started_and_when_it_was_completed(sending: Sending) -> None:
    """Section 3, rule 3: started_at when first active; completed_at when terminal and null before that."""
    tenant = sending.service.tenant()
    created = tenant.create(**NUMBERS)
    assert (created["started_at"], created["completed_at"]) == (None, None)
    ended = sending.completed(tenant, created)
    assert created["created_at"] <= ended["started_at"] <= ended["completed_at"]
