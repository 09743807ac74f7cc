"""A campaign over the carrier, to a stand-in on this machine: nobody gets a message."""

from __future__ import annotations

import asyncio

from loft import Loft
from outreach_pigeon import ADAPTER

from outreach import NewNumber, NewRecipient, NewSmsCampaign, NewWorkspace, Outreach, WorkspaceMode
from outreach.events import CampaignStatusChanged
from outreach.testing.fault_server import FaultServer

PEOPLE = [NewRecipient(phone_number=f"+1415555010{n}", first_name=name) for n, name in enumerate(("Ada", "Grace"))]


async def main() -> None:
    loft = Loft()
    async with (
        FaultServer(loft.accept) as server,
        Outreach.open("memory://", dispatch=True, adapters=[ADAPTER]) as engine,
    ):
        workspace = await engine.workspaces.create(
            NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE, contact_hours=False)
        )
        account = await engine.accounts.connect(
            workspace.id, "pigeon", {"api_base": server.url, "api_key": "k3y", "signing_secret": "s3cret"}
        )
        checked = await engine.accounts.check(workspace.id, account.id)
        print("account in order:", checked.ok)
        await engine.numbers.create(workspace.id, NewNumber(phone="+14155550199", carrier="pigeon"))
        campaign = NewSmsCampaign(
            name="Spring", body="Hi {{first_name}}!", carrier="pigeon", from_number="+14155550199"
        )
        created = await engine.campaigns.create_sms(workspace.id, campaign, PEOPLE)
        async with engine.events.subscribe(CampaignStatusChanged, workspace_id=workspace.id) as events:
            await engine.campaigns.start(workspace.id, created.campaign.id)
            async for event in events:
                if event.status == "completed":
                    break
    for message in loft.messages.values():
        print(message["to"], message["text"].splitlines()[0])


asyncio.run(main())
