"""Making the database of the ordinary app: a workspace with a key and an agent.

Told: `database`, a file that is not there yet; `api_key` of its workspace; `campaigns` to be in it; `registered`,
whether there is a register.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

from sqlalchemy import insert

from benchmarks.people import MESSAGE, SENDER, campaign_name, is_draft, registered
from benchmarks.sides.ordinary_tables import Agent, ApiKey, Base, Campaign, Unsubscribe, Workspace, new_id, now
from benchmarks.sides.ordinary_tables import open_database as open_tables
from benchmarks.sides.telling import tell, told


async def main(arguments: dict[str, Any]) -> dict[str, str]:
    """Make it; return the identifiers."""
    engine = open_tables(arguments["database"])
    workspace_id, agent_id, begun = new_id(), new_id(), now()
    digest = hashlib.sha256(arguments["api_key"].encode()).hexdigest()
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
        await connection.execute(insert(Workspace).values(id=workspace_id, name="Acme"))
        await connection.execute(insert(ApiKey).values(digest=digest, workspace_id=workspace_id))
        await connection.execute(
            insert(Agent).values(id=agent_id, workspace_id=workspace_id, name="Ada", provider="simulator")
        )
        if arguments["registered"]:
            rows = [{"workspace_id": workspace_id, "phone": phone} for phone in registered()]
            await connection.execute(insert(Unsubscribe), rows)
        if arguments["campaigns"]:
            campaigns = [
                {
                    "workspace_id": workspace_id,
                    "name": campaign_name(number),
                    "status": "draft" if is_draft(number) else "ready",
                    "sms_message_body": MESSAGE,
                    "sms_carrier": None if is_draft(number) else "twilio",
                    "sms_from_number": SENDER,
                    "total_recipients": 1,
                    "pending_calls": 1,
                    "created_at": begun + timedelta(milliseconds=number),
                }
                for number in range(arguments["campaigns"])
            ]
            await connection.execute(insert(Campaign), campaigns)
    await engine.dispose()
    return {"workspace_id": workspace_id, "agent_id": agent_id}


if __name__ == "__main__":
    tell(asyncio.run(main(told())))
