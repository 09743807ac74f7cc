"""One of each thing that is set up in a workspace, and the address of every page of a console."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from starlette.applications import Starlette
from starlette.routing import Route

from outreach import FlowStep, NewAgent, NewFlow, NewTrunk, Outreach
from outreach.models import NewUser, Role
from tests.fake_provider import CREDENTIALS

NO_PAGES: Final = frozenset({"live", "export", "register-file", "audit-file", "system-audit-file", "static"})
GUESTS: Final = frozenset({"login", "two-factor", "logout", "setup", "invitation"})
"""Pages of the console's own login, for people who are not signed in, and for those who leave."""


async def furnish(engine: Outreach, workspace: str) -> Mapping[str, str]:
    """Set up one of each thing, with a carrier of the engine's own; return their ids by the names of their pages."""
    user = await engine.users.create(NewUser(email="ann@acme.example", name="Ann Miller"))
    await engine.users.set_role(workspace, user.id, Role.OWNER)
    invited = await engine.users.invite(workspace, "ben@acme.example", Role.VIEWER, actor=f"user:{user.id}")
    steps = [FlowStep(kind="send", body="Hi"), FlowStep(kind="wait", wait_minutes=90)]
    await engine.accounts.connect(workspace, "mycarrier", CREDENTIALS)
    [account] = (await engine.accounts.list(workspace)).items
    [number, *_] = (await engine.numbers.list(workspace)).items
    return {
        "users": user.id,
        "system-users": user.id,
        "invitations": invited.invitation.id,
        "accounts": account.id,
        "numbers": number.id,
        "agents": (await engine.agents.create(workspace, NewAgent(name="Ida"))).id,
        "trunks": (await engine.trunks.create(workspace, NewTrunk(name="Office", address="sip.example"))).id,
        "flows": (await engine.flows.create(workspace, NewFlow(name="Welcome", steps=steps))).id,
        "keys": (await engine.api_keys.create(workspace, name="Shop", actor=f"user:{user.id}")).id,
        "system-workspaces": workspace,
    }


def addresses(console: Starlette, things: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name of every page that people see who are signed in, and its path below the console.

    Args:
        console: The console.
        things: What a parameter of a path names, and the ids of `furnish`. A page whose parameter is missing is new.
    """
    for one in console.routes:
        assert isinstance(one, Route)
        if one.name in {*NO_PAGES, *GUESTS}:
            continue
        kind = one.name.removesuffix("-one")
        values = {name: things[kind if name == "id" else name] for name in one.param_convertors}
        query = f"?campaign={things['campaign']}" if one.name.startswith("new-") else ""
        path = re.sub(r"\{(\w+)[^}]*\}", lambda found, of=values: of[found[1]], one.path)  # type: ignore[misc]
        yield one.name, path + query
