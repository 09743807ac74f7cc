from __future__ import annotations

import pytest

from outreach.errors import CannotStart, Problem
from outreach.testing.builders import make_call_campaign, make_campaign, new_id
from outreach_server.cli.problems import explain_placeholders, explain_start

AGENT = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"


@pytest.mark.parametrize(
    ("paths", "commands"),
    [
        (["agent_id"], ["campaigns update {id} --agent AGENT"]),
        (["agent.is_active", "agent.allow_outbound"], [f"agents update {AGENT} --active --allow-outbound"]),
        (["account.vapi"], ["accounts connect {workspace} vapi"]),
        (["agent.is_active", "account.vapi"], [f"agents update {AGENT} --active", "accounts connect {workspace} vapi"]),
        (["body", "flow_id"], ["campaigns update {id} --message TEXT --flow FLOW"]),
        (["max_segments"], ["campaigns update {id} --message TEXT"]),
        (["placeholders"], ["campaigns start {id} --allow-unknown-placeholders"]),
        (["scheduled_expires_at"], ["campaigns update {id} --expires-at TIME"]),
        (["business_hours"], ["campaigns update {id} --hours 'DAYS FROM-TO' --timezone ZONE"]),
        (["agent.provider"], []),
    ],
)
def test_each_obstacle_that_a_command_mends_comes_with_it(paths: list[str], commands: list[str]) -> None:
    """The library names the field, and the command line what to type; what no command fixes stands by itself."""
    campaign = make_call_campaign(agent_id=AGENT)
    error = CannotStart([Problem(path=path, message=f"Sentence about {path}.") for path in paths])
    told = explain_start(error.details, campaign).splitlines()
    wanted = [
        f"  outreach-server {command.format(id=campaign.id, workspace=campaign.workspace_id)}" for command in commands
    ]
    assert told == [
        f"Campaign {campaign.name!r} cannot start:",
        *(f"  Sentence about {path}." for path in paths),
        *wanted,
    ]


def test_what_a_flow_says_is_changed_in_the_flow() -> None:
    """A text of the campaign's own would take the flow away."""
    campaign = make_campaign(message_source="flow", flow_id=new_id())
    change = f"outreach-server flows update {campaign.workspace_id} {campaign.flow_id} --file FILENAME"
    for path in ("max_segments", "body"):
        told = explain_start([Problem(path=path, message="Too long, or empty.")], campaign)
        assert told.splitlines()[2:] == [f"  {change}"]
    assert "Correct the text (flows update)" in explain_placeholders(["plan"], campaign)
