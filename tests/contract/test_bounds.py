"""The bounds stand on the models; openapi.yaml and the command line tell the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import click
import pytest

from outreach import (
    AgentUpdate,
    BusinessHours,
    CallSettingsUpdate,
    CampaignUpdate,
    FlowStep,
    FlowUpdate,
    InvalidRequest,
    NewCall,
    NewCallCampaign,
    NewMessage,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    NumberUpdate,
    ReplySettingsUpdate,
    SmsSettingsUpdate,
)
from outreach.models import (
    CallerIdAllocation,
    DispatchFilter,
    LeaveOut,
    NewAgent,
    NewCallOutcome,
    NewFlow,
    NewFollowUp,
    NewNumber,
    NewSchedule,
    NewSimulation,
    NewTestMessage,
    NewUnsubscribes,
    NewUpload,
    NewWebhook,
    PlaceHours,
    Price,
    PriceTable,
    RecipientSkip,
    ScheduleUpdate,
    WebhookReplay,
    WebhookRotation,
    WebhookUpdate,
    bounds_of,
)
from outreach.models.fields import FieldRule, Integer, ListOf, OneOf, Text, fields_of
from outreach.serialization.campaigns import CALL_NAMES, RECIPIENT_FIELDS, SMS_NAMES, UPDATE_NAMES
from outreach.serialization.manage.campaigns import CampaignStart
from outreach.serialization.manage.copies import CampaignClone
from outreach.serialization.manage.resources import Decision, DispatchDecision, ErasureRequest, NarrowerHours
from outreach_server.cli.root import main
from outreach_server.lists.requests import MAX_CORRECTIONS, read_list_request
from tests.contract.document import SCHEMAS as DESCRIBED
from tests.contract.document import operations, resolve

SCHEMAS: dict[str, tuple[type[Any], Mapping[str, str]]] = {
    "CallCreate": (NewCall, {}),
    "SmsCampaignCreate": (NewSmsCampaign, SMS_NAMES),
    "CallCampaignCreate": (NewCallCampaign, CALL_NAMES),
    "Recipient": (NewRecipient, {}),
    "CliGroupEntry": (CallerIdAllocation, {"number_id": "phoneNumberId", "phone": "phoneE164"}),
    "BusinessHours": (BusinessHours, {"batch_concurrency": "batchConcurrency"}),
    "BusinessHoursBySchedule": (BusinessHours, {"batch_concurrency": "batchConcurrency"}),
    "SmsSettingsUpdate": (SmsSettingsUpdate, {}),
    "SmsSend": (NewMessage, {}),
    "AgentCreate": (NewAgent, {}),
    "AgentUpdate": (AgentUpdate, {}),
    "NumberCreate": (NewNumber, {}),
    "NumberUpdate": (NumberUpdate, {}),
    "FlowCreate": (NewFlow, {}),
    "FlowUpdate": (FlowUpdate, {}),
    "FlowStep": (FlowStep, {}),
    "ScheduleCreate": (NewSchedule, {}),
    "ScheduleUpdate": (ScheduleUpdate, {}),
    "WebhookCreate": (NewWebhook, {}),
    "WebhookUpdate": (WebhookUpdate, {}),
    "WebhookRotation": (WebhookRotation, {}),
    "WebhookReplay": (WebhookReplay, {}),
    "CallSettingsUpdate": (CallSettingsUpdate, {}),
    "ReplySettingsUpdate": (ReplySettingsUpdate, {}),
    "NarrowerHoursSet": (NarrowerHours, {}),
    "PlaceHours": (PlaceHours, {}),
    "PriceTableSet": (PriceTable, {}),
    "PriceSet": (Price, {}),
    "UnsubscribesCreate": (NewUnsubscribes, {}),
    "UnsubscribeDecision": (Decision, {}),
    "CampaignUpdate": (CampaignUpdate, UPDATE_NAMES),
    "CampaignStart": (CampaignStart, {}),
    "CampaignClone": (CampaignClone, {}),
    "CampaignFollowUp": (NewFollowUp, {"body": "message_body"}),
    "LeaveOut": (LeaveOut, {}),
    "TestMessage": (NewTestMessage, {}),
    "RecipientSkip": (RecipientSkip, {}),
    "CallVerdict": (NewCallOutcome, {}),
    "DispatchDecision": (DispatchDecision, {}),
    "DispatchFilter": (DispatchFilter, {}),
    "ErasureRequest": (ErasureRequest, {}),
    "UploadCreate": (NewUpload, {}),
    "SimulationCreate": (NewSimulation, {}),
}
"""The schemas of requests, the models behind them, and the fields with another name there."""

UPLOADS = ("UploadCheck", "UploadLoad", "UploadAddition")
OTHER_FORMS = {
    # The contacts of a campaign, which have a schema of their own.
    "AudienceCount",
    # `serialization.business_hours` reads several forms of hours and holidays.
    *("BusinessHoursByDay", "BusinessHoursForDays", "DayHours", "WeekSchedule", "Window"),
    *("HolidayCalendar", "Holiday"),
}
"""The schemas of requests without a model that has their fields."""

FIELDS = [
    (schema, field)
    for schema, (model, _) in SCHEMAS.items()
    for field in (RECIPIENT_FIELDS if model is NewRecipient else fields_of(model))
]


def test_every_schema_of_a_request_is_compared() -> None:
    """Those of all bodies, and those inside them."""
    found: set[str] = set()
    for _, _, operation in operations():
        _collect(operation.get("requestBody"), found)
    objects = {name for name in found if "properties" in DESCRIBED[name]}
    assert objects - {*SCHEMAS, *UPLOADS} == OTHER_FORMS


def _collect(node: Any, found: set[str]) -> None:
    if isinstance(node, Mapping):
        name = node.get("$ref", "").rpartition("/")[2]
        if name and name not in found:
            found.add(name)
            _collect(DESCRIBED[name], found)
    for inner in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
        _collect(inner, found)


@pytest.mark.parametrize(("schema", "field"), FIELDS)
def test_the_document_has_the_bounds_and_choices_of_the_model(schema: str, field: str) -> None:
    """A client that validates refuses what the engine would, and nothing else."""
    model, renamed = SCHEMAS[schema]
    _compare(DESCRIBED[schema]["properties"][renamed.get(field, field)], fields_of(model)[field].rule)


def _compare(described: Any, rule: FieldRule) -> None:
    told = resolve(described)
    if "anyOf" in told:
        told = resolve(told["anyOf"][0])
    match rule:
        case Integer():
            assert (told["minimum"], told["maximum"]) == (rule.minimum, rule.maximum)
        case Text(pattern=re.Pattern() as pattern):
            assert told["pattern"] in {f"^{pattern.pattern}$", f"^({pattern.pattern})$"}
        case Text(maximum=int()) if told.get("format") != "uuid":
            assert (told.get("minLength", 0), told["maxLength"]) == (rule.minimum, rule.maximum)
        case Text(maximum=None):
            assert (told.get("minLength", 0), told.get("maxLength")) == (rule.minimum, None)
        case OneOf():
            assert [word for word in told["enum"] if word is not None] == list(rule.words)
        case ListOf():
            assert (told.get("minItems", 0), told.get("maxItems")) == (rule.minimum, rule.maximum)
            _compare(told["items"], rule.rule)
        case _:
            assert told


@pytest.mark.parametrize("schema", UPLOADS)
def test_the_document_has_the_bounds_of_how_a_list_is_read(schema: str) -> None:
    """Texts up to their length, and so many corrections."""
    described = DESCRIBED[schema]["properties"]
    keys = {"map": "phone_number", "corrections": "2"}
    for name in described.keys() - {"campaign", "campaign_id", "leave_out"}:
        longest = described[name].get("additionalProperties", described[name])["maxLength"]
        text = "x" * (longest + 1)
        with pytest.raises(InvalidRequest) as refused:
            read_list_request({name: {keys[name]: text} if name in keys else text}, this_year=2026, carriers=())
        assert f"must be a text of at most {longest} characters" in refused.value.details[0].message
    assert described["corrections"]["maxProperties"] == MAX_CORRECTIONS


OPTIONS = [
    ("campaigns import", "--rate", NewSmsCampaign, "rate_per_minute"),
    ("campaigns import", "--batch-concurrency", NewCallCampaign, "batch_concurrency"),
    ("campaigns update", "--rate", NewSmsCampaign, "rate_per_minute"),
    ("numbers create", "--rate", NewNumber, "rate_per_minute"),
    ("numbers update", "--rate", NewNumber, "rate_per_minute"),
    ("settings set", "--max-segments", SmsSettingsUpdate, "max_segments"),
    ("settings set", "--retry-max-attempts", SmsSettingsUpdate, "retry_max_attempts"),
    ("settings set", "--retry-delay-minutes", SmsSettingsUpdate, "retry_delay_minutes"),
    ("settings set", "--call-retry-max-attempts", CallSettingsUpdate, "retry_max_attempts"),
    ("settings set", "--call-retry-delay-minutes", CallSettingsUpdate, "retry_delay_minutes"),
    ("workspaces create", "--request-limit", NewWorkspace, "request_limit"),
    ("workspaces create", "--frequency-cap", NewWorkspace, "frequency_cap"),
]


@pytest.mark.parametrize(("command", "option", "model", "field"), OPTIONS)
def test_the_command_line_has_the_bounds_of_the_model(command: str, option: str, model: type[Any], field: str) -> None:
    """Its help shows them."""
    assert list(_ranges(command, option)) == [tuple(bounds_of(model, field))]


def _ranges(command: str, option: str) -> Iterator[tuple[float | None, float | None]]:
    found: click.Command = main
    for name in command.split():
        assert isinstance(found, click.Group)
        next_one = found.get_command(click.Context(found), name)
        assert next_one is not None
        found = next_one
    for parameter in found.params:
        if option in parameter.opts and isinstance(parameter.type, click.IntRange):
            yield parameter.type.min, parameter.type.max
