from __future__ import annotations

import anyio
import pytest

from outreach import Outreach
from tests.cli.conftest import Cli

PERSON = "+14155550123"


@pytest.mark.parametrize(("option", "scopes"), [("--opted-out", ["all"]), ("--not-opted-out", [])])
def test_an_operator_decides_about_who_is_held_back(
    cli: Cli, database: str, workspace_id: str, option: str, scopes: list[str]
) -> None:
    """What was written is shown; what is decided is in force at once, once, and in the audit trail."""

    async def receive() -> None:
        async with Outreach.open(database) as engine:
            await engine.messages.receive(workspace_id, from_number=PERSON, to="+14155550199", body="bus stop?")

    anyio.run(receive)
    [held] = cli.ask("unsubscribes", "held", workspace_id)
    assert (held["phone"], held["scope"], "bus stop?" in held["evidence"]) == (PERSON, "held", True)
    assert cli.ask("unsubscribes", "resolve", workspace_id, PERSON, option)["opted_out"] is (option == "--opted-out")
    assert "No number is held" in cli.tell("unsubscribes", "held", workspace_id)
    assert [entry["scope"] for entry in cli.ask("unsubscribes", "list", workspace_id)] == scopes
    why = "nothing to decide" if option == "--opted-out" else "no number on the register"
    assert why in cli.refuse("unsubscribes", "resolve", workspace_id, PERSON, option)
    [newest] = cli.ask("audit", workspace_id, "--limit", "1")
    assert (newest["action"], newest["detail"]) == ("unsubscribes.resolve", option[2:].replace("-", " "))


def test_a_decision_must_be_named(cli: Cli, workspace_id: str) -> None:
    """Neither is what is meant by leaving it out."""
    assert "--opted-out" in cli.refuse("unsubscribes", "resolve", workspace_id, PERSON, code=2)
