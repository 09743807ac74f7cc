"""The first-run set-up: what the first workspace has, so that a campaign runs without an account."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Final

from outreach import NewRecipient, NewSmsCampaign, Outreach
from outreach_server.console.static_files import SAMPLE
from outreach_server.sandboxes import CARRIER, SENDER, add_agent_and_number

_TEXT: Final = "Hi {{first_name}}, your check-up is on {{Slot}}."


async def needs_setup(engine: Outreach) -> bool:
    """Return whether there is no user yet."""
    return not (await engine.users.list(limit=1)).items


async def fill_sandbox(engine: Outreach, workspace_id: str, *, actor: str) -> str:
    """Give a sandbox an agent, a number, and a draft to the sample contacts of the package; return the draft's id.

    Args:
        engine: The engine.
        workspace_id: The workspace.
        actor: Recorded in the audit trail.
    """
    await add_agent_and_number(engine, workspace_id, actor=actor)
    new = NewSmsCampaign(name="Sample: check-ups", body=_TEXT, carrier=CARRIER, from_number=SENDER)
    made = await engine.campaigns.create_sms(workspace_id, new, sample_contacts(), actor=actor)
    return made.campaign.id


def sample_contacts() -> Sequence[NewRecipient]:
    """Return the sample contacts of the package."""
    text = SAMPLE.read_text("utf-8-sig")
    return [
        NewRecipient(
            phone_number=row["Phone"],
            first_name=row["First name"],
            last_name=row["Last name"],
            email=row["Email"],
            company=row["Company"],
            custom_variables={"Slot": row["Slot"]},
        )
        for row in csv.DictReader(text.splitlines())
    ]
