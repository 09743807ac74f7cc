from __future__ import annotations

from typing import Any

import pytest

from outreach import InvalidRequest, NewWorkspace, NotFound, Outreach, WorkspaceUpdate
from outreach.protocols import SystemClock
from tests.engine.conftest import OpenStorage
from tests.engine.every_method import every_method

pytestmark = pytest.mark.virtual_time

NAMES = [method.name for method in every_method(Outreach.open("memory://")) if method.takes_workspace]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workspace_id", ["01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01", "nope"])
async def test_a_workspace_that_is_not_there_is_reported(engine: Outreach, name: str, workspace_id: str) -> None:
    """By every method, those included that only list: a slip does not look like an empty workspace."""
    method = next(one for one in every_method(engine) if one.name == name)
    with pytest.raises(NotFound):
        await method.call(workspace_id)


async def test_a_workspace_in_the_place_of_its_identifier_is_reported(open_storage: OpenStorage) -> None:
    """By every method, and in the words of the engine, not of the database; so are objects that cannot be hashed."""
    async with Outreach(open_storage(SystemClock())) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        wrong: list[Any] = [workspace, {"id": workspace.id}]
        for method in every_method(engine):
            # `engine.http` gets identifiers that the server has looked up.
            taken = wrong[:1] if method.name.startswith("http.") else wrong
            for given in taken if method.takes_workspace else ():
                with pytest.raises((InvalidRequest, NotFound), match=r"must be a text|There is no key"):
                    await method.call(given)


@pytest.mark.parametrize("text", ["\x00", "\ud800"])
async def test_a_text_that_cannot_be_stored_names_nothing(open_storage: OpenStorage, text: str) -> None:
    """Whatever storage it is: SQLite can be asked for NUL and PostgreSQL cannot, and neither for half a pair."""
    async with Outreach(open_storage(SystemClock())) as engine:
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        for method in every_method(engine):
            if method.takes_workspace:
                with pytest.raises((InvalidRequest, NotFound)):
                    await method.call(text)
        for get in (
            engine.campaigns.get,
            engine.calls.get,
            engine.messages.get,
            engine.agents.get,
            engine.accounts.get,
            engine.dispatches.get,
        ):
            with pytest.raises(NotFound):
                await get(workspace, text)
        with pytest.raises(InvalidRequest, match="search"):
            await engine.campaigns.list(workspace, search=text)
        with pytest.raises(InvalidRequest, match="evidence"):
            await engine.unsubscribes.add(workspace, "+14155550101", evidence=text)
        with pytest.raises(InvalidRequest, match="actor"):
            await engine.workspaces.update(workspace, WorkspaceUpdate(name="Acme 2"), actor=text)
        assert (await engine.workspaces.get(workspace)).name == "Acme"
