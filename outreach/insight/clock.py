"""The clock of a campaign's audience, by the same contacts as its forecast."""

from __future__ import annotations

from outreach.insight.forecast import CampaignForecast
from outreach.models.clock import AudienceClock
from outreach.rules.audience_clock import hours_of_audience


class CampaignClock:
    """Counts when contacts can be reached.

    Args:
        forecast: Reads what is left of campaigns.
    """

    def __init__(self, forecast: CampaignForecast) -> None:
        self._forecast = forecast

    async def clock(self, workspace_id: str, campaign_id: str) -> AudienceClock:
        """Return how many contacts of a campaign can be reached in each of the 24 hours from its start, or from now on.

        An hour counts for a contact if some part of it is open for the campaign and in all time zones of the number,
        and if the contact does not wait beyond it. A campaign with more than 10,000 contacts is judged by so many.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        target, sampled = await self._forecast.left(workspace_id, campaign_id)
        campaign = target.campaign
        return AudienceClock(
            campaign_id=campaign.id,
            timezone=campaign.timezone,
            contacts=0 if campaign.is_terminal else len(target.contacts) * target.weight,
            hours=() if campaign.is_terminal else hours_of_audience(target),
            sampled=sampled,
        )
