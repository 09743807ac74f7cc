"""Run a fragment of a program as a page shows it: `python -m tests.documents.fragment FILE`.

A fragment waits at its top level, and so is no program. It finds every name of `outreach`,
`outreach.models` and `outreach.events`, and

    engine, workspace    an engine that dispatches, and a sandbox of it
    last_seen            a number of events to go on from
    created              a campaign that runs while the fragment does

When that campaign has ended, the engine is closed: a fragment that listens for as long as there is something to hear
ends then.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import outreach
import outreach.events
import outreach.models
from outreach import NewRecipient, NewSmsCampaign, NewWorkspace, Outreach

PATIENCE_SECONDS = 120


def compiled(text: str, name: str) -> Any:
    """Return a block as code that may wait at its top level."""
    return compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def is_fragment(text: str, name: str) -> bool:
    """Tell whether a block waits at its top level."""
    return bool(compiled(text, name).co_flags & inspect.CO_COROUTINE)


async def main(path: Path) -> None:
    """Run a fragment to its end."""
    code = compiled(path.read_text("utf-8"), path.name)
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with Outreach.open("sqlite:///fragment.db", dispatch=True) as engine:
            workspace = await engine.workspaces.create(NewWorkspace(name="Fragment", default_region="US"))
            campaign = NewSmsCampaign(
                name="Spring", body="Hi {{first_name}}!", carrier="twilio", from_number="+14155550199"
            )
            people = [NewRecipient(phone_number="(415) 555-0102", first_name="Ada")]
            created = await engine.campaigns.create_sms(workspace.id, campaign, people)
            names = {
                name: getattr(module, name)
                for module in (outreach.models, outreach.events, outreach)
                for name in module.__all__
            }
            names |= {"engine": engine, "workspace": workspace, "created": created, "last_seen": 0}
            running = asyncio.create_task(FunctionType(code, names)())
            now = await engine.campaigns.start(workspace.id, created.campaign.id)
            while not now.is_terminal:
                await asyncio.sleep(0.02)
                now = await engine.campaigns.get(workspace.id, now.id)
        await running


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
