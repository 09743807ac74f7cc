"""The bounds stand on the models; openapi.yaml and the command line tell the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest

from outreach import (
    BusinessHours,
    CallSettings,
    FlowStep,
    NewCallCampaign,
    NewMessage,
    NewSmsCampaign,
    Number,
    ReplySettings,
    SmsSettings,
    Workspace,
)
from outreach.models import CallerIdAllocation, Length, NewAgent, NewFlow, NewNumber, NewUnsubscribes, bounds_of
from outreach.models.base import bounded_fields
from outreach_server.cli.root import main
from tests.contract.document import SCHEMAS as DESCRIBED
from tests.contract.document import resolve

SCHEMAS = {
    "SmsCampaignCreate": (
        NewSmsCampaign,
        {"body": "message_body", "rate_per_minute": "sms_rate_per_minute"},
    ),
    "CallCampaignCreate": (NewCallCampaign, {}),
    "CliGroupEntry": (CallerIdAllocation, {}),
    "BusinessHours": (BusinessHours, {"batch_concurrency": "batchConcurrency"}),
    "SmsSettingsUpdate": (SmsSettings, {}),
    "SmsSend": (NewMessage, {"body": "body"}),
    "AgentCreate": (NewAgent, {}),
    "AgentUpdate": (NewAgent, {}),
    "NumberCreate": (NewNumber, {}),
    "NumberUpdate": (NewNumber, {}),
    "FlowCreate": (NewFlow, {}),
    "FlowUpdate": (NewFlow, {}),
    "FlowStep": (FlowStep, {}),
    "CallSettingsUpdate": (CallSettings, {}),
    "ReplySettingsUpdate": (ReplySettings, {}),
    "UnsubscribesCreate": (NewUnsubscribes, {}),
    "CampaignUpdate": (NewSmsCampaign, {"body": "message_body", "rate_per_minute": "sms_rate_per_minute"}),
}
"""The schemas of requests, the models behind them, and the fields with another name there."""

BOUNDED = [(schema, field) for schema, (model, _) in SCHEMAS.items() for field in bounded_fields(model)]


@pytest.mark.parametrize(("schema", "field"), BOUNDED)
def test_the_document_has_the_bounds_of_the_model(schema: str, field: str) -> None:
    """A client that validates refuses what the engine would, and nothing else."""
    model, renamed = SCHEMAS[schema]
    told = resolve(DESCRIBED[schema]["properties"][renamed.get(field, field)])
    least, most = bounds = bounds_of(model, field)
    if isinstance(bounds, Length):
        assert (told.get("minLength", 0), told["maxLength"]) == (least, most)
    else:
        assert (told["minimum"], told["maximum"]) == (least, most)


OPTIONS = [
    ("campaigns import", "--rate", NewSmsCampaign, "rate_per_minute"),
    ("campaigns import", "--batch-concurrency", NewCallCampaign, "batch_concurrency"),
    ("campaigns update", "--rate", NewSmsCampaign, "rate_per_minute"),
    ("numbers create", "--rate", Number, "rate_per_minute"),
    ("numbers update", "--rate", Number, "rate_per_minute"),
    ("settings set", "--max-segments", SmsSettings, "max_segments"),
    ("settings set", "--retry-max-attempts", SmsSettings, "retry_max_attempts"),
    ("settings set", "--retry-delay-minutes", SmsSettings, "retry_delay_minutes"),
    ("settings set", "--call-retry-max-attempts", CallSettings, "retry_max_attempts"),
    ("settings set", "--call-retry-delay-minutes", CallSettings, "retry_delay_minutes"),
    ("workspaces create", "--request-limit", Workspace, "request_limit"),
    ("workspaces create", "--frequency-cap", Workspace, "frequency_cap"),
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
