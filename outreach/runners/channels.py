"""What differs between the channels of a campaign: how many at a time, what to ask, and whom."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient
from outreach.operations.wave import Ending, Hold, Intent, Move, Plan
from outreach.runners.errand import FindProvider

Decision = Intent | Ending | Move | Hold
"""What is done about one due recipient."""


class CampaignChannel(Protocol):
    """One channel's part in running a campaign."""

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return the time between two starts; zero where the pace is something else."""
        ...

    def most(self, campaign: Campaign) -> int:
        """Return how many intents one wave has at the most."""
        ...

    def room(self, plan: Plan) -> bool:
        """Return whether there is a free place at all; a place that becomes free touches the campaign."""
        ...

    def provider(self, plan: Plan) -> str:
        """Return the carrier or voice provider that the campaign goes to."""
        ...

    def decide(self, plan: Plan, recipient: Recipient, now: datetime) -> Decision:
        """Decide about one due recipient, by pure rules."""
        ...

    def request(self, plan: Plan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None) -> FindProvider:
        """Return what finds the provider for a committed intent, and makes the one request of it.

        Args:
            plan: What it was decided on.
            intent: What was decided.
            dispatch: What was committed.
            not_after: The contact must not be reached later: it goes to the provider with the request.
        """
        ...
