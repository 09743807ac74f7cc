"""What the engine's models hold and what the contract's schemas name are the same fields."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest

from outreach import (
    Call,
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
from outreach.errors import Problem
from outreach.http import (
    EVENT_TYPES,
    FLOW_BODIES,
    SCHEDULE_BODIES,
    WEBHOOK_BODIES,
    document_of,
    number_bodies,
    to_json,
    write_account,
    write_call,
    write_call_created,
    write_call_details,
    write_campaign_copy,
    write_campaign_created,
    write_campaign_report,
    write_follow_up,
    write_history,
    write_history_item,
    write_inbound_message,
    write_managed_call,
    write_managed_campaign,
    write_message,
    write_occurrence,
    write_price_table,
    write_recipient,
    write_recipient_count,
    write_reply_settings,
    write_settings,
    write_sms,
    write_sms_settings,
    write_unsubscribe,
    write_webhook_attempt,
    write_webhook_progress,
)
from outreach.models import (
    Account,
    AgentUpdate,
    AudienceCounts,
    CallerIdAllocation,
    CallSettings,
    CallSettingsUpdate,
    CampaignNow,
    CampaignOverlap,
    CampaignProgress,
    CampaignReport,
    ContactExample,
    ContactHistory,
    ContactPreview,
    Cost,
    CostLine,
    CostlyCharacter,
    CreatedWebhook,
    DispatchFilter,
    Encodings,
    FlowUpdate,
    FollowUpCreated,
    Forecast,
    ForecastAssumptions,
    ForecastHour,
    ForecastPhase,
    HeldBack,
    HistoryItem,
    KeptForecast,
    LeaveOut,
    LeftOut,
    NewAgent,
    NewCallOutcome,
    NewFlow,
    NewFollowUp,
    NewNumber,
    NewSchedule,
    NewSimulation,
    NewTestMessage,
    NewUnsubscribes,
    NewWebhook,
    NumberUpdate,
    PlaceholderProblem,
    PlaceHours,
    Preflight,
    Price,
    PriceTable,
    ProgressPoint,
    PurgeResult,
    RecipientSkip,
    RenderedMessage,
    ReplySettings,
    ReplySettingsUpdate,
    ScheduleUpdate,
    SegmentShare,
    TextWarning,
    WebhookProgress,
    WebhookReplay,
    WebhookRotation,
    WebhookUpdate,
)
from outreach.models.campaign import AgentSnapshot, CampaignUpdate, Recipient, RecipientCount
from outreach.models.campaign_report import (
    CallFigures,
    FailureCount,
    MessageFigures,
    ResultCount,
    TimeBucket,
)
from outreach.models.reports import ProviderFailure
from outreach.models.states import RecipientStatus, TrailRule, TrailStep, TrailStepKind
from outreach.serialization.manage.copies import CampaignClone
from outreach.testing.builders import (
    make_agent,
    make_flow,
    make_inbound,
    make_number,
    make_occurrence,
    make_schedule,
    make_unsubscribe,
    make_webhook,
    make_webhook_attempt,
    make_webhook_cursor,
    make_workspace,
)
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

ACCOUNT = Account(
    id="a", workspace_id="w", provider="twilio", kind="carrier", credentials={}, replies_to_keywords=True,
    callback_url=None, throttled_by=None, throttled_until=None, previous_accepted_until=None, problem=None,
    created_at=NOW, updated_at=NOW,
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
BLOCKER = Problem(code="holidays", until=None, message="x")

FAILURE = ProviderFailure(provider="p", reason=None, error_code=None, error_message=None)
COPY = CampaignCreated(campaign=CAMPAIGN, opted_out_excluded=0)
REPORT = CampaignReport(
    campaign_id="c", workspace_id="w", name="n", channel="sms", status=CampaignStatus.DRAFT, created_at=NOW,
    started_at=None, completed_at=None, at=NOW, contacts=0, contacted=0, successful=0, failed=0, still_open=0,
    results=[ResultCount(status=RecipientStatus.PENDING, reason=None, meaning=None, contacts=1)],
    messages=MessageFigures(), calls=CallFigures(),
    failures=[FailureCount(failure=FAILURE, requests=1)],
    replies=0, repliers=0, opt_outs=0, timezone="UTC",
    over_time=[TimeBucket(since=NOW, until=NOW, requests=0, replies=0, opt_outs=0)],
    cost=Cost(amount=Decimal(1), currency="USD", lines=(), unpriced=0),
)  # fmt: skip
REPORTED = write_campaign_report(REPORT)


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
        ("ManagedCall", write_managed_call(CALL)),
        ("CallDetails", write_call_details(CALL, None)),
        ("Erasure", to_json(PurgeResult())),
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
        ("HistoryItem", write_history_item(HistoryItem(at=NOW, kind="campaign", phone="+14155550102"))),
        ("Unsubscribe", write_unsubscribe(make_unsubscribe())),
        ("Agent", FLOW_BODIES.write(make_agent())),
        ("Number", number_bodies().write(make_number())),
        ("Flow", FLOW_BODIES.write(make_flow())),
        ("Schedule", SCHEDULE_BODIES.write(make_schedule())),
        ("Webhook", WEBHOOK_BODIES.write(make_webhook())),
        ("CreatedWebhook", WEBHOOK_BODIES.write(CreatedWebhook(webhook=make_webhook(), secret="whsec_"))),
        ("WebhookAttempt", write_webhook_attempt(make_webhook_attempt())),
        (
            "WebhookProgress",
            write_webhook_progress(
                WebhookProgress(
                    cursor=make_webhook_cursor(),
                    waiting=1,
                    is_all=True,
                    waiting_since=None,
                    last=make_webhook_attempt(),
                )
            ),
        ),
        ("Occurrence", write_occurrence(make_occurrence())),
        ("Account", write_account(ACCOUNT)),
        ("AllSettings", write_settings(make_workspace(), SmsSettings(), CallSettings(), ReplySettings(), ())),
        (
            "WorkspaceShown",
            write_settings(make_workspace(), SmsSettings(), CallSettings(), ReplySettings(), ())["workspace"],
        ),
        ("CampaignCopy", write_campaign_copy(COPY, now=NOW)),
        ("FollowUp", write_follow_up(FollowUpCreated(created=COPY, selected=0, left_out={}), now=NOW)),
        ("CampaignReport", REPORTED),
        ("ReportResult", REPORTED["results"][0]),
        ("ReportMessages", REPORTED["messages"]),
        ("ReportCalls", REPORTED["calls"]),
        ("ReportFailure", REPORTED["failures"][0]),
        ("ReportStep", REPORTED["over_time"][0]),
        ("Cost", REPORTED["cost"]),
        ("PriceTable", write_price_table(PriceTable(currency="USD", prices=()))),
        ("PriceTable", write_price_table(None)),
        ("CallSettings", document_of(CallSettings())),
        ("ReplySettings", write_reply_settings(ReplySettings(), ())),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_has_the_fields_of_its_schema(schema: str, written: dict[str, Any]) -> None:
    """What is written holds every property that the contract names, and no other."""
    assert sorted(written) == sorted(names(schema))


@pytest.mark.parametrize(
    ("schema", "model"),
    [
        ("Preflight", Preflight),
        ("ContactExample", ContactExample),
        ("LeftOut", LeftOut),
        ("HeldBack", HeldBack),
        ("PlaceholderProblem", PlaceholderProblem),
        ("TextWarning", TextWarning),
        ("SegmentShare", SegmentShare),
        ("CostlyCharacter", CostlyCharacter),
        ("Encodings", Encodings),
        ("RenderedMessage", RenderedMessage),
        ("ContactPreview", ContactPreview),
        ("CostLine", CostLine),
        ("Cost", Cost),
        ("Forecast", Forecast),
        ("ForecastHour", ForecastHour),
        ("ForecastPhase", ForecastPhase),
        ("ForecastAssumptions", ForecastAssumptions),
        ("KeptForecast", KeptForecast),
        ("CampaignNow", CampaignNow),
        ("CampaignProgress", CampaignProgress),
        ("ProgressPoint", ProgressPoint),
        ("Price", Price),
        ("Audience", AudienceCounts),
        ("CampaignOverlap", CampaignOverlap),
    ],
)
def test_a_preflight_and_a_forecast_have_the_fields_of_their_schemas(schema: str, model: Any) -> None:
    """They are written field by field, and always whole."""
    assert [field.name for field in attrs.fields(model)] == names(schema) == SCHEMAS[schema]["required"]


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
    "from_numbers": "sms_from_numbers",
    "rate_per_minute": "sms_rate_per_minute",
    "trunk_id": "sip_trunk_id",
}


@pytest.mark.parametrize(
    ("schema", "model", "also"),
    [
        ("CallCreate", NewCall, set()),
        ("CallVerdict", NewCallOutcome, set()),
        ("SimulationCreate", NewSimulation, set()),
        ("DispatchFilter", DispatchFilter, set()),
        ("RecipientSkip", RecipientSkip, set()),
        ("SmsCampaignCreate", NewSmsCampaign, {"channel", "recipients"}),
        ("CallCampaignCreate", NewCallCampaign, {"channel", "recipients"}),
        ("Recipient", NewRecipient, set()),
        ("SmsSettingsUpdate", SmsSettingsUpdate, set()),
        ("SmsSend", NewMessage, set()),
        ("CliGroupEntry", CallerIdAllocation, set()),
        ("CampaignUpdate", CampaignUpdate, set()),
        ("CampaignClone", CampaignClone, set()),
        ("CampaignFollowUp", NewFollowUp, set()),
        ("LeaveOut", LeaveOut, set()),
        ("TestMessage", NewTestMessage, set()),
        ("PriceTableSet", PriceTable, set()),
        ("PriceSet", Price, set()),
        ("UnsubscribesCreate", NewUnsubscribes, set()),
        ("AgentCreate", NewAgent, set()),
        ("AgentUpdate", AgentUpdate, set()),
        ("NumberCreate", NewNumber, set()),
        ("NumberUpdate", NumberUpdate, set()),
        ("FlowCreate", NewFlow, set()),
        ("FlowUpdate", FlowUpdate, set()),
        ("ScheduleCreate", NewSchedule, set()),
        ("WebhookCreate", NewWebhook, set()),
        ("WebhookUpdate", WebhookUpdate, set()),
        ("WebhookRotation", WebhookRotation, set()),
        ("WebhookReplay", WebhookReplay, set()),
        ("ScheduleUpdate", ScheduleUpdate, set()),
        ("CallSettingsUpdate", CallSettingsUpdate, set()),
        ("ReplySettingsUpdate", ReplySettingsUpdate, set()),
        ("PlaceHours", PlaceHours, set()),
    ],
)
def test_a_request_model_has_the_fields_of_its_schema(schema: str, model: Any, also: set[str]) -> None:
    """What is read has a field for every property; those that are required have no default, and no others."""
    renamed = RENAMED if "Campaign" in schema or schema == "CliGroupEntry" else {}
    fields = {renamed.get(field.name, field.name): field for field in attrs.fields(model)}
    if model is NewRecipient:
        # Lists have columns of them; the interface has neither.
        del fields["zip_code"], fields["state"]
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
