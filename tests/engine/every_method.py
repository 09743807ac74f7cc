"""Every method of the library, each with arguments that are valid by themselves."""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from datetime import date
from decimal import Decimal
from types import UnionType
from typing import Any

import attrs

from outreach import (
    Call,
    FlowStep,
    Message,
    NewAgent,
    NewCall,
    NewCallCampaign,
    NewFlow,
    NewMessage,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewTrunk,
    NewWorkspace,
    Outreach,
    Workspace,
)
from outreach.models import (
    NewFollowUp,
    NewSchedule,
    NewScheduleApproval,
    NewSimulation,
    NewTestMessage,
    NewUnsubscribes,
    NewUpload,
    NewUser,
    NewWebhook,
    Price,
    PriceTable,
    WebhookReplay,
)
from outreach.testing.builders import make_call, make_message, make_workspace, new_id
from tests.engine_services import services_of

_BY_NAME: dict[str, Any] = {
    "content": b"a",
    "offset": 0,
    "name": "Acme",
    "phone": "+14155550101",
    "phones": ["+14155550101"],
    "user_ids": ["u1"],
    "webhook_ids": ["u1"],
    "phone_numbers": ["+14155550101"],
    "position": 0,
    "contact": "+14155550101",
    "channel": "sms",
    "provider": "twilio",
    "credentials": {"account_sid": f"AC{'0' * 32}", "auth_token": "0" * 32},
    "decision": "retry",
    "outcome": "positive",
    "how": "method",
    "api_key": "outreach_00000000",
    "actor": "library",
    "action": "pause",
    "subject": "x",
    "from_number": "+14155550101",
    "to": "+14155550102",
    "body": "Hi",
    "archived": True,
    "kind": "csv",
    "recipients": [NewRecipient(phone_number="+14155550101")],
    "url": "https://example.com/",
    "headers": {},
    "opted_out": True,
    "external_id": "crm-7",
    "kinds": [],
    "email": "ann@acme.example",
    "role": "viewer",
    "operator": True,
    "token": "token",
    "password": "seven blue herons",
    "current": "seven blue herons",
    "code": "000000",
    "revision": 1,
}
"""What a required argument is by its name."""

_ONE_OF_SEVERAL = {("campaigns.contact_history", "phone")}
"""What is optional because another argument may be given instead."""

_BY_TYPE: dict[type, Callable[[], Any]] = {
    NewSimulation: lambda: NewSimulation(event="stop", phone_number="+14155550101"),
    NewMessage: lambda: NewMessage(to="+14155550101", body="Hi", from_number="+14155550102", carrier="twilio"),
    NewCall: lambda: NewCall(agent_id=new_id(), to="+14155550101"),
    NewSmsCampaign: lambda: NewSmsCampaign(name="Spring", body="Hi"),
    NewCallCampaign: lambda: NewCallCampaign(name="Spring", agent_id=new_id()),
    NewAgent: lambda: NewAgent(name="Ada"),
    NewNumber: lambda: NewNumber(phone="+14155550101"),
    NewUpload: lambda: NewUpload(file_name="list.csv", size_bytes=1),
    NewFlow: lambda: NewFlow(name="Welcome", steps=(FlowStep(kind="send", body="Hi"),)),
    NewSchedule: lambda: NewSchedule(
        name="Daily", template_id=new_id(), rule="FREQ=DAILY", zone="UTC", starts_on=date(2026, 3, 2), at="09:00"
    ),
    NewScheduleApproval: lambda: NewScheduleApproval(revision=1, most_contacts=1),
    NewWebhook: lambda: NewWebhook(url="https://app.example/hook"),
    WebhookReplay: lambda: WebhookReplay(number=1),
    NewTrunk: lambda: NewTrunk(name="Main", address="sip.example.com"),
    NewWorkspace: lambda: NewWorkspace(name="Acme"),
    NewTestMessage: lambda: NewTestMessage(contact="+14155550101", to="+14155550102"),
    NewFollowUp: lambda: NewFollowUp(results=["failed"]),
    NewUnsubscribes: lambda: NewUnsubscribes(phone_numbers=["+14155550101"]),
    NewUser: lambda: NewUser(email="ann@acme.example", name="Ann"),
    Call: make_call,
    Message: make_message,
    Workspace: make_workspace,
    PriceTable: lambda: PriceTable(currency="USD", prices=(Price(kind="sms", amount=Decimal("0.01")),)),
}
"""What it is by its type."""


@attrs.frozen(kw_only=True)
class Method:
    """A method of one of the engine's services that waits for something.

    Attributes:
        name: Such as `campaigns.get`.
        takes_workspace: Whether the identifier of a workspace is one of its arguments.
    """

    name: str
    function: Callable[..., Any]
    takes_workspace: bool

    async def call(self, workspace_id: str) -> None:
        """Call it for a workspace, and go through what it yields."""
        positional, named = self.arguments(workspace_id)
        found = self.function(*positional, **named)
        if isinstance(found, Awaitable):
            await found
        else:
            async for _ in found:
                pass

    def arguments(self, workspace_id: str) -> tuple[list[Any], dict[str, Any]]:
        """Return what it is called with for a workspace: by position, and by name."""
        hints = typing.get_type_hints(self.function)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in inspect.signature(self.function).parameters.values():
            is_workspace = parameter.name == "workspace_id"
            required = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
            if not required and not is_workspace and (self.name, parameter.name) not in _ONE_OF_SEVERAL:
                continue
            value = workspace_id if is_workspace else _value(self.name, parameter.name, hints[parameter.name])
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            elif parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(value)
            else:
                positional.append(value)
        return positional, named


def every_method(engine: Outreach) -> Iterator[Method]:
    """Find every public method of every service of an engine that waits for something; some are called themselves."""
    for service, instance in services_of(engine):
        itself = inspect.getattr_static(instance, "__call__", None)
        if inspect.iscoroutinefunction(itself) and "workspace_id" in inspect.signature(itself).parameters:
            yield Method(name=f"{service}.__call__", function=instance.__call__, takes_workspace=True)
        for name, function in inspect.getmembers(instance, inspect.ismethod):
            waits = inspect.iscoroutinefunction(function) or _iterates(function)
            if name.startswith("_") or not waits:
                continue
            takes_workspace = "workspace_id" in inspect.signature(function).parameters
            yield Method(name=f"{service}.{name}", function=function, takes_workspace=takes_workspace)


def _iterates(function: Callable[..., Any]) -> bool:
    """Return whether a method returns an asynchronous iterator."""
    returned = str(inspect.signature(function).return_annotation)
    return inspect.isasyncgenfunction(function) or returned.startswith("AsyncIterator[")


def _value(method: str, name: str, hint: Any) -> Any:
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.endswith("_id") or name == "identifier":
        return new_id()
    if name == "rows":
        return _rows() if typing.get_origin(hint) is AsyncIterable else ["+14155550101"]
    if isinstance(hint, UnionType):
        # The first of several kinds.
        hint = typing.get_args(hint)[0]
    if isinstance(hint, type) and hint in _BY_TYPE:
        return _BY_TYPE[hint]()
    if isinstance(hint, type) and hint.__name__.endswith(("Change", "Update")):
        return hint()
    raise AssertionError(f"Say in tests/engine/every_method.py what {name} of {method} may be.")


async def _rows() -> AsyncIterator[str]:
    yield "+14155550101"
