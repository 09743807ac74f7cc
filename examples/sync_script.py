from __future__ import annotations

from outreach import NewRecipient, NewSmsCampaign, NewWorkspace
from outreach.events import CampaignStatusChanged
from outreach.sync import Outreach

with Outreach.open("sqlite:///app.db", dispatch=True) as engine:
    workspace = engine.workspaces.create(NewWorkspace(name="Acme", default_region="US"))
    campaign = NewSmsCampaign(name="Spring", body="Hi {{first_name}}!", carrier="twilio", from_number="+14155550199")
    people = [NewRecipient(phone_number="(415) 555-0102", first_name="Ada")]
    created = engine.campaigns.create_sms(workspace.id, campaign, people)
    with engine.events.subscribe(CampaignStatusChanged, workspace_id=workspace.id) as events:
        engine.campaigns.start(workspace.id, created.campaign.id)
        for event in events:
            print("campaign", event.status)
            if event.status == "completed":
                break
