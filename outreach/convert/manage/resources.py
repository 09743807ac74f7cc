"""Agents, numbers, flows and accounts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, get_args

from outreach.convert.field_rules import Array, FieldRule, Integer, OneOf, OrNull, Refused, Text, boolean, uuid
from outreach.convert.manage.bodies import in_array, read_object
from outreach.convert.manage.documents import document_of
from outreach.convert.request_converter import make_request_converter
from outreach.models.account import AccountSummary
from outreach.models.base import CARRIERS
from outreach.models.resources import (
    Agent,
    AgentDirection,
    AgentUpdate,
    Flow,
    FlowStep,
    FlowUpdate,
    NewAgent,
    NewFlow,
    NewNumber,
    Number,
    NumberUpdate,
    VoicemailPolicy,
)

_NAME: Final = Text(minimum=1, maximum=255)
_PHONE: Final = Text(minimum=1, maximum=64)
_RATE: Final = Integer(1, 600)
_MAX_STEPS: Final = 50
_MAX_PLACEHOLDERS: Final = 1000

_AGENT: Final[dict[str, FieldRule]] = {
    "name": _NAME,
    "allow_outbound": boolean,
    "is_active": boolean,
    "provider_agent_id": OrNull(_NAME),
    "placeholders": OrNull(lambda value: _at_most(_MAX_PLACEHOLDERS, Array(Text(minimum=1, maximum=255)), value)),
    "from_number": OrNull(_PHONE),
    "voicemail": OrNull(OneOf(get_args(VoicemailPolicy))),
    "voicemail_message": OrNull(Text(minimum=1, maximum=1000)),
    "max_call_seconds": OrNull(Integer(10, 43_200)),
}

_read_new_agent: Final = make_request_converter(
    NewAgent, _AGENT | {"provider": _NAME, "direction": OneOf(get_args(AgentDirection))}, closed="an agent"
)
_read_agent_update: Final = make_request_converter(AgentUpdate, _AGENT, closed="an agent's update")

_read_step: Final = make_request_converter(
    FlowStep,
    {
        "kind": OneOf(("send", "wait", "stop_if_replied")),
        "body": OrNull(Text(minimum=1, maximum=1600)),
        "wait_minutes": OrNull(Integer(1, 525_600)),
    },
    closed="a step",
)


def _steps(value: Any) -> tuple[FlowStep, ...]:
    return _at_most(_MAX_STEPS, Array(in_array(_read_step), minimum=1), value)


_read_new_flow: Final = make_request_converter(NewFlow, {"name": _NAME, "steps": _steps}, closed="a flow")
_read_flow_update: Final = make_request_converter(
    FlowUpdate, {"name": _NAME, "steps": _steps}, closed="a flow's update"
)


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
    return document_of(agent, "workspace_id", "revision")


def write_number(number: Number) -> dict[str, Any]:
    """Return a number."""
    return document_of(number, "workspace_id")


def write_flow(flow: Flow) -> dict[str, Any]:
    """Return a flow."""
    return document_of(flow, "workspace_id", "removed_at")


def write_account(account: AccountSummary) -> dict[str, Any]:
    """Return an account; secrets are not in its summary."""
    return document_of(account, "workspace_id")


@functools.lru_cache(maxsize=4)
def _number_readers(
    carriers: tuple[str, ...],
) -> tuple[Callable[[Any], NewNumber], Callable[[Any], NumberUpdate]]:
    rules = {
        "carrier": OrNull(OneOf((*CARRIERS, *carriers))),
        "trunk_id": OrNull(uuid),
        "rate_per_minute": OrNull(_RATE),
    }
    return (
        make_request_converter(NewNumber, {"phone": _PHONE, **rules}, closed="a number"),
        make_request_converter(NumberUpdate, rules, closed="a number's update"),
    )


def _at_most(most: int, rule: Array, value: Any) -> tuple[Any, ...]:
    if type(value) is list and len(value) > most:
        raise Refused(f"must have at most {most} elements, has {len(value)}")
    return rule(value)
