from __future__ import annotations

import inspect

import pytest

from outreach import NotFound, Outreach, WorkspaceMode
from tests.engine.every_method import every_method
from tests.engine.rig import given_workspace
from tests.fake_provider import CREDENTIALS

pytestmark = pytest.mark.virtual_time

WITHOUT = {"callbacks.receive", "callbacks.max_body_bytes", "callbacks.misdirected"}
"""A provider calls an address that names the account alone; `misdirected` is for what comes to a wrong address."""

OF_THE_DATABASE = {"user_id", "session_id"}
"""Users and their sessions belong to no workspace; tests/engine/test_users.py holds who may do what."""


def test_every_method_that_takes_an_identifier_takes_the_workspace() -> None:
    """All but the look-ups for operators, whose commands name a thing alone; they change nothing."""
    engine = Outreach.open("memory://")
    for method in every_method(engine):
        names = set(inspect.signature(method.function).parameters) - {"workspace_id", "provider_id", "trunk_id"}
        names -= OF_THE_DATABASE
        identified = any(name.endswith("_id") or name == "identifier" for name in names)
        is_look_up = method.name.endswith(".get_anywhere")
        if identified and not is_look_up and method.name not in WITHOUT:
            assert method.takes_workspace, f"{method.name} takes an identifier of any workspace"


@pytest.mark.usefixtures("fake")
async def test_an_account_of_another_workspace_is_neither_asked_nor_removed(engine: Outreach) -> None:
    """An identifier alone gives no access."""
    here, there = [await given_workspace(engine, mode=WorkspaceMode.LIVE) for _ in range(2)]
    account = await engine.accounts.connect(there.id, "twilio", CREDENTIALS)
    for call in (engine.accounts.get, engine.accounts.check, engine.accounts.remove):
        with pytest.raises(NotFound):
            await call(here.id, account.id)
    assert await engine.accounts.get(there.id, account.id) == account
    assert await engine.accounts.get_anywhere(account.id) == account
    assert list(await engine.accounts.list(there.id)) == [account]


async def test_a_key_of_another_workspace_is_not_revoked(engine: Outreach) -> None:
    """It goes on opening its own workspace."""
    here, there = await given_workspace(engine), await given_workspace(engine)
    key = await engine.api_keys.create(there.id)
    with pytest.raises(NotFound):
        await engine.api_keys.revoke(here.id, key.id)
    assert (await engine.api_keys.authenticate(key.api_key)).workspace == there
    assert (await engine.api_keys.get_anywhere(key.id)).workspace_id == there.id
    with pytest.raises(NotFound):
        await engine.api_keys.get_anywhere(there.id)
