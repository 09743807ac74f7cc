"""What differs between the channels of a campaign: how many at a time, what to ask, and whom."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import (
    Advance,
    Ending,
    Intent,
    Postponement,
    WavePlan,
)
from outreach.models.recipient import Recipient
from outreach.providers.pool import ResolveProvider

Decision = Intent | Ending | Advance | Postponement
"""What is done about one due recipient."""


class CampaignChannel(Protocol):
    """One channel's part in running a campaign."""

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return the time between two starts; zero where the pace is something else."""
        ...

    def max_wave_size(self, campaign: Campaign) -> int:
        """Return how many intents one wave has at the most."""
        ...

    def has_capacity(self, plan: WavePlan) -> bool:
        """Return whether there is a free place at all; a place that becomes free touches the campaign."""
        ...

    def provider_name(self, plan: WavePlan) -> str:
        """Return the carrier or voice provider that the campaign goes to."""
        ...

    def decide(self, plan: WavePlan, recipient: Recipient, now: datetime) -> Decision:
        """Decide about one due recipient, by pure rules."""
        ...

    def build_request(
        self, plan: WavePlan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None
    ) -> ResolveProvider:
        """Return what finds the provider for a committed intent, and makes the one request of it.

        Args:
            plan: What it was decided on.
            intent: What was decided.
            dispatch: What was committed.
            not_after: The contact must not be reached later: it goes to the provider with the request.
        """
        ...
