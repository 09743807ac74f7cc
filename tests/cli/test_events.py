from __future__ import annotations

import anyio

from outreach import NewWorkspace, Outreach
from tests.cli.conftest import Cli


def test_subscriptions_are_listed_and_removed(cli: Cli) -> None:
    """Programs make them; the operator sees who is behind, and forgets what nobody reads any more."""

    async def given() -> None:
        async with Outreach.open(cli.database) as engine:
            async with engine.events.subscribe(name="billing"):
                pass
            workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
            await engine.unsubscribes.add(workspace.id, "+14155550101")

    assert "There are no named subscriptions" in _after_creation(cli)
    anyio.run(given)
    (found,) = cli.ask("events", "list")
    assert (found["name"], found["workspace_id"], found["active"]) == ("billing", None, False)
    assert found["behind"] >= 1
    assert cli.ask("events", "remove", "billing") == {"name": "billing", "removed": True}
    assert "There is no subscription 'billing'." in cli.refuse("events", "remove", "billing")


def _after_creation(cli: Cli) -> str:
    cli.ask("workspaces", "create", "First")
    return cli.tell("events", "list")
