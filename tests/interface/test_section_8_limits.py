"""docs/interface.md#8: limits. Those of settings and of `to` are checked in sections 4.4 and 4.1."""

from __future__ import annotations

import pytest

from tests.server.conftest import Tenant, sms_body


@pytest.mark.sentence("8 batch_concurrency")
def test_the_limit_of_batch_concurrency(memory_tenant: Tenant) -> None:
    """Section 8: 1-40, in business hours and in the body of a calling campaign."""
    call = {"agent_id": memory_tenant.agent.id, "name": "n", "recipients": [{"phone_number": "1"}]}
    hours = {"timezone": "UTC", "schedule": {}}
    for value, status in ((1, 201), (40, 201), (0, 400), (41, 400), (1.5, 400)):
        by_hours = sms_body(business_hours_config=hours | {"batchConcurrency": value})
        assert memory_tenant.post("/sms-campaigns", by_hours).status_code == status
        answer = memory_tenant.post("/campaigns", call | {"batch_concurrency": value})
        assert answer.status_code == status
        assert status == 400 or answer.json()["batch_concurrency"] == value
