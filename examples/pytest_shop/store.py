"""A bookshop that writes to its customers and calls them."""

from __future__ import annotations

from collections.abc import Sequence

from outreach import Campaign, NewCallCampaign, NewRecipient, NewSmsCampaign, Outreach


class Shop:
    def __init__(self, engine: Outreach, workspace_id: str) -> None:
        self.engine = engine
        self.workspace_id = workspace_id

    async def announce(self, text: str, customers: Sequence[NewRecipient], *, per_minute: int = 60) -> Campaign:
        """Write to customers."""
        new = NewSmsCampaign(
            name="Announcement",
            body=text,
            carrier="twilio",
            from_number="+14155550199",
            rate_per_minute=per_minute,
        )
        created = await self.engine.campaigns.create_sms(self.workspace_id, new, customers)
        return await self.engine.campaigns.start(self.workspace_id, created.campaign.id)

    async def call(self, agent_id: str, customers: Sequence[NewRecipient]) -> Campaign:
        """Call customers; those who do not answer are called again half an hour later."""
        new = NewCallCampaign(name="Your order", agent_id=agent_id)
        created = await self.engine.campaigns.create_call(self.workspace_id, new, customers)
        return await self.engine.campaigns.start(self.workspace_id, created.campaign.id)
