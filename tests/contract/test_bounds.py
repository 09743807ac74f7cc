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
    NewCall,
    NewCallCampaign,
    NewMessage,
    NewSmsCampaign,
    NewWorkspace,
    NumberUpdate,
    ReplySettingsUpdate,
    SmsSettingsUpdate,
)
from outreach.models import (
    CallerIdAllocation,
    NewAgent,
    NewFlow,
    NewFollowUp,
    NewNumber,
    NewSchedule,
    NewTestMessage,
    NewUnsubscribes,
    NewWebhook,
    ScheduleUpdate,
    WebhookReplay,
    WebhookRotation,
    WebhookUpdate,
    bounds_of,
)
from outreach.models.fields import FieldRule, Integer, ListOf, OneOf, Text, fields_of
from outreach.serialization.campaigns import CALL_NAMES, SMS_NAMES, UPDATE_NAMES
from outreach_server.cli.root import main
from tests.contract.document import SCHEMAS as DESCRIBED
from tests.contract.document import resolve

SCHEMAS: dict[str, tuple[type[Any], Mapping[str, str]]] = {
    "CallCreate": (NewCall, {}),
    "SmsCampaignCreate": (NewSmsCampaign, SMS_NAMES),
    "CallCampaignCreate": (NewCallCampaign, CALL_NAMES),
    "CliGroupEntry": (CallerIdAllocation, {"number_id": "phoneNumberId", "phone": "phoneE164"}),
    "BusinessHours": (BusinessHours, {"batch_concurrency": "batchConcurrency"}),
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
    "UnsubscribesCreate": (NewUnsubscribes, {}),
    "CampaignUpdate": (CampaignUpdate, UPDATE_NAMES),
    "CampaignFollowUp": (NewFollowUp, {"body": "message_body"}),
    "TestMessage": (NewTestMessage, {}),
}
"""The schemas of requests, the models behind them, and the fields with another name there."""

FIELDS = [(schema, field) for schema, (model, _) in SCHEMAS.items() for field in fields_of(model)]


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
            assert told["pattern"] == f"^{pattern.pattern}$"
        case Text(maximum=int()):
            assert (told.get("minLength", 0), told["maxLength"]) == (rule.minimum, rule.maximum)
        case OneOf():
            assert told["enum"] == list(rule.words)
        case ListOf():
            assert (told.get("minItems", 0), told.get("maxItems")) == (rule.minimum, rule.maximum)
            _compare(told["items"], rule.rule)
        case _:
            assert told


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
