"""Agents, numbers, flows and accounts, settings, the register and messages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from outreach.convert.documents import document_of
from outreach.convert.field_rules import Array, uuid
from outreach.convert.json_responses import write_sms_settings
from outreach.convert.manage.campaigns import write_failure
from outreach.convert.request_converter import make_request_converter, nested, read_object
from outreach.models.account import Account
from outreach.models.base import CARRIERS
from outreach.models.fields import FieldRule, OneOf
from outreach.models.message import InboundMessage, Message, ReplyPurpose
from outreach.models.reports import ProviderFailure
from outreach.models.resources import (
    MAX_STEPS,
    Agent,
    AgentUpdate,
    Flow,
    FlowStep,
    FlowUpdate,
    NewAgent,
    NewFlow,
    NewNumber,
    Number,
    NumberUpdate,
)
from outreach.models.settings import (
    CallSettings,
    CallSettingsUpdate,
    ReplySettings,
    ReplySettingsUpdate,
    ReplyText,
    SmsSettings,
)
from outreach.models.unsubscribe import NewUnsubscribes, Unsubscribe
from outreach.models.workspace import Workspace

_read_new_agent: Final = make_request_converter(NewAgent, closed="an agent")
_read_agent_update: Final = make_request_converter(AgentUpdate, closed="an agent's update")

_STEPS: Final = {
    "steps": Array(nested(make_request_converter(FlowStep, closed="a step")), 1, MAX_STEPS),
}
_read_new_flow: Final = make_request_converter(NewFlow, _STEPS, closed="a flow")
_read_flow_update: Final = make_request_converter(FlowUpdate, _STEPS, closed="a flow's update")

_REPLIES: Final[dict[ReplyPurpose, str]] = {
    "opt_out_confirmation": "stop",
    "opt_in_confirmation": "start",
    "help": "help",
}
_read_calls: Final = make_request_converter(CallSettingsUpdate, closed="the settings of calls")
_read_replies: Final = make_request_converter(ReplySettingsUpdate, closed="the settings of replies")


def read_new_agent(data: Any) -> NewAgent:
    """Return the agent of a body of POST /manage/agents.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_new_agent, data)


def read_agent_update(data: Any) -> AgentUpdate:
    """Return the update of a body of PATCH /manage/agents/{id}.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_agent_update, data)


def read_new_number(data: Any, *, carriers: Sequence[str] = ()) -> NewNumber:
    """Return the number of a body of POST /manage/numbers.

    Args:
        data: The parsed JSON, see `parse_json`.
        carriers: Carriers that are accepted beside those of the interface.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_number_readers(tuple(carriers))[0], data)


def read_number_update(data: Any, *, carriers: Sequence[str] = ()) -> NumberUpdate:
    """Return the update of a body of PATCH /manage/numbers/{id}; see `read_new_number`.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_number_readers(tuple(carriers))[1], data)


def read_new_flow(data: Any) -> NewFlow:
    """Return the flow of a body of POST /manage/flows.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_new_flow, data)


def read_flow_update(data: Any) -> FlowUpdate:
    """Return the update of a body of PATCH /manage/flows/{id}.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_flow_update, data)


def write_agent(agent: Agent) -> dict[str, Any]:
    """Return an agent."""
    return document_of(agent, "workspace_id", "revision", "removed_at")


def write_number(number: Number) -> dict[str, Any]:
    """Return a number."""
    return document_of(number, "workspace_id")


def write_flow(flow: Flow) -> dict[str, Any]:
    """Return a flow."""
    return document_of(flow, "workspace_id", "removed_at")


def write_account(account: Account) -> dict[str, Any]:
    """Return an account; secrets are not in its summary."""
    return document_of(account, "workspace_id")


@functools.lru_cache(maxsize=4)
def _number_readers(
    carriers: tuple[str, ...],
) -> tuple[Callable[[Any], NewNumber], Callable[[Any], NumberUpdate]]:
    rules: dict[str, FieldRule] = {
        "carrier": OneOf((*CARRIERS, *carriers)),
        "trunk_id": uuid,
    }
    return (
        make_request_converter(NewNumber, rules, closed="a number"),
        make_request_converter(NumberUpdate, rules, closed="a number's update"),
    )


def write_sms(message: Message, failure: ProviderFailure | None) -> dict[str, Any]:
    """Return a single message, with what its carrier said where it failed."""
    return {**document_of(message, "workspace_id", "send_until", "tries"), **write_failure(failure)}


def write_inbound_message(message: InboundMessage) -> dict[str, Any]:
    """Return an inbound message."""
    return document_of(message, "workspace_id")


def read_call_settings_update(data: Any) -> CallSettingsUpdate:
    """Return the update of a body of PATCH /manage/settings/calls.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_calls, data)


def read_reply_settings_update(data: Any) -> ReplySettingsUpdate:
    """Return the update of a body of PATCH /manage/settings/replies.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_replies, data)


def write_settings(
    workspace: Workspace,
    messages: SmsSettings,
    calls: CallSettings,
    replies: ReplySettings,
    texts: Sequence[ReplyText],
) -> dict[str, Any]:
    """Return all settings of a workspace."""
    return {
        "workspace": document_of(workspace, "revision"),
        "sms": write_sms_settings(messages),
        "calls": write_call_settings(calls),
        "replies": write_reply_settings(replies, texts),
    }


def write_call_settings(settings: CallSettings) -> dict[str, Any]:
    """Return the settings of calling campaigns."""
    return document_of(settings)


def write_reply_settings(settings: ReplySettings, texts: Sequence[ReplyText]) -> dict[str, Any]:
    """Return the settings of replies to keywords, with the texts and segments as they are sent."""
    sent = {_REPLIES[one.purpose]: one for one in texts}
    return {
        **document_of(settings),
        "effective": {name: {"text": one.text, "segments": one.segments} for name, one in sent.items()},
    }


@attrs.frozen(kw_only=True)
class Decision:
    """What a person has decided about a held number.

    Attributes:
        opted_out: Whether its message was an opt-out.
    """

    opted_out: bool


_read_new: Final = make_request_converter(NewUnsubscribes, closed="an addition to the register")
_read_decision: Final = make_request_converter(Decision, closed="a decision")


def read_new_unsubscribes(data: Any) -> NewUnsubscribes:
    """Return the numbers of a body of POST /manage/unsubscribes.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_new, data)


def read_decision(data: Any) -> bool:
    """Return whether a body of POST /manage/unsubscribes/{phone}/resolve says that it was an opt-out.

    Raises:
        InvalidRequest: A field is unknown or of another type; the details name each place.
    """
    return read_object(_read_decision, data).opted_out


def write_unsubscribe(entry: Unsubscribe) -> dict[str, Any]:
    """Return an entry of the register."""
    return document_of(entry, "workspace_id")
