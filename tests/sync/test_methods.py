"""Every method answers to a thread what the asynchronous one answers to a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, assert_type

import attrs
import pytest

from outreach import Agent, Call, NewWorkspace, NotFound, OutreachError, Page, Recipient, Unsubscribe, Workspace
from outreach import Outreach as AsyncOutreach
from outreach.events import CampaignStatusChanged, RecipientEnded
from outreach.sync import EventStream, Outreach
from outreach.testing.builders import new_id
from tests.engine.every_method import Method, every_method
from tests.engine_services import services_of

NOT_FOR_CALLERS = {"open", "close"}
"""Methods of services that the engine calls as it opens and closes."""

NAMES = [
    method.name
    for method in every_method(AsyncOutreach.open("memory://"))
    if method.name.rpartition(".")[2] not in NOT_FOR_CALLERS
]


def counterpart(engine: Outreach, name: str) -> Method:
    """Return the method for synchronous code."""
    function: Callable[..., Any] = attrgetter(name)(engine)
    return Method(
        name=name, function=function, takes_workspace="workspace_id" in inspect.signature(function).parameters
    )


def answer_of(method: Method, workspace_id: str) -> object:
    """Call a method; return what kind of answer it gives."""
    positional, named = method.arguments(workspace_id)
    try:
        found = method.function(*positional, **named)
        return [type(item) for item in found] if isinstance(found, Iterator) else type(found)
    except OutreachError as error:
        return type(error)


async def async_answer_of(method: Method, workspace_id: str) -> object:
    """Await a method; return what kind of answer it gives."""
    positional, named = method.arguments(workspace_id)
    try:
        found = method.function(*positional, **named)
        return [type(item) async for item in found] if hasattr(found, "__aiter__") else type(await found)
    except OutreachError as error:
        return type(error)


def test_every_public_method_has_a_counterpart() -> None:
    """A new service, and a new method of one, needs a line in outreach/sync/services.py or `SyncResourceServices`."""
    engine = Outreach.open("memory://")
    missing = [
        f"{service}.{name}"
        for service, instance in services_of(AsyncOutreach.open("memory://"))
        for name, _ in inspect.getmembers(instance, inspect.ismethod)
        if (name == "__call__" or not name.startswith("_")) and name not in NOT_FOR_CALLERS
        if not hasattr(getattr(engine, service, None), name)
    ]
    assert not missing, "outreach/sync/services.py lacks them"


def test_help_shows_what_stands_at_the_asynchronous_method(engine: Outreach) -> None:
    """The parameters, the synchronous result, and the docstring without `async`."""
    function = engine.campaigns.iter_recipients
    assert list(inspect.signature(function).parameters)[:2] == ["workspace_id", "campaign_id"]
    assert inspect.signature(function).return_annotation == "Iterator[Recipient]"
    assert "        with engine.events.subscribe(" in (engine.events.subscribe.__doc__ or "")
    assert inspect.signature(engine.trunks.create).parameters["new"].annotation == "NewTrunk"
    assert (engine.trunks.create.__doc__ or "").startswith("Create a trunk.")
    assert inspect.signature(Outreach.open).parameters == inspect.signature(AsyncOutreach.open).parameters


@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
async def test_a_method_answers_as_the_asynchronous_one_does(name: str) -> None:
    """With the same arguments, for a workspace that is there."""
    async with AsyncOutreach.open("memory://") as asynchronous:
        workspace = await asynchronous.workspaces.create(NewWorkspace(name="Acme"))
        method = next(one for one in every_method(asynchronous) if one.name == name)
        expected = await async_answer_of(method, workspace.id)
    with Outreach.open("memory://") as engine:
        found = answer_of(counterpart(engine, name), engine.workspaces.create(NewWorkspace(name="Acme")).id)
    assert found == expected


def test_what_type_checkers_see_is_what_is_there(engine: Outreach) -> None:
    """A type checker reads this test too."""
    workspace = assert_type(engine.workspaces.create(NewWorkspace(name="Acme")), Workspace)
    assert_type(engine.campaigns.iter_recipients(workspace.id, new_id()), Iterator[Recipient])
    assert list(assert_type(engine.unsubscribes.iter_all(workspace.id), Iterator[Unsubscribe])) == []
    stream = engine.events.subscribe(RecipientEnded, CampaignStatusChanged)
    assert_type(stream, EventStream[RecipientEnded | CampaignStatusChanged])
    assert_type(engine.agents.list(workspace.id), Page[Agent])
    with pytest.raises(NotFound):
        assert_type(engine.calls.get(workspace.id, new_id()), Call)


def test_what_awaits_nothing_is_there_too(engine: Outreach) -> None:
    """On the engine, and on its services."""
    assert engine.health().state in {"starting", "dispatching", "standby"}
    assert engine.now().tzinfo is not None
    assert [field.name for field in engine.accounts.credential_fields("twilio")][:1] == ["account_sid"]
    assert attrs.has(type(engine.readiness()))
