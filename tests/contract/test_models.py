"""What the engine's models hold and what the contract's schemas name are the same fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from outreach import (
    Call,
    CallerIdAllocation,
    Campaign,
    CampaignCreated,
    CampaignStatus,
    Message,
    MessageStatus,
    NewCall,
    NewCallCampaign,
    NewMessage,
    NewRecipient,
    NewSmsCampaign,
    SmsSettings,
    SmsSettingsUpdate,
)
from outreach.http import (
    write_call,
    write_call_created,
    write_campaign_created,
    write_message,
    write_sms_settings,
)
from outreach.models.campaign import AgentSnapshot
from tests.contract.document import SCHEMAS

NOW = datetime(2026, 11, 20, tzinfo=UTC)
CAMPAIGN = Campaign(
    id="c", workspace_id="w", channel="call", name="n", status=CampaignStatus.DRAFT, created_at=NOW, updated_at=NOW,
    agent=AgentSnapshot(id="a", name="n", provider="p", is_active=True),
)  # fmt: skip
CALL = Call(
    id="c", workspace_id="w", agent_id="a", provider="p", provider_call_id="x", to="+14155550102", created_at=NOW
)
MESSAGE = Message(
    id="m", workspace_id="w", to="+14155550102", from_number=None, carrier="twilio", body="b", segments=1,
    status=MessageStatus.QUEUED, created_at=NOW,
)  # fmt: skip


def names(schema: str) -> list[str]:
    """Return the properties of a component, of all its parts."""
    parts = SCHEMAS[schema].get("allOf", [])
    own = list(SCHEMAS[schema].get("properties", {}))
    for part in parts:
        own += names(part["$ref"].rsplit("/", 1)[-1]) if "$ref" in part else list(part.get("properties", {}))
    return own


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ("CampaignCreated", write_campaign_created(CampaignCreated(campaign=CAMPAIGN, opted_out_excluded=0), now=NOW)),
        ("Call", write_call(CALL)),
        ("CallCreated", write_call_created(CALL)),
        ("SmsSent", write_message(MESSAGE)),
        ("SmsSettings", write_sms_settings(SmsSettings())),
        ("AgentSnapshot", attrs.asdict(CAMPAIGN.agent)),  # type: ignore[arg-type]
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_has_the_fields_of_its_schema(schema: str, written: dict[str, Any]) -> None:
    """What is written holds every property that the contract names, and no other."""
    assert sorted(written) == sorted(names(schema))


RENAMED = {
    "business_hours": "business_hours_config",
    "holidays": "holidays_config",
    "cli_group": "cli_group_config",
    "number_id": "phoneNumberId",
    "phone": "phoneE164",
    "message_mode": "sms_mode",
    "message_source": "sms_message_source",
    "body": "message_body",
    "flow_id": "sms_flow_id",
    "carrier": "sms_carrier",
    "from_number": "sms_from_number",
    "rate_per_minute": "sms_rate_per_minute",
    "trunk_id": "sip_trunk_id",
}


@pytest.mark.parametrize(
    ("schema", "model", "also"),
    [
        ("CallCreate", NewCall, set()),
        ("SmsCampaignCreate", NewSmsCampaign, {"channel", "recipients"}),
        ("CallCampaignCreate", NewCallCampaign, {"channel", "recipients"}),
        ("Recipient", NewRecipient, set()),
        ("SmsSettingsUpdate", SmsSettingsUpdate, set()),
        ("SmsSend", NewMessage, set()),
        ("CliGroupEntry", CallerIdAllocation, set()),
    ],
)
def test_a_request_model_has_the_fields_of_its_schema(schema: str, model: Any, also: set[str]) -> None:
    """What is read has a field for every property; those that are required have no default, and no others."""
    renamed = {} if schema == "SmsSend" else RENAMED
    fields = {renamed.get(field.name, field.name): field for field in attrs.fields(model)}
    assert set(fields) | also == set(SCHEMAS[schema]["properties"])
    required = {name for name, field in fields.items() if field.default is attrs.NOTHING}
    assert required == set(SCHEMAS[schema].get("required", [])) - also
