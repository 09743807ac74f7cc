"""What openapi.yaml cannot say, the server says: bodies that its schemas take and that are refused all the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.document import validator_at
from tests.server.conftest import Tenant, sms_body
from tests.server.test_errors import check_envelope

AGENT = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"
DAY = {"timezone": "UTC", "days": ["mon"], "start": "09:00", "end": "17:00"}


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        # A schema that looks into every depth refers to itself, and generators of clients drop it.
        ("/calls", {"agent_id": AGENT, "to": "+14155550102", "variables": {"a": ["\x00"]}}, "variables"),
        ("/calls", {"agent_id": AGENT, "to": "+14155550102", "variables": {"a": {"\x00": 1}}}, "variables"),
        # Which names there are, the server's own libraries know.
        (
            "/sms-campaigns",
            sms_body(business_hours_config=DAY | {"timezone": "Mars/Base"}),
            "business_hours_config.timezone",
        ),
        (
            "/sms-campaigns",
            sms_body(holidays_config={"country": "GB", "subdivision": "BY"}),
            "holidays_config.subdivision",
        ),
        # A schema compares no two values.
        ("/sms-campaigns", sms_body(business_hours_config=DAY | {"end": "09:00"}), "business_hours_config"),
        (
            "/sms-campaigns",
            sms_body(
                schedule_type="scheduled",
                scheduled_start_at="2026-12-02T09:00:00Z",
                scheduled_expires_at="2026-12-01T09:00:00Z",
            ),
            "scheduled_expires_at",
        ),
        ("/sms-campaigns", sms_body(sms_flow_id=AGENT), "sms_flow_id"),
    ],
)
def test_what_a_schema_takes_may_be_refused(memory_tenant: Tenant, path: str, body: Any, place: str) -> None:
    """The refusal is a 400 that names the place."""
    schema = ("paths", path, "post", "requestBody", "content", "application/json", "schema")
    assert [error.message for error in validator_at(*schema).iter_errors(body)] == []
    refusal = check_envelope(memory_tenant.post(path, body), 400, "invalid_request")
    assert refusal["details"][0]["path"].startswith(place)
