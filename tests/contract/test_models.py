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
    EVENT_TYPES,
    write_account,
    write_agent,
    write_call,
    write_call_created,
    write_call_settings,
    write_campaign_created,
    write_flow,
    write_history,
    write_inbound_message,
    write_managed_campaign,
    write_message,
    write_number,
    write_recipient,
    write_recipient_count,
    write_reply_settings,
    write_settings,
    write_sms,
    write_sms_settings,
    write_unsubscribe,
)
from outreach.models import (
    AccountSummary,
    AgentUpdate,
    CallSettings,
    CallSettingsUpdate,
    CampaignBlocker,
    ContactHistory,
    FlowUpdate,
    NewAgent,
    NewFlow,
    NewNumber,
    NewUnsubscribes,
    NumberUpdate,
    ReplySettings,
    ReplySettingsUpdate,
)
from outreach.models.campaign import AgentSnapshot, CampaignUpdate
from outreach.models.recipient import Recipient, RecipientCount
from outreach.models.states import RecipientStatus
from outreach.models.trail import TrailRule, TrailStep, TrailStepKind
from outreach.testing.builders import make_agent, make_flow, make_inbound, make_number, make_unsubscribe, make_workspace
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

ACCOUNT = AccountSummary(
    id="a", workspace_id="w", provider="twilio", kind="carrier", credentials={}, replies_to_keywords=True,
    callback_url=None, throttled_by=None, throttled_until=None, problem=None, created_at="", updated_at="",
)  # fmt: skip
RECIPIENT = Recipient(
    campaign_id="c", position=0, phone_number="1", phone=None, first_name=None, last_name=None, email=None,
    company=None, custom_variables={}, status=RecipientStatus.PENDING,
)  # fmt: skip
COUNT = RecipientCount(status=RecipientStatus.PENDING, reason=None, count=1)
STEP = TrailStep(at=NOW, what=TrailStepKind.LOADED, rule=TrailRule.LOAD)
HISTORY = ContactHistory(
    campaign_id="c", position=0, phone_number="1", phone=None, status=None, reason=None, due_at=None, steps=[STEP]
)
BLOCKER = CampaignBlocker(by="holidays", until=None, why="x")


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
        ("ManagedCampaign", write_managed_campaign(CAMPAIGN, now=NOW)),
        ("CampaignBlocker", write_managed_campaign(CAMPAIGN, now=NOW, blockers=[BLOCKER])["blockers"][0]),
        ("RecipientCount", write_recipient_count(COUNT, "sms", {})),
        ("ManagedRecipient", write_recipient(RECIPIENT, "sms")),
        ("RecipientTrail", write_history(HISTORY, {}, "sms")),
        ("TrailStep", write_history(HISTORY, {}, "sms")["steps"][0]),
        ("ManagedSms", write_sms(MESSAGE, None)),
        ("InboundMessage", write_inbound_message(make_inbound())),
        ("Unsubscribe", write_unsubscribe(make_unsubscribe())),
        ("Agent", write_agent(make_agent())),
        ("Number", write_number(make_number())),
        ("Flow", write_flow(make_flow())),
        ("Account", write_account(ACCOUNT)),
        ("AllSettings", write_settings(make_workspace(), SmsSettings(), CallSettings(), ReplySettings(), ())),
        (
            "WorkspaceShown",
            write_settings(make_workspace(), SmsSettings(), CallSettings(), ReplySettings(), ())["workspace"],
        ),
        ("CallSettings", write_call_settings(CallSettings())),
        ("ReplySettings", write_reply_settings(ReplySettings(), ())),
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
        ("CampaignUpdate", CampaignUpdate, set()),
        ("UnsubscribesCreate", NewUnsubscribes, set()),
        ("AgentCreate", NewAgent, set()),
        ("AgentUpdate", AgentUpdate, set()),
        ("NumberCreate", NewNumber, set()),
        ("NumberUpdate", NumberUpdate, set()),
        ("FlowCreate", NewFlow, set()),
        ("FlowUpdate", FlowUpdate, set()),
        ("CallSettingsUpdate", CallSettingsUpdate, set()),
        ("ReplySettingsUpdate", ReplySettingsUpdate, set()),
    ],
)
def test_a_request_model_has_the_fields_of_its_schema(schema: str, model: Any, also: set[str]) -> None:
    """What is read has a field for every property; those that are required have no default, and no others."""
    renamed = RENAMED if "Campaign" in schema or schema == "CliGroupEntry" else {}
    fields = {renamed.get(field.name, field.name): field for field in attrs.fields(model)}
    assert set(fields) | also == set(SCHEMAS[schema]["properties"])
    required = {name for name, field in fields.items() if field.default is attrs.NOTHING}
    assert required == set(SCHEMAS[schema].get("required", [])) - also


def test_an_event_has_fields_of_its_schema() -> None:
    """Every type of events is in the contract, and every field of each."""
    assert list(SCHEMAS["EventType"]["enum"]) == list(EVENT_TYPES)
    fields = {field.name for kind in EVENT_TYPES.values() for field in attrs.fields(kind)} - {"workspace_id"}
    assert fields | {"type"} == set(names("Event"))


def test_the_states_of_recipients_are_those_of_the_contract() -> None:
    """The filter takes each of them."""
    assert SCHEMAS["RecipientStatus"]["enum"] == list(RecipientStatus)
