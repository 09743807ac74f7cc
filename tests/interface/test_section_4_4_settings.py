"""docs/interface.md#4.4: PATCH /sms/settings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interface.conftest import Sending, until
from tests.server.conftest import Tenant
from tests.server.test_errors import check_envelope

NUMBERS = {"sms_carrier": "twilio", "sms_from_number": "+14155550199"}


@pytest.mark.sentence("4.4 only the fields to change", "4.4 200", "row settings, before any PATCH")
def test_only_what_is_sent_changes(tenant: Tenant) -> None:
    """Section 4.4: only the fields to change are sent; 200 answers with all settings after the update."""
    before = tenant.patch("/sms/settings", {})
    after = tenant.patch("/sms/settings", {"max_segments": 1})
    assert (before.status_code, before.json()) == (200, {
        "footer_enabled": True, "footer_text": "Reply STOP to opt out", "max_segments": 5, "retry_enabled": False,
        "retry_max_attempts": 3, "retry_delay_minutes": 15, "custom_variables": [],
    })  # fmt: skip
    assert after.json() == before.json() | {"max_segments": 1}


@pytest.mark.sentence("4.4 unknown fields")
def test_unknown_fields_are_rejected(tenant: Tenant) -> None:
    """Section 4.4: unknown fields are rejected with 400, as values out of range are, and nothing changes."""
    answer = tenant.patch("/sms/settings", {"max_segments": 1, "retry_max_attempts": 9, "footer": "x"})
    error = check_envelope(answer, 400, "invalid_request")
    assert {detail["path"] for detail in error["details"]} == {"retry_max_attempts", "footer"}
    assert tenant.patch("/sms/settings", {}).json()["max_segments"] == 5


@pytest.mark.sentence("4.4 out of range")
@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        pytest.param("footer_enabled", [True, False], [1, "true", None]),
        pytest.param("retry_enabled", [True, False], [0, "false", None]),
        pytest.param("footer_text", ["", "é" * 120], ["é" * 121, 1, None], marks=pytest.mark.sentence("8 footer_text")),
        pytest.param("max_segments", [1, 5], [0, 6, "1", None], marks=pytest.mark.sentence("8 max_segments")),
        pytest.param("retry_max_attempts", [1, 3], [0, 4, 1.5], marks=pytest.mark.sentence("8 retry_max_attempts")),
        pytest.param("retry_delay_minutes", [5, 120], [4, 121], marks=pytest.mark.sentence("8 retry_delay_minutes")),
        pytest.param(
            "custom_variables",
            [[], ["a", "A_9"], ["x" * 40]],
            [["x" * 41], [""], ["a-b"], ["é"], [1], "a", None],
            marks=pytest.mark.sentence("8 custom_variables"),
        ),
    ],
)
def test_out_of_range_values_are_rejected(
    memory_tenant: Tenant, field: str, right: list[Any], wrong: list[Any]
) -> None:
    """Section 4.4: both ends of each bound are taken, what lies outside is rejected with 400."""
    for value in right:
        assert memory_tenant.patch("/sms/settings", {field: value}).json()[field] == value
    for value in wrong:
        check_envelope(memory_tenant.patch("/sms/settings", {field: value}), 400, "invalid_request")


@pytest.mark.sentence("4.4 footer on campaign messages", "4.4 no footer on POST /sms")
def test_the_footer_is_for_campaign_messages(sending: Sending) -> None:
    """Section 4.4: appended to every campaign message while footer_enabled is true; never to POST /sms."""
    tenant = sending.service.tenant()
    tenant.patch("/sms/settings", {"footer_text": "Reply STOP"})
    sending.completed(tenant, tenant.create(**NUMBERS))
    tenant.patch("/sms/settings", {"footer_enabled": False})
    sending.start(tenant, tenant.create(recipients=[{"phone_number": "+14155550103"}], **NUMBERS))
    until(lambda: len(sending.accepted()) == 2)
    tenant.patch("/sms/settings", {"footer_enabled": True})
    tenant.post("/sms", {"to": "+14155550104", "body": "Hi"})
    until(lambda: len(sending.accepted()) == 3)
    bodies = {entry["to"]: entry["body"] for entry in sending.accepted()}
    assert bodies == {"+14155550102": "Hi\nReply STOP", "+14155550103": "Hi", "+14155550104": "Hi"}
