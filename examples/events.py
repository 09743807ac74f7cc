from __future__ import annotations

import asyncio

from outreach import NewRecipient, NewSmsCampaign, NewWorkspace, Outreach
from outreach.events import CampaignStatusChanged, RecipientEnded


async def main() -> None:
    async with Outreach.open("sqlite:///app.db", dispatch=True) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", default_region="US"))
        campaign = NewSmsCampaign(
            name="Spring", body="Hi {{first_name}}!", carrier="twilio", from_number="+14155550199"
        )
        people = [NewRecipient(phone_number="(415) 555-0102", first_name="Ada")]
        created = await engine.campaigns.create_sms(workspace.id, campaign, people)
        async with engine.events.subscribe(CampaignStatusChanged, RecipientEnded, workspace_id=workspace.id) as events:
            await engine.campaigns.start(workspace.id, created.campaign.id)
            async for event in events:
                match event:
                    case RecipientEnded():
                        print("recipient", event.position, event.status, "by", event.rule)
                    case CampaignStatusChanged():
                        print("campaign", event.status, "by", event.rule)
                        if event.status == "completed":
                            break


asyncio.run(main())
