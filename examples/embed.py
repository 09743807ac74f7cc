from __future__ import annotations

import asyncio

from outreach import NewRecipient, NewSmsCampaign, NewWorkspace, Outreach


async def main() -> None:
    async with Outreach.open("sqlite:///app.db", dispatch=True) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", default_region="US"))
        campaign = NewSmsCampaign(
            name="Spring", body="Hi {{first_name}}!", carrier="twilio", from_number="+14155550199"
        )
        people = [NewRecipient(phone_number="(415) 555-0102", first_name="Ada")]
        created = await engine.campaigns.create_sms(workspace.id, campaign, people)
        running = await engine.campaigns.start(workspace.id, created.campaign.id)
        while not running.is_terminal:
            await asyncio.sleep(0.1)
            running = await engine.campaigns.get(workspace.id, running.id)
        print(running.status, running.counters.successful)


asyncio.run(main())
