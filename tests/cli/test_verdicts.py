from __future__ import annotations

import anyio

from outreach import CallStatus, Outreach
from outreach.testing.builders import NOW, make_agent, make_call, new_id
from tests.cli.conftest import Cli


def given_call(cli: Cli, workspace_id: str) -> str:
    """Write a call that was answered and has ended, with what was said."""
    agent = make_agent(id=new_id(), workspace_id=workspace_id)
    call = make_call(
        id=new_id(), workspace_id=workspace_id, agent_id=agent.id, status=CallStatus.COMPLETED, ended_at=NOW
    )

    async def write() -> None:
        async with Outreach.open(cli.database) as engine:
            await engine._storage.write(
                lambda tx: (
                    tx.agents.insert(agent),
                    tx.calls.insert(call),
                    tx.calls.put_transcript(call, "agent: Hello\n\nuser: \x1b[31mYes"),
                )
            )

    anyio.run(write)
    return call.id


def test_calls_are_listed_by_what_is_asked_for(cli: Cli, workspace_id: str) -> None:
    """Several filters hold together; a wrong word and an agent that is not there are refused."""
    call_id = given_call(cli, workspace_id)
    agent_id = cli.ask("calls", "show", call_id)["agent_id"]
    for filters, count in (
        ((), 1),
        (("--agent", agent_id, "--status", "completed", "--outcome", "unknown"), 1),
        (("--status", "busy"), 0),
        (("--outcome", "callback"), 0),
    ):
        assert [one["id"] for one in cli.ask("calls", "list", workspace_id, *filters)] == [call_id][:count]
    assert "no such calls" in cli.tell("calls", "list", workspace_id, "--outcome", "callback")
    cli.refuse("calls", "list", workspace_id, "--status", "complete", code=2)
    assert "agent" in cli.refuse("calls", "list", workspace_id, "--agent", new_id())


def test_a_call_is_shown_with_what_was_said_and_judged(cli: Cli, workspace_id: str) -> None:
    """The verdict is final, and the audit trail has who gave it."""
    call_id = given_call(cli, workspace_id)
    assert cli.ask("calls", "show", call_id)["transcript"] == "agent: Hello\n\nuser: \x1b[31mYes"
    lines = [line.strip() for line in cli.tell("calls", "show", call_id).splitlines()]
    assert [line.split("  ")[-1].strip() for line in lines[-3:]] == ["agent: Hello", "", "user: ␛[31mYes"]
    judged = cli.ask("calls", "set-outcome", call_id, "callback", "--summary", "On Monday.")
    assert (judged["outcome"], judged["summary"], judged["judged_at"] is None) == ("callback", "On Monday.", False)
    assert "final" in cli.refuse("calls", "set-outcome", call_id, "positive")
    cli.refuse("calls", "set-outcome", call_id, "busy", code=2)
    assert "call.set_outcome" in cli.tell("audit", workspace_id)
