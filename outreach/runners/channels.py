"""The differences between a campaign's channels."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Advance, Ending, Intent, Postponement, WavePlan
from outreach.models.recipient import Recipient
from outreach.providers.pool import ResolveProvider

Decision = Intent | Ending | Advance | Postponement
"""The decision about one due recipient."""


class CampaignChannel(Protocol):
    """One channel's part in running a campaign."""

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return the time between two starts; zero if the pace is limited otherwise."""
        ...

    def max_wave_size(self, campaign: Campaign) -> int:
        """Return the maximum number of intents in a wave."""
        ...

    def has_capacity(self, plan: WavePlan) -> bool:
        """Return whether another request may be in flight; a freed place wakes the campaign."""
        ...

    def provider_name(self, plan: WavePlan) -> str:
        """Return the campaign's carrier or voice provider."""
        ...

    def decide(self, plan: WavePlan, recipient: Recipient, now: datetime) -> Decision:
        """Decide about one due recipient, by pure rules."""
        ...

    def build_request(
        self, plan: WavePlan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None
    ) -> ResolveProvider:
        """Return the function that finds the provider and makes the request of a committed intent.

        `not_after` goes to the provider with the request: the contact must not be reached later.
        """
        ...
