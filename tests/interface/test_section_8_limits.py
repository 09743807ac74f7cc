"""docs/interface.md#8: limits. Those of settings and of `to` are checked in sections 4.4 and 4.1."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Tenant, sms_body


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        pytest.param("name", ["x", "é" * 100], ["", "x" * 101], marks=pytest.mark.sentence("8 name")),
        pytest.param("description", ["", "😀" * 500], ["x" * 501], marks=pytest.mark.sentence("8 description")),
        pytest.param("message_body", ["", "😀" * 1600], ["x" * 1601], marks=pytest.mark.sentence("8 message_body")),
        pytest.param(
            "sms_rate_per_minute", [1, 600], [0, 601, -1, 2**63], marks=pytest.mark.sentence("8 sms_rate_per_minute")
        ),
        pytest.param("recipients", [[{"phone_number": "1"}]], [[]], marks=pytest.mark.sentence("8 recipients")),
    ],
)
def test_a_limit_of_the_create_body(memory_tenant: Tenant, field: str, right: list[Any], wrong: list[Any]) -> None:
    """Section 8: both ends are taken, what lies outside is refused; lengths count code points."""
    for value in right:
        memory_tenant.create(**{field: value})
    for value in wrong:
        assert memory_tenant.post("/sms-campaigns", sms_body(**{field: value})).status_code == 400


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
